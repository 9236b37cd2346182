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
    /// The first alias on the way to it from the mapping or list in which it was looked for.
    alias: Option<NodeId>,
}

/// Where the tokens lead from `root`; if they lead nowhere, the last place on the way.
pub(super) fn locate(
    source: &Source,
    outline: &Outline,
    root: NodeId,
    tokens: impl Iterator<Item = String>,
) -> Location {
    let mut here = Member { key: None, value: root, alias: None };
    let (mut exact, mut alias) = (true, None);
    for token in tokens {
        let Some(below) = member(source.text(), outline, here.value, &token) else {
            exact = false;
            break;
        };
        alias = alias.or(below.alias);
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
    let alias = alias.map(|alias| outline.node(alias)).map(|alias| source.span(alias.content, alias.end));
    Location { key, value: span, caret, exact, alias, anchor: anchor(source, outline, here.value) }
}

/// The entry or element that `token` names, through aliases and merge keys.
///
/// The recursion ends: a mapping that merges itself, or merges too deep or too often, was refused when
/// its value was read.
pub(super) fn member(text: &str, outline: &Outline, from: NodeId, token: &str) -> Option<Member> {
    let found = match &outline.node(outline.resolve(from)).kind {
        NodeKind::Map(_, entries) => map_member(text, outline, entries, token),
        NodeKind::List(_, items) => {
            let value = *items.get(token.parse::<usize>().ok()?)?;
            Some(Member { key: None, value, alias: None })
        }
        _ => None,
    };
    found.map(|found| found.through(outline, from))
}

/// The elements of the list `items` of a mapping; none where there is no list.
pub(super) fn list_items<'o>(source: &Source, outline: &'o Outline, from: NodeId) -> &'o [NodeId] {
    let list = member(source.text(), outline, from, "items").map(|list| outline.resolve(list.value));
    match list.map(|list| &outline.node(list).kind) {
        Some(NodeKind::List(_, items)) => items,
        _ => &[],
    }
}

impl Member {
    /// The same, looked for in a node that may be an alias.
    fn through(self, outline: &Outline, from: NodeId) -> Self {
        let is_alias = matches!(outline.node(from).kind, NodeKind::Alias(_));
        Self { alias: is_alias.then_some(from).or(self.alias), ..self }
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
            }
            .map(|found| found.through(outline, *value));
        }
        let found = key_name(outline, *key, text).as_deref() == Some(name);
        found.then_some(Member { key: Some(*key), value: *value, alias: None })
    })
}

/// Of an alias, the anchor of the collection that it stands for, or the first line of the scalar.
fn anchor(source: &Source, outline: &Outline, id: NodeId) -> Option<Span> {
    let target = outline.resolve(id);
    let node = outline.node(target);
    let span = if node.is_collection() {
        source.span(node.start, node.content)
    } else {
        source.span(node.content, node.end)
    };
    (target != id).then(|| first_line(source, span))
}

/// For an object without a key of its own, the `kind` that names it, else its first line.
fn kind_entry(source: &Source, outline: &Outline, id: NodeId, span: Span) -> Span {
    match member(source.text(), outline, id, "kind") {
        Some(Member { key: Some(key), value, .. }) => {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::manifest::document::values;
    use crate::manifest::source::Source;
    use crate::model::pointer::Pointer;

    /// What stands below `a`, as others have it.
    const TEXT: &str = "\
a: &a
  one: &one 1
  two: {three: *one}
b: *a
c: {<<: *a, four: 4}
d: {<<: [{five: 5}, *a]}
e: [*a, *one]
f: &f {six: *a}
g: *f
";

    #[test]
    fn shows_the_alias_and_what_stands_behind_it() {
        let source = Arc::new(Source::new("x", TEXT));
        let documents = values(&source, &mut Vec::new());
        let document = documents.first().expect("one");
        for (pointer, at_key, line, caret, anchor) in [
            ("/a/one", false, 2, "1", None),
            ("/a/two/three", false, 3, "*one", Some((2, "1"))),
            ("/a/two/three", true, 3, "three", None),
            ("/b", false, 4, "*a", Some((1, "&a"))),
            ("/b", true, 4, "b", None),
            ("/b/none", false, 4, "b", Some((1, "&a"))),
            ("/b/one", false, 4, "*a", Some((2, "1"))),
            ("/b/one", true, 4, "*a", Some((2, "one"))),
            ("/b/two", false, 4, "*a", Some((3, "two"))),
            ("/b/two/three", false, 4, "*a", Some((2, "1"))),
            ("/b/two/none", false, 4, "*a", Some((3, "two"))),
            ("/c/four", false, 5, "4", None),
            ("/c/one", false, 5, "*a", Some((2, "1"))),
            ("/c/none", false, 5, "c", None),
            ("/d/five", false, 6, "5", None),
            ("/d/one", false, 6, "*a", Some((2, "1"))),
            ("/e/0/one", false, 7, "*a", Some((2, "1"))),
            ("/e/1", false, 7, "*one", Some((2, "1"))),
            ("/g/six/one", false, 9, "*f", Some((2, "1"))),
        ] {
            let (here, there) = document.locate(&Pointer::new(pointer)).carets(at_key);
            let there = there.map(|there| (there.line, source.slice(there)));
            assert_eq!((here.line, source.slice(here), there), (line, caret, anchor), "{pointer}");
        }
    }
}
