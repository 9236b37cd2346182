//! One admission request: an operation on an object, with the object's JSON exactly as it was sent.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use serde_json::value::RawValue;

use crate::view::{self, Text, view};
use memgate_primitives::named::named;
use memgate_primitives::pointer::Pointer;

named! {
    /// The operation of an admission request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Operation {
        /// The object is new.
        Create = "CREATE",
        /// The object replaces an old one.
        Update = "UPDATE",
        /// The object is removed; there is only an old object.
        Delete = "DELETE",
        /// A connection to a subresource such as `pods/exec`.
        Connect = "CONNECT",
    }
}

/// One admission request, borrowed from what was received.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The operation.
    pub operation: Operation,
    /// The API group of the object; empty for the core group.
    pub group: Cow<'a, str>,
    /// The API version of the object.
    pub version: Cow<'a, str>,
    /// The kind of the object.
    pub kind: Cow<'a, str>,
    /// `status`, `scale` and so on; empty for the object itself.
    pub subresource: Cow<'a, str>,
    /// The namespace, also for an object that does not name one. Empty for cluster-wide kinds, and outside a
    /// cluster if none was given.
    pub namespace: Cow<'a, str>,
    /// The name; empty if the apiserver has not generated it yet.
    pub name: Cow<'a, str>,
    /// The new object as JSON text; `None` for a DELETE.
    pub object: Option<&'a str>,
    /// The stored object as JSON text; for UPDATE and DELETE.
    pub old_object: Option<&'a str>,
    /// Where the decision is made, when, and for which user.
    pub occasion: Occasion<'a>,
    /// Set once the caller has gone; the decision then ends early.
    pub cancelled: Option<&'a AtomicBool>,
}

/// Where a decision is made, when, and for which user: what policies read besides the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occasion<'a> {
    /// Where the decision is made.
    pub point: Point,
    /// The time of the decision.
    pub now: Timestamp,
    /// The user, as the JSON of an `authentication.k8s.io/v1` UserInfo. Only an apiserver sends it.
    pub user: Option<&'a str>,
    /// The name of the workload that makes the pod, if the pod does not have a name yet.
    pub workload: Option<&'a str>,
    /// The values of the object that a later step fills in, so that their text says nothing. Only files have them: what an
    /// apiserver sends is what it stores.
    pub later: Option<&'a BTreeSet<Pointer>>,
    /// Whether the object is a part of one, as a patch in a file is: what it lacks, the rest may have.
    pub is_part: bool,
    /// Whether the decision says what each rule of a policy made of the object. A webhook has no use for it.
    pub counts_rules: bool,
}

impl Occasion<'_> {
    /// An occasion without a user, at this point and time.
    pub const fn new(point: Point, now: Timestamp) -> Self {
        Self { point, now, user: None, workload: None, later: None, is_part: false, counts_rules: false }
    }

    /// Whether a later step fills in the value at this place.
    pub fn fills_in_later(&self, pointer: &Pointer) -> bool {
        self.later.is_some_and(|later| later.contains(pointer))
    }

    /// Reads the user of the request; empty where it is missing or cannot be read.
    pub fn user(&self) -> User {
        let info = self.user_info();
        let groups = info.groups.and_then(|groups| serde_json::from_str(groups.get()).ok());
        let name = info.username.map(|name| name.0.into_owned()).unwrap_or_default();
        User { name, groups: groups.unwrap_or_default() }
    }

    /// Reads the name of the user alone, which an apiserver writes first; empty where it is missing or cannot be read.
    pub fn user_name(&self) -> Cow<'_, str> {
        let first = self.user.and_then(|text| text.strip_prefix(r#"{"username":""#)?.split_once('"'));
        match first {
            Some((name, _)) if !name.contains('\\') => name.into(),
            _ => self.user_info().username.map(|name| name.0).unwrap_or_default(),
        }
    }

    fn user_info(&self) -> UserInfo<'_> {
        self.user.and_then(|text| view::read(text).ok()).unwrap_or_default()
    }
}

impl Default for Occasion<'_> {
    /// At admission, at a time before every date of a policy.
    fn default() -> Self {
        Self::new(Point::Admission, Timestamp::MIN)
    }
}

named! {
    /// Where a decision is made.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Point {
        /// In a webhook, or in a command that decides like one.
        Admission = "admission",
        /// Before anything is deployed.
        Ci = "ci",
        /// In an audit of stored objects.
        Audit = "audit",
    }
}

view! {
    /// The user of a request.
    UserInfo {
        /// The name.
        username: Text<'a> = "username",
        /// The groups, unread.
        groups: &'a RawValue = "groups",
    }
}

/// The user of a request: name and groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name; empty when the user is not known.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl<'a> Request<'a> {
    /// A request to create a pod, from its JSON text. It has no user, and its time is before every date of a
    /// policy.
    pub fn to_create_pod(namespace: &'a str, name: &'a str, pod: &'a str) -> Self {
        Self {
            operation: Operation::Create,
            group: "".into(),
            version: "v1".into(),
            kind: "Pod".into(),
            subresource: "".into(),
            namespace: namespace.into(),
            name: name.into(),
            object: Some(pod),
            old_object: None,
            occasion: Occasion::default(),
            cancelled: None,
        }
    }

    /// Whether the object is a core/v1 Pod.
    pub fn is_pod(&self) -> bool {
        self.kind == "Pod" && self.group.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_user_is_read_as_the_whole_user_is() {
        for text in [
            r#"{"username":"a","groups":["b"]}"#,
            r#"{"groups":["b"],"username":"a"}"#,
            r#"{"username":"a\"b","uid":"1"}"#,
            r#"{"username":"a\u0041"}"#,
            r#"{"username":""}"#,
            r#"{"username": "a"}"#,
            r#"{"username":1}"#,
            "{}",
        ] {
            let occasion = Occasion { user: Some(text), ..Occasion::default() };
            assert_eq!(occasion.user_name(), occasion.user().name, "{text}");
        }
    }
}
