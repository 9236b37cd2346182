//! Kustomization files: the files and directories that they name, and their patches. What kustomize makes of them is its own
//! to say.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::path::Path;
use std::slice;
use std::sync::Arc;

use serde_json::Value;

use memgate_manifest::document::{Document, values};
use memgate_manifest::source::Source;
use memgate_primitives::pointer::Pointer;

/// The names that kustomize looks for.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The fields that list files and directories whose objects are built.
const RESOURCES: [&str; 3] = ["resources", "bases", "components"];
/// The fields that list files with what kustomize runs: its own transformers, else plugins.
const PLUGINS: [&str; 3] = ["transformers", "generators", "validators"];
/// The fields that list other files that are not manifests.
const INPUTS: [&str; 2] = ["configurations", "crds"];
/// The fields that list patches with a target.
const PATCHES: [&str; 2] = ["patches", "patchesJson6902"];
/// The fields with generators: of ConfigMaps, and of Secrets.
const GENERATORS: [&str; 2] = ["configMapGenerator", "secretGenerator"];
/// The directory in which kustomize looks for charts.
const CHART_HOME: &str = "charts";

/// What a kustomization names, with paths relative to its directory.
#[derive(Debug, Default)]
pub struct Kustomization {
    /// Whether it is a Component, which is built only as part of another.
    pub is_component: bool,
    /// The files and directories of its objects.
    pub resources: Vec<String>,
    /// Patches and other files that are not manifests.
    pub inputs: Vec<String>,
    /// The configurations of transformers, generators and validators: files, directories or texts.
    pub plugins: Vec<String>,
    /// The charts that it renders.
    pub charts: Vec<ChartOf>,
    /// Its patches, in the order of kustomize's fields.
    pub patches: Vec<Patch>,
    /// The namespace of its objects.
    pub namespace: Option<String>,
    /// Why kustomize may read something else in it than what is here.
    pub fault: Option<String>,
}

/// A chart of a kustomization.
#[derive(Debug)]
pub struct ChartOf {
    /// Where it may lie if it is here.
    pub paths: Vec<String>,
    /// The repository from which it is fetched if it is not.
    pub repository: Option<String>,
    /// Whether helm would take one of its fields for a flag.
    pub has_flag: bool,
}

/// A patch that a kustomization lists.
#[derive(Debug, Clone)]
pub struct Patch {
    /// The field of the kustomization with its path or text.
    pub at: Pointer,
    /// Where it is.
    pub body: PatchBody,
    /// The objects to which it applies; `None` for the one that it names itself.
    pub target: Option<Selector>,
}

/// Where a patch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchBody {
    /// In this file, relative to the directory.
    File(String),
    /// In the kustomization itself.
    Text(String),
}

/// The kind and name of the objects to which a patch applies. kustomize takes both for regular expressions of the whole value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// The kind.
    pub kind: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// By what else it selects.
    pub others: Vec<(&'static str, String)>,
}

impl Selector {
    /// That of a `target` or `select`.
    pub(crate) fn of(value: &Value) -> Self {
        let field = |name| text(value, name).filter(|text| !text.is_empty());
        let others = ["group", "version", "apiVersion", "namespace", "labelSelector", "annotationSelector"];
        let others = others.into_iter().filter_map(|name| Some((name, field(name)?))).collect();
        Self { kind: field("kind"), name: field("name"), others }
    }
}

/// Whether an item of a list of files is the content itself, and not the path of its file.
pub(crate) fn is_content(text: &str) -> bool {
    text.contains('\n') || text.contains(": ")
}

/// Whether kustomize takes a path for one in another repository, or for an address: it has a scheme or an account, names a
/// version, or begins with a host, and is no file here.
pub(crate) fn is_remote(directory: &Path, path: &str) -> bool {
    let begins_with_host = || {
        let (first, rest) = path.split_once('/')?;
        Some(first.contains('.') && first.trim_matches('.').len() == first.len() && rest.contains('/'))
    };
    let marks = ["::", "git@", "?ref=", "?version=", "gh:"];
    let may_be = || marks.iter().any(|mark| path.contains(mark)) || begins_with_host() == Some(true);
    path.contains("://") || may_be() && !directory.join(path).exists()
}

/// Whether a path is that of a kustomization file.
pub fn is_kustomization(path: &Path) -> bool {
    path.file_name().is_some_and(|name| FILE_NAMES.iter().any(|known| name == *known))
}

/// Reads a kustomization, as far as it can be read.
pub fn parse(source: Source) -> Kustomization {
    let (source, mut errors) = (Arc::new(source), Vec::new());
    let documents = values(&source, &mut errors);
    let error = errors.first().map(ToString::to_string);
    let unclear = || {
        let key = documents.iter().find_map(|document| unclear_key(document.value()))?;
        Some(format!("{}: kustomize takes the key {key:?} for another one", source.name()))
    };
    let fault = error.or_else(unclear).map(|fault| fault.trim_start_matches("./").to_owned());
    Kustomization { fault, ..Kustomization::of(&documents) }
}

/// The key of a field that differs from another one only by case, also by that of the two letters that Go takes for ASCII
/// ones. Maps with free keys do not count.
pub(crate) fn unclear_key(value: &Value) -> Option<&String> {
    const FREE: [&str; 6] =
        ["commonLabels", "commonAnnotations", "pairs", "labels", "annotations", "valuesInline"];
    match value {
        Value::Array(items) => items.iter().find_map(unclear_key),
        Value::Object(map) => {
            let mut keys = BTreeSet::new();
            let mut is_unclear = |key: &&String| {
                key.contains(['\u{17f}', '\u{212a}']) || !keys.insert(key.to_ascii_lowercase())
            };
            let below = || map.iter().filter(|(key, _)| !FREE.contains(&key.as_str()));
            map.keys().find(&mut is_unclear).or_else(|| below().find_map(|(_, value)| unclear_key(value)))
        }
        _ => None,
    }
}

impl Kustomization {
    /// That of the documents of its file.
    pub fn of(documents: &[impl Borrow<Document>]) -> Self {
        let mut kustomization = Self::default();
        for document in documents {
            kustomization.add(document.borrow().value());
        }
        kustomization
    }

    fn add(&mut self, value: &Value) {
        self.is_component |= text(value, "kind").as_deref() == Some("Component");
        let own = text(value, "namespace").filter(|it| !it.is_empty());
        self.namespace = own.or_else(|| self.namespace.take());
        self.resources.extend(RESOURCES.iter().flat_map(|field| texts(value, field)));
        self.plugins.extend(PLUGINS.iter().flat_map(|field| texts(value, field)));
        self.inputs.extend(INPUTS.iter().flat_map(|field| texts(value, field)));
        self.inputs.extend(items(value, "replacements").filter_map(|item| text(item, "path")));
        self.inputs.extend(field(value, "openapi").and_then(|openapi| text(openapi, "path")));
        self.add_patches(value);
        for generator in GENERATORS.into_iter().flat_map(|field| items(value, field)) {
            let files = texts(generator, "files").chain(texts(generator, "envs"));
            let path = |file: String| match file.split_once('=') {
                Some((_, path)) => path.to_owned(),
                None => file,
            };
            self.inputs.extend(files.chain(text(generator, "env")).map(path));
        }
        let home = field(value, "helmGlobals").and_then(|it| text(it, "chartHome"));
        let home = home.as_deref().unwrap_or(CHART_HOME);
        for chart in items(value, "helmCharts").chain(items(value, "helmChartInflationGenerator")) {
            let name = text(chart, "name").or_else(|| text(chart, "chartName")).unwrap_or_default();
            let repository = text(chart, "repo").or_else(|| text(chart, "chartRepoUrl"));
            let versioned = text(chart, "version").map(|version| format!("{home}/{name}-{version}/{name}"));
            let paths = [format!("{home}/{name}")].into_iter().chain(versioned).collect();
            let all = chart.as_object().into_iter().flat_map(|fields| fields.values());
            let all = all.flat_map(|it| it.as_array().map_or_else(|| slice::from_ref(it), Vec::as_slice));
            let has_flag = all.filter_map(Value::as_str).any(|text| text.starts_with('-'));
            self.charts.push(ChartOf { paths, repository, has_flag });
            let files = texts(chart, "additionalValuesFiles").chain(text(chart, "valuesFile"));
            self.inputs.extend(files.chain(text(chart, "values")));
        }
    }

    fn add_patches(&mut self, value: &Value) {
        for (index, item) in items(value, "patchesStrategicMerge").enumerate() {
            let at = Pointer::new("/patchesStrategicMerge").index(index);
            let body = item.as_str().map(|text| {
                if is_content(text) {
                    PatchBody::Text(text.to_owned())
                } else {
                    PatchBody::File(text.to_owned())
                }
            });
            self.patches.extend(body.map(|body| Patch { at, body, target: None }));
        }
        for list in PATCHES {
            for (index, item) in items(value, list).enumerate() {
                let at = Pointer::root().key(list).index(index);
                let target = field(item, "target").filter(|it| it.is_object()).map(Selector::of);
                let body = text(item, "path").map(|path| ("path", PatchBody::File(path)));
                let body = body.or_else(|| Some(("patch", PatchBody::Text(text(item, "patch")?))));
                self.patches.extend(body.map(|(key, body)| Patch { at: at.key(key), body, target }));
            }
        }
        let files = self.patches.iter().filter_map(|patch| match &patch.body {
            PatchBody::File(path) => Some(path.clone()),
            PatchBody::Text(_) => None,
        });
        self.inputs.extend(files.collect::<Vec<_>>());
    }

    /// The paths that it names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        let plugins = self.plugins.iter().filter(|plugin| !is_content(plugin));
        let charts = self.charts.iter().flat_map(|chart| &chart.paths);
        self.resources.iter().chain(&self.inputs).chain(plugins).chain(charts)
    }
}

/// A field, whose name kustomize and helm take in any case.
fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let in_any_case = || value.as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    value.get(name).or_else(|| in_any_case().map(|(_, value)| value))
}

/// The elements of a field that is a list.
pub(crate) fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    field(value, name).and_then(Value::as_array).into_iter().flatten()
}

/// The texts among them.
pub(crate) fn texts(value: &Value, name: &str) -> impl Iterator<Item = String> {
    items(value, name).filter_map(Value::as_str).map(str::to_owned)
}

/// The text of a field.
pub(crate) fn text(value: &Value, name: &str) -> Option<String> {
    field(value, name).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_paths_in_other_repositories() {
        for (path, expected) in [
            ("https://h.example/r//base?ref=v1", true),
            ("git@h.example:o/r.git", true),
            ("ssh://git@h.example/r", true),
            ("git::https://h.example/r", true),
            ("gh:o/r", true),
            ("github.com/o/r//base", true),
            ("../base?ref=v1", true),
            ("../base", false),
            ("./a.b/c", false),
            ("base/memory.yaml", false),
            ("v1.2/base.yaml", false),
            (".hidden/a/b", false),
        ] {
            assert_eq!(is_remote(Path::new("/none"), path), expected, "{path}");
        }
    }

    #[test]
    fn finds_the_paths_in_a_kustomization() {
        let text = "\
resources: [a.yaml, ../base]
components: [../audit]
patches:
  - path: p.yaml
  - patch: |
      - op: remove
        path: /spec
patchesStrategicMerge: [s.yaml, \"kind: X\\nmetadata: {}\\n\"]
patchesJson6902: [{target: {kind: X}, path: j.json}]
replacements: [{path: r.yaml}]
configMapGenerator: [{files: [k=c.yaml, d.json]}]
helmCharts: [{name: one, valuesFile: v.yaml}]
transformers: [t.yaml, \"apiVersion: builtin\\nkind: X\\n\"]
";
        let found = parse(Source::new("kustomization.yaml", text));
        let paths: Vec<&str> = found.paths().map(String::as_str).collect();
        let expected = [
            "a.yaml", "../base", "../audit", "r.yaml", "s.yaml", "p.yaml", "j.json", "c.yaml", "d.json",
            "v.yaml", "t.yaml", "charts/one",
        ];
        assert_eq!(paths, expected);
        for text in
            ["a: [x]\na: [y]\n", "a: [x]\nA: [y]\n", "\"re\\u017fources\": []\n", "x: [{a: 1, A: 2}]\n"]
        {
            assert!(parse(Source::new("x", text)).fault.is_some(), "{text}");
        }
        let component = parse(Source::new("x", "kind: Component\nresources: ["));
        assert!(component.paths().next().is_none());
    }
}
