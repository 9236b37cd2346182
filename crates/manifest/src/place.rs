//! Places in the text: a JSON pointer goes in, its line and column come out.
//!
//! A place keeps no outline, which takes ten times its text. It parses its part of the source again when it is asked,
//! and only the outline of the last such part is kept.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dialect::{control_character, read_otherwise};
use crate::outline::{NodeId, NodeKind, Outline, TextPart, parts};
use crate::source::{Location, Source, Span, offset};
use crate::value::{is_merge, key_name};
use crate::{json, yaml};
use memgate_primitives::pointer::Pointer;

/// The place of one Kubernetes object in a source.
#[derive(Debug, Clone)]
pub struct DocumentPlace {
    outlines: Arc<Outlines>,
    part: TextPart,
    /// The object in the outline of the part.
    node: NodeId,
    index: u32,
    /// The first byte of the object, and the byte behind its last one.
    bytes: [u32; 2],
    /// In a List, its number, and the pointer to the list of which it is an item.
    item: u32,
    list: Option<Arc<Pointer>>,
    is_in_text: bool,
}

impl DocumentPlace {
    /// The place of a whole document, in a part with this outline.
    pub(super) fn new(
        outlines: &Arc<Outlines>,
        part: TextPart,
        outline: &Outline,
        node: NodeId,
        index: usize,
    ) -> Self {
        let (outlines, index, bytes) = (Arc::clone(outlines), offset(index), bytes(outline, node));
        Self { outlines, part, node, index, bytes, item: 0, list: None, is_in_text: false }
    }

    /// The places of the items of a List.
    pub(super) fn items(&self) -> Vec<Self> {
        let outline = self.outlines.outline(self.part);
        let list = self.list();
        let item = |(number, node): (usize, &NodeId)| {
            Self { node: *node, bytes: bytes(&outline, *node), ..self.clone() }.item_of(&list, number)
        };
        list_items(self.source(), &outline, self.node).iter().enumerate().map(item).collect()
    }

    /// The pointer to the items of a List.
    pub(super) fn list(&self) -> Arc<Pointer> {
        Arc::new(self.prefix().key("items"))
    }

    /// The same place as that of an item of a list.
    pub(super) fn item_of(self, list: &Arc<Pointer>, number: usize) -> Self {
        Self { item: offset(number), list: Some(Arc::clone(list)), ..self }
    }

    /// The same place in a text of another document.
    pub(super) fn in_text(self) -> Self {
        Self { is_in_text: true, ..self }
    }

    /// Whether it is in a text of another document.
    pub(super) const fn is_in_text(&self) -> bool {
        self.is_in_text
    }

    /// The source.
    pub fn source(&self) -> &Arc<Source> {
        &self.outlines.source
    }

    /// The number of the YAML document in the source, from 0.
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// The pointer to the object in that YAML document: empty, or `/items/3` inside a List.
    pub fn prefix(&self) -> Pointer {
        self.list.as_ref().map_or_else(Pointer::root, |list| list.index(self.item as usize))
    }

    /// The outlines of its source.
    pub(super) fn outlines(&self) -> &Outlines {
        &self.outlines
    }

    /// The place of a pointer. When the pointer leads to nothing, the place of the nearest parent that exists. At the
    /// root of an object the caret is at its `kind`.
    pub fn locate(&self, pointer: &Pointer) -> Location {
        let outline = self.outlines.outline(self.part);
        locate(self.source(), &outline, self.node, pointer.tokens().map(Cow::into_owned))
    }

    /// The field at a byte: the innermost one whose key or value is there.
    pub fn field_at(&self, byte: usize) -> Pointer {
        let outline = self.outlines.outline(self.part);
        let holds = |first: NodeId, last: NodeId| {
            outline.node(first).content <= byte && byte <= outline.node(last).end
        };
        let (mut here, mut pointer) = (self.node, Pointer::root());
        loop {
            // Where one ends and the next begins, the next one counts.
            let (below, next) = match &outline.node(here).kind {
                NodeKind::Map(_, entries) => {
                    let entry = entries.iter().rfind(|(key, value)| holds(*key, *value));
                    let Some((key, value)) = entry else { return pointer };
                    let Some(name) = key_name(&outline, *key, self.source().text()) else { return pointer };
                    (pointer.key(&name), *value)
                }
                NodeKind::List(_, items) => {
                    let item = items.iter().enumerate().rfind(|(_, item)| holds(**item, **item));
                    let Some((index, item)) = item else { return pointer };
                    (pointer.index(index), *item)
                }
                _ => return pointer,
            };
            (pointer, here) = (below, next);
        }
    }

    /// The whole object.
    pub fn span(&self) -> Span {
        let [start, end] = self.bytes;
        self.source().span(start as usize, end as usize)
    }

    /// Its first byte.
    pub const fn start(&self) -> usize {
        self.bytes[0] as usize
    }
}

/// Frees the outline of a source once the caller goes on to places of another source.
#[derive(Debug, Default)]
pub struct LastSource<'p>(Option<&'p DocumentPlace>);

impl<'p> LastSource<'p> {
    /// Notes that the source of this place is used from now on.
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

/// The outlines of the parts of a source, of which only the last one that was made is kept. Callers ask for all places
/// of one part before those of another, so few are made again.
#[derive(Debug)]
pub(super) struct Outlines {
    /// The source.
    pub(super) source: Arc<Source>,
    /// Whether the source looks like JSON. Kept, since finding it out reads all blanks before the first character.
    is_json: bool,
    last: Mutex<Option<(TextPart, Arc<Outline>)>>,
}

impl Outlines {
    /// The outlines of a source, none of them made yet.
    pub(super) fn new(source: &Arc<Source>) -> Self {
        let is_json = json::looks_like(source);
        Self { source: Arc::clone(source), is_json, last: Mutex::default() }
    }

    /// The parts of the source.
    pub(super) fn parts(&self) -> Vec<TextPart> {
        parts(&self.source)
    }

    /// Parses a part. `errors` is the number of errors in the parts before it.
    pub(super) fn read(&self, part: TextPart, errors: usize) -> Arc<Outline> {
        let outline = Arc::new(self.parse(part, errors));
        *self.last() = Some((part, Arc::clone(&outline)));
        outline
    }

    /// The outline of a part, which is parsed again if another part was parsed since.
    pub(super) fn outline(&self, part: TextPart) -> Arc<Outline> {
        let kept =
            self.last().as_ref().filter(|(last, _)| *last == part).map(|(_, outline)| Arc::clone(outline));
        kept.unwrap_or_else(|| self.read(part, 0))
    }

    /// Frees the outline that is kept.
    pub(super) fn forget(&self) {
        *self.last() = None;
    }

    fn parse(&self, part: TextPart, errors: usize) -> Outline {
        let source = &self.source;
        if let Some(error) = control_character(source, part) {
            return Outline::of_error(error);
        }
        if self.is_json
            && part == TextPart::whole(source)
            && let Ok(outline) = json::read(source, part)
        {
            return outline;
        }
        if let Some(error) = read_otherwise(source, part) {
            return Outline::of_error(error);
        }
        let mut outline = yaml::read(source, part);
        // Neither JSON nor YAML: the error of the parser that came further helps more.
        if self.is_json
            && errors == 0
            && let Some(Err(yaml_error)) = outline.roots.iter_mut().find(|root| root.is_err())
            && let Err(json_error) = json::read(source, TextPart::whole(source))
            && (json_error.span.start >= yaml_error.span.start
                || Path::new(source.name()).extension().is_some_and(|it| it == "json"))
        {
            *yaml_error = *json_error;
        }
        outline
    }

    fn last(&self) -> MutexGuard<'_, Option<(TextPart, Arc<Outline>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(outline: &Outline, node: NodeId) -> [u32; 2] {
    let node = outline.node(node);
    [node.content, node.end].map(offset)
}

fn span(source: &Source, outline: &Outline, node: NodeId) -> Span {
    let node = outline.node(node);
    source.span(node.content, node.end)
}

/// An entry of a mapping, or an element of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// The key, in a mapping.
    pub(super) key: Option<NodeId>,
    /// The value or element.
    pub(super) value: NodeId,
    /// The first alias on the way from the mapping or list to the member.
    alias: Option<NodeId>,
}

/// The place to which the tokens lead from `root`; if they lead to nothing, the last place on the way.
fn locate(
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
    let key = here.key.map(|key| span(source, outline, key));
    let span = source.span(value.content, value.end);
    let caret = match key {
        Some(key) if value.is_collection() || !exact || span.start == span.end => key,
        None if value.is_collection() => kind_entry(source, outline, here.value, span),
        _ => source.first_line(span),
    };
    let alias = alias.map(|alias| self::span(source, outline, alias));
    Location { key, value: span, caret, exact, alias, anchor: anchor(source, outline, here.value) }
}

/// The entry or element of this name or index, looked up through aliases and merge keys.
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

/// The elements of the list `items` of a mapping; empty without such a list.
fn list_items<'o>(source: &Source, outline: &'o Outline, from: NodeId) -> &'o [NodeId] {
    let list = member(source.text(), outline, from, "items").map(|list| outline.resolve(list.value));
    match list.map(|list| &outline.node(list).kind) {
        Some(NodeKind::List(_, items)) => items,
        _ => &[],
    }
}

impl Member {
    /// The same member, reached through a node that may be an alias.
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
        let is_named = key_name(outline, *key, text).as_deref() == Some(name);
        is_named.then_some(Member { key: Some(*key), value: *value, alias: None })
    })
}

/// For an alias, the anchor of the collection that it refers to, or the first line of the scalar.
fn anchor(source: &Source, outline: &Outline, id: NodeId) -> Option<Span> {
    let target = outline.resolve(id);
    let node = outline.node(target);
    let span = if node.is_collection() {
        source.span(node.start, node.content)
    } else {
        source.span(node.content, node.end)
    };
    (target != id).then(|| source.first_line(span))
}

/// For an object without a key of its own, the `kind` that names it, else its first line.
fn kind_entry(source: &Source, outline: &Outline, id: NodeId, span: Span) -> Span {
    match member(source.text(), outline, id, "kind") {
        Some(Member { key: Some(key), value, .. }) => {
            let (key, value) = (outline.node(key), outline.node(value));
            source.first_line(source.span(key.content, value.end.max(key.end)))
        }
        _ => source.first_line(span),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::document::values;
    use crate::source::Source;
    use memgate_primitives::pointer::Pointer;

    /// The fields of `a`, with aliases of them.
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
    fn finds_the_field_at_a_byte() {
        let source = Arc::new(Source::new("x", TEXT));
        let documents = values(&source, &mut Vec::new());
        let document = documents.first().expect("one");
        for (piece, pointer) in [
            ("a: &a", "/a"),
            ("one: &one", "/a/one"),
            ("1\n", "/a/one"),
            ("three: *one", "/a/two/three"),
            ("*one}", "/a/two/three"),
            ("b: *a", "/b"),
            ("four: 4", "/c/four"),
            ("five", "/d/<<"),
            ("*one]", "/e/1"),
        ] {
            let at = TEXT.find(piece).expect("is there");
            let found = document.place().field_at(at);
            assert!(found.as_str().starts_with(pointer), "{piece}: {found:?}");
        }
        for (at, pointer) in [(TEXT.trim_end().len(), "/g"), (TEXT.len(), ""), (usize::MAX, "")] {
            assert_eq!(document.place().field_at(at).as_str(), pointer);
        }
    }

    #[test]
    fn finds_the_alias_and_its_anchor() {
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
