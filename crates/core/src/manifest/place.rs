//! Where documents stand: in goes a pointer, out comes its place in the text. What a document says is not kept here.

use std::borrow::Cow;
use std::sync::Arc;

use crate::manifest::locate::locate;
use crate::manifest::outline::{NodeId, Outline};
use crate::manifest::outlines::Outlines;
use crate::manifest::parts::Part;
use crate::manifest::source::{Location, Source, Span};
use crate::model::pointer::Pointer;

/// The place of one Kubernetes object in a source. It takes little memory: what is needed to find a pointer is read
/// again when it is asked for.
#[derive(Debug, Clone)]
pub struct DocumentPlace {
    outlines: Arc<Outlines>,
    part: Part,
    root: NodeId,
    /// Which of the YAML documents of the source, from 0.
    index: usize,
    /// Where in that YAML document: empty, or `/items/3` inside a List.
    prefix: Pointer,
    span: Span,
}

impl DocumentPlace {
    /// The place of a whole document, in a part with this outline.
    pub(super) fn new(
        outlines: &Arc<Outlines>,
        part: Part,
        outline: &Outline,
        root: NodeId,
        index: usize,
    ) -> Self {
        let node = outline.node(root);
        let span = outlines.source().span(node.content, node.end);
        Self { outlines: Arc::clone(outlines), part, root, index, prefix: Pointer::root(), span }
    }

    /// The place of an item of a List.
    pub(super) fn within(&self, prefix: Pointer) -> Self {
        let mut item = Self { prefix, outlines: Arc::clone(&self.outlines), ..*self };
        item.span = item.locate(&Pointer::root()).value;
        item
    }

    /// The source it stands in.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        self.outlines.source()
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

    /// The outline of a part of its source.
    pub(super) fn outline(&self, part: Part) -> Arc<Outline> {
        self.outlines.outline(part)
    }

    /// Where the pointer stands; when it names nothing, where the nearest thing stands that would
    /// hold it. At the root of an object the caret is at its `kind`.
    #[must_use]
    pub fn locate(&self, pointer: &Pointer) -> Location {
        let tokens = self.prefix.tokens().chain(pointer.tokens()).map(Cow::into_owned);
        locate(self.source(), &self.outline(self.part), self.root, tokens)
    }

    /// The whole object.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }
}
