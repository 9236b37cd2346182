//! That the apiserver calls webhooks by URL, and only for the namespace that a trial registers.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    stub::Stub,
    support::wait,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("webhooks::mutate_what_is_created", mutate_what_is_created),
        Trial::new("webhooks::refuse_what_is_created", refuse_what_is_created),
    ]
}

fn mutate_what_is_created(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("mutated")?;
    let stub = Stub::start(|_| {
        // [{"op":"add","path":"/data","value":{"by":"stub"}}]
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEiLCJ2YWx1ZSI6eyJieSI6InN0dWIifX1d";
        json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
    })?;
    let mut configuration = configuration("MutatingWebhookConfiguration");
    stub.endpoint().adopt(&mut configuration, &namespace)?;
    let kubectl = cluster.admin();
    kubectl.apply(&configuration.to_string())?;

    // A configuration reaches the admission chain through a watch.
    wait::until("a ConfigMap to be mutated", || {
        let create = ["create", "configmap", "seen", "--dry-run=server", "--output=jsonpath={.data.by}"];
        let output = kubectl.run(&[&create[..], &["-n", &namespace]].concat())?.ok()?;
        Ok((output.stdout == "stub").then_some(()))
    })?;
    // The apiserver writes it down when it has answered.
    wait::until("the mutation in the audit log", || {
        Ok(cluster
            .audit_log()
            .lines()
            .any(|line| line.contains(&namespace) && line.contains(r#"\"mutated\":true"#))
            .then_some(()))
    })
}

fn refuse_what_is_created(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("refused")?;
    let elsewhere = cluster.fresh_namespace("elsewhere")?;
    let stub = Stub::start(|request| {
        let text = format!("no {} here", request["kind"]["kind"].as_str().unwrap_or_default());
        json!({"allowed": false, "status": {"code": 422, "message": text}})
    })?;
    let mut configuration = configuration("ValidatingWebhookConfiguration");
    stub.endpoint().adopt(&mut configuration, &namespace)?;
    let kubectl = cluster.admin();
    kubectl.apply(&configuration.to_string())?;

    let create =
        |namespace: &str| kubectl.run(&["create", "configmap", "any", "--dry-run=server", "-n", namespace]);
    let refusal = wait::until("a ConfigMap to be refused", || {
        let output = create(&namespace)?;
        Ok((!output.status.success()).then_some(output.stderr))
    })?;
    ensure!(refusal.contains("no ConfigMap here"), "{refusal}");
    create(&elsewhere)?.ok()?;
    Ok(())
}

/// As a cluster would have it; trials adopt it.
fn configuration(kind: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "stub"},
        "webhooks": [{
            "name": "stub.memgate.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"service": {"name": "stub", "namespace": "stub", "path": "/review"}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"], "scope": "Namespaced",
            }],
        }],
    })
}
