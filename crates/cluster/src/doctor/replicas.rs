//! Whether replicas run, why they do not, and what each says of itself.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::check::{Check, abbreviated};
use crate::cluster_state::{Fetched, Installation, elements, text};

const ID: &str = "replicas";

/// The Deployment and its pods. The workload behind a URL cannot be read.
pub(super) fn checks(found: &Installation) -> Vec<Check> {
    if let Some(url) = found.own_url() {
        let message = format!("memgate is called at {url}: what runs there cannot be seen from here");
        return vec![Check::ok(ID, "", message)];
    }
    let said = found.said.iter().filter(|(_, text)| text != "ok");
    let said = said.map(|(pod, text)| {
        Check::warn(ID, format!("Pod {}/{pod}", found.namespace), format!("it says: {text}"))
    });
    std::iter::once(deployment(found)).chain(said).collect()
}

fn deployment(found: &Installation) -> Check {
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
    match (wanted, available.min(updated)) {
        (0, _) => Check::fail(ID, subject, "0 replicas are wanted").help(outage(&scale)),
        _ if available == 0 => Check::fail(ID, subject, message).help(outage(&look)),
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
            Some(format!("exit code {}: {}", state.get("exitCode")?, text(state, "/reason")))
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
            said: vec![("memgate-0".to_owned(), "ok".to_owned())],
            ..Installation::default()
        }
    }

    fn checks_of(change: impl FnOnce(&mut Installation)) -> Vec<(&'static str, CheckStatus, String)> {
        let mut found = healthy();
        change(&mut found);
        let checks = checks(&found).into_iter().filter(|check| check.status != CheckStatus::Ok);
        checks.map(|check| (check.id, check.status, check.message)).collect()
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
        let (_, status, text) = only(|found| found.said[0].1 = "not ready; not read yet: v1 Pod".to_owned());
        assert_eq!((status, &*text), (Warn, "it says: not ready; not read yet: v1 Pod"));
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
        let checks = checks(&found);
        assert_eq!(checks.len(), 1);
        assert!(checks[0].message.contains("https://127.0.0.1:1:"), "{checks:?}");
    }
}
