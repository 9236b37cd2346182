//! What Flux Kustomizations among the inputs put into the output of their path: values of variables, and a namespace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::build::layout::name_of;
use crate::paths::{normal, root_around};
use memgate_manifest::document::{Document, parse_parts};
use memgate_manifest::later::{Given, is_filled_in_later};
use memgate_manifest::source::Source;

/// The group of Kustomizations that Flux applies.
const FLUX: &str = "kustomize.toolkit.fluxcd.io";

/// What one Kustomization puts in.
#[derive(Debug, Default)]
pub(crate) struct Assignment {
    /// The Kustomization and its place, in words.
    pub(crate) place: String,
    /// The namespace of all its objects.
    pub(crate) namespace: Option<String>,
    /// The values of variables; `None` for one that is not known.
    values: BTreeMap<String, Option<String>>,
    /// Whether it may have more variables, and other values for all but its own.
    is_open: bool,
    /// Whether it puts values in.
    pub(crate) has_post_build: bool,
}

impl Assignment {
    /// What is known of a variable.
    pub(crate) fn get(&self, name: &str) -> Given<'_> {
        match self.values.get(name) {
            Some(value) => value.as_deref().map_or(Given::Unknown, Given::Value),
            None if self.is_open => Given::Unknown,
            None => Given::Nothing,
        }
    }
}

/// The Kustomizations in some texts, by their paths.
#[derive(Debug, Default)]
pub(crate) struct Assignments {
    pub(crate) all: Vec<(PathBuf, Arc<Assignment>)>,
}

/// An object with values for variables.
struct ValuesOf {
    /// Its file.
    file: PathBuf,
    namespace: Option<String>,
    values: BTreeMap<String, Option<String>>,
}

impl Assignments {
    /// Those in these texts, each with the file that counts as its place.
    pub(crate) fn of(texts: &[(Arc<Source>, PathBuf)]) -> Self {
        let mut found = Self::default();
        let puts_in = |text: &str| {
            text.contains(FLUX) && ["postBuild", "targetNamespace"].iter().any(|it| text.contains(it))
        };
        if !texts.iter().any(|(source, _)| puts_in(source.text())) {
            return found;
        }
        let mut sources: BTreeMap<(bool, String), Vec<ValuesOf>> = BTreeMap::new();
        let may_have = |text: &str| ["ConfigMap", "Secret"].iter().any(|kind| text.contains(kind));
        for (source, file) in texts.iter().filter(|(source, _)| may_have(source.text())) {
            for document in parse_parts(source).flat_map(|parsed| parsed.documents) {
                if let Some((key, values)) = values_of(&document, file) {
                    sources.entry(key).or_default().push(values);
                }
            }
        }
        for (source, file) in texts.iter().filter(|(source, _)| puts_in(source.text())) {
            let root = root_around(file);
            for document in parse_parts(source).flat_map(|parsed| parsed.documents) {
                let Some((directory, assignment)) = read(&document, (file, &root), &sources) else {
                    continue;
                };
                found.all.push((directory, Arc::new(assignment)));
            }
        }
        found
    }
}

/// The values in a ConfigMap, and the names of those in a Secret.
fn values_of(document: &Document, file: &Path) -> Option<((bool, String), ValuesOf)> {
    let is_secret = document.kind() == "Secret";
    if !document.group().is_empty() || !is_secret && document.kind() != "ConfigMap" {
        return None;
    }
    let mut values = BTreeMap::new();
    for field in ["data", "stringData"] {
        for (name, value) in document.value().get(field).and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().filter(|it| !is_secret && !is_filled_in_later(it));
            values.insert(name.clone(), value.map(one_line));
        }
    }
    let namespace = document.namespace().map(str::to_owned);
    Some(((is_secret, document.name().to_owned()), ValuesOf { file: normal(file), namespace, values }))
}

/// The directory of a Kustomization that puts something in, and what it puts in. Of two objects the later one counts, and before all its own values.
fn read(
    document: &Document,
    (file, root): (&Path, &Path),
    sources: &BTreeMap<(bool, String), Vec<ValuesOf>>,
) -> Option<(PathBuf, Assignment)> {
    let is_flux = document.group() == FLUX && document.kind() == "Kustomization";
    let spec = document.value().get("spec").filter(|_| is_flux)?;
    let text = |field| spec.get(field).and_then(Value::as_str).filter(|it| !it.is_empty());
    let post_build = spec.get("postBuild").filter(|it| it.is_object());
    let target = text("targetNamespace");
    let path = text("path").unwrap_or_default();
    // The root of an artifact is not that of the repository.
    let is_artifact = spec.pointer("/sourceRef/kind").is_some_and(|kind| kind != "GitRepository");
    let is_elsewhere = is_artifact && path.chars().all(|it| ['.', '/'].contains(&it));
    if is_elsewhere || is_filled_in_later(path) || post_build.is_none() && target.is_none() {
        return None;
    }
    let namespace = document.namespace().map(|it| format!("{it}/")).unwrap_or_default();
    let mut assignment = Assignment {
        place: format!("Kustomization {namespace}{}, {}", document.name(), name_of(&normal(file))),
        namespace: target.map(str::to_owned),
        has_post_build: post_build.is_some(),
        ..Assignment::default()
    };
    let reads = post_build.and_then(|it| it.get("substituteFrom")).and_then(Value::as_array);
    for reads in reads.into_iter().flatten() {
        let text = |field| reads.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, name) = (text("kind"), text("name"));
        let own = document.namespace();
        let is_own =
            |it: &&ValuesOf| it.namespace.is_none() || own.is_none() || it.namespace.as_deref() == own;
        let all = sources.get(&(kind == "Secret", name)).into_iter().flatten();
        let all: Vec<_> = all.filter(is_own).map(|it| (common(&it.file, &normal(file)), it)).collect();
        let most = all.iter().map(|(common, _)| *common).max();
        let mut nearest = all.into_iter().filter(|(common, _)| Some(*common) == most).map(|(_, it)| it);
        match (nearest.next(), nearest.next()) {
            (Some(only), None) => assignment.values.extend(only.values.clone()),
            // Each variable may be in it. Of two nothing says which one is meant.
            _ => {
                assignment.is_open = true;
                assignment.values.clear();
            }
        }
    }
    let own = spec.pointer("/postBuild/substitute").and_then(Value::as_object).into_iter().flatten();
    for (name, value) in own {
        let value = value.as_str().map_or_else(|| value.to_string(), one_line);
        assignment.values.insert(name.clone(), Some(value));
    }
    Some((normal(&root.join(path.trim_start_matches('/'))), assignment))
}

/// How many directories two files have in common: of two objects of a name the nearer one is meant.
pub(crate) fn common(one: &Path, other: &Path) -> usize {
    one.components().zip(other.components()).take_while(|(a, b)| a == b).count()
}

/// Flux leaves line ends out of values.
fn one_line(value: &str) -> String {
    value.replace('\n', "")
}
