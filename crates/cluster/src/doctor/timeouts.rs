//! How long an apiserver waits for all webhooks of an agent pod when none of them answers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cluster_state::{AgentPod, Agents, Installation};
use crate::doctor::check::{Check, abbreviated, unreadable, unreadable_configurations};
use crate::webhook_entry::{WebhookEntry, entries};
use memgate_primitives::review_path::Phase;

const ID: &str = "timeouts";

/// The longest time that an apiserver works on a request. A webhook that does not answer uses up its timeout, and a
/// request that takes longer is refused, whatever the failure policies are.
/// Source: k8s.io/apiserver v0.37, pkg/endpoints/handlers/rest.go.
const MAX_REQUEST_SECONDS: i32 = 34;

/// The timeouts of all webhooks that an apiserver calls for an agent pod. It calls mutating webhooks one after the
/// other, and then all validating webhooks at once. Conditions in CEL are not evaluated.
pub fn check(found: &Installation, agents: &Agents) -> Check {
    let subject = "Pods";
    let mut unknown = unreadable_configurations(found, ID);
    unknown.extend(unreadable(&found.namespaces, ID, subject));
    if let Some(unknown) = unknown.into_iter().next() {
        return unknown;
    }
    let called = |call: Phase| -> Vec<WebhookEntry> {
        let all = if call == Phase::Mutate { &found.mutating } else { &found.validating };
        all.items().iter().flat_map(entries).filter(WebhookEntry::is_called_for_new_pods).collect()
    };
    let [mutating, validating] = Phase::ALL.map(called);
    let keys: BTreeSet<String> =
        mutating.iter().chain(&validating).flat_map(WebhookEntry::selected_labels).collect();
    let mut slowest = (0, String::new(), Vec::new());
    for (namespace, labels) in kinds_of_pods(agents, &keys) {
        let of_namespace = found.labels(namespace).unwrap_or_default();
        let selects =
            |entry: &&WebhookEntry| entry.selects_namespace(&of_namespace) && entry.selects_object(&labels);
        let mut in_turn: Vec<&WebhookEntry> = mutating.iter().filter(selects).collect();
        in_turn.extend(validating.iter().filter(selects).max_by_key(|entry| entry.timeout_seconds));
        let seconds = in_turn.iter().map(|entry| entry.timeout_seconds).sum();
        if seconds > slowest.0 {
            in_turn.sort_by_key(|entry| Reverse(entry.timeout_seconds));
            let names = in_turn.iter().map(|entry| format!("{} ({} s)", entry.name, entry.timeout_seconds));
            slowest = (seconds, namespace.to_owned(), names.collect());
        }
    }
    let (seconds, namespace, names) = slowest;
    if seconds <= MAX_REQUEST_SECONDS {
        let message = format!(
            "the timeouts of all webhooks that are called for an agent pod add up to {seconds} s at most; an apiserver \
             gives up after {MAX_REQUEST_SECONDS} s"
        );
        return Check::ok(ID, subject, message);
    }
    let message = format!(
        "the timeouts of the webhooks that are called for an agent pod in {namespace} add up to {seconds} s, and an \
         apiserver refuses the pod after {MAX_REQUEST_SECONDS} s, also where each of them fails open: {}",
        abbreviated(&names)
    );
    Check::warn(ID, subject, message)
        .help("lower timeoutSeconds of the slowest, or narrow the pods that they select")
}

/// The namespaces of agent pods with the labels that selectors can tell apart, each once.
fn kinds_of_pods<'a>(
    agents: &'a Agents,
    keys: &BTreeSet<String>,
) -> BTreeSet<(&'a str, BTreeMap<String, String>)> {
    let pods = agents.pods.iter().chain(&agents.stand_ins);
    let labels = |pod: &AgentPod| -> BTreeMap<String, String> {
        let all = pod.json.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        let told_apart = all.filter(|(key, _)| keys.contains(*key));
        told_apart.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    pods.map(|pod| (pod.namespace(), labels(pod))).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
    use serde_json::json;

    use super::*;
    use crate::cluster_state::Fetched;
    use crate::doctor::check::CheckStatus;
    use crate::doctor::inferred::tests::installed;

    /// A configuration of this many webhooks for new pods, 10 s each.
    fn others(count: usize, more: &Value) -> MutatingWebhookConfiguration {
        let webhook = |number| {
            let mut webhook = json!({
                "name": format!("n{number}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "failurePolicy": "Ignore", "clientConfig": {"service": {"name": "other", "namespace": "others"}},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            });
            for (key, value) in more.as_object().into_iter().flatten() {
                webhook[key] = value.clone();
            }
            webhook
        };
        let webhooks: Vec<Value> = (0..count).map(webhook).collect();
        serde_json::from_value(json!({"metadata": {"name": "others"}, "webhooks": webhooks}))
            .expect("an object")
    }

    /// An agent pod in a cluster with memgate and these webhooks. Two of memgate's own count, 2 s each: what an entry
    /// asks for in CEL is not evaluated.
    fn check_with(
        mutating: MutatingWebhookConfiguration,
        validating: MutatingWebhookConfiguration,
    ) -> (CheckStatus, String) {
        let own = installed(&memgate_platforms::ALL);
        let found = Installation {
            mutating: Fetched::Found(vec![own.mutating, mutating]),
            validating: Fetched::Found(vec![own.validating, validating]),
            ..Installation::default()
        };
        let labels = json!({"arkonis.dev/deployment": "scout", "pod-template-hash": "1"});
        let json = json!({"metadata": {"name": "scout-0", "namespace": "team-a", "labels": labels}});
        let check = check(&found, &Agents { pods: vec![AgentPod { json }], ..Agents::default() });
        (check.status, check.message)
    }

    #[test]
    fn adds_up_webhooks_that_are_called_one_after_the_other() {
        let none = || others(0, &json!({}));
        let (status, text) = check_with(others(3, &json!({})), none());
        assert!(status == CheckStatus::Ok && text.contains("add up to 34 s at most"), "{text}");
        let (status, text) = check_with(others(4, &json!({})), none());
        assert!(status == CheckStatus::Warn && text.contains("in team-a add up to 44 s"), "{text}");
        assert!(text.contains("n3.example.com (10 s), "), "{text}");
    }

    #[test]
    fn counts_the_slowest_validating_webhook_alone() {
        let (status, text) = check_with(others(0, &json!({})), others(9, &json!({"timeoutSeconds": 30})));
        assert!(status == CheckStatus::Ok && text.contains("add up to 34 s at most"), "{text}");
    }

    #[test]
    fn leaves_out_webhooks_that_select_other_pods() {
        for more in [
            json!({"objectSelector": {"matchLabels": {"app": "shop"}}}),
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}),
        ] {
            let (status, text) = check_with(others(9, &more), others(0, &json!({})));
            assert!(status == CheckStatus::Ok && text.contains("add up to 4 s at most"), "{text}");
        }
    }

    #[test]
    fn does_not_guess_beyond_what_was_read() {
        let found =
            Installation { mutating: Fetched::Unknown("too many".to_owned()), ..Installation::default() };
        assert_eq!(check(&found, &Agents::default()).status, CheckStatus::Unknown);
    }
}
