//! The outline: every node of a source with the bytes that it takes, without its meaning.
//!
//! ```text
//! env: &e [{name: A}]        Map, entries (key, value)
//!      ^start                start: with anchor and tag
//!         ^content           content: without them
//!                    ^end
//! ```
//!
//! Nodes are kept in one list and refer to each other by number. So dropping them does not recurse, however deep they
//! are nested, and an alias is a number too. `value` says what a node means.

use std::ops::Range;

use crate::error::SyntaxError;
use crate::source::{Source, offset};

/// How many levels collections may be nested. The deepest manifests in use, CRDs with a pod template in
/// their schema, have about 30; serde_json reads 128 at most.
pub(super) const MAX_DEPTH: usize = 100;

/// A stretch of a source that is parsed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextPart {
    start: u32,
    end: u32,
}

/// The number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

/// The nodes of a part of a source.
#[derive(Debug, Default)]
pub(super) struct Outline {
    nodes: Vec<Node>,
    /// The root of each document that is well-formed, and the error of each other one.
    pub(super) roots: Vec<Result<NodeId, SyntaxError>>,
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
    /// The kind, with what it holds.
    pub(super) kind: NodeKind,
}

/// The kind of a node.
#[derive(Debug)]
pub(super) enum NodeKind {
    /// A scalar.
    Scalar(Style, ScalarText),
    /// A list.
    List(Form, Vec<NodeId>),
    /// A mapping, its keys and values.
    Map(Form, Vec<(NodeId, NodeId)>),
    /// An alias, and the node with its anchor.
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

/// The text of a scalar, with escapes and folds undone.
#[derive(Debug)]
pub(super) enum ScalarText {
    /// These bytes of the source.
    Slice(usize, usize),
    /// A text that differs from the bytes of the source.
    Owned(Box<str>),
}

/// The tags with a meaning.
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

/// Returned for a [`NodeId`] of another outline, which does not happen in practice.
static EMPTY_NODE: Node =
    Node { start: 0, content: 0, end: 0, tag: Tag::None, kind: NodeKind::List(Form::Flow, Vec::new()) };

/// The parts of a source, in order. Each YAML document is one, so that a text of many documents takes the memory of its
/// largest one.
///
/// A line that begins with `---` ends whatever is open before it, also a text in quotes or a block, so the parts are
/// found without parsing. YAML with directives stays in one part, since a directive belongs to the document behind it.
/// JSON is one part: none of its lines begins with `---`.
pub(super) fn parts(source: &Source) -> Vec<TextPart> {
    let text = source.text();
    if has_directive(text) {
        return vec![TextPart::whole(source)];
    }
    let begins = text.match_indices("\n---").map(|(at, _)| at + 1);
    let begins = begins.filter(|at| text.get(*at..).is_some_and(|rest| begins_with_marker(rest, "---")));
    let mut parts = Vec::new();
    let mut start = 0;
    for begin in begins.chain([text.len()]) {
        parts.push(TextPart::new(start, begin));
        start = begin;
    }
    parts
}

/// Whether a text begins with the document marker `---` or `...`, as asked for.
pub(super) fn begins_with_marker(text: &str, marker: &str) -> bool {
    let behind = text.strip_prefix(marker);
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(|it: char| it.is_ascii_whitespace()))
}

/// Whether a line looks like a directive.
fn has_directive(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').starts_with('%') || text.contains("\n%") || text.contains("\r%")
}

impl TextPart {
    /// All of a source.
    pub(super) fn whole(source: &Source) -> Self {
        Self::new(0, source.text().len())
    }

    /// The part from a byte to before another one.
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start: offset(start), end: offset(end) }
    }

    /// Its first byte.
    pub(super) const fn start(self) -> usize {
        self.start as usize
    }

    /// Its bytes.
    pub(super) const fn bytes(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Outline {
    /// The outline of what cannot be read.
    pub(super) fn of_error(error: SyntaxError) -> Self {
        Self { nodes: Vec::new(), roots: vec![Err(error)] }
    }

    /// The node of this number.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&EMPTY_NODE)
    }

    /// All nodes, also those of documents that end in an error.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        let count = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        (0..count).map(NodeId)
    }

    /// The node itself, or the node that an alias refers to.
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

    /// The node of this number, to complete it.
    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.index())
    }
}

impl NodeId {
    /// The number as an index.
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
    /// The text; `source` is the text of the source.
    pub(super) fn get<'t>(&'t self, source: &'t str) -> &'t str {
        match self {
            Self::Slice(start, end) => source.get(*start..*end).unwrap_or_default(),
            Self::Owned(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_before_each_document() {
        for (text, expected) in [
            ("", vec![""]),
            ("a: 1", vec!["a: 1"]),
            ("a: 1\n---\nb: 1\n", vec!["a: 1\n", "---\nb: 1\n"]),
            ("---\na: 1\n--- # x\r\n---", vec!["---\na: 1\n", "--- # x\r\n", "---"]),
            ("a: |\n ---\n----\n--- |\n  x\n", vec!["a: |\n ---\n----\n", "--- |\n  x\n"]),
            ("%YAML 1.2\n---\na: 1\n---\n", vec!["%YAML 1.2\n---\na: 1\n---\n"]),
            ("a: 1\n...\n%TAG ! x\n---\n", vec!["a: 1\n...\n%TAG ! x\n---\n"]),
        ] {
            let source = Source::new("a.yaml", text);
            let parts = parts(&source);
            let texts: Vec<&str> = parts.iter().filter_map(|part| text.get(part.bytes())).collect();
            assert_eq!(texts, expected, "{text}");
        }
    }
}
