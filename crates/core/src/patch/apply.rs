//! Applies edits to JSON text, and checks that they apply. What no edit names stays as it is, byte for byte.
//!
//! The text is read along the pointers of the edits, independently of how the object was read for the decision. Only
//! the objects and lists that a pointer leads through are taken apart; their other members are copied as text,
//! neighbours together. So depth, number, unusual numbers and repeated keys elsewhere do not matter.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::patch::PatchError;
use memgate_model::edit::{Edit, Op};
use memgate_model::view::Text;
use memgate_primitives::pointer::list_index;

/// What is between two elements of a list.
const SEPARATORS: [char; 5] = [' ', '\t', '\n', '\r', ','];

/// The text of the object after the edits, in their order.
///
/// # Errors
/// The first edit that does not apply.
pub fn apply(object: &str, edits: &[Edit]) -> Result<String, PatchError> {
    edited(object, edits, |root| {
        let mut text = String::with_capacity(object.len());
        root.write_to(&mut text);
        text
    })
}

/// Whether the edits apply to the object, in their order.
///
/// # Errors
/// The first edit that does not apply.
pub fn check(object: &str, edits: &[Edit]) -> Result<(), PatchError> {
    edited(object, edits, |_| ())
}

fn edited<T>(object: &str, edits: &[Edit], read: impl FnOnce(&Node<'_>) -> T) -> Result<T, PatchError> {
    let mut paths = Paths::default();
    for edit in edits {
        edit.pointer.tokens().fold(&mut paths, |paths, token| paths.0.entry(Paths::name(token)).or_default());
    }
    let values: Result<Vec<String>, _> =
        edits.iter().map(|edit| serde_json::to_string(&edit.value)).collect();
    let values = values.map_err(|_| PatchError::Unreadable)?;
    let mut root = Node::parse(object, &paths).ok_or(PatchError::Unreadable)?;
    for (edit, value) in edits.iter().zip(&values) {
        root.apply(edit, value, &paths).ok_or_else(|| PatchError::At(edit.pointer.clone()))?;
    }
    Ok(read(&root))
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

/// A value: text, or the parts of a list or object that a pointer leads through.
enum Node<'a> {
    Text(Cow<'a, str>),
    List(Vec<Part<'a>>),
    Object(Vec<Part<'a>>),
}

/// A part of a list or object.
enum Part<'a> {
    /// So many neighbours that no edit leads into, with the commas between them.
    Others(&'a str, usize),
    Element(Node<'a>),
    Field(Cow<'a, str>, Node<'a>),
}

impl<'a> Node<'a> {
    fn parse(text: &'a str, paths: &Paths<'_>) -> Option<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let node = Reader { text, paths }.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some(node)
    }

    /// Makes one edit; `None` when it does not fit.
    fn apply(&mut self, edit: &Edit, value: &'a str, mut paths: &Paths<'_>) -> Option<()> {
        let mut tokens: Vec<Cow<'_, str>> = edit.pointer.tokens().collect();
        let target = tokens.pop()?;
        let mut node = self;
        for token in &tokens {
            node = match node.opened(paths)? {
                Self::List(parts) => element(parts, list_index(token)?)?,
                Self::Object(parts) => field(parts, token)?,
                Self::Text(_) => return None,
            };
            paths = paths.below(token)?;
        }
        let new = Self::Text(value.into());
        match node.opened(paths)? {
            Self::List(parts) => change_list(parts, list_index(&target)?, edit.op, new),
            Self::Object(parts) => change_object(parts, target, edit.op, new),
            Self::Text(_) => None,
        }
    }

    /// Takes a value apart that an earlier edit wrote.
    fn opened(&mut self, paths: &Paths<'_>) -> Option<&mut Self> {
        if let Self::Text(Cow::Borrowed(text)) = *self {
            *self = Self::parse(text, paths)?;
        }
        Some(self)
    }

    fn write_to(&self, out: &mut String) {
        let (open, parts, close) = match self {
            Self::Text(text) => return out.push_str(text),
            Self::List(parts) => ('[', parts, ']'),
            Self::Object(parts) => ('{', parts, '}'),
        };
        out.push(open);
        for (index, part) in parts.iter().enumerate() {
            out.push_str(if index > 0 { "," } else { "" });
            match part {
                Part::Others(text, _) => out.push_str(text),
                Part::Element(node) => node.write_to(out),
                Part::Field(key, node) => {
                    out.push_str(&serde_json::Value::from(&**key).to_string());
                    out.push(':');
                    node.write_to(out);
                }
            }
        }
        out.push(close);
    }
}

fn change_list<'a>(parts: &mut Vec<Part<'a>>, index: usize, op: Op, new: Node<'a>) -> Option<()> {
    match op {
        Op::Add => {
            let at = boundary(parts, index)?;
            parts.insert(at, Part::Element(new));
        }
        Op::Replace => *element(parts, index)? = new,
        // Nothing that a user wrote is ever taken out of a list.
        Op::Remove => return None,
    }
    Some(())
}

fn change_object<'a>(parts: &mut Vec<Part<'a>>, key: Cow<'_, str>, op: Op, new: Node<'a>) -> Option<()> {
    let known = field(parts, &key);
    match (op, known) {
        (Op::Add | Op::Replace, Some(known)) => *known = new,
        (Op::Add, None) => parts.push(Part::Field(key.into_owned().into(), new)),
        (Op::Remove, Some(_)) => parts.retain(|part| !matches!(part, Part::Field(name, _) if *name == key)),
        (Op::Remove | Op::Replace, None) => return None,
    }
    Some(())
}

/// The value of a field that an edit names. Of several equal keys the last one counts.
fn field<'p, 'a>(parts: &'p mut [Part<'a>], key: &str) -> Option<&'p mut Node<'a>> {
    parts.iter_mut().rev().find_map(|part| match part {
        Part::Field(name, node) if *name == key => Some(node),
        _ => None,
    })
}

/// The element of this index, as a part of its own.
fn element<'p, 'a>(parts: &'p mut Vec<Part<'a>>, index: usize) -> Option<&'p mut Node<'a>> {
    let at = boundary(parts, index)?;
    boundary(parts, index + 1)?;
    let part = parts.get_mut(at)?;
    if let Part::Others(text, _) = *part {
        *part = Part::Element(Node::Text(text.into()));
    }
    match part {
        Part::Element(node) => Some(node),
        Part::Others(..) | Part::Field(..) => None,
    }
}

/// The place among the parts of a list where the element of this index begins, or the list ends.
fn boundary(parts: &mut Vec<Part<'_>>, index: usize) -> Option<usize> {
    let (mut at, mut left) = (0, index);
    while left > 0 {
        match parts.get_mut(at)? {
            Part::Others(text, count) if left < *count => {
                let (before, behind) = split(text, left)?;
                let rest = Part::Others(behind, *count - left);
                (*text, *count) = (before, left);
                parts.insert(at + 1, rest);
                left = 0;
            }
            Part::Others(_, count) => left -= *count,
            Part::Element(_) | Part::Field(..) => left -= 1,
        }
        at += 1;
    }
    Some(at)
}

/// Cuts elements of a list behind the first ones.
fn split(text: &str, count: usize) -> Option<(&str, &str)> {
    let mut behind = text;
    for _ in 0..count {
        let mut elements = serde_json::Deserializer::from_str(behind).into_iter::<&RawValue>();
        elements.next()?.ok()?;
        behind = behind.get(elements.byte_offset()..)?.trim_start_matches(SEPARATORS);
    }
    let before = text.get(..text.len() - behind.len())?;
    Some((before.trim_end_matches(SEPARATORS), behind))
}

/// Reads one value of a text, and takes it apart where a pointer leads through it.
#[derive(Clone, Copy)]
struct Reader<'a, 'p> {
    text: &'a str,
    paths: &'p Paths<'p>,
}

impl<'a> Reader<'a, '_> {
    /// Where a part of the text begins.
    fn offset(self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr()
    }

    /// Adds a value to the neighbours that no edit leads into. Without any, they begin at `start`.
    fn extend(self, parts: &mut Vec<Part<'a>>, start: usize, value: &str) {
        let end = self.offset(value) + value.len();
        if let Some(Part::Others(others, count)) = parts.last_mut() {
            *others = self.text.get(self.offset(others)..end).unwrap_or_default();
            *count += 1;
        } else {
            parts.push(Part::Others(self.text.get(start..end).unwrap_or_default(), 1));
        }
    }
}

impl<'a> DeserializeSeed<'a> for Reader<'a, '_> {
    type Value = Node<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Node<'a>, D::Error> {
        if !self.paths.0.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let raw: &RawValue = serde::Deserialize::deserialize(deserializer)?;
        Ok(Node::Text(raw.get().into()))
    }
}

impl<'a> Visitor<'a> for Reader<'a, '_> {
    type Value = Node<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'a>, E> {
        Ok(Node::Text("null".into()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node<'a>, E> {
        Ok(Node::Text(value.to_string().into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node<'a>, E> {
        Ok(Node::Text(value.to_string().into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node<'a>, E> {
        Ok(Node::Text(value.to_string().into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node<'a>, E> {
        Ok(Node::Text(serde_json::Value::from(value).to_string().into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node<'a>, E> {
        Ok(Node::Text(serde_json::Value::from(value).to_string().into()))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Node<'a>, A::Error> {
        let mut parts = Vec::new();
        while let Some(Text(key)) = map.next_key::<Text<'a>>()? {
            if let Some(paths) = self.paths.below(&key) {
                parts.push(Part::Field(key, map.next_value_seed(Reader { paths, ..self })?));
                continue;
            }
            let value = map.next_value::<&RawValue>()?.get();
            match key {
                // Where a key with escapes begins is not known.
                Cow::Owned(key) if !matches!(parts.last(), Some(Part::Others(..))) => {
                    parts.push(Part::Field(key.into(), Node::Text(value.into())));
                }
                Cow::Owned(_) => self.extend(&mut parts, 0, value),
                Cow::Borrowed(key) => self.extend(&mut parts, self.offset(key) - "\"".len(), value),
            }
        }
        Ok(Node::Object(parts))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Node<'a>, A::Error> {
        let mut parts = Vec::new();
        match self.paths.below("0").filter(|paths| !paths.0.is_empty()) {
            Some(paths) => {
                while let Some(element) = list.next_element_seed(Reader { paths, ..self })? {
                    parts.push(Part::Element(element));
                }
            }
            None => {
                while let Some(value) = list.next_element::<&RawValue>()? {
                    self.extend(&mut parts, self.offset(value.get()), value.get());
                }
            }
        }
        Ok(Node::List(parts))
    }
}
