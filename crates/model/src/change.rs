//! Compares the old and the new object of an update: whether the update changes what the object means to its platform,
//! and whether it only lets an object go that is being deleted.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::digest;
use crate::kind::{Kind, NAMESPACE};
use crate::request::{Operation, Request};
use crate::view::{self, Text, Texts, view};

/// The labels and annotations of some kinds that mean something to their platform, as the spec does.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    /// The kinds.
    pub kinds: &'static [&'static Kind],
    /// Their labels that mean something.
    pub labels: Keys,
    /// Their annotations that mean something.
    pub annotations: Keys,
}

/// The entries of a map that mean something, by their keys.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// None.
    None,
    /// All.
    All,
    /// Those with one of these keys.
    These(&'static [&'static str]),
    /// Those whose keys begin with this text.
    StartingWith(&'static str),
}

/// What is judged of a Namespace that is being deleted.
pub static OF_NAMESPACES: Meaning =
    Meaning { kinds: &[&NAMESPACE], labels: Keys::All, annotations: Keys::All };

impl Keys {
    /// Whether the entry with this key means something.
    fn contain(self, key: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::These(keys) => keys.contains(&key),
            Self::StartingWith(start) => key.starts_with(start),
        }
    }
}

view! {
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

/// Whether memgate judges the spec of objects of this kind. That of a Namespace has only finalizers.
pub fn judges_spec(kind: &str) -> bool {
    kind != NAMESPACE.kind
}

/// Whether this is an update of an object that is being deleted which leaves alone what the object means: that of a
/// controller that removes a finalizer. Any other update of such an object is judged, since it exists until its last
/// finalizer is gone.
pub fn only_lets_go(meanings: &[Meaning], request: &Request<'_>) -> bool {
    let Some([new, old]) = versions(request) else { return false };
    let Ok(stored) = view::read::<LastingFields<'_>>(old) else { return false };
    let is_going = stored.metadata.is_some_and(|metadata| metadata.deletion_timestamp.is_some());
    is_going && stays_what_it_is(&request.kind, meanings, new, old)
}

/// Whether an update of an object that is being deleted leaves alone all that is judged of it: what it means, and of a
/// Namespace all labels and annotations, by which policies select and judge it.
pub fn stays_what_it_is(kind: &str, meanings: &[Meaning], new: &str, old: &str) -> bool {
    let meanings = if judges_spec(kind) { meanings } else { std::slice::from_ref(&OF_NAMESPACES) };
    !meaning_changed(kind, meanings, new, old)
}

/// Whether this is an update that leaves alone what the object means. Controllers send such updates to write finalizers,
/// other labels or a status.
pub fn keeps_meaning(meanings: &[Meaning], request: &Request<'_>) -> bool {
    versions(request).is_some_and(|[new, old]| !meaning_changed(&request.kind, meanings, new, old))
}

/// Whether two versions of an object of a platform's kind differ in their spec, or in a label or annotation that means something, compared as
/// JSON. What cannot be read counts as changed.
pub fn meaning_changed(kind: &str, meanings: &[Meaning], new: &str, old: &str) -> bool {
    let [Ok(new), Ok(old)] = [new, old].map(view::read::<LastingFields<'_>>) else { return true };
    if judges_spec(kind) && !is_same(new.spec, old.spec) {
        return true;
    }
    let [new, old] = [new, old].map(|object| object.metadata.unwrap_or_default());
    let is_it = |meaning: &&Meaning| meaning.kinds.iter().any(|known| known.kind == kind);
    meanings.iter().filter(is_it).any(|meaning| {
        differ(meaning.labels, new.labels, old.labels)
            || differ(meaning.annotations, new.annotations, old.annotations)
    })
}

/// Both objects of an update.
fn versions<'r>(request: &Request<'r>) -> Option<[&'r str; 2]> {
    let (new, old) = request.object.zip(request.old_object)?;
    (request.operation == Operation::Update).then_some([new, old])
}

/// Whether two maps differ in an entry with one of these keys. A map that is absent is empty.
fn differ(keys: Keys, new: Option<&RawValue>, old: Option<&RawValue>) -> bool {
    if matches!(keys, Keys::None) || new.map(RawValue::get) == old.map(RawValue::get) {
        return false;
    }
    let [Ok(new), Ok(old)] = [new, old].map(|map| view::read::<Texts<'_>>(map.map_or("{}", RawValue::get)))
    else {
        return true;
    };
    let all: BTreeSet<&str> = new.keys().chain(old.keys()).filter(|key| keys.contain(key)).collect();
    all.into_iter().any(|key| new.get(key) != old.get(key))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::METADATA;

    static THING: Kind = Kind::new(("example.com", "v1"), "Thing", "things", METADATA);
    static OF_THINGS: [Meaning; 1] = [Meaning {
        kinds: &[&THING],
        labels: Keys::These(&["a", "b"]),
        annotations: Keys::StartingWith("x/"),
    }];

    #[test]
    fn compares_what_means_something_as_json() {
        let meanings = &OF_THINGS;
        let changed = |kind: &str, new: &str, old: &str| {
            let one = meaning_changed(kind, meanings, new, old);
            assert_eq!(meaning_changed(kind, meanings, old, new), one, "{new} {old}");
            one
        };
        let old = r#"{"metadata":{"labels":{"a":"1","o":"1"},"annotations":{"x/y":"1","o":"1"}},"spec":{"a":1,"b":[2]}}"#;
        let same = r#"{"spec":{"b":[2],"a":1},"metadata":{"annotations":{"x\u002fy":"1"},"labels":{"o":"2","a":"1"}}}"#;
        assert!(!changed("Thing", same, old));
        for metadata in [
            r#"{"labels":{"a":"2"},"annotations":{"x/y":"1"}}"#,
            r#"{"labels":{"a":"1","b":""},"annotations":{"x/y":"1"}}"#,
            r#"{"annotations":{"x/y":"1"}}"#,
            r#"{"labels":{"a":"1"},"annotations":{"x/y":"1","x/z":""}}"#,
            r#"{"labels":{"a":"1"},"annotations":{}}"#,
            r#"{"labels":{"a":"1"},"annotations":[]}"#,
            "null",
        ] {
            let new = format!(r#"{{"metadata":{metadata},"spec":{{"a":1,"b":[2]}}}}"#);
            assert!(changed("Thing", &new, old), "{metadata}");
            assert!(!changed("Other", &new, old), "{metadata}");
        }
        assert!(changed("Other", r#"{"spec":{"a":1,"b":[2],"c":0}}"#, old));
        assert!(changed("Other", "{}", old));
        assert!(changed("Other", "", old));
    }

    #[test]
    fn all_metadata_of_a_namespace_that_goes_is_judged_and_its_spec_is_not() {
        let stays = |old: &str| {
            let bare = r#"{"metadata":{},"spec":{"finalizers":["kubernetes"]}}"#;
            stays_what_it_is("Namespace", &[], bare, old)
        };
        assert!(stays(r#"{"metadata":{"labels":{},"annotations":{}}}"#));
        assert!(!stays(r#"{"metadata":{"labels":{"a":"1"}}}"#));
        assert!(!stays(r#"{"metadata":{"annotations":{"a":"1"}}}"#));
    }
}
