//! Reads the permissions of memgate's account, with a `SubjectAccessReview` for each permission of its role.

use futures::StreamExt as _;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::PostParams;
use kube::core::Request;
use serde_json::{Value, json};

use crate::cluster_state::{Fetched, Installation, Permissions, text};
use crate::reader::{ClusterReader, fetch};
use memgate_install::metadata::NAME;
use memgate_install::objects::Objects;

/// How many reviews are open at a time.
const MAX_CONCURRENT_REVIEWS: usize = 8;

/// Which of the permissions of its roles memgate's account has.
pub async fn permissions(
    reader: &ClusterReader,
    installation: &Installation,
    expected: &Objects,
) -> Fetched<Permissions> {
    let account = installation
        .deployment
        .as_ref()
        .found()
        .map(|found| text(found, "/spec/template/spec/serviceAccountName"));
    let account = account.filter(|account| !account.is_empty()).unwrap_or(NAME);
    let home = installation.namespace.as_str();
    let of_cluster = expected.cluster_role.rules.as_deref().unwrap_or_default();
    let mut reviews = access_reviews(of_cluster, None, home, account);
    reviews.extend(access_reviews(&expected.rules_in_namespace(), Some(home), home, account));
    let checked = reviews.len();
    let responses = futures::stream::iter(reviews).map(|review| async move {
        let send = async {
            let request = Request::new("/apis/authorization.k8s.io/v1/subjectaccessreviews");
            let request = request.create(&PostParams::default(), review.to_string().into_bytes());
            reader.client.request::<Value>(request.map_err(kube::Error::BuildRequest)?).await
        };
        let response = fetch("create", "subjectaccessreviews", send).await;
        (
            permission(&review),
            response.map(|response| response.pointer("/status/allowed") == Some(&true.into())),
        )
    });
    let mut responses = responses.buffered(MAX_CONCURRENT_REVIEWS);
    let mut denied = Vec::new();
    while let Some((permission, response)) = responses.next().await {
        match response {
            Fetched::Found(true) => {}
            Fetched::Found(false) => denied.push(permission),
            Fetched::Absent => return Fetched::Absent,
            Fetched::Unknown(why) => return Fetched::Unknown(why),
        }
    }
    Fetched::Found(Permissions { checked, denied })
}

/// One review for each verb on each resource of the rules, of a service account; `scope` is the namespace
/// of the rules, if that is not all of them.
fn access_reviews(rules: &[PolicyRule], scope: Option<&str>, namespace: &str, account: &str) -> Vec<Value> {
    let mut reviews = Vec::new();
    for rule in rules {
        let names: Vec<Option<&String>> = match rule.resource_names.as_deref() {
            None | Some([]) => vec![None],
            Some(names) => names.iter().map(Some).collect(),
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    reviews.extend(names.iter().map(|name| {
                        json!({
                            "group": group, "name": name, "namespace": scope, "resource": resource, "verb": verb,
                        })
                    }));
                }
            }
        }
    }
    let review = |attributes: Value| {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": format!("system:serviceaccount:{namespace}:{account}"),
                "groups": [
                    "system:serviceaccounts",
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated",
                ],
                "resourceAttributes": attributes,
            },
        })
    };
    reviews.into_iter().map(review).collect()
}

/// The permission of a review, as `kubectl auth can-i` writes it.
fn permission(review: &Value) -> String {
    let [verb, resource, group] =
        ["verb", "resource", "group"].map(|field| text(review, &format!("/spec/resourceAttributes/{field}")));
    let dot = if group.is_empty() { "" } else { "." };
    format!("{verb} {resource}{dot}{group}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(group: &str, resource: &str, names: &[&str], verbs: &[&str]) -> PolicyRule {
        let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        PolicyRule {
            api_groups: Some(owned(&[group])),
            resources: Some(owned(&[resource])),
            resource_names: Some(owned(names)),
            verbs: owned(verbs),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn asks_for_each_verb_on_each_resource_of_the_role() {
        let rules = [rule("orloj.dev", "memories", &[], &["list", "watch"])];
        let reviews = access_reviews(&rules, None, "home", "memgate");
        let permissions: Vec<String> = reviews.iter().map(permission).collect();
        assert_eq!(permissions, ["list memories.orloj.dev", "watch memories.orloj.dev"]);
        assert_eq!(reviews[0]["spec"]["user"], "system:serviceaccount:home:memgate");
        let named = rule("", "secrets", &["a", "b"], &["get"]);
        let reviews = access_reviews(&[named], Some("home"), "home", "memgate");
        let scopes: Vec<_> =
            reviews.iter().map(|review| &review["spec"]["resourceAttributes"]["namespace"]).collect();
        assert_eq!(scopes, ["home", "home"]);
    }
}
