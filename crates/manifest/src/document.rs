//! Documents: one Kubernetes object each, with a place in the text for each pointer.
//!
//! A [`Source`] goes in; its objects, the documents that are not objects, and its errors come out. The kinds of the
//! objects do not matter here.

pub mod embedded;

use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, SyntaxError};
use crate::outline::{Form, NodeId, NodeKind, Outline, TextPart};
use crate::place::{DocumentPlace, Outlines};
use crate::source::{Location, Source, Span};
use crate::value::ValueReader;
use crate::yaml::MAX_ERRORS;
use memgate_primitives::pointer::Pointer;

/// One Kubernetes object in a source.
#[derive(Debug, Clone)]
pub struct Document {
    place: Arc<DocumentPlace>,
    value: Value,
}

/// The content of a source.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The Kubernetes objects, in document order, the items of Lists one by one.
    pub documents: Vec<Document>,
    /// The documents that are well-formed but not Kubernetes objects.
    pub non_objects: Vec<NonObject>,
    /// The errors of documents that are not well-formed; the other documents are read nevertheless.
    pub errors: Vec<Error>,
}

/// A document, or an item of a List, that is not a Kubernetes object.
#[derive(Debug, Clone)]
pub struct NonObject {
    /// What it is instead.
    pub document: Document,
    /// The reason: "has no apiVersion", "is a list".
    pub reason: &'static str,
}

/// The Kubernetes objects of a source: multi-document YAML, JSON, several JSON values one after
/// another, and Lists of objects. Empty documents are skipped.
pub fn parse(source: &Arc<Source>) -> Parsed {
    let mut parsed = Parsed::default();
    for part in parse_parts(source) {
        parsed.documents.extend(part.documents);
        parsed.non_objects.extend(part.non_objects);
        parsed.errors.extend(part.errors);
    }
    parsed
}

/// The Kubernetes objects among documents of [`values`], the items of Lists one by one.
pub fn objects(documents: &[Arc<Document>]) -> Vec<Arc<Document>> {
    let mut objects = Vec::new();
    for document in documents {
        if is_list(document) {
            let mut parsed = Parsed::default();
            flatten(Document::clone(document), &mut parsed);
            objects.extend(parsed.documents.into_iter().map(Arc::new));
        } else if reason_not_an_object(&document.value).is_none() {
            objects.push(Arc::clone(document));
        }
    }
    objects
}

/// Like [`parse`], part by part, for sources whose objects together would take too much memory.
pub fn parse_parts(source: &Arc<Source>) -> impl Iterator<Item = Parsed> + use<> {
    PartReader::new(source).map(|roots| {
        let mut parsed = Parsed::default();
        for root in roots {
            match root {
                Ok(document) => flatten(document, &mut parsed),
                Err(error) => parsed.errors.push(error),
            }
        }
        parsed
    })
}

/// The YAML or JSON documents of a source, Kubernetes objects or not; Lists stay whole, empty documents are skipped.
/// The errors of documents that are not well-formed go to `errors`.
pub fn values(source: &Arc<Source>, errors: &mut Vec<Error>) -> Vec<Document> {
    let mut documents = Vec::new();
    for document in each_value(source) {
        match document {
            Ok(document) => documents.push(document),
            Err(error) => errors.push(error),
        }
    }
    documents
}

/// Like [`values`], one after the other.
pub fn each_value(source: &Arc<Source>) -> impl Iterator<Item = Result<Document, Error>> + use<> {
    PartReader::new(source).flatten()
}

/// The outline of a whole source, and the value of each of its documents, the empty ones included.
pub(super) fn read_whole(source: &Arc<Source>) -> (Arc<Outline>, Vec<RootValue>) {
    let outline = Outlines::new(source).read(TextPart::whole(source), 0);
    let values = root_values(source, &outline, &mut 0);
    (outline, values)
}

/// The value of a document with its node in the outline, or its error.
pub(super) type RootValue = Result<(NodeId, Value), Box<SyntaxError>>;

/// The values of the documents of a part. `repeated` counts the bytes that aliases have repeated in the whole source.
fn root_values(source: &Arc<Source>, outline: &Outline, repeated: &mut usize) -> Vec<RootValue> {
    let mut reader = ValueReader::new(source, outline, *repeated);
    let read = |root: &Result<NodeId, SyntaxError>| {
        let root = root.as_ref().map_err(|error| Box::new(error.clone()))?;
        Ok((*root, reader.read(*root)?))
    };
    let values = outline.roots.iter().map(read).collect();
    *repeated = reader.repeated;
    values
}

/// Reads a source part by part, so that the values of only one part are in memory.
struct PartReader {
    outlines: Arc<Outlines>,
    parts: std::vec::IntoIter<TextPart>,
    /// The number of documents before the next part, those with errors too.
    index: usize,
    /// The number of errors among them.
    errors: usize,
    repeated: usize,
}

impl PartReader {
    fn new(source: &Arc<Source>) -> Self {
        let outlines = Arc::new(Outlines::new(source));
        let parts = outlines.parts().into_iter();
        Self { outlines, parts, index: 0, errors: 0, repeated: 0 }
    }
}

impl Iterator for PartReader {
    type Item = Vec<Result<Document, Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(part) = self.parts.next().filter(|_| self.errors < MAX_ERRORS) else {
            // An outline takes ten times its text, and few of them are needed again.
            self.outlines.forget();
            return None;
        };
        let outline = self.outlines.read(part, self.errors);
        let errors = outline.roots.iter().filter(|root| root.is_err()).count();
        self.errors += errors;
        // What stands before an error may be a part of what was meant, unless braces say where it ends.
        let is_torn = |root| errors > 0 && matches!(outline.node(root).kind, NodeKind::Map(Form::Block, _));
        let mut documents = Vec::new();
        for value in root_values(&self.outlines.source, &outline, &mut self.repeated) {
            let index = self.index;
            self.index += 1;
            match value {
                Ok((root, value)) if value.is_null() || is_torn(root) => {}
                Ok((root, value)) => {
                    let place = DocumentPlace::new(&self.outlines, part, &outline, root, index).into();
                    documents.push(Ok(Document { place, value }));
                }
                Err(error) => documents.push(Err(Error::Syntax(error))),
            }
        }
        Some(documents)
    }
}

/// Adds a document, or the items of one that is a List. The recursion is bounded: a value is at most
/// [`MAX_DEPTH`](crate::outline::MAX_DEPTH) levels deep.
fn flatten(mut document: Document, parsed: &mut Parsed) {
    if let Some(reason) = reason_not_an_object(&document.value) {
        return parsed.non_objects.push(NonObject { document, reason });
    }
    if !is_list(&document) {
        return parsed.documents.push(document);
    }
    let is_own = document.kind() == "List";
    match document.value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => flatten_items(&document, items, parsed),
        Some(Value::Null) | None if is_own => {
            parsed.non_objects.push(NonObject { document, reason: "is a List without items" });
        }
        Some(Value::Null) | None => {}
        Some(_) => {
            parsed.non_objects.push(NonObject { document, reason: "is a List whose items are not a list" });
        }
    }
}

/// Whether a document is a List, of objects or not. `kind: List` is Kubernetes' own; another kind may end in List without
/// being one.
fn is_list(document: &Document) -> bool {
    let Document { value, .. } = document;
    reason_not_an_object(value).is_none()
        && (document.kind() == "List" || document.kind().ends_with("List") && value.get("items").is_some())
}

fn flatten_items(list: &Document, items: Vec<Value>, parsed: &mut Parsed) {
    for (place, mut value) in list.place.items().into_iter().zip(items) {
        fill_type_meta(&mut value, list.api_version(), list.kind());
        flatten(Document { place: place.into(), value }, parsed);
    }
}

/// The items of a List, or of a plain list, each with its place; `None` for anything else.
pub fn items<'v>(value: &'v Value, at: &Pointer) -> Option<impl Iterator<Item = (Value, Pointer)> + use<'v>> {
    let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let of_list = value.get("items").filter(|_| kind.ends_with("List"));
    let at = if value.is_array() { at.clone() } else { at.key("items") };
    let items = value.as_array().or_else(|| of_list?.as_array())?;
    Some(items.iter().cloned().enumerate().map(move |(index, mut item)| {
        fill_type_meta(&mut item, api_version, kind);
        (item, at.index(index))
    }))
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

/// The reason why a case file is not an object.
pub const CASES: &str = "is a list of cases, which memgate test runs";

/// Whether an element of a list is a case of `memgate test`.
fn is_case(value: &Value) -> bool {
    value.get("name").is_some() && value.get("expect").is_some()
}

fn reason_not_an_object(value: &Value) -> Option<&'static str> {
    let Some(fields) = value.as_object() else {
        return Some(match value {
            Value::Array(items) if items.iter().all(is_case) && !items.is_empty() => CASES,
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
        (Some(None), _) => Some("has an apiVersion that is not text"),
        (_, Some(None)) => Some("has a kind that is not text"),
        (Some(Some("")), _) => Some("has an empty apiVersion"),
        (_, Some(Some(""))) => Some("has an empty kind"),
        (Some(Some(_)), Some(Some(_))) => None,
    }
}

impl Document {
    /// The place of the object.
    pub fn place(&self) -> &DocumentPlace {
        &self.place
    }

    /// The source.
    pub fn source(&self) -> &Arc<Source> {
        self.place.source()
    }

    /// The whole object.
    pub fn span(&self) -> Span {
        self.place.span()
    }

    /// The place of a pointer, see [`DocumentPlace::locate`].
    pub fn locate(&self, pointer: &Pointer) -> Location {
        self.place.locate(pointer)
    }

    /// The place alone, shared. The object itself takes ten times the memory of its text.
    pub fn shared_place(&self) -> Arc<DocumentPlace> {
        Arc::clone(&self.place)
    }

    /// The object as kubectl would send it.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The `apiVersion`; empty when there is none.
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion").unwrap_or_default()
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The version without the group.
    pub fn version(&self) -> &str {
        self.api_version().split_once('/').map_or_else(|| self.api_version(), |(_, version)| version)
    }

    /// The `kind`; empty when there is none.
    pub fn kind(&self) -> &str {
        self.text("/kind").unwrap_or_default()
    }

    /// `metadata.name`; empty when there is none.
    pub fn name(&self) -> &str {
        self.text("/metadata/name").unwrap_or_default()
    }

    /// `metadata.namespace`; `None` when it is absent or empty.
    pub fn namespace(&self) -> Option<&str> {
        self.text("/metadata/namespace").filter(|namespace| !namespace.is_empty())
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.value.pointer(pointer)?.as_str()
    }

    /// Removes a field of the object.
    pub(super) fn remove(&mut self, key: &str) {
        self.value.as_object_mut().and_then(|object| object.remove(key));
    }

    /// Sets a field of an object that exists.
    pub(super) fn put(&mut self, pointer: &Pointer, key: &str, value: Value) {
        if let Some(object) = self.value.pointer_mut(pointer.as_str()).and_then(Value::as_object_mut) {
            object.insert(key.to_owned(), value);
        }
    }

    /// Replaces a value that exists.
    pub(super) fn set(&mut self, pointer: &Pointer, value: Value) {
        if let Some(place) = self.value.pointer_mut(pointer.as_str()) {
            *place = value;
        }
    }
}

#[cfg(test)]
mod tests;
