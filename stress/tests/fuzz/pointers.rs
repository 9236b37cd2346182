//! The pointers of a JSON value, in one order.

use serde_json::Value;

/// The pointer of every value in it, itself last.
pub(crate) fn all_pointers(value: &Value) -> Vec<String> {
    let mut pointers = Vec::new();
    walk(value, String::new(), &mut pointers);
    pointers
}

fn walk(value: &Value, at: String, pointers: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, format!("{at}/{index}"), pointers);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                walk(member, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), pointers);
            }
        }
        _ => {}
    }
    pointers.push(at);
}
