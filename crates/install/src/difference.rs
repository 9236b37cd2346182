//! What differs between an object in the cluster and the one that would be installed. Fields with nothing in them count as
//! absent, and elements of lists that have names are compared by these, as the apiserver does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::objects::WebhookConfiguration;

/// The longest value in a message, in bytes: longer ones are conditions in CEL and whole entries.
const MAX_SHOWN_BYTES: usize = 100;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The names on the way to the field, with blanks between them.
    pub field: String,
    /// What differs there, in words that follow the field.
    pub message: String,
    /// The JSON pointer of a field that only the live object has: `kubectl apply` would leave it.
    pub added: Option<String>,
}

/// The entries of a configuration without their addresses, which differ from one installation to the next.
pub fn compared(configuration: &WebhookConfiguration) -> Value {
    let mut entries = json!(configuration.webhooks);
    for entry in entries.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.remove("clientConfig");
    }
    entries
}

/// The differences below a field and its JSON pointer in the live object.
pub fn differences(field: &str, pointer: &str, live: &Value, wanted: &Value) -> Vec<Difference> {
    if live == wanted || is_nothing(live) && is_nothing(wanted) {
        return Vec::new();
    }
    if let (Some(live), Some(wanted)) = (parts(live), parts(wanted)) {
        let names: BTreeSet<&str> = live.keys().chain(wanted.keys()).copied().collect();
        let below = names.into_iter().flat_map(|name| {
            let (step, live) =
                live.get(name).map_or(("", &Value::Null), |(step, value)| (step.as_str(), *value));
            let wanted = wanted.get(name).map_or(&Value::Null, |(_, value)| *value);
            let field = if field.is_empty() { name.to_owned() } else { format!("{field} {name}") };
            differences(&field, &format!("{pointer}/{step}"), live, wanted)
        });
        return below.collect();
    }
    let (is_added, is_missing) = (is_nothing(wanted), is_nothing(live));
    let message = match (shown(live), shown(wanted)) {
        (live, _) if is_added => format!("is added: {live}"),
        _ if is_missing => "is missing".to_owned(),
        (live, wanted) => format!("is {live}, not {wanted}"),
    };
    vec![Difference { field: field.to_owned(), message, added: is_added.then(|| pointer.to_owned()) }]
}

/// The parts of a value by their names, each with its step in a JSON pointer: the fields of an object, or the elements of a
/// list that all have names.
fn parts(value: &Value) -> Option<BTreeMap<&str, (String, &Value)>> {
    let by_name = |(index, item): (usize, _)| Some((name(item)?, (index.to_string(), item)));
    let by_key = |(key, value)| {
        let key: &String = key;
        (key.as_str(), (key.replace('~', "~0").replace('/', "~1"), value))
    };
    match value {
        Value::Object(fields) => Some(fields.iter().map(by_key).collect()),
        Value::Array(items) => items.iter().enumerate().map(by_name).collect(),
        _ => None,
    }
}

fn name(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

/// Whether a value says no more than a field that is not there.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.len() > MAX_SHOWN_BYTES { "…".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn says_what_was_changed_taken_and_added() {
        let wanted = json!([{"name": "a", "policy": "Fail", "labels": {}, "keys": [1, 2], "more": [{"name": "x", "is": 1}]}]);
        for (live, field, message, added) in [
            (
                json!([{"name": "a", "policy": "Fail", "keys": [1, 2], "more": [{"name": "x", "is": 1}]}]),
                "",
                "",
                None,
            ),
            (json!([]), "a", "is missing", None),
            (
                json!([{"name": "a", "policy": "Ignore", "keys": [1, 2], "more": [{"name": "x", "is": 1}]}]),
                "a policy",
                "is Ignore, not Fail",
                None,
            ),
            (
                json!([{"name": "a", "policy": "Fail", "labels": {"b/c": "d"}, "keys": [1, 2], "more": [{"name": "x", "is": 1}]}]),
                "a labels b/c",
                "is added: d",
                Some("/0/labels/b~1c"),
            ),
            (
                json!([{"name": "a", "policy": "Fail", "keys": [2, 3], "more": [{"name": "x", "is": 1}]}]),
                "a keys",
                "is [2,3], not [1,2]",
                None,
            ),
            (
                json!([{"name": "a", "policy": "Fail", "keys": [2, 1], "more": [{"name": "x", "is": 1}]}]),
                "a keys",
                "is [2,1], not [1,2]",
                None,
            ),
            (
                json!([{"name": "a", "policy": "Fail", "keys": [1, 2], "more": [{"name": "y"}, {"name": "x", "is": 1}]}]),
                "a more y",
                "is added: {\"name\":\"y\"}",
                Some("/0/more/0"),
            ),
            (
                json!([{"name": "a", "policy": "Fail", "keys": [1, 2], "more": [{"name": "x", "is": "x".repeat(101)}]}]),
                "a more x is",
                "is …, not 1",
                None,
            ),
        ] {
            let found = differences("", "", &live, &wanted);
            let first = found
                .first()
                .map(|one| (&*one.field, one.message.starts_with(message), one.added.as_deref()));
            assert_eq!(first.unwrap_or(("", true, None)), (field, true, added), "{live}: {found:?}");
            assert!(found.len() < 2, "{found:?}");
        }
    }
}
