//! The outline: every node of a source with the bytes it takes, without what it means.
//!
//! ```text
//! env: &e [{name: A}]        Map, entries (key, value)
//!      ^start                start: with anchor and tag
//!         ^content           content: without them
//!                    ^end
//! ```
//!
//! Nodes stand in one arena and refer to each other by number: no depth of nesting can hurt when
//! they are dropped, and an alias is a number too.

/// The number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(u32);

/// All nodes of a source.
#[derive(Debug, Default)]
pub(super) struct Outline {
    nodes: Vec<Node>,
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
    pub(super) kind: Kind,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A scalar.
    Scalar(Style, Text),
    /// A list.
    List(Form, Vec<Id>),
    /// A mapping, its keys and values.
    Map(Form, Vec<(Id, Id)>),
    /// An alias, and what it stands for.
    Alias(Id),
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
pub(super) enum Text {
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

/// What to give for an [`Id`] of another outline; there is none in practice.
static NOTHING: Node =
    Node { start: 0, content: 0, end: 0, tag: Tag::None, kind: Kind::List(Form::Flow, Vec::new()) };

impl Outline {
    /// The node of that number.
    pub(super) fn node(&self, id: Id) -> &Node {
        self.nodes.get(id.0 as usize).unwrap_or(&NOTHING)
    }

    /// The node itself, or what it is an alias for.
    pub(super) fn resolve(&self, id: Id) -> Id {
        match self.node(id).kind {
            Kind::Alias(target) => target,
            _ => id,
        }
    }

    /// Adds a node.
    pub(super) fn push(&mut self, node: Node) -> Id {
        // Sources are bounded far below 2^32 bytes, and a node takes at least one.
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(node);
        Id(id)
    }

    /// The node of that number, to complete it.
    pub(super) fn node_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(id.0 as usize)
    }
}

impl Node {
    /// Whether this is a mapping or list.
    pub(super) fn is_collection(&self) -> bool {
        matches!(self.kind, Kind::List(..) | Kind::Map(..))
    }
}

impl Text {
    /// The text, from the source that it stands in.
    pub(super) fn get<'t>(&'t self, source: &'t str) -> &'t str {
        match self {
            Self::Slice(start, end) => source.get(*start..*end).unwrap_or_default(),
            Self::Owned(text) => text,
        }
    }
}
