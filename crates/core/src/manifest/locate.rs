//! Pointers to places in the text.

use crate::manifest::document::Place;
use crate::manifest::outline::{Id, Kind, Outline};
use crate::manifest::source::{Source, Span};
use crate::manifest::value::{is_merge, key_name};

/// An entry of a mapping, or an element of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// The key, in a mapping.
    pub(super) key: Option<Id>,
    /// The value or element.
    pub(super) value: Id,
}

/// Where the tokens lead to from `root`, or as far as they lead.
pub(super) fn place(
    source: &Source,
    outline: &Outline,
    root: Id,
    tokens: impl Iterator<Item = String>,
) -> Place {
    let mut here = Step { key: None, value: root };
    let mut exact = true;
    for token in tokens {
        let Some(below) = step(source.text(), outline, here.value, &token) else {
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
    Place { key, value: span, caret, exact }
}

/// One step down: the entry or element that `token` names, through aliases and merge keys.
///
/// Ends: a mapping that merges itself, or merges too deep or too often, is refused when its value
/// is read.
pub(super) fn step(text: &str, outline: &Outline, from: Id, token: &str) -> Option<Step> {
    match &outline.node(outline.resolve(from)).kind {
        Kind::Map(_, entries) => entry(text, outline, entries, token),
        Kind::List(_, items) => {
            let value = *items.get(token.parse::<usize>().ok()?)?;
            Some(Step { key: None, value })
        }
        _ => None,
    }
}

/// The entry that counts: the last one of that name, be it the mapping's own or merged.
fn entry(text: &str, outline: &Outline, entries: &[(Id, Id)], name: &str) -> Option<Step> {
    entries.iter().rev().find_map(|(key, value)| {
        if is_merge(outline.node(*key), text) {
            return match &outline.node(outline.resolve(*value)).kind {
                Kind::Map(_, entries) => entry(text, outline, entries, name),
                Kind::List(_, items) => items.iter().find_map(|item| step(text, outline, *item, name)),
                _ => None,
            };
        }
        let found = key_name(outline, *key, text).as_deref() == Some(name);
        found.then_some(Step { key: Some(*key), value: *value })
    })
}

/// For an object without a key of its own, the `kind` that names it, else its first line.
fn kind_entry(source: &Source, outline: &Outline, id: Id, span: Span) -> Span {
    match step(source.text(), outline, id, "kind") {
        Some(Step { key: Some(key), value }) => {
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
