//! Compares the old and the new object of an update: whether the update changes fields that users write.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::content_hash::ContentHash;
use crate::request::{Operation, Request};
use crate::view::{self, Text, view};

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
/// changed, and so does a key that is repeated in one of them only.
#[must_use]
pub fn is_metadata_only_update(request: &Request<'_>) -> bool {
    let (Operation::Update, Some(new), Some(old)) = (request.operation, request.object, request.old_object)
    else {
        return false;
    };
    let hash: ContentHash = ContentHash::default();
    let (Some(new), Some(old)) = (user_fields(new), user_fields(old)) else { return false };
    let same = |new: Option<&RawValue>, old: Option<&RawValue>| match (new, old) {
        (None, None) => true,
        (Some(new), Some(old)) if new.get() == old.get() => true,
        (Some(new), Some(old)) => hash.of(new.get()).is_some_and(|new| hash.of(old.get()) == Some(new)),
        _ => false,
    };
    let annotations = hash_annotations(new.0, &hash);
    annotations.is_some() && annotations == hash_annotations(old.0, &hash) && same(new.1, old.1)
}

/// The annotations of an object, and its spec.
fn user_fields(object: &str) -> Option<(Option<&RawValue>, Option<&RawValue>)> {
    let UserFields { metadata, spec } = view::read(object).ok()?;
    Some((metadata.and_then(|metadata| metadata.annotations), spec))
}

/// A hash of the annotations that are for memgate; `None` if they are not a map.
fn hash_annotations(annotations: Option<&RawValue>, hash: &ContentHash) -> Option<u64> {
    let Some(annotations) = annotations else { return Some(0) };
    serde_json::Deserializer::from_str(annotations.get()).deserialize_map(OurAnnotations(hash)).ok()
}

struct OurAnnotations<'h>(&'h ContentHash);

impl<'de> Visitor<'de> for OurAnnotations<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut sum = 0_u64;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if key.starts_with(ANNOTATION_PREFIX) {
                let value = map.next_value::<Option<&'de RawValue>>()?;
                let value =
                    value.map(|value| self.0.of(value.get()).ok_or_else(|| A::Error::custom("unreadable")));
                sum = sum.wrapping_add(value.transpose()?.map_or(0, |value| self.0.entry(&key, value)));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(sum)
    }
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
