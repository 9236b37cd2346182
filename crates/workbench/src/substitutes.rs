//! The values that Flux Kustomizations among the inputs put into the files of their path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::repository::{normal, root_of};
use memgate_manifest::document::{Document, each_value};
use memgate_manifest::later::Given;
use memgate_manifest::source::Source;

/// The group of Kustomizations that Flux applies.
const FLUX: &str = "kustomize.toolkit.fluxcd.io";

/// What the Kustomizations of a directory put in.
#[derive(Debug, Default, Clone)]
struct Variables {
    values: BTreeMap<String, Variable>,
    /// How many of them take more from a ConfigMap or Secret, which may have any variable.
    open: usize,
}

#[derive(Debug, Default, Clone)]
struct Variable {
    /// The value; `None` if it has two.
    value: Option<String>,
    /// How many Kustomizations that take more have it themselves, which then counts.
    open: usize,
}

/// The variables of Flux Kustomizations, by the directories to which they belong.
#[derive(Debug, Default)]
pub struct Substitutes(BTreeMap<PathBuf, Arc<Variables>>);

/// The variables of a file.
pub(crate) struct OfFile(Vec<Arc<Variables>>);

impl OfFile {
    /// What is known of a variable.
    pub(crate) fn get(&self, name: &str) -> Given<'_> {
        let open: usize = self.0.iter().map(|variables| variables.open).sum();
        let (mut own, mut value) = (0, None);
        for variable in self.0.iter().filter_map(|variables| variables.values.get(name)) {
            own += variable.open;
            let Some(text) = variable.value.as_deref() else { return Given::Unknown };
            if *value.get_or_insert(text) != text {
                return Given::Unknown;
            }
        }
        match value {
            _ if own < open => Given::Unknown,
            Some(text) => Given::Value(text),
            None => Given::Nothing,
        }
    }
}

impl Substitutes {
    /// Adds the Kustomizations of a text.
    pub(crate) fn add(&mut self, source: &Arc<Source>) {
        if ![FLUX, "postBuild"].iter().all(|part| source.text().contains(part)) {
            return;
        }
        let file = normal(Path::new(source.name()));
        let here = normal(Path::new("."));
        let root = file.parent().and_then(root_of).unwrap_or(&here);
        for document in each_value(source).filter_map(Result::ok) {
            let Some(post_build) = post_build(&document) else { continue };
            let path = document.value().pointer("/spec/path").and_then(Value::as_str).unwrap_or_default();
            let all = self.0.entry(normal(&root.join(path.trim_start_matches('/')))).or_default();
            Arc::make_mut(all).add(post_build);
        }
    }

    /// The variables of a file.
    pub(crate) fn of(&self, source: &Source) -> OfFile {
        if self.0.is_empty() {
            return OfFile(Vec::new());
        }
        let file = normal(Path::new(source.name()));
        OfFile(file.ancestors().filter_map(|directory| self.0.get(directory).cloned()).collect())
    }
}

impl Variables {
    fn add(&mut self, post_build: &Value) {
        let from = post_build.get("substituteFrom").and_then(Value::as_array);
        let open = usize::from(from.is_some_and(|from| !from.is_empty()));
        self.open += open;
        for (name, value) in post_build.get("substitute").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let known = self
                .values
                .entry(name.clone())
                .or_insert_with(|| Variable { value: Some(value.clone()), open: 0 });
            known.open += open;
            known.value = known.value.take().filter(|known| *known == value);
        }
    }
}

/// What a Kustomization puts in.
fn post_build(document: &Document) -> Option<&Value> {
    let is_flux = document.group() == FLUX && document.kind() == "Kustomization";
    document.value().pointer("/spec/postBuild").filter(|_| is_flux)
}
