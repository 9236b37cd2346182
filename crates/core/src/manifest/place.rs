//! Where documents stand: in goes a pointer, out comes its place in the text. What a document says is not kept here.

use std::borrow::Cow;
use std::sync::Arc;

use crate::manifest::locate::locate;
use crate::manifest::outline::{NodeId, Outline};
use crate::manifest::source::{Location, Source, Span};
use crate::model::pointer::Pointer;

/// The place of one Kubernetes object in a source.
#[derive(Debug, Clone)]
pub struct DocumentPlace {
    pub(super) source: Arc<Source>,
    pub(super) outline: Arc<Outline>,
    pub(super) root: NodeId,
    /// Where in its YAML document: empty, or `/items/3` inside a List.
    pub(super) prefix: Pointer,
}

impl DocumentPlace {
    /// The source it stands in.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
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
}
