//! What an object in a file is to a check.

use std::collections::BTreeSet;

use crate::family;
use crate::model::family::Family;
use crate::model::kind::Kind;
use crate::model::workload;

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

/// What an object of this group and kind is.
#[must_use]
pub fn role(group: &str, kind: &str) -> Role {
    if group.is_empty() && kind == "Pod" || family::validated(&family::ALL, group, kind).is_some() {
        return Role::Whole;
    }
    workload::find(group, kind).map_or(Role::None, |workload| Role::Template(workload.template))
}

/// What is checked, in words: one line for each sort of object.
#[must_use]
pub fn checked_kinds() -> String {
    let memories: BTreeSet<&str> = kinds(|family| family.memories);
    let judged: BTreeSet<&str> = kinds(|family| family.validated);
    let referrers: Vec<&str> = judged.difference(&memories).copied().collect();
    let memories: Vec<&str> = memories.into_iter().collect();
    let workloads = workload::ALL.map(|workload| workload.kind);
    format!(
        "memory resources ({}),\n    what refers to them ({}),\n    pods, and workloads ({})",
        memories.join(", "),
        referrers.join(", "),
        workloads.join(", ")
    )
}

fn kinds(of: fn(&'static Family) -> &'static [&'static Kind]) -> BTreeSet<&'static str> {
    family::ALL.into_iter().flat_map(of).map(|kind| kind.kind).collect()
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
