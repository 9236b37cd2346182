//! A memgate that is asked itself, as an apiserver does, and what it says. Writes of policies that go by no webhook.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    faults::calls::Caller,
    request::{Answer, send},
    support::{control_plane::ControlPlane, review::review, webhook::Webhook},
};

/// A replica and the namespace that it is asked about.
pub(super) struct Asked {
    caller: Caller,
    namespace: String,
}

/// What a replica says of an object.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) allowed: bool,
    /// The words of a refusal.
    pub(super) message: String,
    pub(super) warnings: String,
    /// The audit annotation with the codes of all findings.
    pub(super) codes: String,
    /// The audit annotation with the exemptions that counted.
    pub(super) exemptions: String,
}

impl Asked {
    pub(super) fn new(cluster: &ControlPlane, replica: &Webhook, namespace: &str) -> Result<Self> {
        let caller = Caller::new(cluster, &replica.endpoint(), namespace)?;
        Ok(Self { caller, namespace: namespace.to_owned() })
    }

    /// What it says of a resource, whose kind has this name in paths, that is created.
    pub(super) fn about(&self, cluster: &ControlPlane, plural: &str, object: &Value) -> Result<Said> {
        let answer = self.answer(cluster, plural, object)?;
        ensure!(answer.status == 200, "it answered {}: {}", answer.status, answer.body);
        let response = &answer.body["response"];
        let text = |pointer| response.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Said {
            allowed: response["allowed"].as_bool().context("an answer without a verdict")?,
            message: text("/status/message"),
            warnings: response["warnings"].to_string(),
            codes: text("/auditAnnotations/codes"),
            exemptions: text("/auditAnnotations/exemptions"),
        })
    }

    fn answer(&self, cluster: &ControlPlane, plural: &str, object: &Value) -> Result<Answer> {
        let api_version = object["apiVersion"].as_str().context("an object has no apiVersion")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(self.namespace);
        let mut review = review(&self.namespace, &object);
        review["request"]["resource"] = json!({"group": group, "version": version, "resource": plural});
        review["request"]["dryRun"] = json!(true);
        cluster.block_on(self.caller.send(Method::POST, "/validate?timeout=10s", &review))
    }
}

/// Stores a policy or an exemption, which has a new state if it is there already.
pub(super) fn store(cluster: &ControlPlane, client: &Client, object: &Value) -> Result<Answer> {
    let (all, one) = paths(object)?;
    let there = cluster.block_on(send(client, Method::GET, &one, None))?;
    if there.status == 404 {
        return cluster.block_on(send(client, Method::POST, &all, Some(object)));
    }
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = there.object()?["metadata"]["resourceVersion"].clone();
    cluster.block_on(send(client, Method::PUT, &one, Some(&object)))
}

/// Takes a policy or an exemption away.
pub(super) fn delete(cluster: &ControlPlane, client: &Client, object: &Value) -> Result<()> {
    let (_, one) = paths(object)?;
    cluster.block_on(send(client, Method::DELETE, &one, None))?.object()?;
    Ok(())
}

/// The paths of all of its kind, and of it alone.
fn paths(object: &Value) -> Result<(String, String)> {
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let api = "/apis/policy.memgate.dev/v1alpha1";
    let all = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{api}/namespaces/{namespace}/memorypolicyexemptions"),
        None => format!("{api}/memorypolicies"),
    };
    let one = format!("{all}/{name}");
    Ok((all, one))
}
