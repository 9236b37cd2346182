//! The changes that a family makes to an agent pod, and its findings.

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
    pub added: Vec<Item>,
    /// The volumes that are put back. They are in the annotation if an earlier call added them.
    pub restored: Vec<Item>,
}

/// One thing that memgate adds to a pod, or the memory for which it does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A memory resource, as `Kind/name`, or as the family's facts have it.
    Memory(String),
    /// A variable: the container and the name.
    Env(String, String),
    /// An init container; native sidecars are among them.
    InitContainer(String),
    /// A volume.
    Volume(String),
    /// A mount: the container and the path.
    Mount(String, String),
    /// A Secret with which images are pulled.
    ImagePullSecret(String),
    /// The group of the pod's volumes.
    FsGroup(i64),
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
