//! Every condition of the webhook entries, evaluated by the apiserver: on objects without
//! annotations or labels, with none in the map, on objects that go, and both ways. It shows in whether a stub
//! is asked; a condition that cannot be evaluated would show in the apiserver's metrics.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use axum::http::Method;
use kube::Client;
use regex::Regex;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{documents, memgate},
    request::send,
    stub::Stub,
    support::{control_plane::ControlPlane, wait},
};

/// What the stub says to everything that it is asked.
const ASKED: &str = "the webhook was asked";

/// The key that decides, and one that does not.
const KEYS: [(&str, &str); 7] = [
    ("not-deleting-orka", "memgate.dev/orka-memory-context"),
    ("not-deleting-orloj-sympozium", "orloj.dev/target-namespace"),
    ("not-deleting-sympozium", "memgate.dev/memory-mode"),
    ("not-pooled", "orka.ai/runtime-pool-one"),
    ("not-mirror", "kubernetes.io/config.mirror"),
    ("opted-in", "memgate.dev/ark-memory"),
    ("marked", "memgate.dev/orka-memory"),
];

/// Objects by what their metadata is like. All but the last are there twice: stored, and to be.
const OBJECTS: [&str; 7] = ["bare", "empty", "null", "other", "keyed", "changed", "going"];

/// For each condition and request, whether memgate is asked: `verb stored to-be`, and by whom.
const ROWS: [(&str, &[(&str, bool)]); 10] = [
    (
        "not-node",
        &[
            ("create bare", true),
            ("update bare bare", true),
            ("delete bare", true),
            ("create bare by-node", false),
            ("update bare bare by-node", false),
            ("delete bare by-node", false),
        ],
    ),
    (
        "not-mirror",
        &[
            ("create bare", true),
            ("create empty", true),
            ("create null", true),
            ("create other", true),
            ("create keyed", false),
            ("update bare keyed", false),
            ("update keyed bare", true),
            ("delete bare", true),
            ("delete keyed", true),
        ],
    ),
    (
        "not-pooled",
        &[
            ("create bare", true),
            ("create empty", true),
            ("create null", true),
            ("create other", true),
            ("create keyed", false),
            ("update keyed bare", true),
            ("update bare keyed", false),
            ("delete bare", true),
            ("delete keyed", true),
        ],
    ),
    (
        "opted-in",
        &[
            ("create bare", false),
            ("create empty", false),
            ("create null", false),
            ("create other", false),
            ("create keyed", true),
            ("update bare keyed", true),
            ("update keyed bare", false),
            ("delete bare", false),
            ("delete keyed", false),
        ],
    ),
    (
        "marked",
        &[
            ("create bare", false),
            ("create empty", false),
            ("create null", false),
            ("create other", false),
            ("create keyed", true),
            ("update bare bare", false),
            ("update empty null", false),
            ("update other other", false),
            ("update bare keyed", true),
            ("update keyed bare", true),
            ("update keyed keyed", true),
            ("delete bare", false),
            ("delete keyed", true),
        ],
    ),
    (
        "not-deleting",
        &[
            ("create bare", true),
            ("update bare other", true),
            ("update bare bare", true),
            ("update going going", false),
            ("update going bare", false),
            ("update going other", false),
            ("update going changed", true),
            ("create changed", true),
            ("delete bare", true),
        ],
    ),
    (
        "not-deleting-orka",
        &[
            ("create bare", true),
            ("create keyed", true),
            ("update bare other", true),
            ("update bare bare", true),
            ("update going going", false),
            ("update going bare", false),
            ("update going empty", false),
            ("update going null", false),
            ("update going other", false),
            ("update going keyed", true),
            ("update going changed", true),
            ("delete bare", true),
            ("delete keyed", true),
        ],
    ),
    (
        "not-deleting-orloj-sympozium",
        &[
            ("create bare", true),
            ("create keyed", true),
            ("update bare other", true),
            ("update bare bare", true),
            ("update going going", false),
            ("update going bare", false),
            ("update going empty", false),
            ("update going null", false),
            ("update going other", false),
            ("update going keyed", true),
            ("update going changed", true),
            ("delete bare", true),
            ("delete keyed", true),
        ],
    ),
    (
        "not-deleting-sympozium",
        &[
            ("create bare", true),
            ("create keyed", true),
            ("update bare other", true),
            ("update bare bare", true),
            ("update going going", false),
            ("update going bare", false),
            ("update going empty", false),
            ("update going null", false),
            ("update going other", false),
            ("update going keyed", true),
            ("update going changed", true),
            ("delete bare", true),
            ("delete keyed", true),
        ],
    ),
    (
        "not-deleting-namespace",
        &[
            ("create bare", true),
            ("update bare bare", true),
            ("update going going", false),
            ("update going bare", false),
            ("update going changed", false),
            ("update going other", true),
            ("update going keyed", true),
            ("delete bare", true),
        ],
    ),
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("deploy::conditions_are_true_and_false_and_never_fail", hold),
        Trial::new("deploy::a_condition_that_fails_would_be_seen", failures_show),
    ]
}

fn hold(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let printed = printed()?;
    let rows: BTreeMap<_, _> = ROWS.into();
    ensure!(printed.keys().map(String::as_str).eq(rows.keys().copied()), "{:?}", printed.keys());
    let node = cluster.user_kubeconfig("system:node:one", &["system:nodes", "system:masters"])?;
    let node = cluster.config(&node)?;
    let node = cluster.block_on(async { Client::try_from(node) })?;
    for (name, expression) in &printed {
        let probe = Probe::new(cluster, name, expression, "Fail")?;
        for (request, asked) in rows[name.as_str()] {
            let client = if request.ends_with(" by-node") { node.clone() } else { cluster.client() };
            ensure!(probe.asked(cluster, &client, request)? == *asked, "{name}: {request}: {expression}");
        }
    }
    let errors = evaluation_errors(cluster)?;
    ensure!(!errors.contains("memgate.dev"), "{errors}");
    Ok(())
}

/// That the last check above could fail.
fn failures_show(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let probe = Probe::new(cluster, "broken", "object.metadata.annotations['none'] == ''", "Ignore")?;
    wait::until("the failure to be counted", || {
        probe.asked(cluster, &cluster.client(), "create bare")?;
        Ok(evaluation_errors(cluster)?.contains("broken.memgate.test").then_some(()))
    })
}

/// Every condition by its name; entries share them.
fn printed() -> Result<BTreeMap<String, String>> {
    // A ConfigMap has no such section; the cases of kagent delete Agents with and without one.
    const OF_A_SECTION: &str = "memory";
    let mut conditions = BTreeMap::new();
    for configuration in documents(&memgate(&["manifests", "--only", "webhooks"])?) {
        let entries = configuration["webhooks"].as_array().cloned().unwrap_or_default();
        for condition in entries.iter().filter_map(|entry| entry["matchConditions"].as_array()).flatten() {
            let text = |key: &str| condition[key].as_str().map(str::to_owned);
            let (name, expression) =
                text("name").zip(text("expression")).context("a condition lacks a key")?;
            // What it asks differs between entries; the trials of pauses have it.
            if name.starts_with("not-paused") {
                continue;
            }
            let known = conditions.insert(name.clone(), expression.clone());
            ensure!(known.is_none_or(|known| known == expression), "two conditions are called {name}");
        }
    }
    ensure!(conditions.remove(OF_A_SECTION).is_some(), "{OF_A_SECTION} is in no entry");
    Ok(conditions)
}

/// One condition, alone in a namespace, in front of a stub.
struct Probe {
    condition: String,
    namespace: String,
    stub: Stub,
}

impl Probe {
    fn new(cluster: &ControlPlane, name: &str, expression: &str, failure: &str) -> Result<Self> {
        // The objects here are ConfigMaps, which have data where others have a spec.
        let expression = expression.replace("bject.spec", "bject.data");
        // They are of no platform.
        let about_kinds = Regex::new(r"\(request\.kind\.group == [^)]*\)").context("a pattern")?;
        let expression = about_kinds.replace_all(&expression, "(true)");
        let namespace = cluster.fresh_namespace("condition")?;
        let stub = Stub::start(|_| json!({"allowed": false, "status": {"message": ASKED}}))?;
        let probe = Self { condition: name.to_owned(), namespace, stub };
        for object in OBJECTS {
            probe.store(cluster, object)?;
        }
        let domain = if name == "broken" { "memgate.test" } else { "memgate.dev" };
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": probe.namespace},
            "webhooks": [{
                "name": format!("{name}.{domain}"),
                "clientConfig": probe.stub.endpoint().client_config("/"),
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["configmaps"], "scope": "Namespaced",
                }],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": probe.namespace}},
                // One that is always true for this name, so that a probe knows when it has begun.
                "matchConditions": [{"name": name, "expression": format!("request.name == 'begin' || ({expression})")}],
                "failurePolicy": failure, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            }],
        });
        cluster.admin().apply(&configuration.to_string())?;
        wait::until("the webhook to be asked", || {
            Ok(probe.asked_about(cluster, &cluster.client(), Method::POST, "begin", "bare")?.then_some(()))
        })?;
        Ok(probe)
    }

    /// Puts an object there before the webhook is.
    fn store(&self, cluster: &ControlPlane, object: &str) -> Result<()> {
        let client = cluster.client();
        let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let body = self.object(object, object);
        cluster.block_on(send(&client, Method::POST, &path, Some(&body)))?.object()?;
        if object == "going" {
            cluster.block_on(send(&client, Method::DELETE, &format!("{path}/{object}"), None))?.object()?;
        }
        Ok(())
    }

    fn object(&self, name: &str, like: &str) -> Value {
        let key =
            KEYS.iter().find(|(condition, _)| *condition == self.condition).map_or("any", |(_, key)| key);
        let mut metadata = json!({"name": name, "namespace": self.namespace});
        let map = if self.condition == "not-pooled" { "labels" } else { "annotations" };
        match like {
            "empty" => metadata[map] = json!({}),
            "null" => metadata[map] = Value::Null,
            "other" => metadata[map] = json!({"memgate.dev/other": "any"}),
            "keyed" => metadata[map] = json!({"memgate.dev/other": "any", key: "any"}),
            _ => {}
        }
        if name == "going" {
            metadata["finalizers"] = json!(["memgate.dev/held"]);
        }
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        if like == "changed" {
            object["data"] = json!({"any": "thing"});
        }
        object
    }

    /// Whether the webhook is asked about a request of the table.
    fn asked(&self, cluster: &ControlPlane, client: &Client, request: &str) -> Result<bool> {
        let words: Vec<&str> = request.split(' ').filter(|word| *word != "by-node").collect();
        match words[..] {
            ["create", like] => self.asked_about(cluster, client, Method::POST, "new", like),
            ["update", stored, like] => self.asked_about(cluster, client, Method::PUT, stored, like),
            ["delete", stored] => self.asked_about(cluster, client, Method::DELETE, stored, stored),
            _ => bail!("not a request: {request}"),
        }
    }

    fn asked_about(
        &self,
        cluster: &ControlPlane,
        client: &Client,
        method: Method,
        name: &str,
        like: &str,
    ) -> Result<bool> {
        let base = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let body = self.object(name, like);
        let (path, body) = match method {
            Method::POST => (base, Some(&body)),
            Method::PUT => (format!("{base}/{name}"), Some(&body)),
            _ => (format!("{base}/{name}"), None),
        };
        let answer = cluster.block_on(send(client, method, &format!("{path}?dryRun=All"), body))?;
        match answer.webhook_message() {
            Some(message) => Ok(message == ASKED),
            None if answer.granted() => Ok(false),
            None => bail!("{name} like {like}: {}", answer.message()),
        }
    }
}

fn evaluation_errors(cluster: &ControlPlane) -> Result<String> {
    let metrics = cluster.kubectl(&["get", "--raw", "/metrics"])?.ok()?.stdout;
    let errors = metrics.lines().filter(|line| line.contains("match_condition_evaluation_errors_total{"));
    Ok(errors.collect::<Vec<_>>().join("\n"))
}
