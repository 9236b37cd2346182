//! Finds kinds that memgate does not check and that are likely a misspelt kind that it checks.

use memgate_model::family::Family;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::POLICY_KINDS;
use memgate_model::workload;
use memgate_platforms::common::KIND_MISSPELT;
use memgate_primitives::plain_text::quoted_key;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::nearest;
use std::collections::BTreeSet;

/// The groups of Kubernetes itself in which workloads are, or were. Objects of platforms get one of them by mistake when
/// the author forgets the group.
const BUILTIN_GROUPS: [&str; 4] = ["", "apps", "batch", "extensions"];

/// How the kinds begin whose names no other project uses. Others, such as Agent, SwarmAgent or MemoryPolicy, exist in
/// other groups too.
const OWN_NAMES: [&str; 2] = ["Ark", "Sympozium"];

/// A kind that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CheckedKind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
}

impl CheckedKind {
    fn api_version(self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// All of them, in the groups in which clusters have them.
fn checked_kinds() -> impl Iterator<Item = CheckedKind> {
    let families = memgate_platforms::ALL.into_iter().flat_map(|family| family.kinds.validated);
    let families = families.chain(&POLICY_KINDS).map(|kind| CheckedKind {
        group: kind.group,
        version: kind.version,
        kind: kind.kind,
    });
    let workloads = workload::built_in();
    let workloads =
        workloads.map(|workload| CheckedKind { group: workload.group, version: "v1", kind: workload.kind });
    families.chain(workloads).chain([CheckedKind { group: "", version: "v1", kind: "Pod" }])
}

/// The kinds beside them in the groups of the platforms, each with its group.
fn other_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    memgate_platforms::ALL.into_iter().flat_map(Family::other_kinds)
}

/// Whether a kind is checked, looked at, or known by name, or a list of such a kind.
fn is_known(group: &str, kind: &str) -> bool {
    let element = kind.strip_suffix("List").unwrap_or(kind);
    [kind, element].into_iter().any(|kind| {
        checked_kinds().any(|known| (known.group, known.kind) == (group, kind))
            || memgate_platforms::ALL
                .iter()
                .any(|family| family.kinds.misnamed.iter().any(|it| (it.group, it.kind) == (group, kind)))
            || memgate_platforms::state_kind(&memgate_platforms::ALL, group, kind).is_some()
            || other_kinds().any(|other| other == (group, kind))
            || workload::find(group, kind).is_some()
    })
}

/// Whether an object of this group or this kind, of which a later step fills in the other, may be one that is checked.
pub(crate) fn may_be_checked(group: &str, kind: &str) -> bool {
    checked_kinds().any(|known| known.kind == kind || !group.is_empty() && known.group == group)
}

/// Whether an object is likely one of a platform or a policy although its group or its kind is not known: the other one is
/// theirs, or the kind is nearly so.
pub(crate) fn is_likely_ours(group: &str, kind: &str) -> bool {
    let ours = || checked_kinds().filter(|known| !BUILTIN_GROUPS.contains(&known.group));
    ours().any(|known| known.group == group || known.kind == kind)
        || nearest(kind, ours().map(|known| known.kind)).is_some()
}

/// The finding about an unknown kind that is likely a misspelt one. It denies a kind of a platform in a group that no
/// platform has: no cluster serves it. `has_items` tells whether the object has a list `items`.
pub(crate) fn misspelt(api_version: &str, kind: &str, has_items: bool) -> Option<Finding> {
    let warn = |at, message| Some(Finding::warn(&KIND_MISSPELT, Pointer::new(at), message));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if is_known(group, kind) {
        return None;
    }
    if checked_kinds().any(|known| known.kind == api_version) {
        return warn("/apiVersion", "apiVersion and kind stand in each other's place".to_owned());
    }
    let own = ["List"].into_iter().filter(|_| has_items && group.is_empty());
    let kinds = checked_kinds().filter(|known| known.group == group).map(|known| known.kind).chain(own);
    // SwarmEvent is not SwarmAgent, in a misspelt group neither.
    let is_other = other_kinds().any(|(_, other)| other == kind);
    if let Some(meant) = nearest(kind, kinds).filter(|_| !is_other) {
        let (kind, api_version) = (quoted_key(kind), quoted_key(api_version));
        let message = format!("{api_version} is not known to have a kind {kind}; did you mean \"{meant}\"?");
        return warn("/kind", message);
    }
    let meant = other_groups(api_version, group, kind);
    let is_of_platform = meant.iter().all(|known| !BUILTIN_GROUPS.contains(&known.group));
    let is_near = !BUILTIN_GROUPS.contains(&group) || meant.iter().any(|known| known.group == api_version);
    let severity = if is_of_platform && (is_own(kind) || is_near) { Severity::Deny } else { Severity::Warn };
    let names: Vec<String> = meant.into_iter().map(|known| quoted_key(&known.api_version())).collect();
    let (last, others) = names.split_last()?;
    let others = if others.is_empty() { String::new() } else { format!("{} or ", others.join(", ")) };
    let (kind, api_version) = (quoted_key(kind), quoted_key(api_version));
    let message = format!("{api_version} is not known to have a kind {kind}; did you mean {others}{last}?");
    warn("/apiVersion", message).map(|finding| Finding { severity, ..finding })
}

fn is_own(kind: &str) -> bool {
    OWN_NAMES.iter().any(|name| kind.starts_with(name))
}

/// The checked kinds of this name whose group is likely the intended one.
fn other_groups(api_version: &str, group: &str, kind: &str) -> BTreeSet<CheckedKind> {
    let of_kind = || checked_kinds().filter(|known| known.kind == kind);
    if let Some(meant) = nearest(group, of_kind().map(|known| known.group)) {
        return of_kind().filter(|known| known.group == meant).take(1).collect();
    }
    let all: BTreeSet<CheckedKind> = of_kind().filter(|known| known.group == api_version).collect();
    if !all.is_empty() {
        return all;
    }
    let is_builtin = BUILTIN_GROUPS.contains(&group);
    of_kind().filter(|known| is_own(kind) || is_builtin || is_part_of(group, known.group)).collect()
}

/// Whether a group differs from a known one only in its last part, or lacks its first or last part:
/// `arkonis.io` for `arkonis.dev`, `ark.mckinsey` for `ark.mckinsey.com`.
fn is_part_of(group: &str, known: &str) -> bool {
    let start = |group: &str| group.rsplit_once('.').map(|(start, _)| start.to_owned());
    let has_same_start = start(group).is_some_and(|group| start(known) == Some(group));
    // One part, such as dev, is the end of very many groups.
    let end = known.split_once('.').map(|(_, end)| end).filter(|end| end.contains('.'));
    has_same_start || start(known).as_deref() == Some(group) || end == Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_kind_that_was_meant() {
        for (api_version, kind, expected) in [
            ("arkonis.dev/v1alpha1", "ArkMemry", "\"ArkMemory\"?"),
            ("apps/v1", "Deploymnt", "\"Deployment\"?"),
            ("v1", "pod", "\"Pod\"?"),
            ("v1", "list", "\"List\"?"),
        ] {
            let finding = misspelt(api_version, kind, true).expect(kind);
            let message = finding.message();
            assert!(finding.pointer.as_str() == "/kind" && message.ends_with(expected), "{message}");
            assert_eq!(finding.severity, Severity::Warn, "{message}");
        }
    }

    #[test]
    fn finds_the_group_that_was_meant() {
        for (api_version, kind, expected) in [
            ("arkonis.io/v1alpha1", "ArkMemory", "did you mean \"arkonis.dev/v1alpha1\"?"),
            ("ark.mckinsy.com/v1alpha1", "Memory", "did you mean \"ark.mckinsey.com/v1alpha1\"?"),
            ("ark.mckinsey/v1alpha1", "Query", "did you mean \"ark.mckinsey.com/v1alpha1\"?"),
            ("arkonis.dev", "ArkMemory", "did you mean \"arkonis.dev/v1alpha1\"?"),
            ("v1alpha1", "ArkMemory", "did you mean \"arkonis.dev/v1alpha1\"?"),
            ("/v1alpha1", "ArkMemory", "did you mean \"arkonis.dev/v1alpha1\"?"),
            ("v1", "Deployment", "did you mean \"apps/v1\"?"),
            ("extensions/v1beta1", "Deployment", "did you mean \"apps/v1\"?"),
            ("apps/v1", "Job", "did you mean \"batch/v1\"?"),
            ("apps/v1", "Pod", "did you mean \"v1\"?"),
            ("Deployment", "apps/v1", "apiVersion and kind stand in each other's place"),
        ] {
            let finding = misspelt(api_version, kind, false).expect(kind);
            let message = finding.message();
            assert!(finding.pointer.as_str() == "/apiVersion" && message.ends_with(expected), "{message}");
        }
    }

    #[test]
    fn denies_kinds_of_platforms_in_groups_that_no_platform_has() {
        for (api_version, kind, expected) in [
            ("arkonis.io/v1alpha1", "ArkMemory", Some(Severity::Deny)),
            ("memory.example.com/v1", "ArkMemory", Some(Severity::Deny)),
            ("kubeswarm.dev/v1", "SwarmAgent", Some(Severity::Deny)),
            ("memgate.dev/v1alpha1", "MemoryPolicy", Some(Severity::Deny)),
            ("v1", "SympoziumInstance", Some(Severity::Deny)),
            ("ark.mckinsey/v1alpha1", "Query", Some(Severity::Deny)),
            ("orka.ai/v1alpha1", "Task", Some(Severity::Deny)),
            ("orloj.dev", "Agent", Some(Severity::Deny)),
            ("sympozium/v1alpha1", "Ensemble", Some(Severity::Deny)),
            // Common names may be those of a file that is not meant for a cluster.
            ("v1", "Agent", Some(Severity::Warn)),
            ("extensions/v1beta1", "Deployment", Some(Severity::Warn)),
            ("agents.example.com/v1alpha2", "Memory", None),
            ("agent.k8s.elastic.co/v1alpha1", "Agent", None),
            ("tekton.dev/v1", "Task", None),
            ("example.dev/v1", "MemoryPolicy", None),
            ("policies.kyverno.io/v1alpha1", "MemoryPolicy", None),
            ("swarm.example.com/v1", "SwarmAgent", None),
            ("swarm.io/v1", "SwarmMemory", None),
            ("ai/v1", "Agent", None),
            ("dev/v1", "Memory", None),
            ("team.crossplane.io/v1", "Team", None),
            ("argoproj.io/v1alpha1", "Workflow", None),
        ] {
            let found = misspelt(api_version, kind, false).map(|finding| finding.severity);
            assert_eq!(found, expected, "{api_version} {kind}");
        }
    }

    #[test]
    fn leaves_the_other_kinds_of_each_platform() {
        let mut count = 0;
        let workloads = workload::ALL.iter().map(|workload| (workload.group, workload.kind));
        for (group, kind) in other_kinds().chain(workloads) {
            for (version, has_items) in
                [("v1", false), ("v1alpha1", false), ("v1prealpha1", true), ("v9", true)]
            {
                let api_version = format!("{group}/{version}");
                for kind in [kind.to_owned(), format!("{kind}List")] {
                    assert_eq!(misspelt(&api_version, &kind, has_items), None, "{api_version} {kind}");
                }
            }
            count += 1;
        }
        assert!(count > 100, "{count} kinds");
        for known in checked_kinds() {
            assert_eq!(
                misspelt(&known.api_version(), &format!("{}List", known.kind), false),
                None,
                "{known:?}"
            );
        }
        // They are not suggested either, nor taken for a kind that is checked.
        for (api_version, kind) in [
            ("arkonis.dev/v1alpha1", "ArkEvnt"),
            ("kubeswarm.io/v1alpha1", "SwarmTem"),
            ("orloj.dev/v1", "Tol"),
            ("kubeswarm/v1alpha1", "SwarmEvent"),
            ("arkonis.io/v1alpha1", "ArkEvent"),
        ] {
            let found = misspelt(api_version, kind, false);
            for (_, other) in other_kinds() {
                let hint = format!("\"{other}\"?");
                assert!(!found.as_ref().is_some_and(|it| it.message().ends_with(&hint)), "{found:?}");
            }
        }
        assert_eq!(misspelt("kubeswarm/v1alpha1", "SwarmEvent", false), None);
    }

    #[test]
    fn leaves_the_kinds_of_others() {
        for (api_version, kind) in [
            ("agents.example.com/v1alpha1", "Agent"),
            ("v1", "ConfigMap"),
            ("v1", "Node"),
            ("v1", "Lst"),
            ("networking.k8s.io/v1", "Ingress"),
            ("arkonis.dev/v1alpha1", "ArkMemory"),
            ("arkonis.dev/v9", "ArkMemory"),
            ("argoproj.io/v1alpha1", "Rollout"),
        ] {
            assert_eq!(misspelt(api_version, kind, false), None, "{api_version} {kind}");
        }
    }
}
