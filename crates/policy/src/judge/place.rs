//! The place of a finding: an existing field, or its nearest existing parent.

use std::cell::OnceCell;

use serde_json::Value;

use memgate_primitives::pointer::Pointer;

/// An object that is parsed when the first place is looked up.
#[derive(Debug)]
pub(super) struct Places<'o> {
    object: &'o str,
    value: OnceCell<Value>,
}

impl<'o> Places<'o> {
    pub(super) const fn new(object: &'o str) -> Self {
        Self { object, value: OnceCell::new() }
    }

    /// The pointer, or its nearest parent that exists in the object.
    pub(super) fn nearest(&self, pointer: &Pointer) -> Pointer {
        nearest(self.value.get_or_init(|| read(self.object)), pointer)
    }
}

/// The parsed object; `null` for one that nests too deep.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn nearest(value: &Value, pointer: &Pointer) -> Pointer {
    let (mut here, mut place) = (value, Pointer::root());
    for token in pointer.tokens() {
        let below = match here {
            Value::Object(fields) => fields.get(&*token),
            Value::Array(elements) => token.parse::<usize>().ok().and_then(|index| elements.get(index)),
            _ => None,
        };
        let Some(below) = below.filter(|below| !below.is_null()) else { break };
        (here, place) = (below, place.key(&token));
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_up_to_the_existing_field() {
        let places = Places::new(r#"{"spec":{"a":[{"b":1}],"c":null,"d/e":{}}}"#);
        for (asked, found) in [
            ("/spec/a/0/b", "/spec/a/0/b"),
            ("/spec/a/1/b", "/spec/a"),
            ("/spec/c", "/spec"),
            ("/spec/d~1e/f", "/spec/d~1e"),
            ("/metadata/labels", ""),
            ("", ""),
        ] {
            assert_eq!(places.nearest(&Pointer::new(asked)).as_str(), found, "{asked}");
        }
    }
}
