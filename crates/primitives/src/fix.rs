//! Fixes: what is right in place of what a finding points at, where there is only one answer.

use serde_json::Value;

use crate::pointer::Pointer;

/// How what a finding points at is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// The key gets this name.
    Rename(String),
    /// The value becomes this text.
    Text(String),
    /// The quotes around what should be of this JSON type (`integer`, `number` or `boolean`) go away.
    Unquote(&'static str),
    /// The element of the list goes, if one before it is the same. It stands at the finding's place, or holds it.
    RemoveRepeated,
}

impl Fix {
    /// Makes it at a place of a value. `None` when it cannot be made there; the value is as it was then.
    pub fn apply(&self, value: &mut Value, at: &Pointer) -> Option<()> {
        let (holder, _) = at.as_str().rsplit_once('/')?;
        let token = at.tokens().last()?;
        match self {
            Self::Rename(name) => rename(value.pointer_mut(holder)?, &token, name),
            Self::Text(text) => {
                let old = value.pointer_mut(at.as_str()).filter(|old| old.is_string())?;
                *old = Value::from(text.as_str());
                Some(())
            }
            Self::Unquote(expected) => {
                let old = value.pointer_mut(at.as_str())?;
                *old = unquoted(old.as_str()?, expected)?;
                Some(())
            }
            Self::RemoveRepeated => {
                let Value::Array(list) = value.pointer_mut(holder)? else { return None };
                let index = token.parse::<usize>().ok()?;
                let repeated = list.get(index)?;
                is_repeated(repeated, list.get(..index)?).then_some(())?;
                list.remove(index);
                Some(())
            }
        }
    }
}

/// Whether the same element stands before it, and none of its name that differs: where the last one counts, this one
/// may be there to win.
fn is_repeated(element: &Value, before: &[Value]) -> bool {
    let name = element.get("name");
    before.contains(element)
        && before.iter().all(|other| name.is_none() || other.get("name") != name || other == element)
}

/// Gives an entry another name, in its place among the others.
fn rename(object: &mut Value, old: &str, new: &str) -> Option<()> {
    let Value::Object(entries) = object else { return None };
    if !entries.contains_key(old) || entries.contains_key(new) {
        return None;
    }
    let renamed = |(key, value): (String, Value)| (if key == old { new.to_owned() } else { key }, value);
    *entries = std::mem::take(entries).into_iter().map(renamed).collect();
    Some(())
}

/// The value of a JSON type (`integer`, `number` or `boolean`) that a text stands for, if it is written as JSON
/// writes it.
pub fn unquoted(text: &str, expected: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let is_expected = match expected {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => false,
    };
    let written = value.to_string();
    (is_expected && written == text).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fixed(fix: &Fix, value: &Value, at: &str) -> Option<Value> {
        let mut new = value.clone();
        let done = fix.apply(&mut new, &Pointer::new(at));
        assert!(done.is_some() || new == *value, "{new}");
        done.map(|()| new)
    }

    #[test]
    fn a_key_is_renamed_in_its_place() {
        let value = json!({"a": {"bakend": 1, "b": 2}, "/x": 3});
        let renamed = fixed(&Fix::Rename("backend".into()), &value, "/a/bakend").expect("fits");
        assert_eq!(renamed.to_string(), r#"{"a":{"backend":1,"b":2},"/x":3}"#);
        assert_eq!(
            fixed(&Fix::Rename("x".into()), &value, "/~1x"),
            Some(json!({"a": {"bakend": 1, "b": 2}, "x": 3}))
        );
        assert_eq!(fixed(&Fix::Rename("b".into()), &value, "/a/bakend"), None, "it is there already");
        assert_eq!(fixed(&Fix::Rename("c".into()), &value, "/a/none"), None);
    }

    #[test]
    fn only_what_is_written_as_a_number_or_a_boolean_loses_its_quotes() {
        for (text, expected) in
            [("6379", "integer"), ("-1", "integer"), ("0", "number"), ("0.5", "number"), ("true", "boolean")]
        {
            assert_eq!(unquoted(text, expected).expect("one").to_string(), text);
        }
        for text in ["", "a", "null", "06379", "1e3", " 1", "[]", "\"a\"", "0x10", "1_000"] {
            for expected in ["integer", "number", "boolean", "string", "object"] {
                assert_eq!(unquoted(text, expected), None, "{text}");
            }
        }
        assert_eq!(unquoted("0.5", "integer"), None);
        assert_eq!(unquoted("1", "boolean"), None);
        let fix = Fix::Unquote("integer");
        assert_eq!(fixed(&fix, &json!({"a": "1"}), "/a"), Some(json!({"a": 1})));
        assert_eq!(fixed(&fix, &json!({"a": 1}), "/a"), None);
    }

    #[test]
    fn an_element_goes_only_when_the_same_one_stands_before_it() {
        let value = json!(["a", "b", "a"]);
        assert_eq!(fixed(&Fix::RemoveRepeated, &value, "/2"), Some(json!(["a", "b"])));
        for at in ["/0", "/1", "/3", "", "/x"] {
            assert_eq!(fixed(&Fix::RemoveRepeated, &value, at), None, "{at}");
        }
        let variable = |value| json!({"name": "A", "value": value});
        let wins = json!([variable("1"), variable("2"), variable("1")]);
        assert_eq!(fixed(&Fix::RemoveRepeated, &wins, "/2"), None, "the last one wins");
    }

    #[test]
    fn a_text_takes_the_place_of_a_text_only() {
        let text = Fix::Text("redis".into());
        assert_eq!(fixed(&text, &json!({"a": "rdis"}), "/a"), Some(json!({"a": "redis"})));
        assert_eq!(fixed(&text, &json!({"a": 1}), "/a"), None);
    }
}
