//! Reads an object as it would be stored: without unknown fields, with `null` as nothing, and with defaults.
//! What is dropped is passed over and takes no memory; what no schema looks into stays as it was written.
//! Source: k8s.io/apiextensions-apiserver, `schema/pruning` and `schema/defaulting`.
//!
//! This reader is apart from the trees of `memgate-model`, which keep what memgate reads: here a definition says what is
//! kept, all of it is compared, and the crate can be used without memgate.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess};
use serde_json::value::RawValue;

use crate::crd::SchemaNode;
use crate::form::Form;
use crate::node::{Document, Node, UnknownField};
use memgate_primitives::budget::{Budget, Limit, MAX_ENTRIES};
use memgate_primitives::json::{self, Reader, Scalar, Seed};
use memgate_primitives::pointer::Path;

/// How deep the values nest that are kept, somewhat less than what the parser takes.
const MAX_DEPTH: u8 = 100;

/// Reads an object, with its metadata. `None` when it is not JSON that can be read, or `budget` has ended.
pub(super) fn read<'d>(
    text: &'d str,
    schema: &'d SchemaNode,
    without_status: bool,
    budget: &Budget<'_>,
) -> Option<Document<'d>> {
    let form = Form::Root { schema, without_status };
    let unknown = Unknown::default();
    let reader = NodeReader { form, budget, unknown: Some(&unknown), path: Path::Root, depth: 0 };
    let root = json::parse(text, Seed(reader)).ok()?;
    let (unknown, more_unknown) = (unknown.fields.into_inner(), unknown.more.get());
    Some(Document { root, bytes: text.len(), unknown, more_unknown })
}

/// How many unknown fields of an object are kept; of the others only the number.
const MAX_UNKNOWN: usize = 50;

/// The fields so far that the schema does not have.
#[derive(Default)]
struct Unknown<'d> {
    fields: RefCell<Vec<UnknownField<'d>>>,
    more: Cell<usize>,
}

/// Reads one value.
#[derive(Clone, Copy)]
struct NodeReader<'r, 'd> {
    form: Form<'d>,
    budget: &'r Budget<'r>,
    /// Where unknown fields are noted, if they are.
    unknown: Option<&'r Unknown<'d>>,
    path: Path<'r>,
    depth: u8,
}

impl<'d> NodeReader<'_, 'd> {
    /// Counts a value.
    fn step<E: Error>(self) -> Result<(), E> {
        if self.budget.step() { Ok(()) } else { Err(E::custom("the decision has ended")) }
    }

    fn keep<E: Error>(self, node: Node<'d>) -> Result<Node<'d>, E> {
        self.step().map(|()| node)
    }

    /// Notes a field that is dropped, where the schema says which fields there are.
    fn note_unknown(self, name: &str) {
        let Some((unknown, holder)) = self.unknown.zip(self.form.lacking(name)) else { return };
        let mut fields = unknown.fields.borrow_mut();
        if fields.len() < MAX_UNKNOWN {
            fields.push(UnknownField { pointer: self.path.pointer().key(name), holder });
        } else {
            unknown.more.set(unknown.more.get() + 1);
        }
    }

    /// Ends the decision at a list or object with too many entries.
    fn too_many<E: Error>(self) -> E {
        self.budget.over_limit(|| self.path.pointer(), Limit::Entries);
        E::custom("too many entries")
    }

    /// The value below with its default in place of `null`; `None` where it counts as missing.
    fn settled<E: Error>(self, node: Node<'d>) -> Result<Option<Node<'d>>, E> {
        match self.form {
            Form::Known(schema) if node.is_null() && !schema.nullable => self.default_of(schema),
            _ => Ok(Some(node)),
        }
    }

    /// The default of a value.
    fn default_of<E: Error>(self, schema: &'d SchemaNode) -> Result<Option<Node<'d>>, E> {
        let Some(default) = &schema.default else { return Ok(None) };
        self.read(&mut serde_json::Deserializer::from_str(default)).map(Some).map_err(E::custom)
    }

    /// Adds the fields of an object that have a default and are missing.
    fn add_defaults<E: Error>(self, fields: &mut Vec<(Cow<'d, str>, Node<'d>)>) -> Result<(), E> {
        let schema = self.form.schema().filter(|_| self.depth < MAX_DEPTH);
        for name in schema.into_iter().flat_map(|schema| &schema.object.defaulted) {
            let Err(at) = fields.binary_search_by(|(key, _)| (**key).cmp(name)) else { continue };
            let Some(form @ Form::Known(below)) = self.form.field(name) else { continue };
            let reader = NodeReader { form, depth: self.depth + 1, ..self };
            if let Some(default) = reader.default_of(below)? {
                fields.insert(at, (name.as_str().into(), default));
            }
        }
        Ok(())
    }
}

impl<'d> Reader<'d> for NodeReader<'_, 'd> {
    type Value = Node<'d>;

    #[inline]
    fn scalar<E: Error>(self, scalar: Scalar<'d>) -> Result<Node<'d>, E> {
        self.keep(match scalar {
            Scalar::Null => Node::Null,
            Scalar::Boolean(value) => Node::Boolean(value),
            Scalar::Number(number) => Node::Number(number),
            Scalar::Text(text) => Node::Text(text),
        })
    }

    fn list<A: SeqAccess<'d>>(self, mut list: A) -> Result<Node<'d>, A::Error> {
        self.step()?;
        let mut elements = Vec::new();
        loop {
            if self.depth >= MAX_DEPTH {
                break;
            }
            if elements.len() == MAX_ENTRIES {
                if list.next_element::<IgnoredAny>()?.is_some() {
                    return Err(self.too_many());
                }
                break;
            }
            let path = Path::Index(&self.path, elements.len());
            let reader = NodeReader { form: self.form.element(), path, depth: self.depth + 1, ..self };
            let Some(element) = list.next_element_seed(Seed(reader))? else { break };
            elements.push(reader.settled(element)?.unwrap_or(Node::Null));
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        elements.shrink_to_fit();
        Ok(Node::List(elements))
    }

    fn object<A: MapAccess<'d>>(self, mut object: A) -> Result<Node<'d>, A::Error> {
        self.step()?;
        let mut fields: Vec<(Cow<'d, str>, Option<Node<'d>>)> = Vec::new();
        while let Some(Key(key)) = object.next_key()? {
            let known = self.form.field(&key);
            if known.is_none() {
                self.note_unknown(&key);
            }
            let Some(form) = known.filter(|_| self.depth < MAX_DEPTH) else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            if fields.len() == MAX_ENTRIES {
                return Err(self.too_many());
            }
            let unknown = self.unknown.filter(|_| self.depth > 0 || key != "metadata" && key != "status");
            let path = Path::Key(&self.path, &key);
            let reader = NodeReader { form, unknown, path, depth: self.depth + 1, ..self };
            let value = object.next_value_seed(Seed(reader))?;
            let value = reader.settled(value)?;
            fields.push((key, value));
        }
        // Of equal keys the last one counts.
        fields.reverse();
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        fields.dedup_by(|(later, _), (first, _)| later == first);
        let present = fields.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let mut fields: Vec<_> = present.collect();
        self.add_defaults(&mut fields)?;
        fields.shrink_to_fit();
        Ok(Node::Map(fields))
    }

    fn read<D: Deserializer<'d>>(self, deserializer: D) -> Result<Node<'d>, D::Error> {
        let is_raw = match self.form {
            Form::Known(schema) => schema.is_opaque,
            Form::Raw => true,
            Form::Root { .. } | Form::Cleared => false,
        };
        if !is_raw {
            return deserializer.deserialize_any(Seed(self));
        }
        let raw = <&RawValue>::deserialize(deserializer)?;
        self.keep(Node::Raw(raw.get()))
    }
}

/// A key, borrowed where the text has it without escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'d>(#[serde(borrow)] Cow<'d, str>);

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
        let schema = schema();
        read(text, &schema, false, &Budget::default()).map(|document| shown(&document.root))
    }

    #[test]
    fn keeps_what_the_schema_knows() {
        for (text, expected) in [
            (r#"{"text":"a\n\u00e9","x":[{}],"port":1}"#, r#"{"port":1,"text":"a\né"}"#),
            (r#"{"text":null,"port":null}"#, r#"{"port":80}"#),
            (r#"{"text":["a",{"b":1},[{"c":1}]]}"#, r#"{"port":80,"text":["a",{},[{}]]}"#),
            (r#"{"port":2,"any":{"a": [null,{"b":1}]}}"#, r#"{"any":{"a": [null,{"b":1}]},"port":2}"#),
            (r#"{"port":2,"list":["a",null]}"#, r#"{"list":["a",null],"port":2}"#),
            ("[1]", "[1]"),
        ] {
            assert_eq!(stored(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(stored("{"), None);
    }

    #[test]
    fn notes_what_the_schema_does_not_know() {
        let fields = |text: &str| {
            let schema = schema();
            let document = read(text, &schema, false, &Budget::default()).expect("JSON");
            let noted = document.unknown_fields().iter().map(|field| field.pointer.as_str().to_owned());
            (noted.collect::<Vec<_>>(), document.more_unknown_fields())
        };
        let some = r#"{"kind":"a","metadata":{"x":1},"status":{"x":1},"any":{"x":1},"texts":{"x":"1"},"x":{"y":1},
            "text":{"z":1},"list":[{"z":1}],"z/":null}"#;
        assert_eq!(fields(some), (vec!["/x".to_owned(), "/z~1".to_owned()], 0));
        let many: Vec<_> = (0..60).map(|number| format!(r#""x{number}":1"#)).collect();
        let (noted, more) = fields(&format!("{{{}}}", many.join(",")));
        assert_eq!((noted.len(), noted.last().map(String::as_str), more), (50, Some("/x49"), 10));
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let few = r#"{"port":1,"text":"a","port":2,"text":null}"#;
        assert_eq!(stored(few).as_deref(), Some(r#"{"port":2}"#));
        let entries: Vec<_> = (0..20).map(|entry| format!(r#""k{}":"{entry}""#, entry % 10)).collect();
        let expected = format!(r#"{{"port":80,"texts":{{{}}}}}"#, entries[10..].join(","));
        assert_eq!(stored(&format!(r#"{{"texts":{{{}}}}}"#, entries.join(","))), Some(expected));
    }

    #[test]
    fn passes_over_what_is_dropped_or_opaque_at_any_depth() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let text = format!(r#"{{"else":{deep},"any":{deep},"port":1}}"#);
        let budget = Budget::default();
        let schema = schema();
        let document = read(&text, &schema, false, &budget).expect("JSON");
        assert_eq!(document.root.fields().iter().map(|(key, _)| &**key).collect::<Vec<_>>(), ["any", "port"]);
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
