//! Kustomization files: the resources on which they build, and their input files that are not manifests.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use memgate_manifest::document::values;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;

/// The names that kustomize looks for.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The fields that list files and directories whose objects are built.
const RESOURCES: [&str; 3] = ["resources", "bases", "components"];
/// The fields that list files that are not manifests.
const INPUTS: [&str; 6] =
    ["patchesStrategicMerge", "transformers", "generators", "validators", "configurations", "crds"];
/// The fields that list objects whose `path` is such a file.
const INPUTS_BY_PATH: [&str; 3] = ["patches", "patchesJson6902", "replacements"];
const GENERATORS: [&str; 2] = ["configMapGenerator", "secretGenerator"];

/// The paths in a kustomization, relative to its directory.
#[derive(Debug, Default)]
pub struct Kustomization {
    /// Whether it is a Component, which is built only as part of another.
    pub is_component: bool,
    /// The files and directories of its objects.
    pub resources: Vec<String>,
    /// Patches and other files that are not manifests.
    pub inputs: Vec<String>,
    /// Whether a generator or a chart makes objects in it.
    pub generates: bool,
}

/// Whether a path is that of a kustomization file.
pub fn is_kustomization(path: &Path) -> bool {
    path.file_name().is_some_and(|name| FILE_NAMES.iter().any(|known| name == *known))
}

/// Reads a kustomization. Syntax errors go to `errors`: kustomize could not read it either.
pub fn parse(source: Source, errors: &mut Vec<Error>) -> Kustomization {
    let mut kustomization = Kustomization::default();
    for document in values(&Arc::new(source), errors) {
        kustomization.add(document.value());
    }
    kustomization
}

impl Kustomization {
    fn add(&mut self, value: &Value) {
        self.is_component |= value.get("kind").and_then(Value::as_str) == Some("Component");
        for field in RESOURCES {
            self.resources.extend(texts(value, field));
        }
        for field in INPUTS {
            self.inputs.extend(texts(value, field));
        }
        for field in INPUTS_BY_PATH {
            self.inputs.extend(items(value, field).filter_map(|item| text(item, "path")));
        }
        self.inputs.extend(value.get("openapi").and_then(|openapi| text(openapi, "path")));
        let generators = GENERATORS.iter().chain(&["generators", "helmCharts"]);
        self.generates |= generators.copied().any(|field| items(value, field).next().is_some());
        for generator in GENERATORS.into_iter().flat_map(|field| items(value, field)) {
            let files = texts(generator, "files").chain(texts(generator, "envs"));
            let path = |file: String| match file.split_once('=') {
                Some((_, path)) => path.to_owned(),
                None => file,
            };
            self.inputs.extend(files.chain(text(generator, "env")).map(path));
        }
        for chart in items(value, "helmCharts") {
            self.inputs.extend(texts(chart, "additionalValuesFiles").chain(text(chart, "valuesFile")));
        }
        // A patch may be written in the kustomization itself.
        self.inputs.retain(|path| !path.contains('\n'));
    }
}

fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn texts(value: &Value, field: &str) -> impl Iterator<Item = String> {
    items(value, field).filter_map(Value::as_str).map(str::to_owned)
}

fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

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
helmCharts: [{valuesFile: v.yaml}]
";
        let mut errors = Vec::new();
        let found = parse(Source::new("kustomization.yaml", text), &mut errors);
        assert_eq!(found.resources, ["a.yaml", "../base", "../audit"]);
        assert_eq!(found.inputs, ["s.yaml", "p.yaml", "j.json", "r.yaml", "c.yaml", "d.json", "v.yaml"]);
        assert!(errors.is_empty() && !found.is_component && found.generates);
        let component = parse(Source::new("x", "kind: Component\na: ["), &mut errors);
        assert_eq!((component.resources.len(), errors.len(), component.generates), (0, 1, false));
    }
}
