//! The account that memgate runs as, and its permissions.
//!
//! It reads the kinds that decisions look up. It writes Events, the `caBundle` of its own two webhook
//! configurations, and the one Secret with its CA; it can read no other Secret. With policies it writes their status,
//! reports, and a Lease.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

use crate::install_plan::InstallPlan;
use crate::metadata::{CONFIGURATIONS, named};
use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE, POD, POLICY_GROUP, POLICY_KINDS};

/// The permissions in the whole cluster, without those of families.
pub(super) fn cluster_role(plan: &InstallPlan) -> ClusterRole {
    let events = plan.events.then(events);
    let configurations = plan.has_own_certificates().then(|| configurations(plan));
    let rules = events.into_iter().chain(configurations).collect();
    ClusterRole { metadata: named(plan.name.clone()), rules: Some(rules), aggregation_rule: None }
}

/// Events about pods that are admitted without their memory.
fn events() -> PolicyRule {
    rule("events.k8s.io", &["events"], &["create"])
}

/// The two webhook configurations; a policy limits the changes to `caBundle`.
fn configurations(plan: &InstallPlan) -> PolicyRule {
    PolicyRule {
        resource_names: Some(vec![plan.name.clone()]),
        ..rule("admissionregistration.k8s.io", &CONFIGURATIONS, &["get", "list", "watch", "patch"])
    }
}

/// Read access to the kinds that a family's decisions look up, with the verbs that each needs; and to the APIService
/// that shows whether an API server of the platform's own serves them.
pub(super) fn family(family: &Family) -> Vec<PolicyRule> {
    let is_watched = |kind: &&'static Kind| family.kinds.watched.contains(kind);
    let fetched = family.kinds.fetched.iter().copied().filter(|kind| !is_watched(kind));
    let mut rules = rules(family.kinds.watched.iter().copied(), &["get", "list", "watch"]);
    rules.extend(self::rules(fetched, &["get"]));
    // Audits list the kinds that decisions do not look up.
    rules.extend(self::rules(family.audited().filter(|kind| !is_watched(kind)), &["list"]));
    rules.extend(family.definitions.aggregated_server.map(|server| PolicyRule {
        resource_names: Some(vec![server.api_service.to_owned()]),
        ..rule("apiregistration.k8s.io", &["apiservices"], &["get"])
    }));
    rules
}

/// Read access to the workloads that serve memory.
pub(super) fn workloads(families: &[&'static Family]) -> Vec<PolicyRule> {
    let watched = families.iter().flat_map(|family| family.kinds.in_files);
    let watched = watched.filter_map(|(kind, selector)| selector.map(|_| *kind));
    rules(watched, &["get", "list", "watch"])
}

/// Read access to pods, of which those of agents are scanned.
pub(super) fn pods() -> PolicyRule {
    rule(POD.group, &[POD.plural], &["list", "watch"])
}

/// Read access to policies, exemptions and Namespaces, whose labels policies select by; write access to the objects of
/// audits: the status of policies and exemptions, and reports.
pub(super) fn policies() -> Vec<PolicyRule> {
    let statuses = POLICY_KINDS.map(|kind| format!("{}/status", kind.plural));
    let statuses = statuses.each_ref().map(String::as_str);
    let reports = ["reports", "clusterreports"];
    let mut rules = rules(POLICY_KINDS.into_iter().chain([&NAMESPACE]), &["get", "list", "watch"]);
    rules.push(rule(POLICY_GROUP, &statuses, &["patch"]));
    rules.push(rule("openreports.io", &reports, &["create", "delete", "list", "patch"]));
    rules
}

/// One rule for each API group.
fn rules(kinds: impl Iterator<Item = &'static Kind>, verbs: &[&str]) -> Vec<PolicyRule> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds {
        let resources = groups.entry(kind.group).or_default();
        if !resources.contains(&kind.plural) {
            resources.push(kind.plural);
        }
    }
    groups.into_iter().map(|(group, resources)| rule(group, &resources, verbs)).collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}
