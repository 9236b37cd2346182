//! What an update changes.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::request::{Operation, Request};
use crate::model::view::view;

/// The annotations that are for memgate start with this.
const ANNOTATIONS: &str = "memgate.dev/";

view! {
    /// The parts of an object that users write and memgate reads.
    Written {
        /// Who it is.
        metadata: Annotated<'a> = "metadata",
        /// What it is to be, unread.
        spec: &'a RawValue = "spec",
    }
}

view! {
    /// The metadata of an object.
    Annotated {
        /// The annotations, unread.
        annotations: &'a RawValue = "annotations",
    }
}

/// Whether this is an update that leaves the spec and the annotations for memgate as they were, as
/// JSON: one of a controller that moves finalizers or labels. What cannot be read counts as changed.
#[must_use]
pub fn keeps_what_users_write(request: &Request<'_>) -> bool {
    let (Operation::Update, Some(new), Some(old)) = (request.operation, request.object, request.old_object)
    else {
        return false;
    };
    written(new).is_some_and(|new| written(old).is_some_and(|old| new == old))
}

type Parts = (Option<Value>, BTreeMap<String, Value>);

fn written(object: &str) -> Option<Parts> {
    let Written { metadata, spec } = serde_json::from_str(object).ok()?;
    let spec = spec.map(|spec| serde_json::from_str(spec.get())).transpose().ok()?;
    let mut annotations: BTreeMap<String, Value> = match metadata.and_then(|metadata| metadata.annotations) {
        Some(annotations) => serde_json::from_str(annotations.get()).ok()?,
        None => BTreeMap::new(),
    };
    annotations.retain(|key, value| key.starts_with(ANNOTATIONS) && !value.is_null());
    Some((spec, annotations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(old: &str, new: &str) -> bool {
        keeps_what_users_write(&Request {
            operation: Operation::Update,
            group: "".into(),
            version: "v1".into(),
            kind: "Thing".into(),
            subresource: "".into(),
            namespace: "".into(),
            name: "".into(),
            object: Some(new),
            old_object: Some(old),
        })
    }

    #[test]
    fn compares_as_json() {
        let old = r#"{"metadata":{"labels":{"a":"1"},"annotations":{"memgate.dev/x":"1","o":"1"}},"spec":{"a":1,"b":[2]}}"#;
        let moved = r#"{"spec":{"b":[2],"a":1},"metadata":{"annotations":{"o":"2","memgate.dev/x":"1"}}}"#;
        assert!(keeps(old, moved));
        for changed in [
            r#"{"metadata":{"annotations":{"memgate.dev/x":"2"}},"spec":{"a":1,"b":[2]}}"#,
            r#"{"metadata":{"annotations":{"memgate.dev/x":"1"}},"spec":{"a":1,"b":[2],"c":null}}"#,
            r#"{"metadata":{},"spec":{"a":1,"b":[2]}}"#,
            r#"{"metadata":{"annotations":{"memgate.dev/x":"1"}}}"#,
            r#"{"metadata":{"annotations":[]},"spec":{"a":1,"b":[2]}}"#,
        ] {
            assert!(!keeps(old, changed), "{changed}");
        }
    }
}
