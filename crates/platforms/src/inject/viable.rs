//! Whether a pod can run as meant, with what memgate adds, where it will run.
//!
//! An apiserver refuses a pod for its form alone. What a mesh, a security context, a node or another webhook makes of it is
//! known only here: the injection asks where and how to add a part, and [`judge`] reads the pod as it will be, with the
//! additions. What would be wrong without memgate is not judged.
//!
//! Each rule goes by what is in the pod, never by the order in which webhooks were called: a second call gives the same
//! answer as the first.

mod network;
mod node;
pub(crate) mod sizes;

use memgate_model::finding::Finding;
use memgate_model::object::Object;
use memgate_model::pod::Pod;

use super::WantedByPod;
use super::parts::ExistingParts;

/// What surrounds the parts that memgate adds to a pod.
pub(crate) struct Surroundings<'p> {
    /// The pod as it arrived.
    pub(crate) pod: &'p Pod<'p>,
    /// Its lists.
    pub(crate) parts: &'p ExistingParts<'p>,
    /// Its Namespace, if that is known.
    pub(crate) namespace: Option<&'p Object>,
}

/// What a rule finds.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Why the pod starts without its memory, or not at all. Refuses a pod that requires it.
    pub(crate) unmet: Vec<Finding>,
    /// Warnings that refuse nothing.
    pub(crate) warnings: Vec<Finding>,
}

/// Judges a pod with what its family wants to add.
pub(crate) fn judge(_pod: &Pod<'_>, _wanted: &WantedByPod<'_>) -> Verdict {
    Verdict::default()
}
