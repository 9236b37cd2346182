//! Finds the elements of a list again after edits, which insert and change elements and move none.

use serde_json::Value;

/// For each new element the index of the old one that it was, or `None` for an inserted one. `None` when an old element
/// is gone.
pub(super) fn align(old: &[Value], new: &[Value]) -> Option<Vec<Option<usize>>> {
    let mut inserted = new.len().checked_sub(old.len())?;
    let mut found = Vec::with_capacity(new.len());
    let mut left = new.iter();
    for (index, element) in old.iter().enumerate() {
        // An element that has changed is the next one that cannot be another.
        let skipped = left.clone().take(inserted + 1).position(|it| is_same(element, it)).unwrap_or(0);
        found.extend(std::iter::repeat_n(None, skipped));
        found.push(Some(index));
        inserted -= skipped;
        left.nth(skipped)?;
    }
    found.resize(new.len(), None);
    Some(found)
}

/// Whether two elements are equal, or objects of one name.
fn is_same(one: &Value, other: &Value) -> bool {
    let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    one == other || name(one).is_some_and(|of_one| name(other) == Some(of_one))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_elements_behind_inserted_ones() {
        for (old, new, expected) in [
            (json!([1, 2]), json!([0, 1, 5, 2, 3]), Some(vec![None, Some(0), None, Some(1), None])),
            (
                json!([{"name": "a"}]),
                json!([{"name": "b"}, {"name": "a", "x": 1}]),
                Some(vec![None, Some(0)]),
            ),
            (json!([{"name": "a"}]), json!([{"name": "b"}, {"name": "c"}]), Some(vec![Some(0), None])),
            (json!([1, 2, 3]), json!([1, 9, 3]), Some(vec![Some(0), Some(1), Some(2)])),
            (json!([1, 2]), json!([2]), None),
        ] {
            let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
            assert_eq!(align(&list(&old), &list(&new)), expected, "{old} {new}");
        }
    }
}
