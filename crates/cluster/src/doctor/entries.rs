//! Whether the webhook configurations and the Service equal what `memgate manifests` would install, and the command that mends
//! them.
//!
//! An entry that is missing or asks about less is a failure, since memgate is not called. Other differences may be wanted, so
//! they are warnings.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::check::{Check, CheckStatus};
use crate::cluster_state::{Fetched, Installation};
use memgate_install::difference::{Difference, compared, differences};
use memgate_install::objects::{Objects, WebhookConfiguration};

const ID: &str = "webhooks";

/// The differences of both configurations and of the Service.
pub(super) fn checks(found: &Installation, wanted: &Objects) -> Vec<Check> {
    let apply = format!("{} | kubectl apply -f -", found.manifests("--only webhooks"));
    let both = found.configurations().into_iter().zip([&wanted.mutating, &wanted.validating]);
    let mut checks = Vec::new();
    for ((call, listed), wanted) in both {
        let subject = found.own_title(call);
        checks.push(match (listed, found.own(call)) {
            (Fetched::Unknown(why), _) => Check::unknown(ID, subject, why.clone()),
            (_, None) => {
                let message = "there is no such configuration: the apiserver asks memgate about nothing";
                Check::fail(ID, subject, message).help(&*apply)
            }
            (_, Some(live)) => configuration(&subject, live, wanted, &apply),
        });
    }
    checks.extend(service(found, wanted));
    checks
}

fn configuration(
    subject: &str,
    live: &WebhookConfiguration,
    wanted: &WebhookConfiguration,
    apply: &str,
) -> Check {
    let found = differences("", "/webhooks", &compared(live), &compared(wanted));
    if found.is_empty() {
        let count = live.webhooks.as_ref().map_or(0, Vec::len);
        return Check::ok(ID, subject, format!("{count} entries, as memgate would install them"));
    }
    let status = if found.iter().any(asks_less) { CheckStatus::Fail } else { CheckStatus::Warn };
    let mut added: Vec<&str> = found.iter().filter_map(|one| one.added.as_deref()).collect();
    let mut help = Vec::new();
    if !added.is_empty() {
        // From the last element of a list to the first: each removal moves those behind it.
        added.sort_by_key(|pointer| Reverse(steps(pointer)));
        let removals: Vec<Value> =
            added.iter().map(|pointer| json!({"op": "remove", "path": pointer})).collect();
        help.push(patch(&subject.to_lowercase(), "", &Value::from(removals)));
    }
    if found.iter().any(|one| one.added.is_none()) {
        help.push(apply.to_owned());
    }
    Check::new(ID, status, subject, words(&found)).help(help.join(" && "))
}

/// Whether memgate may be asked about less: an entry or its rules are missing, or a selector or a condition is not as installed,
/// unless it is gone.
fn asks_less(one: &Difference) -> bool {
    match one.field.split(' ').nth(1) {
        None | Some("rules") => one.added.is_none(),
        Some("namespaceSelector" | "objectSelector" | "matchConditions") => one.message != "is missing",
        Some(_) => false,
    }
}

/// The steps of a JSON pointer, in the order of the elements that they lead to.
fn steps(pointer: &str) -> Vec<(Option<usize>, String)> {
    pointer.split('/').map(|step| (step.parse().ok(), step.to_owned())).collect()
}

fn words(found: &[Difference]) -> String {
    found.iter().map(|one| format!("{} {}", one.field, one.message)).collect::<Vec<_>>().join("; ")
}

/// The Service; none for memgate at a URL.
fn service(found: &Installation, wanted: &Objects) -> Option<Check> {
    const ID: &str = "service";
    let subject = format!("Service {}/memgate", found.namespace);
    let mut others = wanted.others.iter().map(|(_, object)| object);
    let wanted = others.find(|object| object.get("kind") == Some(&"Service".into()))?;
    if found.own_url().is_some() {
        return None;
    }
    let live = match &found.service {
        Fetched::Found(live) => live,
        Fetched::Absent => {
            let help = format!("echo '{wanted}' | kubectl apply -f -");
            return Some(Check::fail(ID, subject, "there is no such Service").help(help));
        }
        Fetched::Unknown(why) => return Some(Check::unknown(ID, subject, why.clone())),
    };
    let [live, wanted] = [live, wanted].map(routing);
    let found_here = differences("", "", &live, &wanted);
    if found_here.is_empty() {
        return Some(Check::ok(ID, subject, "it leads to the replicas"));
    }
    let put =
        |field: &str| json!({"op": "add", "path": format!("/spec/{field}"), "value": wanted.get(field)});
    let patches: Vec<Value> = ["ports", "selector"].into_iter().map(put).collect();
    let help = patch("service memgate", &format!("-n {} ", found.namespace), &Value::from(patches));
    Some(Check::fail(ID, subject, words(&found_here)).help(help))
}

/// Where a Service leads.
fn routing(service: &Value) -> Value {
    let mut spec = service.get("spec").cloned().unwrap_or_default();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        *port =
            json!({"name": port.get("name"), "port": port.get("port"), "targetPort": port.get("targetPort")});
    }
    json!({"ports": spec.get("ports"), "selector": spec.get("selector")})
}

/// The command that patches an object, which is its kind and its name.
fn patch(object: &str, place: &str, patch: &Value) -> String {
    format!("kubectl {place}patch {object} --type=json -p '{patch}'")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;

    use super::*;
    use crate::doctor::inferred::tests::{installed, object};

    /// A cluster in which memgate is installed as it prints itself, and then changed.
    fn checks_of(change: impl FnOnce(&mut Installation)) -> Vec<Check> {
        let wanted = installed(&memgate_platforms::ALL);
        let mut found = Installation {
            name: "memgate".to_owned(),
            namespace: "home".to_owned(),
            mutating: Fetched::Found(vec![wanted.mutating.clone()]),
            validating: Fetched::Found(vec![wanted.validating.clone()]),
            service: Fetched::Found(object(&memgate_platforms::ALL, "Service")),
            ..Installation::default()
        };
        change(&mut found);
        let mut checks = checks(&found, &wanted);
        checks.retain(|check| check.status != CheckStatus::Ok);
        checks
    }

    fn first_pods(found: &mut Installation) -> &mut MutatingWebhook {
        let Fetched::Found(listed) = &mut found.mutating else { panic!("it was found") };
        let mut webhooks = listed[0].webhooks.iter_mut().flatten();
        webhooks.find(|webhook| webhook.name.starts_with("arkonis.")).expect("an entry")
    }

    fn only(change: impl FnOnce(&mut Installation)) -> (CheckStatus, String, String) {
        match &checks_of(change)[..] {
            [one] => (one.status, one.message.clone(), one.help.clone().unwrap_or_default()),
            other => panic!("{other:#?}"),
        }
    }

    #[test]
    fn what_is_printed_is_complete() {
        assert_eq!(checks_of(|_| ()), []);
    }

    #[test]
    fn says_what_is_not_there() {
        let (status, text, help) = only(|found| found.mutating = Fetched::Found(Vec::new()));
        assert!(status == CheckStatus::Fail && text.starts_with("there is no such configuration"), "{text}");
        assert_eq!(help, "memgate manifests --only webhooks | kubectl apply -f -");
        let (status, text, _) =
            only(|found| found.mutating = Fetched::Unknown("you may not list".to_owned()));
        assert_eq!((status, &*text), (CheckStatus::Unknown, "you may not list"));
        let (status, text, help) = only(|found| found.service = Fetched::Absent);
        assert_eq!((status, &*text), (CheckStatus::Fail, "there is no such Service"));
        assert!(help.starts_with("echo '{") && help.ends_with("}' | kubectl apply -f -"), "{help}");
    }

    #[test]
    fn what_is_missing_or_has_changed_is_applied_again() {
        let name = "arkonis.pods.memgate.dev";
        for (change, status, message) in [
            (
                (|entry| entry.failure_policy = Some("Fail".to_owned())) as fn(&mut MutatingWebhook),
                CheckStatus::Warn,
                "failurePolicy is Fail, not Ignore",
            ),
            (|entry| entry.timeout_seconds = Some(30), CheckStatus::Warn, "timeoutSeconds is 30, not 2"),
            (|entry| entry.object_selector = None, CheckStatus::Warn, "objectSelector is missing"),
            (
                |entry| drop(entry.match_conditions.as_mut().expect("conditions").remove(0)),
                CheckStatus::Warn,
                "matchConditions not-node is missing",
            ),
            (|entry| entry.rules = None, CheckStatus::Fail, "rules is missing"),
        ] {
            let (found, text, help) = only(|found| change(first_pods(found)));
            assert!(text.starts_with(&format!("{name} {message}")), "{text}");
            assert_eq!((found, &*help), (status, "memgate manifests --only webhooks | kubectl apply -f -"));
        }
        let gone = |found: &mut Installation| {
            let Fetched::Found(listed) = &mut found.mutating else { panic!("it was found") };
            listed[0].webhooks.as_mut().expect("entries").retain(|entry| entry.name != name);
        };
        let (status, text, _) = only(gone);
        assert_eq!((status, text), (CheckStatus::Fail, format!("{name} is missing")));
    }

    #[test]
    fn what_was_added_is_removed_by_a_patch() {
        let (status, text, help) = only(|found| {
            let entry = first_pods(found);
            let selector = entry.namespace_selector.as_mut().expect("a selector");
            selector.match_labels = Some([("team".to_owned(), "a".to_owned())].into());
            let mut never = entry.match_conditions.as_ref().expect("conditions")[0].clone();
            never.name = "never".to_owned();
            entry.match_conditions.as_mut().expect("conditions").push(never);
        });
        assert_eq!(status, CheckStatus::Fail);
        assert!(text.contains("namespaceSelector matchLabels team is added: a"), "{text}");
        let start = "kubectl patch mutatingwebhookconfiguration memgate --type=json -p '[{\"op\":\"remove\",\"path\":\"/webhooks/";
        assert!(
            help.starts_with(start) && help.contains("/matchLabels/team\"}") && !help.contains("apply"),
            "{help}"
        );
    }

    #[test]
    fn a_service_that_leads_elsewhere_is_a_failure() {
        let (status, text, help) = only(|found| {
            let Fetched::Found(service) = &mut found.service else { panic!("it was found") };
            service["spec"]["ports"][0]["targetPort"] = 8443.into();
        });
        assert_eq!((status, &*text), (CheckStatus::Fail, "ports webhook targetPort is 8443, not webhook"));
        assert!(
            help.starts_with("kubectl -n home patch service memgate --type=json -p '[{\"op\":\"add\""),
            "{help}"
        );
    }
}
