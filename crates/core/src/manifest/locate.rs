//! Pointers to places in the text: in go an outline and the tokens of a pointer, out comes where they
//! lead. Values are not read here.

use crate::manifest::outline::{NodeId, NodeKind, Outline};
use crate::manifest::source::{Location, Source, Span};
use crate::manifest::value::{is_merge, key_name};

/// An entry of a mapping, or an element of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// The key, in a mapping.
    pub(super) key: Option<NodeId>,
    /// The value or element.
    pub(super) value: NodeId,
}

/// Where the tokens lead from `root`; if they lead nowhere, the last place on the way.
pub(super) fn locate(
    source: &Source,
    outline: &Outline,
    root: NodeId,
    tokens: impl Iterator<Item = String>,
) -> Location {
    let mut here = Member { key: None, value: root };
    let mut exact = true;
    for token in tokens {
        let Some(below) = member(source.text(), outline, here.value, &token) else {
            exact = false;
            break;
        };
        here = below;
    }
    let value = outline.node(here.value);
    let key = here.key.map(|key| outline.node(key)).map(|key| source.span(key.content, key.end));
    let span = source.span(value.content, value.end);
    let caret = match key {
        Some(key) if value.is_collection() || !exact || span.start == span.end => key,
        None if value.is_collection() => kind_entry(source, outline, here.value, span),
        _ => first_line(source, span),
    };
    Location { key, value: span, caret, exact }
}

/// The entry or element that `token` names, through aliases and merge keys.
///
/// The recursion ends: a mapping that merges itself, or merges too deep or too often, was refused when
/// its value was read.
pub(super) fn member(text: &str, outline: &Outline, from: NodeId, token: &str) -> Option<Member> {
    match &outline.node(outline.resolve(from)).kind {
        NodeKind::Map(_, entries) => map_member(text, outline, entries, token),
        NodeKind::List(_, items) => {
            let value = *items.get(token.parse::<usize>().ok()?)?;
            Some(Member { key: None, value })
        }
        _ => None,
    }
}

/// The entry that counts: the last one of that name, be it the mapping's own or merged.
fn map_member(text: &str, outline: &Outline, entries: &[(NodeId, NodeId)], name: &str) -> Option<Member> {
    entries.iter().rev().find_map(|(key, value)| {
        if is_merge(outline.node(*key), text) {
            return match &outline.node(outline.resolve(*value)).kind {
                NodeKind::Map(_, entries) => map_member(text, outline, entries, name),
                NodeKind::List(_, items) => items.iter().find_map(|item| member(text, outline, *item, name)),
                _ => None,
            };
        }
        let found = key_name(outline, *key, text).as_deref() == Some(name);
        found.then_some(Member { key: Some(*key), value: *value })
    })
}

/// For an object without a key of its own, the `kind` that names it, else its first line.
fn kind_entry(source: &Source, outline: &Outline, id: NodeId, span: Span) -> Span {
    match member(source.text(), outline, id, "kind") {
        Some(Member { key: Some(key), value }) => {
            let (key, value) = (outline.node(key), outline.node(value));
            first_line(source, source.span(key.content, value.end.max(key.end)))
        }
        _ => first_line(source, span),
    }
}

fn first_line(source: &Source, span: Span) -> Span {
    let line = source.slice(span).lines().next().unwrap_or_default();
    Span { end: span.start + line.trim_end().len(), ..span }
}
