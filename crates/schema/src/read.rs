//! Reads an object as it would be stored: without unknown fields, with `null` as nothing, and with defaults.
//! What is dropped is passed over and takes no memory; what no schema looks into stays as it was written.
//! Source: k8s.io/apiextensions-apiserver, `schema/pruning` and `schema/defaulting`.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::crd::SchemaNode;
use crate::cursor::Cursor;
use crate::document::{Document, Extent, Item};
use crate::form::Form;
use crate::path::Path;
use crate::repeated::replace_repeated;
use memgate_primitives::budget::{Budget, Limit, MAX_ENTRIES};

/// How deep the values nest that are kept, somewhat less than what the parser takes.
const MAX_DEPTH: u8 = 100;

/// Reads an object, with its metadata. `None` when it is not JSON that can be read, or `budget` has ended.
pub(super) fn read<'d>(
    text: &'d str,
    schema: &SchemaNode,
    without_status: bool,
    budget: &Budget<'_>,
) -> Option<Document<'d>> {
    let mut document = Document::new(text)?;
    let form = Form::Root { schema, without_status };
    let seed = Seed { document: &mut document, form, budget, path: Path::Root, depth: 0 };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut deserializer).and_then(|()| deserializer.end()).ok()?;
    Some(document)
}

/// Reads one value to the end of the document.
struct Seed<'r, 'd> {
    document: &'r mut Document<'d>,
    form: Form<'r>,
    budget: &'r Budget<'r>,
    path: Path<'r>,
    depth: u8,
}

impl<'d> Seed<'_, 'd> {
    /// Reads the value below.
    fn below<'b>(&'b mut self, form: Form<'b>, path: Path<'b>) -> Seed<'b, 'd> {
        Seed { document: &mut *self.document, form, budget: self.budget, path, depth: self.depth + 1 }
    }

    /// Adds an item for a value.
    fn add<E: Error>(&mut self, item: Item) -> Result<(), E> {
        if !self.budget.step() {
            return Err(E::custom("the decision has ended"));
        }
        self.document.push(item);
        Ok(())
    }

    fn add_text<E: Error>(mut self, text: &str) -> Result<(), E> {
        let span = self.document.span(text);
        self.add(Item::Text(span))
    }

    /// Ends the decision at a list or object with too many entries.
    fn too_many<E: Error>(&self) -> E {
        self.budget.over_limit(|| self.path.pointer(), Limit::Entries);
        E::custom("too many entries")
    }

    /// Reads the default of a value.
    fn add_default<E: Error>(&mut self, text: &str, form: Form<'_>) -> Result<(), E> {
        let path = self.path;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        self.below(form, path).deserialize(&mut deserializer).map_err(E::custom)
    }

    /// Replaces a `null` that has been read by the default of its field, if there is one. Returns whether the field has
    /// no value.
    fn settle_null<E: Error>(&mut self, at: usize, form: Form<'_>) -> Result<bool, E> {
        let is_null = match self.document.item(at) {
            Item::Null => true,
            Item::Raw(span) => self.document.string(span) == "null",
            _ => false,
        };
        let schema = match form {
            Form::Known(schema) if is_null && !schema.nullable => schema,
            _ => return Ok(false),
        };
        let Some(default) = &schema.default else { return Ok(true) };
        self.document.truncate(at);
        self.add_default(default, form)?;
        Ok(false)
    }

    fn set_extent(&mut self, at: usize, count: usize, item: fn(Extent) -> Item) {
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.document.set(at, item(Extent { count: short(count), end: short(self.document.len()) }));
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        let is_raw = match self.form {
            Form::Known(schema) => schema.is_opaque,
            Form::Raw => true,
            Form::Root { .. } | Form::Cleared => false,
        };
        if !is_raw {
            return deserializer.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(deserializer)?;
        let span = self.document.span(raw.get());
        self.add(Item::Raw(span))
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.add(Item::Null)
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        self.add(Item::Boolean(value))
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<(), E> {
        self.add(Item::Signed(value))
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<(), E> {
        self.add(Item::Unsigned(value))
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        self.add(Item::Float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.add_text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let start = self.document.len();
        self.add(Item::List(Extent::default()))?;
        let form = self.form.element();
        let mut count = 0;
        while self.depth < MAX_DEPTH {
            let (at, here) = (self.document.len(), self.path);
            if count == MAX_ENTRIES {
                if list.next_element::<IgnoredAny>()?.is_some() {
                    return Err(self.too_many());
                }
                break;
            }
            if list.next_element_seed(self.below(form, Path::Index(&here, count)))?.is_none() {
                break;
            }
            self.settle_null(at, form)?;
            count += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.set_extent(start, count, Item::List);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let start = self.document.len();
        self.add(Item::Map(Extent::default()))?;
        let (mut count, mut absent) = (0, 0);
        while let Some(key) = map.next_key_seed(Key)? {
            let form = self.form.field(&key).filter(|_| self.depth < MAX_DEPTH);
            let Some(form) = form else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if count == MAX_ENTRIES {
                return Err(self.too_many());
            }
            let span = self.document.span(&key);
            self.document.push(Item::Key(span));
            let (at, here) = (self.document.len(), self.path);
            map.next_value_seed(self.below(form, Path::Key(&here, &key)))?;
            if self.settle_null(at, form)? {
                self.document.set(at, Item::Absent);
                absent += 1;
            }
            count += 1;
        }
        self.set_extent(start, count, Item::Map);
        let gone = if count > 1 { replace_repeated(self.document, start, count) } else { absent };
        let added = self.add_defaults(start)?;
        self.set_extent(start, count - gone + added, Item::Map);
        Ok(())
    }
}

impl Seed<'_, '_> {
    /// Adds the fields of an object that have a default and are not there; how many.
    fn add_defaults<E: Error>(&mut self, start: usize) -> Result<usize, E> {
        let Some(schema) = self.form.schema() else { return Ok(0) };
        let mut added = 0;
        for name in &schema.object.defaulted {
            let is_there = Cursor::root(self.document).moved(start).get(name).is_some();
            let form = self.form.field(name).filter(|_| !is_there && self.depth < MAX_DEPTH);
            let Some(form @ Form::Known(SchemaNode { default: Some(default), .. })) = form else { continue };
            let span = self.document.span(name);
            self.document.push(Item::Key(span));
            self.add_default(default, form)?;
            added += 1;
        }
        Ok(added)
    }
}

/// A key, borrowed where the text has it without escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(key.into())
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(key.to_owned().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::shown::shown;
    use memgate_primitives::budget::{OverLimit, Stop};
    use serde_json::json;

    fn schema() -> SchemaNode {
        let text = json!({"type": "string"});
        let texts = json!({"type": "object", "additionalProperties": text});
        let port = json!({"type": "integer", "default": 80});
        parse::node(&json!({"type": "object", "properties": {
            "text": text, "texts": texts, "port": port,
            "list": {"type": "array", "items": text},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
        }}))
    }

    /// The object as it would be stored, as messages show it.
    fn stored(text: &str) -> Option<String> {
        read(text, &schema(), false, &Budget::default()).map(|document| shown(Cursor::root(&document)))
    }

    #[test]
    fn keeps_what_the_schema_knows() {
        for (text, expected) in [
            (r#"{"text":"a\n\u00e9","x":[{}],"port":1}"#, r#"{"text":"a\né","port":1}"#),
            (r#"{"text":null,"port":null}"#, r#"{"port":80}"#),
            (r#"{"text":["a",{"b":1},[{"c":1}]]}"#, r#"{"text":["a",{},[{}]],"port":80}"#),
            (r#"{"port":2,"any":{"a": [null,{"b":1}]}}"#, r#"{"port":2,"any":{"a": [null,{"b":1}]}}"#),
            (r#"{"port":2,"list":["a",null]}"#, r#"{"port":2,"list":["a",null]}"#),
            ("[1]", "[1]"),
        ] {
            assert_eq!(stored(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(stored("{"), None);
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let few = r#"{"port":1,"text":"a","port":2,"text":null}"#;
        assert_eq!(stored(few).as_deref(), Some(r#"{"port":2}"#));
        let entries: Vec<_> = (0..20).map(|entry| format!(r#""k{}":"{entry}""#, entry % 10)).collect();
        let expected = format!(r#"{{"texts":{{{}}},"port":80}}"#, entries[10..].join(","));
        assert_eq!(stored(&format!(r#"{{"texts":{{{}}}}}"#, entries.join(","))), Some(expected));
    }

    #[test]
    fn passes_over_what_is_dropped_or_opaque_at_any_depth() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let text = format!(r#"{{"else":{deep},"any":{deep},"port":1}}"#);
        let budget = Budget::default();
        let schema = schema();
        let document = read(&text, &schema, false, &budget).expect("JSON");
        assert_eq!(Cursor::root(&document).fields().map(|(key, _)| key).collect::<Vec<_>>(), ["any", "port"]);
    }

    #[test]
    fn ends_the_decision_where_there_are_too_many_entries() {
        let list = vec!["1"; MAX_ENTRIES].join(",");
        let budget = Budget::default();
        assert!(read(&format!(r#"{{"list":[{list}]}}"#), &schema(), false, &budget).is_some());
        assert!(read(&format!(r#"{{"else":[{list},1]}}"#), &schema(), false, &budget).is_some());
        assert!(read(&format!(r#"{{"list":[{list},1]}}"#), &schema(), false, &budget).is_none());
        let pointer = memgate_primitives::pointer::Pointer::new("/list");
        assert_eq!(budget.stopped(), Some(Stop::OverLimit(OverLimit { pointer, limit: Limit::Entries })));
    }
}
