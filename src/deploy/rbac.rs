//! Who memgate is in a cluster and what it may read. It writes nothing and never reads Secrets.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};

use crate::deploy::{NAME, Plan, cluster_metadata, metadata};
use crate::model::kind::Kind;

/// The service account; its token is mounted where it is needed, for an hour at a time.
#[must_use]
pub fn service_account(plan: &Plan) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(plan),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// Read access to the kinds that decisions look up, and no more than they need of each.
#[must_use]
pub fn role(plan: &Plan) -> ClusterRole {
    let watched = plan.families.iter().flat_map(|family| family.watched).copied();
    let asked = plan.families.iter().flat_map(|family| family.asked).copied();
    let also_watched: Vec<&Kind> = watched.clone().collect();
    let mut rules = rules(watched, &["get", "list", "watch"]);
    rules.extend(self::rules(asked.filter(|kind| !also_watched.contains(kind)), &["get"]));
    ClusterRole { metadata: cluster_metadata(), rules: Some(rules), aggregation_rule: None }
}

/// One rule for each API group.
fn rules(kinds: impl Iterator<Item = &'static Kind>, verbs: &[&str]) -> Vec<PolicyRule> {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for kind in kinds {
        let resources = groups.entry(kind.group).or_default();
        if !resources.iter().any(|known| known == kind.plural) {
            resources.push(kind.plural.to_owned());
        }
    }
    let rule = |(group, resources): (&str, Vec<String>)| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    groups.into_iter().map(rule).collect()
}

/// Gives the role to the service account.
#[must_use]
pub fn binding(plan: &Plan) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: cluster_metadata(),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: NAME.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: NAME.to_owned(),
            namespace: Some(plan.namespace.clone()),
            api_group: None,
        }]),
    }
}
