//! Where objects come from that helm or kustomize made: the source file of each.
//!
//! helm and `memgate mutate` write the source file in a comment, kustomize in an annotation. Of what memgate built itself,
//! `search` finds the text from which a value comes, so that findings stand where a person would edit
//! ([`trace`](crate::trace)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::rendered::{Rendered, SOURCE_COMMENT};
use serde_json::Value;

use memgate_manifest::comments::Comment;
use memgate_manifest::document::{Document, values};
use memgate_manifest::source::Source;
use memgate_primitives::credential::masked;

pub(crate) mod files;
pub(crate) mod find;
pub(crate) mod search;
pub mod spot;

/// The annotation that kustomize writes with `buildMetadata: [originAnnotations]`.
const ANNOTATION: &str = "/metadata/annotations/config.kubernetes.io~1origin";
/// helm names a template before each of its documents, other files only before the first one.
const TEMPLATES: &str = "/templates/";

/// The name of a file, which documents share; `None` when it is unknown.
type SourceFile = Option<Arc<str>>;

/// The source files of documents.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// What memgate had built, by the names of the sources.
    pub(crate) rendered: BTreeMap<String, Arc<Rendered>>,
    /// The files in which findings about these objects stand.
    traced: Vec<Arc<Source>>,
    /// The comments in patches that are in the text of a kustomization.
    comments: Vec<(Arc<Source>, Vec<Comment>)>,
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
            (text.contains(SOURCE_COMMENT), text.contains("config.kubernetes.io/origin"));
        Self { source, has_comments, has_annotation, last: (None, 0), files: Vec::new() }
    }

    /// Adds a document.
    pub(crate) fn add(&mut self, document: &Document) {
        let start = document.place().start();
        if !self.has_comments && !self.has_annotation {
            return;
        }
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
        let file = line.strip_prefix(SOURCE_COMMENT).map(str::trim).filter(|file| !file.is_empty());
        current = file.map(Arc::from).or(current);
    }
    current
}

impl Origins {
    /// Adds the files of a source.
    pub(crate) fn add(&mut self, read: SourceOrigins<'_>) {
        let SourceOrigins { source, mut files, .. } = read;
        let address = Arc::as_ptr(source);
        if files.is_empty() {
            return;
        }
        // Neighbours often share a file.
        let mut last: Option<(Arc<str>, Arc<str>)> = None;
        for file in files.iter_mut().filter_map(|(_, file)| file.as_mut()) {
            let known = last.as_ref().filter(|(from, _)| Arc::ptr_eq(from, file));
            let found = known.map_or_else(|| masked(file).as_ref().into(), |(_, to)| Arc::clone(to));
            last = Some((std::mem::replace(file, Arc::clone(&found)), found));
        }
        files.sort_by_key(|(start, _)| *start);
        self.files.insert(address, files);
        self.sources.push(Arc::clone(source));
    }

    /// Adds the files of other inputs.
    pub(crate) fn extend(&mut self, others: Self) {
        self.rendered.extend(others.rendered);
        self.traced.extend(others.traced);
        self.comments.extend(others.comments);
        self.files.extend(others.files);
        self.sources.extend(others.sources);
    }

    /// What a tool printed in which a document is.
    pub(crate) fn rendered_in(&self, source: &Source) -> Option<&Rendered> {
        self.rendered.get(source.name()).map(|rendered| &**rendered)
    }

    /// Whether anything was rendered.
    pub(crate) fn has_rendered(&self) -> bool {
        !self.rendered.is_empty()
    }

    /// Adds files in which findings stand.
    pub(crate) fn add_traced(&mut self, files: impl Iterator<Item = Arc<Source>>) {
        self.traced.extend(files);
        self.deduplicate();
    }

    /// Adds comments in patches that are in the text of a kustomization.
    pub(crate) fn add_comments(&mut self, comments: impl Iterator<Item = (Arc<Source>, Vec<Comment>)>) {
        self.comments.extend(comments);
    }

    /// Those, each kustomization once.
    pub(crate) fn comments(&self) -> &[(Arc<Source>, Vec<Comment>)] {
        &self.comments
    }

    /// Leaves each file once.
    pub(crate) fn deduplicate(&mut self) {
        let mut seen = BTreeSet::new();
        self.traced.retain(|source| seen.insert(Arc::as_ptr(source)));
        let mut seen = BTreeSet::new();
        self.comments.retain(|(source, _)| seen.insert(Arc::as_ptr(source)));
    }

    /// The files in which findings about rendered objects stand, each once. They are none of the sources that were read.
    pub fn traced(&self) -> &[Arc<Source>] {
        &self.traced
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

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_manifest::document::parse;

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
