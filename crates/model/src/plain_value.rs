//! Reads a whole JSON text into a plain value, within the limits of a decision. A plain value keeps `null` and how a number
//! is written, which a `tree` does not.

use serde::de::{Error, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use memgate_primitives::budget::{Budget, Limit, MAX_ENTRIES};
use memgate_primitives::json::{Reader, Scalar, Seed, parse};
use memgate_primitives::pointer::Path;

/// Reads a whole text. As in Go, the last of several equal keys wins.
///
/// # Errors
/// When the text is not JSON, or exceeds a limit: then `budget` has ended.
pub fn read(text: &str, budget: &Budget<'_>) -> serde_json::Result<Value> {
    parse(text, Seed(ValueReader { budget, path: Path::Root }))
}

#[derive(Clone, Copy)]
struct ValueReader<'r> {
    budget: &'r Budget<'r>,
    path: Path<'r>,
}

impl ValueReader<'_> {
    /// Counts a value. Ends the reading with too many siblings, or values in all.
    fn count<E: Error>(self, siblings: usize) -> Result<(), E> {
        if siblings == MAX_ENTRIES {
            self.budget.over_limit(|| self.path.pointer(), Limit::Entries);
        }
        if self.budget.step() { Ok(()) } else { Err(E::custom("the decision has ended")) }
    }
}

impl<'de> Reader<'de> for ValueReader<'_> {
    type Value = Value;

    #[inline]
    fn scalar<E: Error>(self, scalar: Scalar<'de>) -> Result<Value, E> {
        Ok(scalar.into())
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        let reader = |index| Seed(ValueReader { path: Path::Index(&self.path, index), ..self });
        while let Some(element) = list.next_element_seed(reader(elements.len()))? {
            self.count(elements.len())?;
            elements.push(element);
        }
        Ok(elements.into())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let path = Path::Key(&self.path, &key);
            let value = object.next_value_seed(Seed(ValueReader { path, ..self }))?;
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
