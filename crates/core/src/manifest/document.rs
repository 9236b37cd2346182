//! Documents: one Kubernetes object each, with a place in the text for each pointer.
//!
//! In goes a [`Source`]; out come its objects, what in it is not an object, and its errors. Whether
//! memgate has anything to say about an object is not asked here.

use std::sync::Arc;

use serde_json::Value;

use crate::manifest::error::Error;
use crate::manifest::place::DocumentPlace;
use crate::manifest::read::PartReader;
use crate::manifest::source::{Location, Source, Span};
use crate::model::pointer::Pointer;

/// One Kubernetes object in a source.
#[derive(Debug, Clone)]
pub struct Document {
    place: DocumentPlace,
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
        Self { span: document.place.span(), reason, is_likely_object: has("apiVersion") || has("kind") }
    }
}

/// The Kubernetes objects of a source: multi-document YAML, JSON, several JSON values one after
/// another, and Lists of objects. Empty documents are passed over.
#[must_use]
pub fn parse(source: &Arc<Source>) -> Parsed {
    let mut parsed = Parsed::default();
    for part in parse_parts(source) {
        parsed.documents.extend(part.documents);
        parsed.non_objects.extend(part.non_objects);
        parsed.errors.extend(part.errors);
    }
    parsed
}

/// The same, a document or a few at a time, for sources whose objects together would take too much memory.
pub fn parse_parts(source: &Arc<Source>) -> impl Iterator<Item = Parsed> + use<> {
    PartReader::new(source).map(|roots| {
        let mut parsed = Parsed::default();
        for root in roots {
            match root {
                Ok((place, value)) => flatten(Document { place, value }, &mut parsed),
                Err(error) => parsed.errors.push(error),
            }
        }
        parsed
    })
}

/// The YAML or JSON documents of a source as they are, Kubernetes objects or not, Lists whole, empty
/// ones left out. What is not well-formed goes to `errors`.
#[must_use]
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

/// The same, one after the other.
pub fn each_value(source: &Arc<Source>) -> impl Iterator<Item = Result<Document, Error>> + use<> {
    PartReader::new(source).flatten().map(|root| root.map(|(place, value)| Document { place, value }))
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
    for (place, mut value) in list.place.items().into_iter().zip(items) {
        fill_type_meta(&mut value, list.api_version(), list.kind());
        flatten(Document { place, value }, parsed);
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
    pub fn place(&self) -> &DocumentPlace {
        &self.place
    }

    /// The source it stands in.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        self.place.source()
    }

    /// The whole object.
    #[must_use]
    pub fn span(&self) -> Span {
        self.place.span()
    }

    /// Where a pointer stands, as [`DocumentPlace::locate`] has it.
    #[must_use]
    pub fn locate(&self, pointer: &Pointer) -> Location {
        self.place.locate(pointer)
    }

    /// Where it stands, without the object itself, which takes ten times its text.
    #[must_use]
    pub fn into_place(self) -> DocumentPlace {
        self.place
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

    fn text(&self, pointer: &str) -> Option<&str> {
        self.value.pointer(pointer)?.as_str()
    }
}

#[cfg(test)]
mod tests;
