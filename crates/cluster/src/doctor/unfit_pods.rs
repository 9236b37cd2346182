//! Agent pods that have their memory and cannot run as meant: what another webhook did after the last call, or a mesh that
//! came later.

use std::collections::{BTreeMap, BTreeSet};

use crate::doctor::check::Check;
use crate::replay::Replayed;
use memgate_model::finding::Finding;
use memgate_platforms::common::keeps_pod_from_starting;
use memgate_platforms::inject::INJECTED_ANNOTATION;
use memgate_workbench::report::counted;
use memgate_workbench::unfit::{causes, sentence};

const ID: &str = "unfit-pods";

/// The pods of one owner.
#[derive(Default)]
struct Owned<'r> {
    pods: usize,
    /// The worst cause so far, and whether its pod has its memory.
    worst: Option<(&'r Finding, bool)>,
    codes: BTreeSet<&'r str>,
}

/// A check for each owner of such pods, up to `max_listed`, and one for the others.
pub fn checks(replayed: &[Replayed<'_>], max_listed: usize) -> Vec<Check> {
    let mut owners: BTreeMap<String, Owned<'_>> = BTreeMap::new();
    // That a pod lacks its memory is reported already.
    for it in replayed.iter().filter(|it| !it.lacks_memory && causes(&it.decision).next().is_some()) {
        owners.entry(it.pod.owner()).or_default().add(it);
    }
    let more = owners.len().saturating_sub(max_listed);
    let listed = owners.into_iter().take(max_listed);
    let mut checks: Vec<Check> = listed.filter_map(|(owner, owned)| owned.check(owner)).collect();
    if more > 0 {
        let message = format!(
            "{} more with pods that cannot run as meant; --show has more of them listed",
            counted(more, "workload")
        );
        checks.push(Check::warn(ID, "Pods", message));
    }
    checks
}

impl<'r> Owned<'r> {
    fn add(&mut self, replayed: &'r Replayed<'_>) {
        let has_memory = replayed.pod.annotation(INJECTED_ANNOTATION).is_some();
        self.pods += 1;
        for cause in causes(&replayed.decision) {
            self.codes.insert(cause.code_name());
            let is_worse = |(worst, _): (&Finding, bool)| {
                keeps_pod_from_starting(cause) && !keeps_pod_from_starting(worst)
            };
            if self.worst.is_none_or(is_worse) {
                self.worst = Some((cause, has_memory));
            }
        }
    }

    fn check(mut self, owner: String) -> Option<Check> {
        let (cause, has_memory) = self.worst?;
        self.codes.remove(cause.code_name());
        let others: String = self.codes.iter().flat_map(|code| [", also ", code]).collect();
        let message = format!("{}, {}{others}", counted(self.pods, "pod"), sentence(cause, has_memory));
        Some(Check::warn(ID, owner, message).help(format!("memgate explain {}", cause.code_name())))
    }
}
