//! All places of a JSON value, in one order.

use serde_json::Value;

/// The pointer of every value in it, itself last.
pub(crate) fn places(value: &Value) -> Vec<String> {
    let mut places = Vec::new();
    walk(value, String::new(), &mut places);
    places
}

fn walk(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, format!("{at}/{index}"), places);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                walk(member, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        _ => {}
    }
    places.push(at);
}
