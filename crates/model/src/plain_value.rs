//! Reads JSON into a plain value: a whole text within the limits of a decision, or what the schema of an object reads of
//! it. A plain value keeps `null` and how a number is written, which a `tree` does not.

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use crate::schema::Schema;
use crate::tree::masked;
use memgate_primitives::budget::{Budget, Limit, MAX_ENTRIES};
use memgate_primitives::json::{Reader, Scalar, Seed, parse};
use memgate_primitives::pointer::Path;

/// Reads a whole text. As in Go, the last of several equal keys wins.
///
/// # Errors
/// When the text is not JSON, or exceeds a limit: then `budget` has ended.
pub fn read(text: &str, budget: &Budget<'_>) -> serde_json::Result<Value> {
    parse(text, ValueReader { kept: Kept::All, budget: Some(budget), path: Path::Root })
}

/// The parts of a value that the schema reads, for writing them to a file. Reading the result gives the same tree as
/// reading the value, except for the names of fields that the schema does not have. For a Secret's data the result has
/// the keys, each with an empty string.
pub fn pruned(value: &Value, schema: &Schema) -> Value {
    let reader = ValueReader { kept: Kept::By(schema), budget: None, path: Path::Root };
    // Without limits, a value can always be read.
    reader.read(value).unwrap_or_default()
}

/// What is kept of a value.
#[derive(Clone, Copy)]
enum Kept<'s> {
    All,
    By(&'s Schema),
    /// An empty string in its place.
    Nothing,
}

impl Kept<'_> {
    /// Of an element; `None` where no element is kept.
    fn element(self) -> Option<Self> {
        match self {
            Self::All | Self::By(Schema::Whole(_) | Schema::Compared(_)) => Some(Self::All),
            Self::By(Schema::List(element)) => Some(Self::By(element)),
            Self::By(_) | Self::Nothing => None,
        }
    }

    /// Of a field; `None` where it is dropped.
    fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::All | Self::By(Schema::Whole(_) | Schema::Compared(_)) => Some(Self::All),
            Self::By(Schema::Texts) => Some(Self::By(&Schema::Text)),
            Self::By(Schema::Keys) => Some(Self::Nothing),
            Self::By(schema) => schema.field(name).map(|field| Self::By(&field.schema)),
            Self::Nothing => None,
        }
    }
}

#[derive(Clone, Copy)]
struct ValueReader<'r> {
    kept: Kept<'r>,
    budget: Option<&'r Budget<'r>>,
    path: Path<'r>,
}

impl ValueReader<'_> {
    /// Counts a value that has so many siblings in front of it.
    fn count<E: Error>(self, siblings: usize) -> Result<(), E> {
        let Some(budget) = self.budget else { return Ok(()) };
        if siblings == MAX_ENTRIES {
            budget.over_limit(|| self.path.pointer(), Limit::Entries);
        }
        if budget.step() { Ok(()) } else { Err(E::custom("the decision has ended")) }
    }

    fn settled(self, value: Value) -> Value {
        if matches!(self.kept, Kept::Nothing) { "".into() } else { value }
    }
}

impl<'de> Reader<'de> for ValueReader<'_> {
    type Value = Value;

    #[inline]
    fn scalar<E: Error>(self, scalar: Scalar<'de>) -> Result<Value, E> {
        let value = match (self.kept, scalar) {
            (Kept::By(Schema::Any), Scalar::Text(_)) => "".into(),
            (Kept::By(Schema::Credential), Scalar::Text(text)) => masked(&text).into(),
            (_, Scalar::Null) => Value::Null,
            (_, Scalar::Boolean(value)) => value.into(),
            (_, Scalar::Number(number)) => number.into(),
            (_, Scalar::Text(text)) => text.into(),
        };
        Ok(self.settled(value))
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        if let Kept::By(Schema::Named(named)) = self.kept {
            while let Some(element) = list.next_element::<Value>()? {
                let is_of =
                    |(name, _): &&(&str, _)| element.get("name").and_then(Value::as_str) == Some(*name);
                elements.extend(named.iter().find(is_of).map(|(_, schema)| pruned(&element, schema)));
            }
        }
        while let Some(kept) = self.kept.element() {
            let reader = ValueReader { kept, path: Path::Index(&self.path, elements.len()), ..self };
            let Some(element) = list.next_element_seed(Seed(reader))? else { break };
            self.count(elements.len())?;
            elements.push(element);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.settled(elements.into()))
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let Some(kept) = self.kept.field(&key) else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            let path = Path::Key(&self.path, &key);
            let value = object.next_value_seed(Seed(ValueReader { kept, path, ..self }))?;
            self.count(fields.len())?;
            fields.insert(key, value);
        }
        Ok(self.settled(fields.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::{MEMORY_POLICY, NAMESPACE, SECRET, SERVICE};
    use crate::tree::Tree;
    use memgate_primitives::budget::{MAX_STEPS, OverLimit, Stop};
    use memgate_primitives::pointer::Pointer;

    #[test]
    fn reads_what_serde_json_reads() {
        for text in [
            r#"{"a":[1,-2,2.5,1e400,null,true,"x\né",{"b":{}}],"a":[],"":18446744073709551615}"#,
            r#"[[],{},"\ud800"]"#,
            r#"{"a":1,"a":2,"b":1e2}"#,
            "{",
            "1 2",
            "",
        ] {
            let expected = serde_json::from_str::<Value>(text).ok();
            assert_eq!(read(text, &Budget::default()).ok(), expected, "{text}");
        }
    }

    #[test]
    fn ends_where_there_is_too_much() {
        let ends = |text: String| {
            let budget = Budget::default();
            let read = read(&text, &budget);
            assert_eq!(read.is_err(), budget.has_ended());
            budget.stopped()
        };
        let list = |count: usize| vec!["0"; count].join(",");
        let entries = |pointer: &str| {
            Some(Stop::OverLimit(OverLimit { pointer: Pointer::new(pointer), limit: Limit::Entries }))
        };
        assert_eq!(ends(format!(r#"{{"a":[{}]}}"#, list(MAX_ENTRIES))), None);
        assert_eq!(ends(format!(r#"{{"a":[{}]}}"#, list(MAX_ENTRIES + 1))), entries("/a"));
        let fields: Vec<_> = (0..=MAX_ENTRIES).map(|number| format!(r#""f{number}":0"#)).collect();
        assert_eq!(ends(format!(r#"{{"b":{{{}}}}}"#, fields.join(","))), entries("/b"));
        let many = vec![format!("[{}]", list(MAX_ENTRIES)); MAX_STEPS as usize / MAX_ENTRIES].join(",");
        let over = OverLimit { pointer: Pointer::root(), limit: Limit::Steps };
        assert_eq!(ends(format!("[{many}]")), Some(Stop::OverLimit(over)));
    }

    #[test]
    fn keeps_what_is_read() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "a", "uid": "u"}, "type": "Opaque",
            "data": {"KEY": "c2VjcmV0"}, "stringData": ["x"]});
        let kept = json!({"metadata": {"name": "a"}, "data": {"KEY": ""}, "stringData": []});
        assert_eq!(pruned(&secret, &SECRET.schema), kept);
        let policy = json!({"metadata": {"name": "a"}, "spec": {"any": [{"thing": 1}]}, "status": {}});
        assert_eq!(pruned(&policy, &MEMORY_POLICY.schema)["spec"], policy["spec"]);
        assert_eq!(pruned(&policy, &MEMORY_POLICY.schema).get("status"), None);
    }

    #[test]
    fn reads_as_the_whole_object_does() {
        let service = json!({"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {"type": "ClusterIP",
            "ports": [{"name": "http", "port": 80.0, "targetPort": {"x": 1}}, null, "odd"]}});
        let namespace =
            json!({"metadata": {"name": "a", "labels": {"b": "c", "d": 4, "e": null}, "annotations": []}});
        for (value, kind) in [(service, &SERVICE), (namespace, &NAMESPACE)] {
            let read = |value: &Value| Tree::read(value, &kind.schema).expect("a tree").content_hash();
            assert_eq!(read(&value), read(&pruned(&value, &kind.schema)), "{value}");
        }
    }
}
