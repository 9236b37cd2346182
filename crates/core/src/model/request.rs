//! What is asked: one operation on one object, with the object's JSON exactly as it was sent.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

/// The operation of an admission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object replaces an old one.
    Update,
    /// The object is removed; there is an old object only.
    Delete,
    /// A connection to a subresource such as `pods/exec`.
    Connect,
}

impl Operation {
    /// The operation of this name, as the admission API spells it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            "CONNECT" => Some(Self::Connect),
            _ => None,
        }
    }

    /// The name as the admission API spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// One admission request, borrowed from what was received.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// What is being done.
    pub operation: Operation,
    /// The API group of the object; empty for the core group.
    pub group: Cow<'a, str>,
    /// The API version of the object.
    pub version: Cow<'a, str>,
    /// The kind of the object.
    pub kind: Cow<'a, str>,
    /// `status`, `scale` and so on; empty for the object itself.
    pub subresource: Cow<'a, str>,
    /// The namespace, which counts for an object without one, too; empty for cluster-wide kinds, and outside
    /// a cluster where it is not given.
    pub namespace: Cow<'a, str>,
    /// The name; empty when the apiserver has yet to make one.
    pub name: Cow<'a, str>,
    /// The new object as JSON text; `None` for a DELETE.
    pub object: Option<&'a str>,
    /// The stored object as JSON text; for UPDATE and DELETE.
    pub old_object: Option<&'a str>,
    /// Says when nobody waits for the decision any more; it then ends early.
    pub cancelled: Option<&'a AtomicBool>,
}

impl Request<'_> {
    /// Whether the object is a core/v1 Pod.
    #[must_use]
    pub fn is_pod(&self) -> bool {
        self.kind == "Pod" && self.group.is_empty()
    }
}
