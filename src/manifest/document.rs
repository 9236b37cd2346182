//! Documents: one Kubernetes object each, with a place in the text for each pointer.

use std::sync::Arc;

use serde_json::Value;

use crate::manifest::error::Error;
use crate::manifest::source::{Source, Span};
use crate::model::pointer::Pointer;

/// One Kubernetes object in a source.
#[derive(Debug, Clone)]
pub struct Document {
    source: Arc<Source>,
    /// Which of the YAML documents of the source, from 0.
    index: usize,
    /// Where in that YAML document: empty, or `/items/3` inside a List.
    prefix: Pointer,
    value: Value,
}

/// Where a pointer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The key; absent for a list element and for the whole document.
    pub key: Option<Span>,
    /// The value.
    pub value: Span,
    /// What a caret should underline: a plain value itself, else the key, else the first line.
    pub caret: Span,
    /// Whether this is what the pointer names, rather than the nearest thing that holds it.
    pub exact: bool,
}

/// What a source holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The Kubernetes objects, in document order, Lists taken apart.
    pub documents: Vec<Document>,
    /// What is well-formed but no Kubernetes object.
    pub others: Vec<Other>,
    /// What is not well-formed; one document hides no other.
    pub errors: Vec<Error>,
}

/// Something that is no Kubernetes object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// Where it stands.
    pub span: Span,
    /// Why it is none: "has no apiVersion", "is a list".
    pub reason: &'static str,
}

/// The Kubernetes objects of a source: multi-document YAML, JSON, several JSON values one after
/// another, and Lists of objects. Empty documents are passed over.
#[must_use]
pub fn parse(source: &Arc<Source>) -> Parsed {
    let _ = source;
    Parsed::default()
}

/// The YAML or JSON documents of a source as they are, Kubernetes objects or not, Lists whole.
#[must_use]
pub fn values(source: &Arc<Source>) -> (Vec<Document>, Vec<Error>) {
    let _ = source;
    (Vec::new(), Vec::new())
}

impl Document {
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
    pub fn locate(&self, pointer: &Pointer) -> Place {
        let _ = pointer;
        let value = self.source.span(0, 0);
        Place { key: None, value, caret: value, exact: false }
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.value.pointer(pointer)?.as_str()
    }
}

impl Place {
    /// The key and the value.
    #[must_use]
    pub fn whole(&self) -> Span {
        self.key.map_or(self.value, |key| Span { end: self.value.end.max(key.end), ..key })
    }
}
