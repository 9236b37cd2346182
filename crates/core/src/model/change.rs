//! What an update changes: in go the old and the new object, out comes whether a user wrote any of it.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::request::{Operation, Request};
use crate::model::view::view;

/// The annotations that are for memgate start with this.
const ANNOTATION_PREFIX: &str = "memgate.dev/";

view! {
    /// The parts of an object that users write and memgate reads, unparsed.
    UserFields {
        /// Who it is.
        metadata: AnnotatedMetadata<'a> = "metadata",
        /// What it is to be, unread.
        spec: &'a RawValue = "spec",
    }
}

view! {
    /// The metadata of an object.
    AnnotatedMetadata {
        /// The annotations, unread.
        annotations: &'a RawValue = "annotations",
    }
}

/// Whether this is an update that leaves the spec and the annotations for memgate as they were, compared as
/// JSON: that of a controller that writes finalizers, labels or a status. What cannot be read counts as
/// changed.
#[must_use]
pub fn is_metadata_only_update(request: &Request<'_>) -> bool {
    let (Operation::Update, Some(new), Some(old)) = (request.operation, request.object, request.old_object)
    else {
        return false;
    };
    user_fields(new).is_some_and(|new| user_fields(old).is_some_and(|old| new == old))
}

/// The spec of an object and its annotations for memgate.
fn user_fields(object: &str) -> Option<(Option<Value>, BTreeMap<String, Value>)> {
    let UserFields { metadata, spec } = serde_json::from_str(object).ok()?;
    let spec = spec.map(|spec| serde_json::from_str(spec.get())).transpose().ok()?;
    let mut annotations: BTreeMap<String, Value> = match metadata.and_then(|metadata| metadata.annotations) {
        Some(annotations) => serde_json::from_str(annotations.get()).ok()?,
        None => BTreeMap::new(),
    };
    annotations.retain(|key, value| key.starts_with(ANNOTATION_PREFIX) && !value.is_null());
    Some((spec, annotations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(old: &str, new: &str) -> bool {
        is_metadata_only_update(&Request {
            operation: Operation::Update,
            group: "".into(),
            version: "v1".into(),
            kind: "Thing".into(),
            subresource: "".into(),
            namespace: "".into(),
            name: "".into(),
            object: Some(new),
            old_object: Some(old),
            cancelled: None,
        })
    }

    #[test]
    fn compares_as_json() {
        let old = r#"{"metadata":{"labels":{"a":"1"},"annotations":{"memgate.dev/x":"1","o":"1"}},"spec":{"a":1,"b":[2]}}"#;
        let reordered =
            r#"{"spec":{"b":[2],"a":1},"metadata":{"annotations":{"o":"2","memgate.dev/x":"1"}}}"#;
        assert!(keeps(old, reordered));
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
