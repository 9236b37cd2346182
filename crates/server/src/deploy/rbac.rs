//! The account that memgate runs as, and what it may do.
//!
//! It reads the kinds that decisions look up. It writes Events, the `caBundle` of its own two webhook
//! configurations, and the one Secret with its CA; it can read no other Secret. With policies it writes their status,
//! reports, and a Lease.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::deploy::install_plan::InstallPlan;
use crate::deploy::metadata::{AUDIT_LEASE, CA_SECRET, CONFIGURATIONS, NAME, cluster_metadata, metadata};
use crate::model::family::Family;
use crate::model::kind::{Kind, NAMESPACE, POLICY_GROUP, POLICY_KINDS};

/// The service account; its token is mounted where it is needed, for an hour at a time.
pub(super) fn service_account(plan: &InstallPlan) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(plan),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// What memgate may do in the whole cluster, the families aside.
pub(super) fn cluster_role(plan: &InstallPlan) -> ClusterRole {
    let rules = vec![events(), configurations(plan)];
    ClusterRole { metadata: cluster_metadata(plan), rules: Some(rules), aggregation_rule: None }
}

/// Events about pods that are admitted without their memory.
pub(super) fn events() -> PolicyRule {
    rule("events.k8s.io", &["events"], &["create"])
}

/// Its own two webhook configurations, of which a policy leaves it `caBundle` and `service.path` alone.
pub(super) fn configurations(plan: &InstallPlan) -> PolicyRule {
    PolicyRule {
        resource_names: Some(vec![plan.name.clone()]),
        ..rule("admissionregistration.k8s.io", &CONFIGURATIONS, &["get", "watch", "patch"])
    }
}

/// The one Secret in memgate's own namespace. The right to create cannot be limited to a name, so
/// no other workload should live in that namespace.
pub(super) fn role(plan: &InstallPlan) -> Role {
    let named = PolicyRule {
        resource_names: Some(vec![CA_SECRET.to_owned()]),
        ..rule("", &["secrets"], &["get", "update"])
    };
    Role { metadata: metadata(plan), rules: Some(vec![rule("", &["secrets"], &["create"]), named]) }
}

/// Read access to the kinds that a family's decisions look up, and no more than they need of each; and to
/// what shows whether an API server of the platform's own serves them.
pub(super) fn family(family: &Family) -> Vec<PolicyRule> {
    let is_watched = |kind: &&'static Kind| family.kinds.watched.contains(kind);
    let fetched = family.kinds.fetched.iter().copied().filter(|kind| !is_watched(kind));
    let mut rules = rules(family.kinds.watched.iter().copied(), &["get", "list", "watch"]);
    rules.extend(self::rules(fetched, &["get"]));
    // What no decision looks up, audits page through.
    rules.extend(self::rules(family.audited().filter(|kind| !is_watched(kind)), &["list"]));
    rules.extend(family.definitions.aggregated_server.map(|server| PolicyRule {
        resource_names: Some(vec![server.api_service.to_owned()]),
        ..rule("apiregistration.k8s.io", &["apiservices"], &["get"])
    }));
    rules
}

/// Read access to policies and exemptions, and to the labels of Namespaces by which they select; and what audits write:
/// the status of both, and reports.
pub(super) fn policies() -> Vec<PolicyRule> {
    let statuses = POLICY_KINDS.map(|kind| format!("{}/status", kind.plural));
    let statuses = statuses.each_ref().map(String::as_str);
    let reports = ["reports", "clusterreports"];
    let mut rules = rules(POLICY_KINDS.into_iter().chain([&NAMESPACE]), &["get", "list", "watch"]);
    rules.push(rule(POLICY_GROUP, &statuses, &["patch"]));
    rules.push(rule("openreports.io", &reports, &["create", "delete", "list", "patch"]));
    rules
}

/// The Lease by which one replica at a time audits, in memgate's own namespace, and what gives the account that. The
/// right to create cannot be limited to a name.
pub(super) fn audit_role(plan: &InstallPlan) -> (Role, RoleBinding) {
    let metadata = || ObjectMeta { name: Some(AUDIT_LEASE.to_owned()), ..metadata(plan) };
    let group = "coordination.k8s.io";
    let named = PolicyRule {
        resource_names: Some(vec![AUDIT_LEASE.to_owned()]),
        ..rule(group, &["leases"], &["get", "patch"])
    };
    let rules = vec![rule(group, &["leases"], &["create"]), named];
    let binding = RoleBinding {
        metadata: metadata(),
        role_ref: role_ref("Role", AUDIT_LEASE),
        subjects: Some(subjects(plan)),
    };
    (Role { metadata: metadata(), rules: Some(rules) }, binding)
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

/// Gives the role for the whole cluster to the service account.
pub(super) fn cluster_role_binding(plan: &InstallPlan) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: cluster_metadata(plan),
        role_ref: role_ref("ClusterRole", &plan.name),
        subjects: Some(subjects(plan)),
    }
}

/// Gives the role for memgate's own namespace to the service account.
pub(super) fn role_binding(plan: &InstallPlan) -> RoleBinding {
    RoleBinding { metadata: metadata(plan), role_ref: role_ref("Role", NAME), subjects: Some(subjects(plan)) }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

fn subjects(plan: &InstallPlan) -> Vec<Subject> {
    vec![Subject {
        kind: "ServiceAccount".to_owned(),
        name: NAME.to_owned(),
        namespace: Some(plan.namespace.clone()),
        api_group: None,
    }]
}
