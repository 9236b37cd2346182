//! The changes that a family makes to an agent pod, and its findings.

use std::borrow::Cow;

use serde::Serialize;

use crate::edit::Edit;
use crate::finding::Finding;
use crate::object::Reference;
use crate::reason::Reason;

/// The changes that a family makes to an agent pod.
#[derive(Debug, Default)]
pub struct Injection {
    /// The reason.
    pub reason: Reason,
    /// Why the pod does not get its memory; refuses a pod that requires it.
    pub unmet: Vec<Finding>,
    /// Whether `unmet` is reported only where the pod requires its memory.
    pub only_if_required: bool,
    /// Missing objects that the memory depends on, with each kind that they could have. Empty where the
    /// platform works without them.
    pub missing: Vec<Reference>,
    /// Warnings, whether the pod has its memory or not.
    pub warnings: Vec<Finding>,
    /// The changes, in the order in which they apply.
    pub edits: Vec<Edit>,
    /// What the edits add, for the marker annotation.
    pub added: Added,
}

/// What was added to a pod. The marker annotation holds it as compact JSON.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Added {
    /// The memory resources, each as `Kind/name`, or as the family's facts have it.
    #[serde(serialize_with = "one_or_many")]
    pub memory: Vec<String>,
    /// The variables, by container.
    #[serde(serialize_with = "by_key", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, Vec<Cow<'static, str>>)>,
    /// The init containers, native sidecars among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<String>,
    /// The volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// The volumes that are put back. They are in the annotation if an earlier call added them.
    #[serde(skip)]
    pub restored: Vec<String>,
    /// The paths of mounts, by container.
    #[serde(serialize_with = "by_key", skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<(String, Vec<Cow<'static, str>>)>,
    /// The Secrets with which images are pulled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<String>,
    /// The group of the files on the pod's volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_group: Option<i64>,
}

impl Added {
    /// Whether nothing was added to the pod.
    pub const fn is_empty(&self) -> bool {
        self.env.is_empty()
            && self.mounts.is_empty()
            && self.init_containers.is_empty()
            && self.volumes.is_empty()
            && self.image_pull_secrets.is_empty()
            && self.fs_group.is_none()
    }
}

/// One memory resource is a string, several are a list.
fn one_or_many<S: serde::Serializer>(memory: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    match memory {
        [one] => serializer.serialize_str(one),
        many => serializer.collect_seq(many),
    }
}

fn by_key<S: serde::Serializer>(
    lists: &[(String, Vec<Cow<'static, str>>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(lists.iter().map(|(key, list)| (key, list)))
}

impl Injection {
    /// Nothing is changed, because of `finding`.
    pub fn unmet(reason: Reason, finding: Finding) -> Self {
        Self { unmet: vec![finding], ..Self::nothing(reason) }
    }

    /// Nothing is changed or reported.
    pub fn nothing(reason: Reason) -> Self {
        Self { reason, ..Self::default() }
    }
}
