//! Kustomization files: the resources on which they build, and their input files that are not manifests.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::paths::{Home, normal};
use memgate_manifest::document::{Document, values};
use memgate_manifest::error::Error;
use memgate_manifest::later::is_filled_in_later;
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::Finding;
use memgate_model::label_selector::{LabelSelector, Requirement, SelectorOperator};
use memgate_platforms::common::KUSTOMIZATION_INVALID;
use memgate_primitives::plain_text::{quoted_key, quoted_text};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};

/// The names that kustomize looks for.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The fields that list files and directories whose objects are built.
const RESOURCES: [&str; 3] = ["resources", "bases", "components"];
/// The fields that list files that are not manifests.
const INPUTS: [&str; 6] =
    ["patchesStrategicMerge", "transformers", "generators", "validators", "configurations", "crds"];
/// Those among them that may list directories with kustomizations too.
const PLUGINS: [&str; 3] = ["transformers", "generators", "validators"];
/// The fields that list objects whose `path` is such a file.
const INPUTS_BY_PATH: [&str; 3] = ["patches", "patchesJson6902", "replacements"];
/// The fields that list what makes or changes objects of any kind.
const OPEN: [&str; 4] = ["generators", "helmCharts", "helmChartInflationGenerator", "transformers"];
/// All fields.
const FIELDS: [&str; 35] = [
    "apiVersion", "bases", "buildMetadata", "commonAnnotations", "commonLabels", "components",
    "configMapGenerator", "configurations", "crds", "generatorOptions", "generators",
    "helmChartInflationGenerator", "helmCharts", "helmGlobals", "imageTags", "images", "inventory", "kind",
    "labels", "metadata", "namePrefix", "nameSuffix", "namespace", "openapi", "patches", "patchesJson6902",
    "patchesStrategicMerge", "replacements", "replicas", "resources", "secretGenerator", "sortOptions",
    "transformers", "validators", "vars",
];
/// The fields that change labels and annotations.
const LABELS: [&str; 3] = ["labels", "commonLabels", "commonAnnotations"];
/// The fields with generators: of ConfigMaps, and of Secrets.
pub(crate) const GENERATORS: [&str; 2] = ["configMapGenerator", "secretGenerator"];

/// The paths in a kustomization, relative to its directory.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Kustomization {
    /// Whether it is a Component, which is built only as part of another.
    pub is_component: bool,
    /// The files and directories of its objects.
    pub resources: Vec<String>,
    /// Patches and other files that are not manifests.
    pub inputs: Vec<String>,
    /// Those among them that may be directories, which are built.
    pub plugins: Vec<String>,
    /// Whether a generator, a chart or a kustomization in another repository makes objects in it.
    pub generates: bool,
    /// The first of its resources in another repository.
    pub remote: Option<String>,
    /// The namespace of its objects.
    pub namespace: Option<String>,
    /// Whether objects of any kind and name may come into it, or leave it: from charts, plugins and transformers.
    pub is_open: bool,
    /// Whether it changes names.
    pub renames: bool,
    /// Whether it changes labels or annotations.
    pub labels: bool,
    /// Its patches, in the order of kustomize's fields.
    pub patches: Vec<Patch>,
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

/// The objects to which a patch applies. kustomize takes each text for a regular expression of the whole value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// The group.
    pub group: Option<String>,
    /// The version.
    pub version: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The selector of labels, and that of annotations.
    pub labels: [Option<String>; 2],
}

impl Selector {
    fn of(value: &Value) -> Self {
        let field = |name| text(value, name).filter(|text| !text.is_empty());
        let api_version = field("apiVersion");
        let (group, version) = match api_version.as_deref().map(|it| it.split_once('/').unwrap_or(("", it))) {
            Some((group, version)) => (Some(group.to_owned()), Some(version.to_owned())),
            None => (field("group"), field("version")),
        };
        Self {
            group,
            version,
            kind: field("kind"),
            namespace: field("namespace"),
            name: field("name"),
            labels: ["labelSelector", "annotationSelector"].map(field),
        }
    }

    /// Whether labels or annotations select.
    pub(crate) fn has_labels(&self) -> bool {
        self.labels.iter().any(Option::is_some)
    }

    /// The selectors of labels and of annotations, if they can be read.
    pub(crate) fn label_selectors(&self) -> Option<[LabelSelector; 2]> {
        let [labels, annotations] =
            self.labels.each_ref().map(|it| label_selector(it.as_deref().unwrap_or_default()));
        Some([labels?, annotations?])
    }
}

/// A selector of labels as kubectl takes it: `a=b,c!=d,e in (f,g),h,!i`.
fn label_selector(text: &str) -> Option<LabelSelector> {
    let mut depth = 0;
    let parts = text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    let requirement = |part: &str| {
        let listed = |list: &str| -> Option<Vec<String>> {
            let list = list.trim().strip_prefix('(')?.strip_suffix(')')?;
            Some(list.split(',').map(|it| it.trim().to_owned()).collect())
        };
        let one = |value: &str| Some(vec![value.trim_start_matches('=').trim().to_owned()]);
        let (key, operator, values) = if let Some((key, value)) = part.split_once("!=") {
            (key, SelectorOperator::NotIn, one(value)?)
        } else if let Some((key, value)) = part.split_once('=') {
            (key, SelectorOperator::In, one(value)?)
        } else if let Some((key, list)) = part.split_once(" notin ") {
            (key, SelectorOperator::NotIn, listed(list)?)
        } else if let Some((key, list)) = part.split_once(" in ") {
            (key, SelectorOperator::In, listed(list)?)
        } else if let Some(key) = part.strip_prefix('!') {
            (key, SelectorOperator::DoesNotExist, Vec::new())
        } else {
            (part, SelectorOperator::Exists, Vec::new())
        };
        let key = key.trim().to_owned();
        let is_key = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        key.chars().all(is_key).then_some(Requirement { key, operator, values })
    };
    let requirements = parts.map(str::trim).filter(|part| !part.is_empty()).map(requirement);
    Some(LabelSelector { requirements: requirements.collect::<Option<_>>()? })
}

/// Whether an item of `patchesStrategicMerge` is the patch itself, and not the path of its file.
fn is_patch(text: &str) -> bool {
    text.contains('\n') || text.contains(": ")
}

/// Whether kustomize takes a resource for one in another repository: it has a scheme or an account, names a version, or begins
/// with a host.
pub(crate) fn is_remote(resource: &str) -> bool {
    let begins_with_host = || {
        let (first, rest) = resource.split_once('/')?;
        Some(first.contains('.') && first.trim_matches('.').len() == first.len() && rest.contains('/'))
    };
    let is_marked = resource.contains("://") || resource.starts_with("git@") || resource.contains("?ref=");
    is_marked || begins_with_host() == Some(true)
}

/// Whether a path is that of a kustomization file.
pub fn is_kustomization(path: &Path) -> bool {
    path.file_name().is_some_and(|name| FILE_NAMES.iter().any(|known| name == *known))
}

/// Reads a kustomization. Syntax errors go to `errors`: kustomize could not read it either.
pub fn parse(source: Source, errors: &mut Vec<Error>) -> Kustomization {
    Kustomization::of(&values(&Arc::new(source), errors))
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

    fn add_patches(&mut self, value: &Value) {
        for (index, item) in items(value, "patchesStrategicMerge").enumerate() {
            let at = Pointer::new("/patchesStrategicMerge").index(index);
            let body = |text: &str| {
                if is_patch(text) {
                    PatchBody::Text(text.to_owned())
                } else {
                    PatchBody::File(text.to_owned())
                }
            };
            self.patches.extend(item.as_str().map(|text| Patch { at, body: body(text), target: None }));
        }
        for field in ["patches", "patchesJson6902"] {
            for (index, item) in items(value, field).enumerate() {
                let at = Pointer::root().key(field).index(index);
                let target = item.get("target").filter(|it| it.is_object()).map(Selector::of);
                let body = text(item, "path").map(|path| ("path", PatchBody::File(path)));
                let body = body.or_else(|| Some(("patch", PatchBody::Text(text(item, "patch")?))));
                self.patches.extend(body.map(|(key, body)| Patch { at: at.key(key), body, target }));
            }
        }
    }

    fn add(&mut self, value: &Value) {
        self.is_component |= value.get("kind").and_then(Value::as_str) == Some("Component");
        let own = text(value, "namespace").filter(|it| !it.is_empty());
        self.namespace = own.or_else(|| self.namespace.take());
        for field in RESOURCES {
            self.resources.extend(texts(value, field));
        }
        for field in INPUTS {
            self.inputs.extend(texts(value, field));
        }
        for field in PLUGINS {
            self.plugins.extend(texts(value, field));
        }
        for field in INPUTS_BY_PATH {
            self.inputs.extend(items(value, field).filter_map(|item| text(item, "path")));
        }
        self.inputs.extend(value.get("openapi").and_then(|openapi| text(openapi, "path")));
        self.is_open |= OPEN.into_iter().any(|field| items(value, field).next().is_some());
        // Such a patch makes an object of another name or kind.
        let allows = |patch: &Value| {
            let options = ["/options/allowNameChange", "/options/allowKindChange"];
            options.iter().any(|it| patch.pointer(it).is_some_and(|it| *it == true || *it == "true"))
        };
        self.is_open |= items(value, "patches").any(allows);
        self.renames |= ["namePrefix", "nameSuffix"].into_iter().any(|field| text(value, field).is_some());
        self.labels |= LABELS.into_iter().any(|field| value.get(field).is_some());
        self.add_patches(value);
        let generators = GENERATORS.iter().chain(&["generators", "helmCharts"]);
        self.generates |= generators.copied().any(|field| items(value, field).next().is_some());
        self.remote = self.remote.take().or_else(|| self.resources.iter().find(|it| is_remote(it)).cloned());
        self.generates |= self.remote.is_some();
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
        self.inputs.retain(|path| !is_patch(path));
    }
}

/// The fields in a kustomization that name resources, components and patches in files here, each with the path.
fn paths_in(documents: &[impl Borrow<Document>]) -> Vec<(Pointer, String)> {
    let mut paths = Vec::new();
    for document in documents {
        for field in RESOURCES {
            let listed = items(document.borrow().value(), field).enumerate();
            let path = |it: &Value| it.as_str().filter(|path| !is_remote(path)).map(str::to_owned);
            let listed =
                listed.filter_map(|(index, it)| Some((Pointer::root().key(field).index(index), path(it)?)));
            paths.extend(listed);
        }
    }
    paths.extend(Kustomization::of(documents).patches.into_iter().filter_map(|patch| match patch.body {
        PatchBody::File(path) => Some((patch.at, path)),
        PatchBody::Text(_) => None,
    }));
    paths
}

/// The fields in a kustomization of this directory that name a file or directory that does not exist.
pub(crate) fn missing_in(
    documents: &[impl Borrow<Document>],
    directory: &Path,
) -> impl Iterator<Item = (Pointer, String)> {
    paths_in(documents).into_iter().filter(|(_, path)| !directory.join(path).exists())
}

/// The place in a kustomization of this directory at which it names another directory, by its absolute path.
pub(crate) fn place_of(other: &Path, source: Source, directory: &Path) -> (Arc<Source>, Span) {
    let source = Arc::new(source);
    let documents = values(&source, &mut Vec::new());
    let here = normal(directory);
    let at = paths_in(&documents).into_iter().find(|(_, path)| normal(&here.join(path)) == other);
    let span = at.and_then(|(at, _)| {
        let document = documents.iter().find(|it| it.value().pointer(at.as_str()).is_some())?;
        Some(document.locate(&at).carets(false).0)
    });
    let span = span.unwrap_or_else(|| source.span(0, 0));
    (source, span)
}

/// The findings about what `kustomize build` refuses in a kustomization of this directory, whatever its files are.
pub(crate) fn faults(documents: &[Arc<Document>], directory: &Path, home: &Home) -> Vec<Finding> {
    let named = paths_in(documents).into_iter().filter(|(_, path)| !is_filled_in_later(path));
    let missing = named.filter_map(|(at, path)| {
        let is_resource = at.tokens().next().is_some_and(|field| RESOURCES.contains(&&*field));
        let named = directory.join(&path);
        // Whether a file exists elsewhere is not told.
        let why = if !is_resource && home.is_left_by(&named) {
            "leads out of the repository, so it is not read, and kustomize build fails"
        } else if !named.exists() {
            "does not exist, so kustomize build fails"
        } else if !is_resource && named.is_dir() {
            "is a directory, so kustomize build fails"
        } else {
            return None;
        };
        Some(Finding::warn(&KUSTOMIZATION_INVALID, at, format!("{} {why}", quoted_text(&path))))
    });
    let fields = documents.iter().filter_map(|document| document.value().as_object()).flatten();
    let unknown = fields.filter_map(|(field, _)| {
        let is_known = FIELDS.iter().any(|known| known.eq_ignore_ascii_case(field));
        let meant = nearest(field, FIELDS).filter(|_| !is_known)?;
        let (field, at) = (quoted_key(field), Pointer::root().key(field));
        let meant = did_you_mean(Some(meant));
        let message = format!("kustomize does not know the field {field}, so kustomize build fails{meant}");
        Some(Finding { at_key: true, ..Finding::warn(&KUSTOMIZATION_INVALID, at, message) })
    });
    unknown.chain(missing).collect()
}

/// The elements of a field that is a list.
pub(crate) fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// The texts among them.
pub(crate) fn texts(value: &Value, field: &str) -> impl Iterator<Item = String> {
    items(value, field).filter_map(Value::as_str).map(str::to_owned)
}

/// The text of a field.
pub(crate) fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_resources_in_other_repositories() {
        for (resource, expected) in [
            ("https://h.example/r//base?ref=v1", true),
            ("git@h.example:o/r.git", true),
            ("ssh://git@h.example/r", true),
            ("github.com/o/r//base", true),
            ("../base?ref=v1", true),
            ("../base", false),
            ("./a.b/c", false),
            ("base/memory.yaml", false),
            ("v1.2/base.yaml", false),
            (".hidden/a/b", false),
        ] {
            assert_eq!(is_remote(resource), expected, "{resource}");
        }
    }

    #[test]
    fn reads_selectors_of_labels() {
        let labels = [("a", "b"), ("c", "d")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        for (text, expected) in [
            ("", Some(true)),
            ("a=b", Some(true)),
            ("a==b, c!=x", Some(true)),
            ("a = x", Some(false)),
            ("a in (x, b),c", Some(true)),
            ("a notin (b,x)", Some(false)),
            ("!a", Some(false)),
            ("!e,a", Some(true)),
            ("a in b", None),
            ("a > 5", None),
        ] {
            assert_eq!(label_selector(text).map(|it| it.fits(&labels)), expected, "{text}");
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
