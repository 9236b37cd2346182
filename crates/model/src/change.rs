//! Compares the old and the new object of an update: whether the update changes fields that users write, and whether it
//! only lets an object go that is being deleted.

use serde_json::value::RawValue;

use crate::digest;
use crate::kind::NAMESPACE;
use crate::request::{Operation, Request};
use crate::view::{self, Annotations, Text, view};

view! {
    /// The parts of an object that users write and memgate reads, unparsed.
    UserFields {
        /// The metadata.
        metadata: AnnotatedMetadata<'a> = "metadata",
        /// The spec, unread.
        spec: &'a RawValue = "spec",
    }

    /// The metadata of an object.
    AnnotatedMetadata {
        /// The annotations that memgate reads.
        annotations: Annotations<'a> = "annotations",
    }

    /// The parts of an object that say what it is for as long as it exists, unparsed.
    LastingFields {
        /// Who it is.
        metadata: LastingMetadata<'a> = "metadata",
        /// What it is to be, unread.
        spec: &'a RawValue = "spec",
    }

    /// The metadata of an object that may be on its way out.
    LastingMetadata {
        /// When its deletion was asked for.
        deletion_timestamp: Text<'a> = "deletionTimestamp",
        /// Its labels, unread.
        labels: &'a RawValue = "labels",
        /// Its annotations, unread.
        annotations: &'a RawValue = "annotations",
    }
}

/// Whether this is an update of an object that is being deleted which leaves its spec as it was, or the labels and
/// annotations of a Namespace, compared as JSON: that of a controller that removes a finalizer. Any other update of such
/// an object is judged, since it exists until its last finalizer is gone. What cannot be read counts as changed.
pub fn only_lets_go(request: &Request<'_>) -> bool {
    let (Operation::Update, Some(new), Some(old)) = (request.operation, request.object, request.old_object)
    else {
        return false;
    };
    let Ok(old) = view::read::<LastingFields<'_>>(old) else { return false };
    let stored = old.metadata.unwrap_or_default();
    if stored.deletion_timestamp.is_none() {
        return false;
    }
    let Ok(new) = view::read::<LastingFields<'_>>(new) else { return false };
    if (&*request.group, &*request.kind) != (NAMESPACE.group, NAMESPACE.kind) {
        return is_same(new.spec, old.spec);
    }
    let sent = new.metadata.unwrap_or_default();
    is_same(sent.labels, stored.labels) && is_same(sent.annotations, stored.annotations)
}

/// Whether an update leaves the spec and memgate's annotations unchanged, compared as JSON. Controllers
/// send such updates to write finalizers, labels or a status. An object that cannot be read counts as
/// changed.
pub fn is_metadata_only_update(request: &Request<'_>) -> bool {
    let (Operation::Update, Some(new), Some(old)) = (request.operation, request.object, request.old_object)
    else {
        return false;
    };
    keeps_what_is_read(new, old)
}

/// Whether two objects have the same spec and the same annotations of memgate, compared as JSON. One that cannot be read
/// counts as another.
pub fn keeps_what_is_read(new: &str, old: &str) -> bool {
    let (Ok(new), Ok(old)) = (view::read::<UserFields<'_>>(new), view::read::<UserFields<'_>>(old)) else {
        return false;
    };
    is_same(new.spec, old.spec) && annotations(new) == annotations(old)
}

/// Whether both are the same as JSON.
fn is_same(new: Option<&RawValue>, old: Option<&RawValue>) -> bool {
    match (new, old) {
        (None, None) => true,
        (Some(new), Some(old)) if new.get() == old.get() => true,
        (Some(new), Some(old)) => digest::of(new.get()).is_some_and(|new| digest::of(old.get()) == Some(new)),
        _ => false,
    }
}

fn annotations(fields: UserFields<'_>) -> Annotations<'_> {
    fields.metadata.and_then(|metadata| metadata.annotations).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Occasion;

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
            occasion: Occasion::default(),
            read_pod: None,
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
            r#"{"metadata":{"annotations":{"memgate.dev/x":"1"}},"spec":{"a":1,"b":[2],"c":0}}"#,
            r#"{"metadata":{},"spec":{"a":1,"b":[2]}}"#,
            r#"{"metadata":{"annotations":{"memgate.dev/x":"1"}}}"#,
            r#"{"metadata":{"annotations":[]},"spec":{"a":1,"b":[2]}}"#,
        ] {
            assert!(!keeps(old, changed), "{changed}");
        }
    }
}
