//! Whether memgate's account may do what its role says, and which questions tell so.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::cli::doctor::check::{Check, few};
use crate::cli::doctor::evidence::{Installation, Seen};

/// Judges what the apiserver said about the account.
#[must_use]
pub fn check(found: &Installation) -> Check {
    const ID: &str = "rights";
    let subject = format!("ServiceAccount {}/memgate", found.home);
    match &found.denied {
        Seen::Found((asked, denied)) if denied.is_empty() => {
            Check::ok(ID, subject, format!("it has all of the {asked} rights that its role names"))
        }
        Seen::Found((asked, denied)) => {
            let message = format!("it lacks {} of {asked} rights: {}", denied.len(), few(denied));
            let help = "memgate manifests --only rbac | kubectl apply -f -; -n says where memgate runs";
            Check::fail(ID, subject, message).help(help)
        }
        Seen::Absent => Check::unknown(ID, subject, "nobody was asked"),
        Seen::Unknown(why) => Check::unknown(ID, subject, why.clone()),
    }
}

/// One question for each verb on each resource of the rules, about a service account; `scope` is the
/// namespace that the rules are for, if it is not all of them.
#[must_use]
pub fn questions(
    rules: &[PolicyRule],
    scope: Option<&str>,
    namespace: &str,
    account: &str,
) -> Vec<SubjectAccessReview> {
    let mut questions = Vec::new();
    for rule in rules {
        let names: Vec<Option<&String>> = match rule.resource_names.as_deref() {
            None | Some([]) => vec![None],
            Some(names) => names.iter().map(Some).collect(),
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    questions.extend(names.iter().map(|name| ResourceAttributes {
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
    questions.into_iter().map(review).collect()
}

/// A question as `auth can-i` has it.
#[must_use]
pub fn shown(question: &SubjectAccessReview) -> String {
    let attributes = question.spec.resource_attributes.clone().unwrap_or_default();
    let text = |text: Option<String>| text.unwrap_or_default();
    let (verb, resource, group) = (text(attributes.verb), text(attributes.resource), text(attributes.group));
    let dot = if group.is_empty() { "" } else { "." };
    format!("{verb} {resource}{dot}{group}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Status;
    use crate::cli::doctor::expected::tests::installed;
    use crate::family;

    #[test]
    fn asks_for_each_verb_on_each_resource_of_the_role() {
        let rules = installed(&[&family::orloj::FAMILY]).everywhere;
        let questions = questions(&rules, None, "home", "memgate");
        let shown: Vec<String> = questions.iter().map(shown).collect();
        assert!(shown.contains(&"watch memories.orloj.dev".to_owned()), "{shown:?}");
        assert_eq!(questions[0].spec.user.as_deref(), Some("system:serviceaccount:home:memgate"));
        let named = PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["secrets".to_owned()]),
            resource_names: Some(vec!["a".to_owned(), "b".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        };
        let questions = self::questions(&[named], Some("home"), "home", "memgate");
        let scopes: Vec<_> = questions.iter().map(|question| &question.spec.resource_attributes).collect();
        assert_eq!(scopes.len(), 2);
        assert!(
            scopes.iter().all(|one| one.as_ref().is_some_and(|one| one.namespace.as_deref() == Some("home")))
        );
    }

    #[test]
    fn says_what_the_account_lacks() {
        let judged = |denied| check(&Installation { denied, ..Installation::default() });
        assert_eq!(judged(Seen::Found((9, Vec::new()))).status, Status::Ok);
        let lacks = judged(Seen::Found((9, vec!["list pods".to_owned()])));
        assert_eq!(
            (lacks.status, lacks.message.as_str()),
            (Status::Fail, "it lacks 1 of 9 rights: list pods")
        );
        assert_eq!(judged(Seen::Unknown("you may not ask".to_owned())).status, Status::Unknown);
    }
}
