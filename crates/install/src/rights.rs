//! The rights that an installation gives memgate's account, one by one, as questions to the authorizer.

use std::fmt;

use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::objects::Objects;

/// The API group and version of questions to the authorizer.
pub const AUTHORIZATION: &str = "authorization.k8s.io/v1";

/// One right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// The verb, such as `list`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the kind.
    pub resource: String,
    /// The name of the only object that it is about, else empty.
    pub name: String,
    /// The namespace that it is limited to, else empty.
    pub namespace: String,
}

/// The rights of memgate's account in an installation: those of its ClusterRole, then those of its Roles.
pub fn rights(objects: &Objects) -> Vec<Right> {
    let roles = objects.others.iter().filter_map(|(_, object)| Role::deserialize(object).ok());
    let mut rights = Vec::new();
    add(&mut rights, "", objects.cluster_role.rules.as_deref().unwrap_or_default());
    for role in roles {
        add(&mut rights, &role.metadata.namespace.unwrap_or_default(), &role.rules.unwrap_or_default());
    }
    rights
}

fn add(rights: &mut Vec<Right>, namespace: &str, rules: &[PolicyRule]) {
    let all = [String::new()];
    for rule in rules {
        let names = rule.resource_names.as_deref().unwrap_or(&all);
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                let right = |verb: &String, name: &String| Right {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                    namespace: namespace.to_owned(),
                };
                rights.extend(
                    rule.verbs.iter().flat_map(|verb| names.iter().map(move |name| right(verb, name))),
                );
            }
        }
    }
}

impl Right {
    /// The question whether an account has it, a service account of this namespace and name; without one, whether the caller
    /// has it.
    pub fn review(&self, account: Option<(&str, &str)>) -> Value {
        let Self { verb, group, resource, name, namespace } = self;
        let asked = json!({
            "verb": verb, "group": group, "resource": resource, "name": name, "namespace": namespace,
        });
        let (kind, spec) = match account {
            None => ("SelfSubjectAccessReview", json!({"resourceAttributes": asked})),
            Some((home, account)) => (
                "SubjectAccessReview",
                json!({
                    "resourceAttributes": asked,
                    "user": format!("system:serviceaccount:{home}:{account}"),
                    // As CEL's authorizer.serviceAccount() asks.
                    "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{home}")],
                }),
            ),
        };
        json!({"apiVersion": AUTHORIZATION, "kind": kind, "spec": spec})
    }
}

impl fmt::Display for Right {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, name, .. } = self;
        let (dot, blank) = (if group.is_empty() { "" } else { "." }, if name.is_empty() { "" } else { " " });
        write!(out, "{verb} {resource}{dot}{group}{blank}{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install_plan::InstallPlan;

    #[test]
    fn the_rights_of_an_installation_are_those_of_its_roles() {
        let plan = InstallPlan::inferred("memgate", "home", memgate_platforms::ALL.to_vec(), Some(&[]), &[]);
        let rights = rights(&crate::objects(&plan));
        let texts: Vec<String> =
            rights.iter().map(|right| format!("{} {}", right.namespace, right)).collect();
        for expected in [
            " list memories.ark.mckinsey.com",
            " patch mutatingwebhookconfigurations.admissionregistration.k8s.io memgate",
            " create events.events.k8s.io",
            "home get secrets memgate-ca",
            "home create leases.coordination.k8s.io",
        ] {
            assert!(texts.iter().any(|text| text == expected), "{expected:?} is not among {texts:#?}");
        }
        let Some(own) = rights.iter().find(|right| right.name == "memgate-ca") else { panic!("{texts:?}") };
        let of_other = own.review(Some(("home", "memgate")));
        assert_eq!(of_other.pointer("/spec/user"), Some(&"system:serviceaccount:home:memgate".into()));
        assert_eq!(own.review(None).get("kind"), Some(&"SelfSubjectAccessReview".into()));
    }
}
