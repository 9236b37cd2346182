//! The rights that an installation gives memgate's account, one by one, as questions to the authorizer.

use std::fmt;

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use crate::metadata::NAME;
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

/// The rights of memgate's account in an installation: those of its ClusterRole, then those of its Role.
pub fn rights(objects: &Objects) -> Vec<Right> {
    let mut rights = Vec::new();
    add(&mut rights, "", objects.cluster_role.rules.as_deref().unwrap_or_default());
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    for (_, role) in &objects.others {
        let is_own = text(role, "/kind").as_deref() == Some("Role")
            && text(role, "/metadata/name").as_deref() == Some(NAME);
        let rules = role.get("rules").filter(|_| is_own).cloned().unwrap_or_default();
        let namespace = text(role, "/metadata/namespace").unwrap_or_default();
        add(&mut rights, &namespace, &serde_json::from_value::<Vec<PolicyRule>>(rules).unwrap_or_default());
    }
    rights
}

fn add(rights: &mut Vec<Right>, namespace: &str, rules: &[PolicyRule]) {
    for rule in rules {
        let any = [String::new()];
        let names = rule.resource_names.as_deref().filter(|names| !names.is_empty()).unwrap_or(&any);
        for (group, resource) in rule
            .api_groups
            .iter()
            .flatten()
            .flat_map(|group| rule.resources.iter().flatten().map(move |resource| (group, resource)))
        {
            rights.extend(rule.verbs.iter().flat_map(|verb| {
                names.iter().map(move |name| Right {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                    namespace: namespace.to_owned(),
                })
            }));
        }
    }
}

impl Right {
    /// The question whether an account has it, a service account of this namespace and name; without one, whether the caller
    /// has it.
    pub fn review(&self, account: Option<(&str, &str)>) -> Value {
        let Self { verb, group, resource, name, namespace } = self;
        let mut spec = json!({"resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "name": name, "namespace": namespace,
        }});
        let Some((home, account)) = account else {
            return json!({"apiVersion": AUTHORIZATION, "kind": "SelfSubjectAccessReview", "spec": spec});
        };
        spec["user"] = format!("system:serviceaccount:{home}:{account}").into();
        // As CEL's authorizer.serviceAccount() asks.
        spec["groups"] = json!(["system:serviceaccounts", format!("system:serviceaccounts:{home}")]);
        json!({"apiVersion": AUTHORIZATION, "kind": "SubjectAccessReview", "spec": spec})
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
