//! The places of the state's objects in the files, and the source files of rendered objects. A finding refers to another
//! object by name; reports show its place. helm and `memgate mutate` write the source file in a comment, kustomize in an
//! annotation; the line in it is not known.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::errors::location;
use crate::report::Related;
use crate::repository::{Tool, Unit, without_dots};
use memgate_core::state;
use memgate_manifest::document::{Document, values};
use memgate_manifest::place::{DocumentPlace, LastSource};
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::object::Reference;
use memgate_model::settings::Settings;
use memgate_primitives::credential::masked;
use memgate_primitives::members::ByKey;
use memgate_primitives::pointer::Pointer;

/// The places of objects by their names, also of those that `--with` gives. The later of two objects with one name
/// counts, as in the state.
#[derive(Debug, Default)]
pub struct Places(ByKey<u64, ObjectPlace>);

/// A hash of an object's group, kind, namespace and name. Each process has a key of its own, so that an author cannot look
/// for names that collide. With a million objects two collide in one of 37 million runs.
pub(crate) fn name_hash(names: [&str; 4]) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(names)
}

fn key(Reference { kind, namespace, name }: &Reference) -> u64 {
    name_hash([kind.group, kind.kind, namespace, name])
}

/// A value of a document: its object, or one in a List.
#[derive(Clone, Copy)]
pub(crate) struct Part<'d> {
    pub(crate) document: &'d Document,
    /// The place in the document.
    pub(crate) within: &'d Pointer,
    pub(crate) value: &'d Value,
}

/// The place of an object.
#[derive(Debug)]
struct ObjectPlace {
    document: Arc<DocumentPlace>,
    /// The object in the document: `/items/3` inside a List that is one document.
    within: Option<Box<Pointer>>,
}

impl Places {
    /// Adds an object.
    pub(crate) fn add(&mut self, Part { document, within, value }: Part<'_>, settings: &Settings) {
        if let Some(reference) = state::reference(settings, value) {
            let within = Some(within).filter(|within| **within != Pointer::root()).cloned().map(Box::new);
            let place = ObjectPlace { document: document.shared_place(), within };
            self.0.insert(key(&reference), place);
        }
    }

    /// Adds the places of other inputs, which replace those of the same names.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether the object is in the files.
    pub fn has(&self, object: &Reference) -> bool {
        self.0.get(&key(object)).is_some()
    }

    /// The place of a field of an object.
    pub(crate) fn span(&self, object: &Reference, pointer: &Pointer) -> Option<(Arc<Source>, Span)> {
        let place = self.0.get(&key(object))?;
        Some((Arc::clone(place.document.source()), place.caret(pointer)))
    }

    /// The place of the name of an object of one of these kinds.
    pub fn of_object(
        &self,
        kinds: impl Iterator<Item = &'static Kind>,
        [namespace, name]: [&str; 2],
    ) -> Option<(Arc<Source>, Span)> {
        let hash = |kind: &Kind| {
            let namespace = if kind.namespaced { namespace } else { "" };
            name_hash([kind.group, kind.kind, namespace, name])
        };
        let place = kinds.map(hash).find_map(|key| self.0.get(&key))?;
        Some((Arc::clone(place.document.source()), place.caret(&Pointer::new("/metadata/name"))))
    }

    /// The file, line and column of a field of an object.
    pub fn describe(&self, object: &Reference, pointer: &Pointer) -> Option<String> {
        let (source, span) = self.span(object, pointer)?;
        Some(format!("{}:{}:{}", source.name(), span.line, span.column))
    }

    /// The places in other objects that findings refer to, by finding. Places of one document are looked up together,
    /// since its text may have to be parsed again for them.
    pub(crate) fn elsewhere<'r>(
        &'r self,
        findings: impl Iterator<Item = &'r Finding>,
    ) -> BTreeMap<*const Finding, Vec<Related<'r>>> {
        let all = findings.flat_map(|finding| finding.elsewhere.iter().map(move |it| (finding, it)));
        let places = all.filter_map(|(finding, it)| Some((finding, it, self.0.get(&key(&it.object))?)));
        let mut places: Vec<_> = places.enumerate().collect();
        places.sort_by_key(|(_, (.., place))| (Arc::as_ptr(place.document.source()), place.document.start()));
        let mut last = LastSource::default();
        let related = places.into_iter().map(|(number, (finding, elsewhere, place))| {
            last.is_now(&place.document);
            let location = location(place.document.source(), place.caret(&elsewhere.pointer));
            let label = elsewhere.label.to_owned();
            (number, std::ptr::from_ref(finding), Related { location, label })
        });
        let mut related: Vec<_> = related.collect();
        related.sort_by_key(|(number, ..)| *number);
        let mut of_findings: BTreeMap<*const Finding, Vec<Related<'r>>> = BTreeMap::new();
        for (_, finding, related) in related {
            of_findings.entry(finding).or_default().push(related);
        }
        of_findings
    }
}

impl ObjectPlace {
    /// The stretch of a caret for a field of the object.
    fn caret(&self, pointer: &Pointer) -> Span {
        let within = self.within.as_ref().map(|within| within.join(pointer));
        self.document.locate(within.as_ref().unwrap_or(pointer)).carets(false).0
    }
}

const COMMENT: &str = "# Source: ";
/// The annotation that kustomize writes with `buildMetadata: [originAnnotations]`.
const ANNOTATION: &str = "/metadata/annotations/config.kubernetes.io~1origin";
/// helm names a template before each of its documents, other files only before the first one.
const TEMPLATES: &str = "/templates/";

/// The name of a file, which documents share; `None` when it is unknown.
type SourceFile = Option<Arc<str>>;

/// The source files of documents.
#[derive(Debug, Default)]
pub struct Origins {
    /// The charts and overlays that memgate rendered, by the names of the sources.
    pub(crate) rendered: BTreeMap<String, Unit>,
    /// The files of each source with the bytes at which their documents start, in order; `None` for an unknown file.
    files: BTreeMap<*const Source, Vec<(usize, SourceFile)>>,
    /// Keeps the sources alive, whose addresses are the keys above.
    sources: Vec<Arc<Source>>,
}

/// Reads the comments and annotations of a source, document by document.
pub(crate) struct SourceOrigins<'s> {
    source: &'s Arc<Source>,
    has_comments: bool,
    has_annotation: bool,
    /// The file of the last comment, and the start of the last document.
    last: (SourceFile, usize),
    /// The byte at which each document starts, with its file.
    files: Vec<(usize, SourceFile)>,
}

impl<'s> SourceOrigins<'s> {
    /// The origins of a source, no document read yet.
    pub(crate) fn new(source: &'s Arc<Source>) -> Self {
        let text = source.text();
        let (has_comments, has_annotation) =
            (text.contains(COMMENT), text.contains("config.kubernetes.io/origin"));
        Self { source, has_comments, has_annotation, last: (None, 0), files: Vec::new() }
    }

    /// Adds a document.
    pub(crate) fn add(&mut self, document: &Document) {
        if !self.has_comments && !self.has_annotation {
            return;
        }
        let start = document.place().start();
        let between = self.source.text().get(self.last.1..start).unwrap_or_default();
        let commented = comment(between, self.last.0.take());
        self.last = (commented.clone(), start);
        let annotated = self.has_annotation.then(|| annotation(document)).flatten();
        self.files.push((start, annotated.map(Arc::from).or(commented)));
    }
}

/// The file in the last comment of the text between two documents, else the one before, if that still applies.
fn comment(between: &str, before: SourceFile) -> SourceFile {
    let mut current = before;
    for line in between.lines() {
        if line.starts_with("---") {
            current = current.filter(|file| !file.contains(TEMPLATES));
        }
        let file = line.strip_prefix(COMMENT).map(str::trim).filter(|file| !file.is_empty());
        current = file.map(Arc::from).or(current);
    }
    current
}

impl Origins {
    /// Adds the files of a source.
    pub(crate) fn add(&mut self, read: SourceOrigins<'_>) {
        let SourceOrigins { source, mut files, .. } = read;
        if files.is_empty() {
            return;
        }
        let unit = self.rendered.get(source.name());
        // Neighbours often share a file.
        let mut last: Option<(Arc<str>, Arc<str>)> = None;
        for file in files.iter_mut().filter_map(|(_, file)| file.as_mut()) {
            let known = last.as_ref().filter(|(from, _)| Arc::ptr_eq(from, file));
            let found = known.map_or_else(|| in_directory(file, unit).into(), |(_, to)| Arc::clone(to));
            last = Some((std::mem::replace(file, Arc::clone(&found)), found));
        }
        files.sort_by_key(|(start, _)| *start);
        self.files.insert(Arc::as_ptr(source), files);
        self.sources.push(Arc::clone(source));
    }

    /// Adds the files of other inputs.
    pub(crate) fn extend(&mut self, others: Self) {
        self.rendered.extend(others.rendered);
        self.files.extend(others.files);
        self.sources.extend(others.sources);
    }

    /// The file that the document at a byte of a source comes from.
    pub fn source_file(&self, source: &Arc<Source>, at: impl FnOnce() -> usize) -> Option<&str> {
        let files = self.files.get(&Arc::as_ptr(source))?;
        let at = at();
        let next = files.partition_point(|(start, _)| *start <= at);
        files.get(next.checked_sub(1)?)?.1.as_deref()
    }
}

/// The file in the annotation of kustomize: a path, perhaps in another repository, or the configuration of a
/// generator.
fn annotation(document: &Document) -> Option<String> {
    let text = document.value().pointer(ANNOTATION)?.as_str()?;
    let source = Arc::new(Source::new("", text));
    let documents = values(&source, &mut Vec::new());
    let value = documents.first()?.value();
    let field = |name| value.get(name).and_then(Value::as_str);
    let path = field("path").or_else(|| field("configuredIn"))?;
    Some(match field("repo") {
        Some(repo) => format!("{repo}//{path}"),
        None => path.to_owned(),
    })
}

/// The path as the user would write it, if memgate rendered it and the file exists; else as it was written.
fn in_directory(file: &str, unit: Option<&Unit>) -> String {
    let found = unit.and_then(|unit| {
        let path = match unit.tool {
            // helm starts with the name of the chart, which need not be that of its directory.
            Tool::Helm => unit.directory.join(file.split_once('/')?.1),
            Tool::Kustomize => unit.directory.join(file),
        };
        path.is_file().then(|| without_dots(&path).to_string_lossy().into_owned())
    });
    found.unwrap_or_else(|| masked(file).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;
    use crate::plan::Plan;
    use memgate_manifest::document::parse;
    use memgate_model::kind::NAMESPACE;
    use memgate_model::object::Reference;
    use memgate_platforms::ALL;
    use memgate_platforms::state_kind;
    use memgate_primitives::pointer::Pointer;

    const TEXT: &str = "\
apiVersion: v1
kind: List
items:
  - {apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: a}}
  - {apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: b, namespace: team-b}}
  - apiVersion: arkonis.dev/v1alpha1
    kind: ArkMemoryList
    items:
      - metadata: {name: c}
---
{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: b, namespace: team-b}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: d, namespace: none}}
---
{apiVersion: v1, kind: Pod, metadata: {name: e}}
---
{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory}
";

    #[test]
    fn finds_the_objects_of_the_state() {
        let as_state = Plan { checked: Vec::new(), state: vec!["-".to_owned()], ..Plan::of_text(TEXT) };
        for plan in [Plan::of_text(TEXT), as_state] {
            let places = load(&plan).expect("loads").places;
            let memory = state_kind(&ALL, "arkonis.dev", "ArkMemory").expect("a kind");
            let rows = [
                (memory, "default", "a", Some(4)),
                (memory, "default", "c", Some(9)),
                (memory, "team-b", "b", Some(11)),
                (&NAMESPACE, "", "d", Some(13)),
                (&NAMESPACE, "none", "d", None),
                (memory, "default", "e", None),
                (memory, "default", "", None),
            ];
            for (kind, namespace, name, line) in rows {
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                let span = places.span(&Reference { kind, namespace, name }, &Pointer::root());
                assert_eq!(span.map(|(_, span)| span.line), line);
            }
        }
    }

    fn files(text: &str) -> Vec<Option<String>> {
        let source = Arc::new(Source::new("<stdin>", text));
        let documents = parse(&source).documents;
        let (mut origins, mut read) = (Origins::default(), SourceOrigins::new(&source));
        for document in &documents {
            read.add(document);
        }
        origins.add(read);
        let file = |document: &Document| origins.source_file(&source, || document.place().start());
        documents.iter().map(|document| file(document).map(str::to_owned)).collect()
    }

    #[test]
    fn reads_the_comments_of_helm_and_mutate() {
        let object = "apiVersion: v1\nkind: X\n";
        let text = format!(
            "{object}---\n# Source: c/templates/a.yaml\n{object}---\n{object}---\n# Source: b.yaml\n---\n{object}---\n{object}"
        );
        let expected = [None, Some("c/templates/a.yaml"), None, Some("b.yaml"), Some("b.yaml")];
        assert_eq!(files(&text), expected.map(|file| file.map(str::to_owned)));
        let indented = format!("{object}data: |\n  # Source: x\n---\n{object}");
        assert_eq!(files(&indented), [None, None]);
    }

    #[test]
    fn reads_very_many_comments() {
        /// So many that a search from each comment through all others would take minutes.
        const VERY_MANY: usize = 10_000;
        let comment = |number| format!("---\n# Source: c/templates/{number}.yaml\n");
        let object = "apiVersion: v1\nkind: X\n";
        let comments: String = (0..VERY_MANY).map(comment).collect();
        let objects: String = (0..VERY_MANY).map(|number| comment(number) + object).collect();
        let files = files(&format!("{comments}{objects}"));
        assert_eq!(files.len(), VERY_MANY);
        for (number, file) in files.into_iter().enumerate() {
            assert_eq!(file, Some(format!("c/templates/{number}.yaml")));
        }
    }

    #[test]
    fn reads_the_annotation_of_kustomize() {
        let object = |origin: &str| {
            let annotations = format!("{{config.kubernetes.io/origin: \"{origin}\"}}");
            format!("---\napiVersion: v1\nkind: X\nmetadata: {{annotations: {annotations}}}\n")
        };
        let text = [
            object("path: ../base/a.yaml\\n"),
            object("path: a.yaml\\nrepo: https://u:secret@h.example/r\\nref: v1\\n"),
            object("configuredIn: kustomization.yaml\\nconfiguredBy: {kind: X}\\n"),
            object("["),
        ];
        let files = files(&text.concat());
        assert_eq!(files[0].as_deref(), Some("../base/a.yaml"));
        assert!(files[1].as_ref().is_some_and(|file| file.ends_with("@h.example/r//a.yaml")), "{files:?}");
        assert!(files[1].as_ref().is_some_and(|file| !file.contains("secret")), "{files:?}");
        assert_eq!(files[2].as_deref(), Some("kustomization.yaml"));
        assert_eq!(files[3], None);
    }
}
