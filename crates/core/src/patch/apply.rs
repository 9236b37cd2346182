//! Applying edits to JSON text: everything that no edit names stays as it is, byte for byte.
//!
//! Only the objects and lists that a pointer leads through are taken apart; their other members are copied
//! as text. So depth, unusual numbers and repeated keys elsewhere do not matter.

use std::borrow::Cow;
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
    let mut text = object.to_owned();
    for edit in edits {
        let tokens: Vec<Cow<'_, str>> = edit.pointer.tokens().collect();
        let value = serde_json::to_string(&edit.value).map_err(|_| PatchError::Unreadable)?;
        text =
            apply_at(&text, &tokens, edit.op, &value).ok_or_else(|| PatchError::At(edit.pointer.clone()))?;
    }
    Ok(text)
}

/// This value with one change at the end of the tokens; `None` when the way does not exist.
fn apply_at(text: &str, tokens: &[Cow<'_, str>], op: Op, value: &str) -> Option<String> {
    let (first, rest) = tokens.split_first()?;
    if text.trim_start().starts_with('[') {
        let mut elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        return in_list(&mut elements, list_index(first)?, rest, op, value);
    }
    in_object(&serde_json::from_str::<Members<'_>>(text).ok()?.0, first, rest, op, value)
}

fn in_list(
    elements: &mut [&RawValue],
    at: usize,
    rest: &[Cow<'_, str>],
    op: Op,
    value: &str,
) -> Option<String> {
    let mut texts: Vec<&str> = elements.iter().map(|element| element.get()).collect();
    let inner;
    match (rest.is_empty(), op) {
        (true, Op::Add) if at <= texts.len() => texts.insert(at, value),
        (true, Op::Replace) => *texts.get_mut(at)? = value,
        (true, Op::Add | Op::Remove) => return None,
        (false, _) => {
            inner = apply_at(texts.get(at)?, rest, op, value)?;
            *texts.get_mut(at)? = &inner;
        }
    }
    Some(format!("[{}]", texts.join(",")))
}

/// An object's members in their order, repeated keys included.
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

/// Of several equal keys the last one counts, and is the one that is changed.
fn in_object(
    members: &[(Text<'_>, &RawValue)],
    key: &str,
    rest: &[Cow<'_, str>],
    op: Op,
    value: &str,
) -> Option<String> {
    let position = members.iter().rposition(|(known, _)| &**known == key);
    let old = position.and_then(|position| members.get(position)).map(|(_, value)| value.get());
    let new = match (old, rest.is_empty(), op) {
        (Some(_), true, Op::Remove) => None,
        (Some(_), true, _) | (None, true, Op::Add) => Some(value.to_owned()),
        (Some(old), false, _) => Some(apply_at(old, rest, op, value)?),
        (None, ..) => return None,
    };
    let mut object = String::from("{");
    let mut write = |key: &str, value: &str| {
        let comma = if object.len() > 1 { "," } else { "" };
        write!(object, "{comma}{}:{value}", serde_json::Value::from(key)).ok()
    };
    for (index, (known, value)) in members.iter().enumerate() {
        match &new {
            // Removing means all of the equal keys: the last one only would bring an earlier one back.
            None if &**known == key => {}
            Some(new) if position == Some(index) => write(known, new)?,
            _ => write(known, value.get())?,
        }
    }
    if let (None, Some(new)) = (position, &new) {
        write(key, new)?;
    }
    object.push('}');
    Some(object)
}
