//! What the owner of a pod should know: the pod is admitted without its memory.
//!
//! Warnings about a pod are seen by whoever makes it, which is a controller most of the time. So a
//! decision names the object to which a person would look. Whether and where anybody is told is not
//! decided here.

use std::borrow::Cow;

use crate::model::finding::Finding;
use crate::model::kind::Kind;
use crate::model::snapshot::Object;

/// An object on whose behalf a pod runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Referrer {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: Cow<'static, str>,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; empty where nobody knows it.
    pub uid: String,
    /// Whether it is an object of the state. If not, only the pod speaks of it.
    pub known: bool,
}

impl Referrer {
    /// An object of the state.
    #[must_use]
    pub fn of(kind: &'static Kind, object: &Object) -> Self {
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.into(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: object.uid().unwrap_or_default().to_owned(),
            known: true,
        }
    }
}

/// A pod that is admitted without its memory, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Whose pod it is.
    pub referrer: Referrer,
    /// Why it goes without.
    pub finding: Finding,
    /// Whether it got some of its memory all the same.
    pub partly: bool,
}
