//! Documents: one Kubernetes object each, with a place in the text for each pointer.
//!
//! In goes a [`Source`]; out come its objects, what in it is not an object, and its errors. Whether
//! memgate has anything to say about an object is not asked here.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::manifest::error::{Error, SyntaxError};
use crate::manifest::json;
use crate::manifest::locate::locate;
use crate::manifest::outline::{NodeId, Outline, Syntax};
use crate::manifest::place::DocumentPlace;
use crate::manifest::source::{Location, Source, Span};
use crate::manifest::value::ValueReader;
use crate::manifest::yaml;
use crate::model::pointer::Pointer;

/// One Kubernetes object in a source.
#[derive(Debug, Clone)]
pub struct Document {
    source: Arc<Source>,
    outline: Arc<Outline>,
    root: NodeId,
    /// Which of the YAML documents of the source, from 0.
    index: usize,
    /// Where in that YAML document: empty, or `/items/3` inside a List.
    prefix: Pointer,
    value: Value,
}

/// What a source holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The Kubernetes objects, in document order, Lists taken apart.
    pub documents: Vec<Document>,
    /// What is well-formed but not a Kubernetes object.
    pub non_objects: Vec<NonObject>,
    /// What is not well-formed; one document hides no other.
    pub errors: Vec<Error>,
}

/// A document, or an item of a List, that is not a Kubernetes object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NonObject {
    /// Where it stands.
    pub span: Span,
    /// Why it is not: "has no apiVersion", "is a list".
    pub reason: &'static str,
    /// Whether it was likely meant to be one: it has an `apiVersion` or a `kind`.
    pub is_likely_object: bool,
}

impl NonObject {
    fn of(document: &Document, reason: &'static str) -> Self {
        let has = |field| document.value.get(field).is_some();
        Self { span: document.span(), reason, is_likely_object: has("apiVersion") || has("kind") }
    }
}

/// The Kubernetes objects of a source: multi-document YAML, JSON, several JSON values one after
/// another, and Lists of objects. Empty documents are passed over.
#[must_use]
pub fn parse(source: &Arc<Source>) -> Parsed {
    let mut parsed = Parsed::default();
    for document in values(source, &mut parsed.errors) {
        flatten(document, &mut parsed);
    }
    parsed
}

/// The YAML or JSON documents of a source as they are, Kubernetes objects or not, Lists whole, empty
/// ones left out. What is not well-formed goes to `errors`.
#[must_use]
pub fn values(source: &Arc<Source>, errors: &mut Vec<Error>) -> Vec<Document> {
    let (outline, roots) = read(source);
    let mut documents = Vec::with_capacity(roots.len());
    for (index, root) in roots.into_iter().enumerate() {
        match root {
            Ok((_, Value::Null)) => {}
            Ok((root, value)) => {
                let (source, outline) = (Arc::clone(source), Arc::clone(&outline));
                documents.push(Document { source, outline, root, index, prefix: Pointer::root(), value });
            }
            Err(error) => errors.push(Error::Syntax(error)),
        }
    }
    documents
}

/// A document of a source, or what is wrong with it.
pub(super) type RootValue = Result<(NodeId, Value), Box<SyntaxError>>;

/// The outline of a source, and the value of each of its documents, the empty ones included.
pub(super) fn read(source: &Arc<Source>) -> (Arc<Outline>, Vec<RootValue>) {
    let syntax = syntax(source);
    let mut reader = ValueReader::new(source, &syntax.outline);
    let read = |root: Result<NodeId, SyntaxError>| {
        let root = root.map_err(Box::new)?;
        Ok((root, reader.read(root)?))
    };
    let roots = syntax.roots.into_iter().map(read).collect();
    (Arc::new(syntax.outline), roots)
}

/// The outline of a source, before values are read.
pub(super) fn syntax(source: &Arc<Source>) -> Syntax {
    let mut syntax = take_apart(source);
    syntax.outline.roots = syntax.roots.iter().map(|root| root.as_ref().ok().copied()).collect();
    syntax
}

fn take_apart(source: &Arc<Source>) -> Syntax {
    if let Some(error) = control_character(source) {
        return Syntax { outline: Outline::default(), roots: vec![Err(error)] };
    }
    let json_error = match json::looks_like(source).then(|| json::read(source)) {
        None => return yaml::read(source),
        Some(Ok(syntax)) => return syntax,
        Some(Err(error)) => *error,
    };
    let mut syntax = yaml::read(source);
    // Neither JSON nor YAML: the error of the reader that came further helps more.
    if let Some(Err(yaml_error)) = syntax.roots.iter_mut().find(|root| root.is_err())
        && (json_error.span.start >= yaml_error.span.start
            || Path::new(source.name()).extension().is_some_and(|it| it == "json"))
    {
        *yaml_error = json_error;
    }
    syntax
}

/// Neither YAML nor JSON allows control characters; YAML parsers take NUL for the end of the text.
fn control_character(source: &Arc<Source>) -> Option<SyntaxError> {
    let control = |byte: u8| byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t');
    let at = source.text().bytes().position(control)?;
    let code = source.text().as_bytes().get(at).copied().unwrap_or_default();
    let message = format!("a control character (U+{code:04X}) cannot stand here");
    Some(
        SyntaxError::new(source, source.span(at, at + 1), message)
            .help("remove it, or write it as an escape"),
    )
}

/// Takes a document that is a List apart, and sorts out what is not an object. The recursion is
/// bounded: a value is at most [`MAX_DEPTH`](crate::manifest::outline::MAX_DEPTH) levels deep.
fn flatten(mut document: Document, parsed: &mut Parsed) {
    if let Some(reason) = reason_not_an_object(&document.value) {
        return parsed.non_objects.push(NonObject::of(&document, reason));
    }
    // `kind: List` is Kubernetes' own; another kind may end in List without being one.
    let is_own = document.kind() == "List";
    let is_list = is_own || document.kind().ends_with("List") && document.value.get("items").is_some();
    if !is_list {
        return parsed.documents.push(document);
    }
    match document.value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => flatten_items(&document, items, parsed),
        Some(Value::Null) | None if is_own => {
            parsed.non_objects.push(NonObject::of(&document, "is a List without items"));
        }
        Some(Value::Null) | None => {}
        Some(_) => parsed.non_objects.push(NonObject::of(&document, "is a List whose items are no list")),
    }
}

fn flatten_items(list: &Document, items: Vec<Value>, parsed: &mut Parsed) {
    let below = list.prefix.key("items");
    for (index, mut value) in items.into_iter().enumerate() {
        fill_type_meta(&mut value, list.api_version(), list.kind());
        let (source, outline) = (Arc::clone(&list.source), Arc::clone(&list.outline));
        let prefix = below.index(index);
        flatten(Document { source, outline, root: list.root, index: list.index, prefix, value }, parsed);
    }
}

/// Writes `apiVersion` and `kind` into an item of a typed list that has neither: items of a list of the
/// API, such as a PodList, leave them out.
pub fn fill_type_meta(item: &mut Value, list_api_version: &str, list_kind: &str) {
    let (Some(fields), Some(kind)) = (item.as_object_mut(), list_kind.strip_suffix("List")) else { return };
    if !kind.is_empty() && !fields.contains_key("kind") && !fields.contains_key("apiVersion") {
        fields.shift_insert(0, "apiVersion".to_owned(), list_api_version.into());
        fields.shift_insert(1, "kind".to_owned(), kind.into());
    }
}

fn reason_not_an_object(value: &Value) -> Option<&'static str> {
    let Some(fields) = value.as_object() else {
        return Some(match value {
            Value::Array(_) => "is a list",
            Value::String(_) => "is plain text",
            _ => "is a single value",
        });
    };
    let text = |name: &str| fields.get(name).map(Value::as_str);
    match (text("apiVersion"), text("kind")) {
        (None, None) => Some("has no apiVersion and no kind"),
        (None, _) => Some("has no apiVersion"),
        (_, None) => Some("has no kind"),
        (Some(None), _) => Some("has an apiVersion that is no text"),
        (_, Some(None)) => Some("has a kind that is no text"),
        (Some(Some("")), _) => Some("has an empty apiVersion"),
        (_, Some(Some(""))) => Some("has an empty kind"),
        (Some(Some(_)), Some(Some(_))) => None,
    }
}

impl Document {
    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> DocumentPlace {
        let (source, outline) = (Arc::clone(&self.source), Arc::clone(&self.outline));
        DocumentPlace { source, outline, root: self.root, prefix: self.prefix.clone() }
    }

    /// The source it stands in.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Which of the YAML documents of the source it stands in, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Where in that YAML document it stands: empty, or `/items/3` inside a List.
    #[must_use]
    pub fn prefix(&self) -> &Pointer {
        &self.prefix
    }

    /// What the source is made of.
    pub(super) fn outline(&self) -> &Outline {
        &self.outline
    }

    /// The object as kubectl would send it.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The `apiVersion`; empty when there is none.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion").unwrap_or_default()
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The version without the group.
    #[must_use]
    pub fn version(&self) -> &str {
        self.api_version().split_once('/').map_or_else(|| self.api_version(), |(_, version)| version)
    }

    /// The `kind`; empty when there is none.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("/kind").unwrap_or_default()
    }

    /// `metadata.name`; empty when there is none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("/metadata/name").unwrap_or_default()
    }

    /// `metadata.namespace`; `None` when it is absent or empty.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.text("/metadata/namespace").filter(|namespace| !namespace.is_empty())
    }

    /// Where the pointer stands; when it names nothing, where the nearest thing stands that would
    /// hold it. At the root of an object the caret is at its `kind`.
    #[must_use]
    pub fn locate(&self, pointer: &Pointer) -> Location {
        let tokens = self.prefix.tokens().chain(pointer.tokens()).map(Cow::into_owned);
        locate(&self.source, &self.outline, self.root, tokens)
    }

    /// The whole object.
    #[must_use]
    pub fn span(&self) -> Span {
        self.locate(&Pointer::root()).value
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.value.pointer(pointer)?.as_str()
    }
}
