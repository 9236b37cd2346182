//! Other webhooks that are called for pods: webhooks that change pods after memgate, and webhooks that keep memgate's
//! own pods from starting while they do not answer.

use std::collections::BTreeMap;

use crate::cluster_state::{Fetched, Installation, configuration_title, template_labels};
use crate::doctor::check::{Check, abbreviated, unreadable, unreadable_configurations};
use crate::webhook_entry::{WebhookEntry, entries};
use memgate_primitives::review_path::Phase;

/// The order of calls, and webhooks that memgate's own pods depend on.
pub fn checks(found: &Installation) -> Vec<Check> {
    let mut checks = vec![call_order(found)];
    checks.extend(dependencies(found));
    checks
}

/// The apiserver calls configurations in the order of their names.
/// Source: k8s.io/apiserver, admission/configuration, sorted by name.
fn call_order(found: &Installation) -> Check {
    const ID: &str = "order";
    let subject = found.own_title(Phase::Mutate);
    let Fetched::Found(configurations) = &found.mutating else {
        return unreadable(&found.mutating, ID, &subject).unwrap_or_else(|| Check::ok(ID, subject, ""));
    };
    let mut later = Vec::new();
    for configuration in configurations {
        let name = configuration.metadata.name.clone().unwrap_or_default();
        if name > found.name && entries(configuration).iter().any(WebhookEntry::is_called_for_new_pods) {
            later.push(name);
        }
    }
    if later.is_empty() {
        return Check::ok(ID, subject, "no other webhook changes pods after memgate");
    }
    let own = found.own_entries(Phase::Mutate).unwrap_or_default();
    let pods: Vec<&WebhookEntry> = own.iter().filter(|entry| entry.is_called_for_new_pods()).collect();
    let names = abbreviated(&later);
    if !pods.is_empty() && pods.iter().all(|entry| entry.is_reinvoked) {
        let message =
            format!("asked about pods after memgate, which is asked again when they change one: {names}");
        return Check::ok(ID, subject, message);
    }
    let message = format!("these change pods after memgate, and memgate is not asked again: {names}");
    Check::warn(ID, subject, message).help("set reinvocationPolicy: IfNeeded, as `memgate manifests` has it")
}

/// Webhooks that refuse memgate's own pods when they do not answer.
fn dependencies(found: &Installation) -> Vec<Check> {
    const ID: &str = "webhook-loop";
    let Some(labels) = found.labels(&found.namespace) else {
        return unreadable(&found.namespaces, ID, "Namespaces").into_iter().collect();
    };
    let pod = pod_labels(found);
    let mut checks = Vec::new();
    for (call, configuration, entry) in found.other_entries() {
        let blocks = entry.fails_closed
            && entry.is_called_for_new_pods()
            && entry.selects_namespace(&labels)
            && entry.selects_object(&pod);
        if !blocks {
            continue;
        }
        let subject = configuration_title(call, configuration);
        let message = format!("memgate's own pods cannot start while {} does not answer", entry.name);
        let help = format!("leave the namespace {} out of its namespaceSelector", found.namespace);
        match entry_that_blocks(found, &entry) {
            Some(own) => {
                let message = format!("{message}, and its pods cannot start while {own} of memgate does not");
                checks.push(Check::fail(ID, subject, message).help(help));
            }
            None => checks.push(Check::warn(ID, subject, message).help(help)),
        }
    }
    checks.extend(unreadable_configurations(found, ID));
    if checks.is_empty() {
        let message = "no other webhook can keep memgate's own pods from starting";
        checks.push(Check::ok(ID, format!("Namespace {}", found.namespace), message));
    }
    checks
}

/// The labels of memgate's pods.
fn pod_labels(found: &Installation) -> BTreeMap<String, String> {
    let usual = || [("app.kubernetes.io/name".to_owned(), "memgate".to_owned())].into();
    found.deployment.as_ref().found().and_then(template_labels).unwrap_or_else(usual)
}

/// The entry of memgate that can keep any pod of that webhook from starting: it fails closed, and does not select pods
/// by a label.
fn entry_that_blocks(found: &Installation, other: &WebhookEntry) -> Option<String> {
    let labels = found.labels(other.service_namespace()?)?;
    let own = found.own_entries(Phase::Mutate)?;
    let blocks = |entry: &&WebhookEntry| {
        entry.fails_closed
            && entry.is_called_for_new_pods()
            && entry.selects_namespace(&labels)
            && entry.selects_object(&BTreeMap::new())
    };
    own.iter().find(blocks).map(|entry| entry.name.clone())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
    use serde_json::{Value, json};

    use super::*;
    use crate::doctor::check::CheckStatus;
    use crate::doctor::inferred::tests::installed;

    fn other(name: &str, more: &Value) -> MutatingWebhookConfiguration {
        let mut webhook = json!({
            "name": "other.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "other", "namespace": "others"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            webhook[key] = value.clone();
        }
        serde_json::from_value(json!({"metadata": {"name": name}, "webhooks": [webhook]})).expect("an object")
    }

    fn checks_with(
        other: MutatingWebhookConfiguration,
        change: impl FnOnce(&mut MutatingWebhookConfiguration),
    ) -> Vec<(&'static str, CheckStatus, String)> {
        let mut own = installed(&memgate_platforms::ALL).mutating;
        change(&mut own);
        let found = Installation {
            namespace: "home".to_owned(),
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![own, other]),
            validating: Fetched::Found(Vec::new()),
            ..Installation::default()
        };
        let checks = checks(&found);
        checks.into_iter().map(|check| (check.id, check.status, check.message)).collect()
    }

    #[test]
    fn names_those_that_change_pods_afterwards() {
        let harmless = json!({"failurePolicy": "Ignore"});
        let statuses = |checks: &[(&'static str, CheckStatus, String)]| {
            checks.iter().map(|one| one.1).collect::<Vec<_>>()
        };
        let before = checks_with(other("a-mesh", &harmless), |_| ());
        assert_eq!(before[0].2, "no other webhook changes pods after memgate");
        let after = checks_with(other("z-mesh", &harmless), |_| ());
        assert_eq!(statuses(&after), [CheckStatus::Ok, CheckStatus::Ok]);
        assert!(after[0].2.ends_with(": z-mesh"), "{}", after[0].2);
        let never = checks_with(other("z-mesh", &harmless), |own| {
            own.webhooks.as_mut().expect("webhooks")[0].reinvocation_policy = Some("Never".to_owned());
        });
        assert_eq!((never[0].0, never[0].1), ("order", CheckStatus::Warn));
    }

    #[test]
    fn names_those_that_memgates_pods_depend_on() {
        let checks = checks_with(other("a-policy", &json!({})), |_| ());
        assert_eq!((checks[1].0, checks[1].1), ("webhook-loop", CheckStatus::Warn));
        assert!(checks[1].2.contains("other.example.com"), "{}", checks[1].2);
        for more in [
            json!({"failurePolicy": "Ignore"}),
            json!({"namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["home"]},
            ]}}),
            json!({"objectSelector": {"matchLabels": {"agent": "yes"}}}),
        ] {
            let checks = checks_with(other("a-policy", &more), |_| ());
            assert_eq!(checks[1].1, CheckStatus::Ok, "{more}");
        }
    }

    #[test]
    fn names_a_loop() {
        let checks = checks_with(other("a-policy", &json!({})), |own| {
            let mut webhooks = own.webhooks.iter_mut().flatten();
            let webhook =
                webhooks.find(|webhook| webhook.name == "arkonis.pods.memgate.dev").expect("an entry");
            webhook.failure_policy = Some("Fail".to_owned());
            webhook.object_selector = None;
        });
        assert_eq!((checks[1].0, checks[1].1), ("webhook-loop", CheckStatus::Fail));
        assert!(
            checks[1].2.contains("while arkonis.pods.memgate.dev of memgate does not"),
            "{}",
            checks[1].2
        );
    }
}
