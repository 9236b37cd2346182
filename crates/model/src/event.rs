//! The content of an Event about a pod that is admitted without its memory.
//!
//! Admission warnings go to the author of the pod, which is usually a controller. So a decision names the
//! object that a person would inspect. This module does not decide whether an Event is written, and where.

use std::borrow::Cow;

use crate::finding::Finding;
use crate::kind::Kind;
use crate::object::Object;

/// An object on whose behalf a pod runs: `regarding` in an Event, `involvedObject` in its older form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvolvedObject {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: Cow<'static, str>,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; empty where it is not known.
    pub uid: String,
    /// Whether it is an object of the state. If not, only the pod refers to it.
    pub known: bool,
}

impl InvolvedObject {
    /// An object of the state.
    pub fn of(kind: &'static Kind, object: &Object) -> Self {
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.into(),
            namespace: object.namespace.to_string(),
            name: object.name.to_string(),
            uid: object.uid().unwrap_or_default().to_owned(),
            known: true,
        }
    }
}

/// An Event to write: a pod is admitted without its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEvent {
    /// The object on whose behalf the pod runs.
    pub regarding: InvolvedObject,
    /// Why the pod goes without its memory.
    pub finding: Finding,
    /// Whether the pod got some of its memory.
    pub partly: bool,
}
