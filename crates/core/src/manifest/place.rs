//! Where documents stand: in goes a pointer, out comes its place in the text. What a document says is not kept here.

use std::borrow::Cow;
use std::sync::Arc;

use crate::manifest::locate::{list_items, locate};
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
    /// The object in the outline of the part.
    node: NodeId,
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
        node: NodeId,
        index: usize,
    ) -> Self {
        let span = span(outlines.source(), outline, node);
        Self { outlines: Arc::clone(outlines), part, node, index, prefix: Pointer::root(), span }
    }

    /// The places of the items of a List.
    pub(super) fn items(&self) -> Vec<Self> {
        let outline = self.outline();
        let list = self.prefix.key("items");
        let items = list_items(self.source(), &outline, self.node);
        let item = |(index, node): (usize, &NodeId)| {
            let span = span(self.source(), &outline, *node);
            Self {
                node: *node,
                prefix: list.index(index),
                span,
                outlines: Arc::clone(&self.outlines),
                ..*self
            }
        };
        items.iter().enumerate().map(item).collect()
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

    /// The outlines of its source.
    pub(super) fn outlines(&self) -> &Outlines {
        &self.outlines
    }

    fn outline(&self) -> Arc<Outline> {
        self.outlines.outline(self.part)
    }

    /// Where the pointer stands; when it names nothing, where the nearest thing stands that would
    /// hold it. At the root of an object the caret is at its `kind`.
    #[must_use]
    pub fn locate(&self, pointer: &Pointer) -> Location {
        locate(self.source(), &self.outline(), self.node, pointer.tokens().map(Cow::into_owned))
    }

    /// The whole object.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }
}

/// The source in which places are looked for. What was read of it for that goes when the next one's turn comes: it takes
/// ten times its text.
#[derive(Debug, Default)]
pub struct LastSource<'p>(Option<&'p DocumentPlace>);

impl<'p> LastSource<'p> {
    /// From now on it is the one of this place.
    pub fn is_now(&mut self, place: &'p DocumentPlace) {
        let before = self.0.replace(place);
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before.source(), place.source())) {
            before.outlines.forget();
        }
    }
}

impl Drop for LastSource<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.outlines.forget();
        }
    }
}

fn span(source: &Source, outline: &Outline, node: NodeId) -> Span {
    let node = outline.node(node);
    source.span(node.content, node.end)
}
