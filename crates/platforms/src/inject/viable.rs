//! Whether a pod can run as meant, with what memgate adds, where it will run.
//!
//! An apiserver refuses a pod for its form alone. What a mesh, a security context, a node or another webhook makes of it is
//! known only here: the injection asks where and how to add a part, and `judge` reads the pod as it will be, with the
//! additions. What would be wrong without memgate is not judged.
//!
//! Each rule goes by what is in the pod, never by the order in which webhooks were called: a second call gives the same
//! answer as the first.

mod names;
mod network;
pub(crate) mod node;
pub(crate) mod ports;
pub(crate) mod present;
pub(crate) mod sizes;
mod users;

use std::cell::OnceCell;

use crate::prelude::*;

pub(crate) use self::network::CutOff;

use self::network::Network;
use super::WantedByPod;
use super::parts::{ExistingParts, WantedParts};
use crate::common::POD_WINDOWS;

/// What surrounds the parts that memgate adds to a pod.
pub struct Surroundings<'p> {
    /// The pod as it arrived.
    pub(crate) pod: &'p Pod<'p>,
    /// Its lists.
    pub(crate) parts: &'p ExistingParts<'p>,
    /// Its Namespace, if that is known.
    pub(crate) namespace: Option<&'p Object>,
    /// Its RuntimeClass, if that is known.
    runtime_class: Option<&'p Object>,
    /// Which of its init containers have a network, once that is asked.
    network: OnceCell<Network<'p>>,
}

impl<'p> Surroundings<'p> {
    /// What surrounds the parts of a pod in this namespace.
    pub(crate) fn of(
        (pod, parts): (&'p Pod<'p>, &'p ExistingParts<'p>),
        namespace: &str,
        state: &StateReader<'p>,
    ) -> Self {
        let class = pod.spec.as_ref().and_then(|spec| spec.runtime_class.as_deref());
        let runtime_class = class.and_then(|class| state.peek(&node::RUNTIME_CLASS, "", class));
        let namespace = state.peek(&NAMESPACE, "", namespace);
        Self { pod, parts, namespace, runtime_class, network: OnceCell::new() }
    }
}

/// What a rule finds.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Why the pod starts without its memory, or not at all. Refuses a pod that requires it.
    pub(crate) unmet: Vec<Finding>,
    /// Warnings that refuse nothing.
    pub(crate) warnings: Vec<Finding>,
    /// Whether the pod would not start with the parts, so that all of them are left out.
    pub(crate) leaves_out: bool,
}

/// Judges a pod with what its family wants to add.
pub(crate) fn judge(pod: &Pod<'_>, wanted: &WantedByPod<'_>, work: &Budget<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    // Variables alone work on Windows too.
    let adds_linux = |(parts, around): &(WantedParts, Surroundings<'_>)| {
        let is_linux = parts.keeps_sidecar || !parts.init_containers.is_empty() || parts.fs_group.is_some();
        is_linux.then(|| Some((around.windows()?, parts.keeps_sidecar)))?
    };
    if let Some((field, keeps)) = wanted.parts.as_ref().and_then(adds_linux) {
        let message = if keeps {
            "the memory sidecar in the pod exists for Linux only; the pod does not start"
        } else {
            "what its memory adds exists for Linux only; the pod gets none"
        };
        verdict.unmet.push(Finding::warn(&POD_WINDOWS, field, message));
        verdict.leaves_out = true;
        return verdict;
    }
    names::judge(pod, wanted, work, &mut verdict);
    verdict
}

/// A part of a pod that was left unread; null if it is absent, malformed or larger than any pod needs.
pub(crate) fn json(raw: Option<&RawValue>) -> Json {
    /// Read JSON takes many times the memory of its text. An apiserver stores no larger pod.
    const MAX_BYTES: usize = 2 << 20;
    let raw = raw.filter(|raw| raw.get().len() <= MAX_BYTES);
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// The value at a pointer of such a part; `null` where there is none.
pub(crate) fn at<'j>(part: &'j Json, pointer: &str) -> &'j Json {
    part.pointer(pointer).unwrap_or(&Json::Null)
}

/// The elements of a list in such a part.
pub(crate) fn elements(list: &Json) -> &[Json] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}
