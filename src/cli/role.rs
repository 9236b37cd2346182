//! What an object in a file is to a check.

use std::collections::BTreeSet;

use crate::family;
use crate::model::settings::Family;

/// What an object is to a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A pod, a memory resource or a referrer.
    Whole,
    /// A workload; the pointer leads to its pod template.
    Template(&'static str),
    /// Nothing that memgate looks at.
    None,
}

/// The workloads, with the way to their pod template.
const WORKLOADS: [(&str, &str, &str); 6] = [
    ("apps", "Deployment", "/spec/template"),
    ("apps", "StatefulSet", "/spec/template"),
    ("apps", "DaemonSet", "/spec/template"),
    ("apps", "ReplicaSet", "/spec/template"),
    ("batch", "Job", "/spec/template"),
    ("batch", "CronJob", "/spec/jobTemplate/spec/template"),
];

/// What an object of this group and kind is.
#[must_use]
pub fn role(group: &str, kind: &str) -> Role {
    if group.is_empty() && kind == "Pod" || family::judging(&Family::ALL, group, kind).is_some() {
        return Role::Whole;
    }
    let workload = WORKLOADS.iter().find(|workload| (workload.0, workload.1) == (group, kind));
    workload.map_or(Role::None, |(.., template)| Role::Template(template))
}

/// What is checked, in words: every kind once, by name.
#[must_use]
pub fn checked_kinds() -> String {
    let kinds = Family::ALL.into_iter().flat_map(family::judged).map(|kind| kind.kind);
    let kinds: BTreeSet<&str> =
        kinds.chain(["Pod"]).chain(WORKLOADS.iter().map(|(_, kind, _)| *kind)).collect();
    kinds.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_is_looked_at() {
        for (group, kind, expected) in [
            ("", "Pod", Role::Whole),
            ("arkonis.dev", "ArkMemory", Role::Whole),
            ("apps", "Deployment", Role::Template("/spec/template")),
            ("batch", "CronJob", Role::Template("/spec/jobTemplate/spec/template")),
            ("", "Deployment", Role::None),
            ("", "ConfigMap", Role::None),
        ] {
            assert_eq!(role(group, kind), expected, "{group} {kind}");
        }
    }
}
