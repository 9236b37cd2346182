//! Whether two servers make the same of a pod.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// The variables of all containers once the patch of an answer is applied to the review's pod.
pub(crate) fn variables(review: &str, answer: &[u8]) -> Result<Value> {
    let answer: Value = serde_json::from_slice(answer)?;
    let response = answer.get("response").context("no response")?;
    ensure!(response.get("allowed") == Some(&json!(true)), "not allowed: {response}");
    let review: Value = serde_json::from_str(review)?;
    let mut pod = review.pointer("/request/object").context("no object")?.clone();
    if let Some(patch) = response.get("patch").and_then(Value::as_str) {
        let patch: json_patch::Patch = serde_json::from_slice(&BASE64_STANDARD.decode(patch)?)?;
        json_patch::patch(&mut pod, &patch)?;
    }
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).context("no containers")?;
    Ok(containers
        .iter()
        .map(|container| json!({"name": container["name"], "env": container["env"]}))
        .collect())
}
