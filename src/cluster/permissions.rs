//! Reads the permissions of memgate's account, with a `SubjectAccessReview` for each permission of its role.

use futures::StreamExt as _;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Api;
use kube::api::PostParams;

use crate::cluster::cluster_state::{Fetched, Installation, Permissions, text};
use crate::cluster::reader::{ClusterReader, fetch};
use memgate_server::deploy::metadata::NAME;
use memgate_server::deploy::objects::Objects;

/// How many reviews are open at a time.
const MAX_CONCURRENT_REVIEWS: usize = 8;

/// Which of the permissions of its roles memgate's account has.
pub(crate) async fn permissions(
    reader: &ClusterReader,
    installation: &Installation,
    expected: &Objects,
) -> Fetched<Permissions> {
    let account =
        installation.deployment.found().map(|found| text(found, "/spec/template/spec/serviceAccountName"));
    let account = account.filter(|account| !account.is_empty()).unwrap_or(NAME);
    let home = installation.namespace.as_str();
    let of_cluster = expected.cluster_role.rules.as_deref().unwrap_or_default();
    let mut reviews = access_reviews(of_cluster, None, home, account);
    reviews.extend(access_reviews(&expected.rules_in_namespace(), Some(home), home, account));
    let checked = reviews.len();
    let api: Api<SubjectAccessReview> = Api::all(reader.client.clone());
    let responses = futures::stream::iter(reviews).map(|review| {
        let api = api.clone();
        async move {
            let params = PostParams::default();
            let response = fetch("create", "subjectaccessreviews", api.create(&params, &review)).await;
            let is_allowed =
                |response: SubjectAccessReview| response.status.is_some_and(|status| status.allowed);
            (permission(&review), response.map(is_allowed))
        }
    });
    let mut responses = responses.buffered(MAX_CONCURRENT_REVIEWS);
    let mut denied = Vec::new();
    while let Some((permission, response)) = responses.next().await {
        match response {
            Fetched::Found(true) => {}
            Fetched::Found(false) => denied.push(permission),
            Fetched::NotFound => return Fetched::NotFound,
            Fetched::Unknown(why) => return Fetched::Unknown(why),
        }
    }
    Fetched::Found(Permissions { checked, denied })
}

/// One review for each verb on each resource of the rules, of a service account; `scope` is the namespace
/// of the rules, if that is not all of them.
fn access_reviews(
    rules: &[PolicyRule],
    scope: Option<&str>,
    namespace: &str,
    account: &str,
) -> Vec<SubjectAccessReview> {
    let mut permissions = Vec::new();
    for rule in rules {
        let names: Vec<Option<&String>> = match rule.resource_names.as_deref() {
            None | Some([]) => vec![None],
            Some(names) => names.iter().map(Some).collect(),
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    permissions.extend(names.iter().map(|name| ResourceAttributes {
                        group: Some(group.clone()),
                        name: name.cloned(),
                        namespace: scope.map(str::to_owned),
                        resource: Some(resource.clone()),
                        verb: Some(verb.clone()),
                        ..ResourceAttributes::default()
                    }));
                }
            }
        }
    }
    let review = |attributes| SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{namespace}:{account}")),
            groups: Some(vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ]),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    permissions.into_iter().map(review).collect()
}

/// The permission of a review, as `kubectl auth can-i` writes it.
fn permission(review: &SubjectAccessReview) -> String {
    let attributes = review.spec.resource_attributes.clone().unwrap_or_default();
    let [verb, resource, group] =
        [attributes.verb, attributes.resource, attributes.group].map(Option::unwrap_or_default);
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
        assert_eq!(reviews[0].spec.user.as_deref(), Some("system:serviceaccount:home:memgate"));
        let named = rule("", "secrets", &["a", "b"], &["get"]);
        let reviews = access_reviews(&[named], Some("home"), "home", "memgate");
        let scopes: Vec<_> = reviews.iter().map(|review| &review.spec.resource_attributes).collect();
        assert_eq!(scopes.len(), 2);
        assert!(
            scopes.iter().all(|one| one.as_ref().is_some_and(|one| one.namespace.as_deref() == Some("home")))
        );
    }
}
