//! Reads JSON into a plain value within the limits of a decision: for objects of which every field is read.
//!
//! The trees of other objects (`tree`) skip what their schema does not have.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use memgate_primitives::budget::{Budget, Limit, MAX_ENTRIES};
use memgate_primitives::pointer::Path;

/// Reads a whole text. As in Go, the last of several equal keys wins.
///
/// # Errors
/// When the text is not JSON, or exceeds a limit: then `budget` has ended.
pub fn read(text: &str, budget: &Budget<'_>) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Seed { budget, path: Path::Root }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Seed<'r> {
    budget: &'r Budget<'r>,
    path: Path<'r>,
}

impl Seed<'_> {
    /// Counts a value that has so many siblings in front of it.
    fn count<E: Error>(self, siblings: usize) -> Result<(), E> {
        if siblings == MAX_ENTRIES {
            self.budget.over_limit(|| self.path.pointer(), Limit::Entries);
        }
        if self.budget.step() { Ok(()) } else { Err(E::custom("the decision has ended")) }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        loop {
            let seed = Seed { path: Path::Index(&self.path, elements.len()), ..self };
            let Some(element) = list.next_element_seed(seed)? else { return Ok(elements.into()) };
            self.count(elements.len())?;
            elements.push(element);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Seed { path: Path::Key(&self.path, &key), ..self })?;
            self.count(fields.len())?;
            fields.insert(key, value);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
