//! Applying edits to JSON text: everything that no edit names stays as it is, byte for byte.
//!
//! Only the objects and lists that a pointer leads through are taken apart, each once for all edits; their
//! other members are copied as text, neighbours together. So depth, number, unusual numbers and repeated keys
//! elsewhere do not matter, and the time is that of the text and the edits together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::patch::PatchError;
use crate::patch::positions::{Element, Positions};
use memgate_model::edit::{Edit, Op};
use memgate_model::view::Text;
use memgate_primitives::pointer::list_index;

/// The text of the object after the edits, in their order.
///
/// # Errors
/// The first edit that does not apply.
pub fn apply(object: &str, edits: &[Edit]) -> Result<String, PatchError> {
    let mut paths = Paths::default();
    for edit in edits {
        edit.pointer.tokens().fold(&mut paths, |paths, token| paths.0.entry(Paths::name(token)).or_default());
    }
    let mut root = Node::Text(Cow::Borrowed(object));
    for edit in edits {
        let value = serde_json::to_string(&edit.value).map_err(|_| PatchError::Unreadable)?;
        root.apply(edit, value, &paths).ok_or_else(|| PatchError::At(edit.pointer.clone()))?;
    }
    let mut text = String::with_capacity(object.len());
    root.write_to(&mut text).map_err(|_| PatchError::Unreadable)?;
    Ok(text)
}

/// The tokens of all pointers, by their common starts. The elements of a list are one, since inserts shift them.
#[derive(Default)]
struct Paths<'e>(BTreeMap<Cow<'e, str>, Self>);

impl<'e> Paths<'e> {
    fn name(token: Cow<'e, str>) -> Cow<'e, str> {
        if list_index(&token).is_some() { Cow::Borrowed("0") } else { token }
    }

    fn below(&self, token: &str) -> Option<&Self> {
        self.0.get(if list_index(token).is_some() { "0" } else { token })
    }
}

/// A value: as text until an edit leads into it, then taken apart.
enum Node<'a> {
    Text(Cow<'a, str>),
    List(Box<List<'a>>),
    Object(Box<Object<'a>>),
}

/// The elements of a list, as they were and as they are inserted.
struct List<'a> {
    elements: Vec<Node<'a>>,
    inserted: Vec<Node<'a>>,
    positions: Positions,
}

/// The members of an object in their order.
#[derive(Default)]
struct Object<'a> {
    parts: Vec<Part<'a>>,
    /// Where the members are that an edit may change. Of several equal keys the last one counts; the others are
    /// left out.
    members: BTreeMap<String, usize>,
}

enum Part<'a> {
    /// Members that no edit names, with the commas between them.
    Others(Cow<'a, str>),
    Member(Text<'a>, Node<'a>),
    Removed,
}

impl<'a> Node<'a> {
    /// Makes one edit; `None` when the way does not exist.
    fn apply(&mut self, edit: &Edit, value: String, mut paths: &Paths<'_>) -> Option<()> {
        let mut tokens: Vec<Cow<'_, str>> = edit.pointer.tokens().collect();
        let target = tokens.pop()?;
        let mut node = self;
        for token in &tokens {
            node = node.open(paths)?.child(token)?;
            paths = paths.below(token)?;
        }
        match node.open(paths)? {
            Self::List(list) => list.change(list_index(&target)?, edit.op, value),
            Self::Object(object) => object.change(&target, edit.op, value),
            Self::Text(_) => None,
        }
    }

    /// Takes a value apart; `None` when it is neither an object nor a list.
    fn open(&mut self, paths: &Paths<'_>) -> Option<&mut Self> {
        if let Self::Text(text) = self {
            *self = match text {
                Cow::Borrowed(text) => Self::parse(text, paths)?,
                Cow::Owned(text) => Node::parse(text, paths)?.into_owned(),
            };
        }
        Some(self)
    }

    fn parse(text: &'a str, paths: &Paths<'_>) -> Option<Self> {
        if text.trim_start().starts_with('[') {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            let elements = elements.into_iter().map(|value| Self::Text(Cow::Borrowed(value.get()))).collect();
            let list = List { elements, inserted: Vec::new(), positions: Positions::default() };
            return Some(Self::List(Box::new(list)));
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let object = deserializer.deserialize_map(Members { text, paths }).ok()?;
        Some(Self::Object(Box::new(object)))
    }

    fn into_owned<'o>(self) -> Node<'o> {
        match self {
            Self::Text(text) => Node::Text(Cow::Owned(text.into_owned())),
            Self::List(list) => {
                let List { elements, inserted, positions } = *list;
                let owned = |nodes: Vec<Self>| nodes.into_iter().map(Self::into_owned).collect();
                Node::List(Box::new(List { elements: owned(elements), inserted: owned(inserted), positions }))
            }
            Self::Object(object) => {
                let Object { parts, members } = *object;
                let parts = parts.into_iter().map(|part| match part {
                    Part::Others(text) => Part::Others(Cow::Owned(text.into_owned())),
                    Part::Member(key, node) => {
                        Part::Member(Text(Cow::Owned(key.0.into_owned())), node.into_owned())
                    }
                    Part::Removed => Part::Removed,
                });
                Node::Object(Box::new(Object { parts: parts.collect(), members }))
            }
        }
    }

    fn child(&mut self, token: &str) -> Option<&mut Self> {
        match self {
            Self::List(list) => list.get_mut(list_index(token)?),
            Self::Object(object) => object.get_mut(token),
            Self::Text(_) => None,
        }
    }

    fn write_to(&self, out: &mut String) -> std::fmt::Result {
        match self {
            Self::Text(text) => out.write_str(text),
            Self::List(list) => {
                out.push('[');
                for (index, element) in list.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    element.write_to(out)?;
                }
                out.write_char(']')
            }
            Self::Object(object) => object.write_to(out),
        }
    }
}

impl<'a> List<'a> {
    fn get_mut(&mut self, at: usize) -> Option<&mut Node<'a>> {
        match self.positions.at(at) {
            Element::Original(index) => self.elements.get_mut(index),
            Element::Inserted(number) => self.inserted.get_mut(number),
        }
    }

    fn change(&mut self, at: usize, op: Op, value: String) -> Option<()> {
        let new = Node::Text(Cow::Owned(value));
        match op {
            Op::Add if at <= self.elements.len() + self.inserted.len() => {
                self.positions.insert(at);
                self.inserted.push(new);
            }
            Op::Replace => *self.get_mut(at)? = new,
            Op::Add | Op::Remove => return None,
        }
        Some(())
    }

    fn iter(&self) -> impl Iterator<Item = &Node<'a>> {
        let untouched = if self.positions.is_original() { self.elements.as_slice() } else { &[] };
        let runs = self.positions.runs().flat_map(|run| match run.first {
            Element::Original(first) => self.elements.iter().skip(first).take(run.len),
            Element::Inserted(first) => self.inserted.iter().skip(first).take(run.len),
        });
        untouched.iter().chain(runs)
    }
}

impl<'a> Object<'a> {
    fn get_mut(&mut self, key: &str) -> Option<&mut Node<'a>> {
        match self.parts.get_mut(*self.members.get(key)?)? {
            Part::Member(_, node) => Some(node),
            Part::Others(_) | Part::Removed => None,
        }
    }

    fn change(&mut self, key: &str, op: Op, value: String) -> Option<()> {
        let new = Node::Text(Cow::Owned(value));
        match op {
            Op::Remove => {
                let at = self.members.remove(key)?;
                *self.parts.get_mut(at)? = Part::Removed;
            }
            Op::Add if !self.members.contains_key(key) => {
                self.members.insert(key.to_owned(), self.parts.len());
                self.parts.push(Part::Member(Text(Cow::Owned(key.to_owned())), new));
            }
            Op::Add | Op::Replace => *self.get_mut(key)? = new,
        }
        Some(())
    }

    /// Adds a member that an edit may change. Removing one means all of the equal keys: the last one only would
    /// bring an earlier one back.
    fn push(&mut self, key: Text<'a>, node: Node<'a>) {
        if let Some(earlier) = self.members.get(&*key) {
            if earlier + 1 == self.parts.len() {
                self.parts.pop();
            } else if let Some(part) = self.parts.get_mut(*earlier) {
                *part = Part::Removed;
            }
        }
        self.members.insert(key.to_string(), self.parts.len());
        self.parts.push(Part::Member(key, node));
    }

    fn write_to(&self, out: &mut String) -> std::fmt::Result {
        out.push('{');
        let mut comma = "";
        for part in &self.parts {
            match part {
                Part::Others(text) => write!(out, "{comma}{text}")?,
                Part::Member(key, node) => {
                    write!(out, "{comma}{}:", serde_json::Value::from(&**key))?;
                    node.write_to(out)?;
                }
                Part::Removed => continue,
            }
            comma = ",";
        }
        out.write_char('}')
    }
}

/// Takes the members of an object out of its text that an edit may change.
struct Members<'t, 'p> {
    text: &'t str,
    paths: &'p Paths<'p>,
}

impl<'t> Members<'t, '_> {
    /// The text between these places, without the part before the first key.
    fn others(&self, from: usize, to: usize) -> Option<Part<'t>> {
        let text = self.text.get(from..to)?.trim_start_matches([' ', '\t', '\n', '\r', '{', ',']);
        (!text.is_empty()).then_some(Part::Others(Cow::Borrowed(text)))
    }
}

impl<'de> Visitor<'de> for Members<'de, '_> {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut object = Object::default();
        // Up to where the text is taken out, and up to where members were read.
        let (mut taken, mut read) = (0, 0);
        while let Some((key, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
            let value = value.get();
            let end = (value.as_ptr().addr() - self.text.as_ptr().addr()) + value.len();
            if self.paths.below(&key).is_some() {
                object.parts.extend(self.others(taken, read));
                object.push(key, Node::Text(Cow::Borrowed(value)));
                taken = end;
            }
            read = end;
        }
        object.parts.extend(self.others(taken, read));
        Ok(object)
    }
}
