//! That memgate's identity may do what its role says, and nothing else.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{RIGHTS, documents, memgate},
    request::send,
    support::control_plane::ControlPlane,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("access::to_the_core_is_as_narrow_as_can_be", is_denied),
        Trial::new("access::is_what_the_role_says", is_what_the_role_says),
        Trial::new("access::is_enough", is_enough),
    ]
}

fn is_denied(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let kubectl = cluster.kubectl_as(fixture.memgate()?.kubeconfig.clone());
    let can = |verb: &str, resource: &str| -> Result<String> {
        // It says yes or no, and fails when it says no.
        let output = kubectl.run(&["auth", "can-i", verb, resource, "--all-namespaces"])?;
        Ok(output.stdout.trim().to_owned())
    };
    let rows: [(&str, &[&str]); 6] = [
        ("secrets", &[]),
        ("pods", &[]),
        // One at a time, where a memory refers to it.
        ("configmaps", &["get"]),
        ("services", &["get"]),
        ("namespaces", &["get", "list"]),
        ("arkmemories.arkonis.dev", &["get", "list"]),
    ];
    for (resource, allowed) in rows {
        for verb in ["get", "list", "create"] {
            let expected = if allowed.contains(&verb) { "yes" } else { "no" };
            let answer = can(verb, resource)?;
            ensure!(answer == expected, "can memgate {verb} {resource}? {answer}");
        }
    }
    let refusal = kubectl.run(&["get", "secrets", "--all-namespaces"])?.refusal()?;
    ensure!(refusal.contains("cannot list resource \"secrets\""), "{refusal}");
    Ok(())
}

/// Compares the rules that the apiserver counts for memgate with those for an account that was
/// given nothing.
fn is_what_the_role_says(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("unbound")?;
    cluster.kubectl(&["create", "serviceaccount", "unbound", "-n", &namespace])?.ok()?;
    let baseline = cluster.service_account_kubeconfig(&namespace, "unbound")?;
    let of_every_account = rules(cluster, &client(cluster, &baseline)?, &namespace)?;
    let memgates = rules(cluster, &client(cluster, &fixture.memgate()?.kubeconfig)?, &namespace)?;

    let printed = documents(&memgate(&RIGHTS)?);
    let role = printed.iter().find(|object| object["kind"] == "ClusterRole").context("there is no role")?;
    let role = role["rules"].as_array().context("the role has rules")?.iter().map(sorted);
    let role: BTreeSet<String> = role.collect();
    let own: BTreeSet<String> = memgates.difference(&of_every_account).cloned().collect();
    ensure!(own == role, "memgate may {own:#?}, but the role says {role:#?}");
    for rule in &own {
        ensure!(!rule.contains('*'), "{rule}");
    }
    Ok(())
}

/// memgate runs with nothing else; the apiserver would have refused what the role lacks.
fn is_enough(fixture: &Fixture) -> Result<()> {
    let log = fixture.memgate()?.webhook.log();
    ensure!(!log.contains("forbidden"), "{log}");
    Ok(())
}

fn client(cluster: &ControlPlane, kubeconfig: &Path) -> Result<Client> {
    let config = cluster.config(kubeconfig)?;
    cluster.block_on(async { Client::try_from(config).context("failed to make a client") })
}

/// What a user may do in a namespace, by its own question.
fn rules(cluster: &ControlPlane, client: &Client, namespace: &str) -> Result<BTreeSet<String>> {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    });
    let answer = cluster.block_on(send(client, Method::POST, path, Some(&review)))?.object()?;
    let status = &answer["status"];
    ensure!(status["incomplete"] == json!(false), "{status}");
    let rules = ["resourceRules", "nonResourceRules"].iter().filter_map(|kind| status[kind].as_array());
    Ok(rules.flatten().map(sorted).collect())
}

/// A rule as text, with its keys in order.
fn sorted(rule: &Value) -> String {
    let mut keys: Vec<_> = rule.as_object().into_iter().flatten().collect();
    keys.sort_by_key(|(key, _)| *key);
    let keys = keys.into_iter().map(|(key, value)| (key.clone(), value.clone()));
    Value::Object(keys.collect()).to_string()
}
