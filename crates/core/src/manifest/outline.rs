//! The outline: every node of a source with the bytes it takes, without what it means.
//!
//! ```text
//! env: &e [{name: A}]        Map, entries (key, value)
//!      ^start                start: with anchor and tag
//!         ^content           content: without them
//!                    ^end
//! ```
//!
//! Nodes stand in one arena and refer to each other by number: dropping them does not recurse, however
//! deep they are nested, and an alias is a number too. What a node means is for `value` to say.

use crate::manifest::error::SyntaxError;

/// How many levels collections may be nested. The deepest manifests in use, CRDs with a pod template in
/// their schema, have about 30; serde_json reads 128 at most.
pub(super) const MAX_DEPTH: usize = 100;

/// A source taken apart, before its nodes are given a meaning.
#[derive(Debug, Default)]
pub(super) struct Syntax {
    /// All nodes of all documents.
    pub(super) outline: Outline,
    /// The root of each document that is well-formed, the error of each that is not.
    pub(super) roots: Vec<Result<NodeId, SyntaxError>>,
}

/// The number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

/// All nodes of a source.
#[derive(Debug, Default)]
pub(super) struct Outline {
    nodes: Vec<Node>,
    /// The root of each document; none of one that is not well-formed.
    pub(super) roots: Vec<Option<NodeId>>,
}

/// One node: a scalar, list, mapping or alias.
#[derive(Debug)]
pub(super) struct Node {
    /// The first byte, with anchor and tag.
    pub(super) start: usize,
    /// The first byte without anchor and tag; the indicator of a block scalar.
    pub(super) content: usize,
    /// The byte behind the last one that counts.
    pub(super) end: usize,
    /// The tag.
    pub(super) tag: Tag,
    /// What it is.
    pub(super) kind: NodeKind,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum NodeKind {
    /// A scalar.
    Scalar(Style, ScalarText),
    /// A list.
    List(Form, Vec<NodeId>),
    /// A mapping, its keys and values.
    Map(Form, Vec<(NodeId, NodeId)>),
    /// An alias, and what it stands for.
    Alias(NodeId),
}

/// How a collection is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// By indentation.
    Block,
    /// In brackets or braces, as all of JSON is.
    Flow,
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Without quotes: it may be a number, a boolean or null.
    Plain,
    /// In quotes.
    Quoted,
    /// As a block, `|` or `>`.
    Block,
}

/// The text of a scalar, escapes and folds undone.
#[derive(Debug)]
pub(super) enum ScalarText {
    /// Just as it stands in the source.
    Slice(usize, usize),
    /// Unlike the source.
    Owned(Box<str>),
}

/// The tags that mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// No tag.
    None,
    /// `!!null`
    Null,
    /// `!!bool`
    Bool,
    /// `!!int`
    Int,
    /// `!!float`
    Float,
    /// `!!binary`
    Binary,
    /// `!!merge`
    Merge,
    /// `!!str`, and any other: kubectl takes the scalar for a string.
    Text,
}

/// What stands for a [`NodeId`] of another outline, which does not happen in practice.
static EMPTY_NODE: Node =
    Node { start: 0, content: 0, end: 0, tag: Tag::None, kind: NodeKind::List(Form::Flow, Vec::new()) };

impl Outline {
    /// The node of that number.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.0 as usize).unwrap_or(&EMPTY_NODE)
    }

    /// All nodes, also those of documents that end in an error.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        let count = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        (0..count).map(NodeId)
    }

    /// The node itself, or what it is an alias for.
    pub(super) fn resolve(&self, id: NodeId) -> NodeId {
        match self.node(id).kind {
            NodeKind::Alias(target) => target,
            _ => id,
        }
    }

    /// Adds a node.
    pub(super) fn push(&mut self, node: Node) -> NodeId {
        // Sources are bounded far below 2^32 bytes, and a node takes at least one.
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(node);
        NodeId(id)
    }

    /// The node of that number, to complete it.
    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0 as usize)
    }
}

impl NodeId {
    /// The number as an index, for what is kept about each node.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Node {
    /// Whether this is a mapping or list.
    pub(super) fn is_collection(&self) -> bool {
        matches!(self.kind, NodeKind::List(..) | NodeKind::Map(..))
    }
}

impl ScalarText {
    /// The text, from the source that it stands in.
    pub(super) fn get<'t>(&'t self, source: &'t str) -> &'t str {
        match self {
            Self::Slice(start, end) => source.get(*start..*end).unwrap_or_default(),
            Self::Owned(text) => text,
        }
    }
}
