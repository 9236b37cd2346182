//! The account that memgate runs as, and its permissions.
//!
//! It reads the kinds that decisions look up. It writes Events, the `caBundle` of its own two webhook
//! configurations, and the one Secret with its CA; it can read no other Secret. The account of audits is in
//! `components::audit`.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

use crate::install_plan::InstallPlan;
use crate::metadata::{CONFIGURATIONS, named};
use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE, POLICY_KINDS};

/// The permissions in the whole cluster, without those of families.
pub(super) fn cluster_role(plan: &InstallPlan) -> ClusterRole {
    let events = plan.events.then(events);
    let rules = events.into_iter().chain([configurations(plan)]).collect();
    ClusterRole { metadata: named(plan.name.clone()), rules: Some(rules), aggregation_rule: None }
}

/// Events about pods that are admitted without their memory.
fn events() -> PolicyRule {
    rule("events.k8s.io", &["events"], &["create"])
}

/// The two webhook configurations, to see whether they ask memgate anything; with certificates of its own it writes `caBundle`,
/// and a policy limits the changes to that.
fn configurations(plan: &InstallPlan) -> PolicyRule {
    let verbs: &[&str] =
        if plan.has_own_certificates() { &["get", "list", "watch", "patch"] } else { &["get"] };
    PolicyRule {
        resource_names: Some(vec![plan.name.clone()]),
        ..rule("admissionregistration.k8s.io", &CONFIGURATIONS, verbs)
    }
}

/// Read access to the kinds that a family's decisions look up, with the verbs that each needs; and to the APIService
/// that shows whether an API server of the platform's own serves them.
pub(super) fn family(family: &Family) -> Vec<PolicyRule> {
    let is_watched = |kind: &&'static Kind| family.kinds.watched.contains(kind);
    let fetched = family.kinds.fetched.iter().copied().filter(|kind| !is_watched(kind));
    let mut rules = rules(family.kinds.watched.iter().copied(), &["get", "list", "watch"]);
    rules.extend(self::rules(fetched, &["get"]));
    rules.extend(family.definitions.aggregated_server.map(|server| PolicyRule {
        resource_names: Some(vec![server.api_service.to_owned()]),
        ..rule("apiregistration.k8s.io", &["apiservices"], &["get"])
    }));
    rules
}

/// Access with these verbs to the workloads that serve memory.
pub(super) fn workloads(families: &[&'static Family], verbs: &[&str]) -> Vec<PolicyRule> {
    let watched = families.iter().flat_map(|family| family.kinds.in_files);
    let watched = watched.filter_map(|(kind, selector)| selector.map(|_| *kind));
    rules(watched, verbs)
}

/// Read access to policies, exemptions and Namespaces, whose labels policies select by.
pub(super) fn policies() -> Vec<PolicyRule> {
    rules(POLICY_KINDS.into_iter().chain([&NAMESPACE]), &["get", "list", "watch"])
}

/// One rule for each API group.
pub(super) fn rules(kinds: impl Iterator<Item = &'static Kind>, verbs: &[&str]) -> Vec<PolicyRule> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds {
        let resources = groups.entry(kind.group).or_default();
        if !resources.contains(&kind.plural) {
            resources.push(kind.plural);
        }
    }
    groups.into_iter().map(|(group, resources)| rule(group, &resources, verbs)).collect()
}

/// Access to these resources of a group.
pub(super) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}
