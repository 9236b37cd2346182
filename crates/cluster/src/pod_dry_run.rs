//! Tests with a dry run whether the apiserver would admit one more pod with the containers that memgate adds.
//!
//! A dry run goes through all of admission (limits, Pod Security, policies, webhooks, quotas) and stores
//! nothing. A refused pod is sent once more without memgate's containers, to see whether they are the reason.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Method;
use futures::StreamExt as _;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::cluster_state::text;
use crate::reader::forbidden;
use crate::replay::{Replayed, added_containers};
use crate::request::{REQUEST_TIMEOUT, Response, send};
use memgate_certs::library_error::explained;
use memgate_platforms::inject::INJECT_LABEL;

/// How many pods are tried, each with one request or two.
const MAX_DRY_RUNS: usize = 100;

/// How many pods are tried at a time.
const MAX_CONCURRENT_DRY_RUNS: usize = 16;

/// How long all of them may take.
const DRY_RUNS_TIMEOUT: Duration = Duration::from_mins(1);

/// The name of the pods that are tried.
const POD_NAME: &str = "memgate-doctor";

/// The results of all dry runs.
#[derive(Debug, Default)]
pub struct PodDryRuns {
    /// One for each namespace and each set of added containers.
    pub results: Vec<PodDryRun>,
    /// How many more there would have been.
    pub skipped: usize,
}

/// One pod with memgate's containers, and whether it is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDryRun {
    /// Where it would be created.
    pub namespace: String,
    /// The names of the containers that memgate adds.
    pub containers: Vec<String>,
    /// Whether the other containers are made up, since the agent has no pod.
    pub is_stand_in: bool,
    /// The answer of the apiserver.
    pub admission: PodAdmission,
}

/// Whether the apiserver admits a pod with memgate's containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodAdmission {
    /// It is admitted.
    Admitted,
    /// It is refused, with this message, and the same pod without these containers is admitted.
    Refused(String),
    /// It is refused, with this message, and so is the same pod without these containers.
    RefusedAnyway(String),
    /// It is unknown, for this reason.
    Unknown(String),
}

/// Tries one pod for each namespace and each set of added containers.
pub async fn dry_run(client: &Client, pods: &[Replayed<'_>], stand_ins: &[Replayed<'_>]) -> PodDryRuns {
    let mut known = BTreeSet::new();
    let all = pods.iter().map(|pod| (pod, false)).chain(stand_ins.iter().map(|pod| (pod, true)));
    let candidates: Vec<_> = all
        .filter(|(pod, _)| {
            let added: Vec<String> =
                added_containers(&pod.with_memory).iter().map(ToString::to_string).collect();
            !added.is_empty() && known.insert((pod.pod.namespace().to_owned(), added))
        })
        .collect();
    let skipped = candidates.len().saturating_sub(MAX_DRY_RUNS);
    let deadline = Instant::now() + DRY_RUNS_TIMEOUT;
    let runs = candidates.into_iter().take(MAX_DRY_RUNS).map(|(pod, is_stand_in)| async move {
        let namespace = pod.pod.namespace().to_owned();
        let containers = added_containers(&pod.with_memory).into_iter().map(name).collect();
        let admission = admission(client, &namespace, &pod.with_memory, deadline).await;
        PodDryRun { namespace, containers, is_stand_in, admission }
    });
    let results = futures::stream::iter(runs).buffered(MAX_CONCURRENT_DRY_RUNS).collect().await;
    PodDryRuns { results, skipped }
}

fn name(container: &Value) -> String {
    text(container, "/name").to_owned()
}

async fn admission(client: &Client, namespace: &str, pod: &Value, deadline: Instant) -> PodAdmission {
    let answer = create(client, namespace, &creatable(pod), deadline).await;
    let PodAdmission::Refused(message) = answer else { return answer };
    match create(client, namespace, &creatable(&without_added(pod)), deadline).await {
        PodAdmission::Admitted => PodAdmission::Refused(message),
        PodAdmission::Refused(_) => PodAdmission::RefusedAnyway(message),
        unknown => unknown,
    }
}

/// Whether the apiserver admits this pod, whatever the reason.
async fn create(client: &Client, namespace: &str, pod: &Value, deadline: Instant) -> PodAdmission {
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldManager={POD_NAME}");
    let deadline = deadline.min(Instant::now() + REQUEST_TIMEOUT);
    match timeout_at(deadline, send(client, Method::POST, &path, Some(pod))).await {
        Ok(Ok(response)) => interpret(&response),
        Ok(Err(error)) => PodAdmission::Unknown(format!("failed to try a pod: {}", explained(&error))),
        Err(_) => PodAdmission::Unknown("failed to try a pod: no answer in time".to_owned()),
    }
}

fn interpret(response: &Response) -> PodAdmission {
    let message = response.message();
    match response.status {
        200..300 => PodAdmission::Admitted,
        403 if message.contains(" cannot create resource ") => {
            PodAdmission::Unknown(forbidden("create", "pods"))
        }
        // A quota that its controller has not counted yet refuses for the moment.
        403 if message.contains("status unknown for quota") => unknown(message),
        403 if message.contains("is being terminated") => unknown(message),
        400 if message.contains("does not support dry run") => unknown(message),
        // memgate's own denial is about missing memory, not about room.
        400..500 if message.contains(".memgate.dev\" denied the request") => unknown(message),
        400 | 403 | 422 => PodAdmission::Refused(without_pod(message).to_owned()),
        // Among them 409: a pod of that name exists, or two writers counted a quota at once.
        _ => unknown(message),
    }
}

fn unknown(message: &str) -> PodAdmission {
    PodAdmission::Unknown(format!("failed to try a pod: {}", without_pod(message)))
}

/// The message without the name of the dry run's pod.
fn without_pod(message: &str) -> &str {
    message.strip_prefix(&format!("pods \"{POD_NAME}\" is forbidden: ")).unwrap_or(message)
}

/// The pod under the name of the dry run, without fields that belong to the running pod.
fn creatable(pod: &Value) -> Value {
    let metadata = |field: &str| pod.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    if let Value::Object(fields) = &mut spec {
        // Fields of the running pod, or computed at admission, which refuses a value that it would not compute now.
        for field in ["nodeName", "ephemeralContainers", "priority", "preemptionPolicy", "overhead"] {
            fields.remove(field);
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": POD_NAME, "labels": metadata("labels"), "annotations": metadata("annotations"),
        },
        "spec": spec,
    })
}

/// The pod without memgate's containers, opted out so that memgate does not add them again.
fn without_added(pod: &Value) -> Value {
    let added: Vec<String> = added_containers(pod).into_iter().map(name).collect();
    let mut pod = pod.clone();
    if let Some(Value::Array(containers)) = pod.pointer_mut("/spec/initContainers") {
        containers.retain(|container| !added.contains(&name(container)));
    }
    let opted_out = json!({INJECT_LABEL: "disabled"});
    match pod.pointer_mut("/metadata/labels") {
        Some(Value::Object(labels)) => labels.extend(opted_out.as_object().cloned().unwrap_or_default()),
        _ => {
            if let Some(Value::Object(metadata)) = pod.get_mut("metadata") {
                metadata.insert("labels".to_owned(), opted_out);
            }
        }
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {
                "name": "triage-1", "generateName": "triage-", "namespace": "team-a", "uid": "1",
                "ownerReferences": [{"name": "triage"}], "finalizers": ["a/b"], "labels": {"app": "triage"},
                "annotations": {"memgate.dev/injected": r#"{"initContainers":["memory-server"]}"#},
            },
            "spec": {
                "nodeName": "n1", "ephemeralContainers": [{"name": "debug"}], "containers": [{"name": "agent"}],
                "priority": 0, "preemptionPolicy": "PreemptLowerPriority", "overhead": {"cpu": "1m"},
                "initContainers": [{"name": "other"}, {"name": "memory-server"}],
            },
            "status": {"phase": "Running"},
        })
    }

    #[test]
    fn tries_a_pod_of_its_own() {
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": POD_NAME, "labels": {"app": "triage"}, "annotations": pod()["metadata"]["annotations"],
            },
            "spec": {
                "containers": [{"name": "agent"}],
                "initContainers": [{"name": "other"}, {"name": "memory-server"}],
            },
        });
        assert_eq!(creatable(&pod()), expected);
    }

    #[test]
    fn takes_out_only_what_memgate_added() {
        let without = without_added(&pod());
        assert_eq!(without["spec"]["initContainers"], json!([{"name": "other"}]));
        assert_eq!(without["metadata"]["labels"], json!({"app": "triage", "memgate.dev/inject": "disabled"}));
        let mut bare = pod();
        bare["metadata"].as_object_mut().expect("an object").remove("labels");
        assert_eq!(without_added(&bare)["metadata"]["labels"], json!({"memgate.dev/inject": "disabled"}));
    }

    #[test]
    fn reads_what_the_apiserver_says() {
        let interpret = |status, message: &str| {
            let body = json!({"kind": "Status", "message": message});
            match interpret(&Response { status, body, ..Response::default() }) {
                PodAdmission::Admitted => "admitted".to_owned(),
                PodAdmission::Refused(message) => format!("refused: {message}"),
                PodAdmission::RefusedAnyway(_) => unreachable!("one answer"),
                PodAdmission::Unknown(why) => format!("unknown: {why}"),
            }
        };
        let quota = "pods \"memgate-doctor\" is forbidden: exceeded quota: full, requested: pods=1";
        let rights = "pods is forbidden: User \"eve\" cannot create resource \"pods\" in API group";
        let webhook = "admission webhook \"a.example.com\" does not support dry run";
        let own = "admission webhook \"sympozium.pods.memgate.dev\" denied the request: no memory";
        let ending = "pods \"memgate-doctor\" is forbidden: unable to create new content in namespace a because \
                      it is being terminated";
        let uncounted =
            "pods \"memgate-doctor\" is forbidden: status unknown for quota: full, resources: pods";
        for (status, message, expected) in [
            (201, "", "admitted"),
            (403, quota, "refused: exceeded quota: full, requested: pods=1"),
            (
                422,
                "Pod \"memgate-doctor\" is invalid: spec",
                "refused: Pod \"memgate-doctor\" is invalid: spec",
            ),
            (403, rights, "unknown: you may not create pods: this right is needed"),
            (403, uncounted, "unknown: failed to try a pod: status unknown for quota: full, resources: pods"),
            (
                400,
                webhook,
                "unknown: failed to try a pod: admission webhook \"a.example.com\" does not support dry run",
            ),
            (422, own, &format!("unknown: failed to try a pod: {own}")),
            (
                403,
                ending,
                "unknown: failed to try a pod: unable to create new content in namespace a because it is being terminated",
            ),
            (
                409,
                "pods \"memgate-doctor\" already exists",
                "unknown: failed to try a pod: pods \"memgate-doctor\" already exists",
            ),
            (500, "no", "unknown: failed to try a pod: no"),
        ] {
            assert_eq!(interpret(status, message), expected);
        }
    }
}
