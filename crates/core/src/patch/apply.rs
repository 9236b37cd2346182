//! Applying edits to JSON text: everything that no edit names stays as it is, byte for byte.
//!
//! Only the objects and lists that a pointer leads through are taken apart, each once for all edits; their
//! other members are copied as text. So depth, unusual numbers and repeated keys elsewhere do not matter,
//! and the time is that of the text and the edits together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::value::RawValue;

use crate::model::edit::{Edit, Op};
use crate::model::pointer::list_index;
use crate::model::view::Text;
use crate::patch::PatchError;

/// The text of the object after the edits, in their order.
///
/// # Errors
/// The first edit that does not apply.
pub fn apply(object: &str, edits: &[Edit]) -> Result<String, PatchError> {
    let mut root = Node::Text(Cow::Borrowed(object));
    for edit in edits {
        let value = serde_json::to_string(&edit.value).map_err(|_| PatchError::Unreadable)?;
        root.apply(edit, value).ok_or_else(|| PatchError::At(edit.pointer.clone()))?;
    }
    let mut text = String::with_capacity(object.len());
    root.write_to(&mut text).map_err(|_| PatchError::Unreadable)?;
    Ok(text)
}

/// A value: as text until an edit leads into it, then taken apart.
enum Node<'a> {
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Object<'a>),
}

/// An object's members in their order, repeated keys included; `None` is a member that was removed.
struct Object<'a> {
    members: Vec<(Text<'a>, Option<Node<'a>>)>,
    /// Where the last member of each name is, which is the one that counts.
    last: BTreeMap<String, usize>,
}

impl<'a> Node<'a> {
    /// Makes one edit; `None` when the way does not exist.
    fn apply(&mut self, edit: &Edit, value: String) -> Option<()> {
        let mut tokens: Vec<Cow<'_, str>> = edit.pointer.tokens().collect();
        let target = tokens.pop()?;
        let mut node = self;
        for token in &tokens {
            node = node.open()?.child(token)?;
        }
        match node.open()? {
            Self::List(elements) => change_element(elements, list_index(&target)?, edit.op, value),
            Self::Object(object) => object.change(&target, edit.op, value),
            Self::Text(_) => None,
        }
    }

    /// Takes a value apart; `None` when it is no object and no list.
    fn open(&mut self) -> Option<&mut Self> {
        if let Self::Text(text) = self {
            *self = match text {
                Cow::Borrowed(text) => Self::parse(text)?,
                Cow::Owned(text) => Node::parse(text)?.into_owned(),
            };
        }
        Some(self)
    }

    fn parse(text: &'a str) -> Option<Self> {
        let node = |value: &'a RawValue| Self::Text(Cow::Borrowed(value.get()));
        if text.trim_start().starts_with('[') {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            return Some(Self::List(elements.into_iter().map(node).collect()));
        }
        let Members(members) = serde_json::from_str(text).ok()?;
        let members = members.into_iter().map(|(key, value)| (key, Some(node(value)))).collect();
        Some(Self::Object(Object::new(members)))
    }

    fn into_owned<'o>(self) -> Node<'o> {
        match self {
            Self::Text(text) => Node::Text(Cow::Owned(text.into_owned())),
            Self::List(elements) => Node::List(elements.into_iter().map(Self::into_owned).collect()),
            Self::Object(Object { members, last }) => {
                let owned = members
                    .into_iter()
                    .map(|(key, node)| (Text(Cow::Owned(key.0.into_owned())), node.map(Self::into_owned)));
                Node::Object(Object { members: owned.collect(), last })
            }
        }
    }

    fn child(&mut self, token: &str) -> Option<&mut Self> {
        match self {
            Self::List(elements) => elements.get_mut(list_index(token)?),
            Self::Object(object) => object.get_mut(token),
            Self::Text(_) => None,
        }
    }

    fn write_to(&self, out: &mut String) -> std::fmt::Result {
        match self {
            Self::Text(text) => out.write_str(text),
            Self::List(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    element.write_to(out)?;
                }
                out.write_char(']')
            }
            Self::Object(object) => {
                out.push('{');
                let members = object.members.iter().filter_map(|(key, node)| Some((key, node.as_ref()?)));
                for (index, (key, node)) in members.enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(out, "{comma}{}:", serde_json::Value::from(&**key))?;
                    node.write_to(out)?;
                }
                out.write_char('}')
            }
        }
    }
}

fn change_element(elements: &mut Vec<Node<'_>>, at: usize, op: Op, value: String) -> Option<()> {
    let new = Node::Text(Cow::Owned(value));
    match op {
        Op::Add if at <= elements.len() => elements.insert(at, new),
        Op::Replace => *elements.get_mut(at)? = new,
        Op::Add | Op::Remove => return None,
    }
    Some(())
}

impl<'a> Object<'a> {
    fn new(members: Vec<(Text<'a>, Option<Node<'a>>)>) -> Self {
        let last = members.iter().enumerate().map(|(index, (key, _))| (key.to_string(), index)).collect();
        Self { members, last }
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Node<'a>> {
        let at = *self.last.get(key)?;
        self.members.get_mut(at)?.1.as_mut()
    }

    /// Of several equal keys the last one counts, and is the one that is changed.
    fn change(&mut self, key: &str, op: Op, value: String) -> Option<()> {
        let new = Node::Text(Cow::Owned(value));
        match (op, self.last.get(key)) {
            // Removing means all of the equal keys: the last one only would bring an earlier one back.
            (Op::Remove, Some(_)) => {
                self.last.remove(key);
                let equal = self.members.iter_mut().filter(|(known, _)| **known == *key);
                equal.for_each(|(_, node)| *node = None);
            }
            (Op::Add | Op::Replace, Some(at)) => self.members.get_mut(*at)?.1 = Some(new),
            (Op::Add, None) => {
                self.last.insert(key.to_owned(), self.members.len());
                self.members.push((Text(Cow::Owned(key.to_owned())), Some(new)));
            }
            (Op::Replace | Op::Remove, None) => return None,
        }
        Some(())
    }
}

/// The members of an object in their order, repeated keys included.
struct Members<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> serde::de::Visitor<'de> for MembersVisitor {
            type Value = Vec<(Text<'de>, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}
