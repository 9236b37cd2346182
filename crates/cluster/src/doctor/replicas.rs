//! Whether replicas run, why they do not, and what each says of itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::check::{Check, abbreviated};
use crate::cluster_state::{CONTAINERS, Fetched, Installation, configuration_title, elements, entries, text};
use crate::doctor::leases;
use memgate_install::objects::WebhookConfiguration;
use memgate_primitives::review_path::Phase;

const ID: &str = "replicas";

/// The Deployment and its pods. The workload behind a URL cannot be read.
pub(super) fn checks(found: &Installation, wrong_flag: fn(&[&str]) -> Option<String>) -> Vec<Check> {
    if let Some(url) = found.own_url() {
        let message = format!("memgate is called at {url}: what runs there cannot be seen from here");
        return vec![Check::ok(ID, "", message)];
    }
    std::iter::once(deployment(found, wrong_flag)).chain(leases::checks(found)).collect()
}

fn deployment(found: &Installation, wrong_flag: fn(&[&str]) -> Option<String>) -> Check {
    let subject = format!("Deployment {}/memgate", found.namespace);
    let deployment = match &found.deployment {
        Fetched::Found(deployment) => deployment,
        Fetched::Absent => {
            let help = format!("{} | kubectl apply -f -", found.manifests("--only workload --image IMAGE"));
            return Check::fail(ID, subject, "there is no such Deployment").help(outage(&help));
        }
        Fetched::Unknown(why) => return Check::unknown(ID, subject, why.clone()),
    };
    let count = |pointer| deployment.pointer(pointer).and_then(Value::as_i64);
    let wanted = count("/spec/replicas").unwrap_or(1);
    let [available, updated] =
        ["/status/availableReplicas", "/status/updatedReplicas"].map(|one| count(one).unwrap_or_default());
    let scale = format!("kubectl -n {} scale deployment memgate --replicas=2", found.namespace);
    let look = format!("kubectl -n {} describe pods -l app.kubernetes.io/name=memgate", found.namespace);
    let mut message = format!("{available} of {wanted} replicas are available");
    if updated < wanted {
        message = format!("{message}, {updated} are of the newest form");
    }
    let reasons: Vec<String> = reasons(deployment, found.replicas.items()).into_iter().collect();
    if !reasons.is_empty() {
        message = format!("{message}: {}", abbreviated(&reasons));
    }
    let few = available.min(updated);
    let cure =
        || flag_cure(found, wrong_flag).or_else(|| reasons.iter().find_map(|reason| cure(found, reason)));
    if few < wanted
        && let Some((cause, help)) = cure()
    {
        return Check::fail(ID, subject, format!("{cause}: {message}")).help(help);
    }
    match (wanted, few) {
        (0, _) => Check::fail(ID, subject, "0 replicas are wanted").help(outage(&scale)),
        _ if available == 0 => Check::fail(ID, subject, message).help(outage(&look)),
        (_, few) if few < wanted && !reasons.is_empty() => Check::fail(ID, subject, message).help(look),
        (_, few) if few < wanted => Check::warn(ID, subject, message).help(look),
        (1, _) => {
            let message = "one replica: memgate does not answer while it is replaced or its node is drained";
            Check::warn(ID, subject, message).help(scale)
        }
        _ => Check::ok(ID, subject, message),
    }
}

/// What to do while no replica answers: mend it, and switch memgate off where people cannot wait.
fn outage(mend: &str) -> String {
    format!(
        "{mend}; meanwhile `memgate explain runbook/no-answer` says how to let the writes of a namespace pass"
    )
}

/// A flag of the Deployment that this version does not have, and the command that removes it.
fn flag_cure(found: &Installation, wrong_flag: fn(&[&str]) -> Option<String>) -> Option<(String, String)> {
    let arguments: Vec<&str> = found.arguments().collect();
    let flag = wrong_flag(&arguments)?;
    let at = arguments.iter().position(|argument| argument.split('=').next() == flag.split('=').next())?;
    let remove = json!([{"op": "remove", "path": format!("{CONTAINERS}/0/args/{at}")}]);
    let cause = format!("the Deployment has a flag that memgate {} lacks, {flag}", env!("CARGO_PKG_VERSION"));
    let object = format!("kubectl -n {} patch deployment memgate", found.namespace);
    Some((cause, format!("{object} --type=json -p '{remove}'")))
}

/// What keeps pods from being made, and the command that ends it: a quota, or a webhook of somebody else.
fn cure(found: &Installation, reason: &str) -> Option<(String, String)> {
    let namespace = &found.namespace;
    if let Some((_, rest)) = reason.split_once("exceeded quota: ") {
        let quota = rest.split(',').next()?;
        let limited = rest.split_once("limited: ")?.1.split(',').filter_map(|one| one.split('=').next());
        let remove = |resource: &str| {
            let step = resource.trim().replace('~', "~0").replace('/', "~1");
            json!({"op": "remove", "path": format!("/spec/hard/{step}")})
        };
        let removals = Value::from(limited.map(remove).collect::<Vec<_>>());
        let help = format!("kubectl -n {namespace} patch resourcequota {quota} --type=json -p '{removals}'");
        return Some((format!("the ResourceQuota {quota} lets no more pods in"), help));
    }
    let webhook = ["admission webhook \"", "failed calling webhook \""]
        .into_iter()
        .find_map(|start| reason.split_once(start)?.1.split('"').next())?;
    let of_call = |(call, listed): (Phase, &Fetched<Vec<WebhookConfiguration>>)| {
        listed.items().iter().find_map(|configuration| {
            let index = entries(configuration).iter().position(|entry| entry.name == webhook)?;
            let title = configuration_title(call, configuration.metadata.name.as_ref()?);
            let mut selector = json!(entries(configuration).get(index)?.namespace_selector);
            let out =
                json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]});
            let mut expressions: Vec<Value> = elements(&selector, "/matchExpressions").cloned().collect();
            expressions.push(out);
            selector = json!({"matchLabels": selector.get("matchLabels"), "matchExpressions": expressions});
            let at = format!("/webhooks/{index}/namespaceSelector");
            let patch = json!([{"op": "add", "path": at, "value": selector}]);
            let help = format!("kubectl patch {} --type=json -p '{patch}'", title.to_lowercase());
            Some((format!("{title} of somebody else keeps memgate's pods out"), help))
        })
    };
    found.configurations().into_iter().find_map(of_call)
}

/// Why pods are not made, do not start, or ended.
fn reasons(deployment: &Value, pods: &[Value]) -> BTreeSet<String> {
    let failed = elements(deployment, "/status/conditions")
        .filter(|one| text(one, "/type") == "ReplicaFailure" && text(one, "/status") == "True")
        .map(|one| format!("ReplicaFailure: {}", text(one, "/message")));
    let containers = pods.iter().flat_map(|pod| elements(pod, "/status/containerStatuses"));
    let of_container = containers.flat_map(|container| {
        let waiting = container.pointer("/state/waiting").map(|state| {
            let (reason, message) = (text(state, "/reason"), text(state, "/message"));
            if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") }
        });
        let is_ready = container.get("ready") == Some(&Value::Bool(true));
        let ended = ["/state/terminated", "/lastState/terminated"].map(|state| {
            let state = container.pointer(state).filter(|_| !is_ready)?;
            let (reason, said) = (text(state, "/reason"), text(state, "/message").trim_end());
            let said = said.rsplit('\n').next().map(|said| format!(": {said}")).filter(|_| !said.is_empty());
            Some(format!("exit code {}: {reason}{}", state.get("exitCode")?, said.unwrap_or_default()))
        });
        waiting.into_iter().chain(ended.into_iter().flatten())
    });
    failed.chain(of_container).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
    use serde_json::json;

    use super::*;
    use crate::check::CheckStatus;
    use crate::doctor::inferred::tests::{installed, object};

    /// What `memgate manifests` installs, up and running.
    fn healthy() -> Installation {
        let mut deployment: Value = object(&memgate_platforms::ALL, "Deployment");
        deployment["status"] = json!({"availableReplicas": 2, "updatedReplicas": 2, "observedGeneration": 1});
        Installation {
            namespace: "home".to_owned(),
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![installed(&memgate_platforms::ALL).mutating]),
            deployment: Fetched::Found(deployment),
            ..Installation::default()
        }
    }

    fn checks_of(change: impl FnOnce(&mut Installation)) -> Vec<(&'static str, CheckStatus, String)> {
        let mut found = healthy();
        change(&mut found);
        let unknown =
            |flags: &[&str]| flags.iter().find(|flag| **flag == "--no-such").map(|flag| (*flag).to_owned());
        let checks = checks(&found, unknown).into_iter().filter(|check| check.status != CheckStatus::Ok);
        let told = |check: Check| match check.help {
            Some(help) if help.starts_with("kubectl") && help.contains("patch") => {
                (check.id, check.status, format!("{} | {help}", check.message))
            }
            _ => (check.id, check.status, check.message),
        };
        checks.map(told).collect()
    }

    fn only(change: impl FnOnce(&mut Installation)) -> (&'static str, CheckStatus, String) {
        match checks_of(change).as_slice() {
            [one] => one.clone(),
            other => panic!("{other:#?}"),
        }
    }

    fn set(seen: &mut Fetched<Value>, pointer: &str, to: Value) {
        let Fetched::Found(object) = seen else { panic!("it was found") };
        *object.pointer_mut(pointer).expect("a field") = to;
    }

    #[test]
    fn what_is_installed_is_healthy_once_it_runs() {
        assert_eq!(checks_of(|_| ()), []);
    }

    #[test]
    fn says_what_is_wrong_with_the_replicas() {
        use CheckStatus::{Fail, Warn};
        for (pointer, to, status, message) in [
            ("/status/availableReplicas", 0, Fail, "0 of 2 replicas are available"),
            ("/status/updatedReplicas", 1, Warn, "2 of 2 replicas are available, 1 are of the newest form"),
            ("/spec/replicas", 0, Fail, "0 replicas are wanted"),
            (
                "/spec/replicas",
                1,
                Warn,
                "one replica: memgate does not answer while it is replaced or its node is drained",
            ),
        ] {
            let found = only(|found| set(&mut found.deployment, pointer, to.into()));
            assert_eq!(found, ("replicas", status, message.to_owned()));
        }
    }

    #[test]
    fn quotes_why_there_are_none() {
        let (_, status, text) = only(|found| {
            set(
                &mut found.deployment,
                "/status",
                json!({
                    "updatedReplicas": 2,
                    "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}],
                }),
            );
            let pod = |state: Value, last: Value| json!({"status": {"containerStatuses": [{"ready": false, "state": state, "lastState": last}]}});
            let crash = pod(
                json!({"waiting": {"reason": "CrashLoopBackOff"}}),
                json!({"terminated": {"exitCode": 2, "reason": "Error"}}),
            );
            let pull =
                pod(json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}}), json!({}));
            found.replicas = Fetched::Found(vec![crash.clone(), crash, pull]);
        });
        let expected = "0 of 2 replicas are available: CrashLoopBackOff, ErrImagePull: no such image, \
                        ReplicaFailure: exceeded quota, exit code 2: Error";
        assert_eq!((status, &*text), (CheckStatus::Fail, expected));
    }

    #[test]
    fn names_what_keeps_pods_out_with_the_command_that_lets_them_in() {
        let failure = |message: &str| {
            let status = json!({
                "availableReplicas": 1, "updatedReplicas": 1,
                "conditions": [{"type": "ReplicaFailure", "status": "True", "message": message}],
            });
            move |found: &mut Installation| set(&mut found.deployment, "/status", status)
        };
        let quota = "pods \"memgate-1\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1,limits.cpu/x=1";
        let (_, status, text) = only(failure(quota));
        let (cause, help) = text.split_once(" | ").expect("a command");
        assert!(
            status == CheckStatus::Fail
                && cause.starts_with("the ResourceQuota small lets no more pods in: 1 of 2")
        );
        let patch =
            r#"[{"op":"remove","path":"/spec/hard/pods"},{"op":"remove","path":"/spec/hard/limits.cpu~1x"}]"#;
        assert_eq!(help, format!("kubectl -n home patch resourcequota small --type=json -p '{patch}'"));

        for message in [
            "admission webhook \"b.example.com\" denied the request: no",
            "Internal error occurred: failed calling webhook \"b.example.com\": failed to call webhook: no such host",
        ] {
            let (_, status, text) = only(|found| {
                failure(message)(found);
                let mut other = installed(&memgate_platforms::ALL).validating;
                other.metadata.name = Some("other".to_owned());
                let webhooks = other.webhooks.as_mut().expect("entries");
                webhooks.truncate(2);
                webhooks[1].name = "b.example.com".to_owned();
                webhooks[1].namespace_selector = None;
                found.validating = Fetched::Found(vec![other]);
            });
            let (cause, help) = text.split_once(" | ").expect("a command");
            assert!(
                status == CheckStatus::Fail
                    && cause.starts_with("ValidatingWebhookConfiguration other of somebody else keeps")
            );
            assert!(help.starts_with("kubectl patch validatingwebhookconfiguration other --type=json -p '[{\"op\":\"add\",\"path\":\"/webhooks/1/namespaceSelector\""));
            assert!(help.contains("\"NotIn\",\"values\":[\"home\"]"), "{help}");
        }

        let (_, status, text) = only(|found| {
            set(&mut found.deployment, "/status/updatedReplicas", 1.into());
            set(&mut found.deployment, "/spec/template/spec/containers/0/args/1", "--no-such".into());
        });
        let (cause, help) = text.split_once(" | ").expect("a command");
        assert!(
            status == CheckStatus::Fail && cause.contains("lacks, --no-such: 2 of 2 replicas"),
            "{cause}"
        );
        assert!(
            help.ends_with(r#"-p '[{"op":"remove","path":"/spec/template/spec/containers/0/args/1"}]'"#),
            "{help}"
        );
    }

    #[test]
    fn a_missing_right_is_shown_where_it_matters() {
        let why = "you may not get deployments";
        let (id, status, text) = only(|found| found.deployment = Fetched::Unknown(why.to_owned()));
        assert_eq!((id, status, text.as_str()), ("replicas", CheckStatus::Unknown, why));
    }

    #[test]
    fn a_memgate_at_a_url_cannot_be_seen() {
        let mut config = installed(&memgate_platforms::ALL).mutating;
        for webhook in config.webhooks.iter_mut().flatten() {
            let url = Some("https://127.0.0.1:1/mutate".to_owned());
            webhook.client_config = WebhookClientConfig { url, ..WebhookClientConfig::default() };
        }
        let found = Installation {
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![config]),
            ..Installation::default()
        };
        let checks = checks(&found, |_| None);
        assert_eq!(checks.len(), 1);
        assert!(checks[0].message.contains("https://127.0.0.1:1:"), "{checks:?}");
    }
}
