//! Objects that a finalizer keeps after their deletion, and new specs of them that are refused.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    request::{Answer, create, path, send},
    samples::{agent, memory},
    support::{control_plane::ControlPlane, wait},
};

pub(crate) const FINALIZERS: [&str; 2] = ["test.memgate.dev/hold", "test.memgate.dev/more"];

/// An object that is as it should be, and what it must not become.
pub(crate) struct Row {
    pub(crate) object: Value,
    pub(crate) changes: Vec<Change>,
    /// Whether its entry fails open.
    pub(crate) open: bool,
}

/// A specification that is refused.
pub(crate) struct Change {
    pub(crate) spec: Value,
    /// The code of the denial, or the rule of [`policy`].
    pub(crate) code: &'static str,
}

fn change(spec: Value, code: &'static str) -> Change {
    Change { spec, code }
}

/// Objects of each platform, and memgate's own, for a namespace.
#[allow(clippy::too_many_lines, reason = "a table")]
pub(crate) fn rows(namespace: &str) -> Vec<Row> {
    let of = |api: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let closed = |object: Value, changes: Vec<Change>| Row { object, changes, open: false };
    let open = |object: Value, changes: Vec<Change>| Row { object, changes, open: true };
    let vectors = |host: &str| {
        let store = json!({"provider": "qdrant", "endpoint": format!("https://{host}.example.com"), "collection": "notes"});
        json!({"backend": "vector-store", "vectorStore": store})
    };
    let query = |memory: &str| json!({"input": "x", "target": {"type": "agent", "name": "scout"}, "memory": {"name": memory}});
    let header = |secret: &str| {
        let key = json!({"secretKeyRef": {"name": secret, "key": "token"}});
        let headers = json!([{"name": "X-Api-Key", "value": {"valueFrom": key}}]);
        json!({"address": {"value": "https://good.example.com"}, "headers": headers})
    };
    let address = |host: &str| json!({"address": {"value": format!("http://{host}.example.com")}});
    let http = |endpoint: &str| json!({"provider": "http", "endpoint": endpoint});
    let grants = |memory: Value| json!({"model_ref": "m", "prompt": "x", "memory": memory});
    let tools = |tools: Value| {
        json!({
            "providerRef": {"name": "main"}, "systemPrompt": {"inline": "x"},
            "coordination": {"enabled": true, "autonomous": true, "approvalRequiredTools": tools},
        })
    };
    let backend = |host: &str| {
        json!({
            "protocol": {"omsVersion": "0.1", "profile": "orka.oms.v0alpha1"},
            "deployment": {"mode": "external-endpoint", "endpoint": format!("https://{host}.example.com")},
            "clientAuth": {"bearerTokenSecretRef": {"name": "memory-auth", "key": "token"}},
            "store": {"name": "blue-store"},
        })
    };
    let configs = |names: &[&str], size: &str| {
        let configs: Vec<_> = names.iter().map(|it| json!({"name": it, "systemPrompt": "x"})).collect();
        json!({"agentConfigs": configs, "sharedMemory": {"enabled": true, "storageSize": size}})
    };
    let policy =
        |matching: Value| json!({"rules": [{"id": "a", "labels": {"required": ["a"]}}], "match": matching});
    let exemption = |target: Value| {
        json!({
            "policy": "some-policy", "rules": ["a"], "target": target, "reason": "it moves to redis soon",
            "from": "2026-12-15T00:00:00Z", "expiresAt": "2027-03-01T00:00:00Z",
        })
    };
    vec![
        closed(
            memory("notes"),
            vec![
                change(json!({"backend": "redis"}), "arkonis/redis-required"),
                change(json!({"backend": "in-context"}), "durable"),
                change(vectors("evil"), "hosts"),
            ],
        ),
        closed(
            agent("scout", "notes"),
            vec![change(agent("scout", "scratch")["spec"].clone(), "durable-of-sources")],
        ),
        closed(
            of("kubeswarm.io/v1alpha1", "SwarmMemory", "notes", memory("notes")["spec"].clone()),
            vec![change(json!({"backend": "redis"}), "arkonis/redis-required")],
        ),
        closed(
            of("ark.mckinsey.com/v1alpha1", "Memory", "notes", address("good")),
            vec![
                change(json!({"address": {}}), "ark/memory-address-required"),
                change(header("other"), "secrets"),
                change(address("evil"), "hosts"),
            ],
        ),
        open(
            of("ark.mckinsey.com/v1alpha1", "Query", "ask", query("notes")),
            vec![change(query("evil"), "hosts-of-sources")],
        ),
        closed(
            of("orloj.dev/v1", "Memory", "kb", http("https://good.example.com")),
            vec![
                change(http("http://127.9.9.9:8080/x"), "orloj/http-endpoint-blocked"),
                change(json!({"provider": "in-memory"}), "durable"),
                change(http("https://evil.example.com"), "hosts"),
            ],
        ),
        closed(
            of("orloj.dev/v1", "Agent", "scribe", grants(json!({"ref": "kb", "allow": ["read"]}))),
            vec![
                change(grants(json!({"allow": ["read"]})), "orloj/agent-allow-needs-ref"),
                change(grants(json!({"ref": "kb", "allow": ["write"]})), "operations"),
            ],
        ),
        open(
            of("core.orka.ai/v1alpha1", "Agent", "helper", tools(json!([]))),
            vec![change(tools(json!(["remember"])), "orka/approval-builtin")],
        ),
        open(
            of("core.orka.ai/v1alpha1", "MemoryBackend", "default", backend("good")),
            vec![change(backend("evil"), "hosts")],
        ),
        closed(
            of("sympozium.ai/v1alpha1", "Ensemble", "newsroom", configs(&["scout"], "1Gi")),
            vec![
                change(configs(&["scout", ""], "1Gi"), "sympozium/config-name-required"),
                change(configs(&["scout"], "5Gi"), "storage"),
            ],
        ),
        open(
            of(
                POLICIES,
                "MemoryPolicy",
                &format!("{namespace}-going"),
                policy(json!({"namespaces": ["none-such"]})),
            ),
            vec![change(policy(json!({"kinds": ["ArkMemories"]})), "policy/invalid")],
        ),
        open(
            of(POLICIES, "MemoryPolicyExemption", "going", exemption(json!({"namespaces": ["lab"]}))),
            vec![change(
                exemption(json!({"namespaces": ["lab"], "kinds": ["ArkMemories"]})),
                "policy/invalid",
            )],
        ),
    ]
}

const POLICIES: &str = "policy.memgate.dev/v1alpha1";

/// What the rows break rules of, for one namespace, with its name.
pub(crate) fn policy(namespace: &str) -> Value {
    let spec = json!({
        "match": {"namespaces": [namespace]}, "actions": {"admission": "deny"},
        "rules": [
            {"id": "durable", "backends": {"durable": true}},
            {"id": "durable-of-sources", "backends": {"durable": true}, "roles": ["referrer"]},
            {"id": "hosts", "endpoint": {"hosts": ["good.example.com"]}},
            {"id": "operations", "operations": {"allow": ["read"]}},
            {"id": "storage", "capacity": {"storage": {"max": "2Gi"}}},
            {"id": "hosts-of-sources", "endpoint": {"hosts": ["good.example.com"]}, "roles": ["referrer"]},
            {"id": "secrets", "secrets": {"names": ["notes-*", "memory-*"]}},
        ],
    });
    json!({"apiVersion": POLICIES, "kind": "MemoryPolicy", "metadata": {"name": namespace}, "spec": spec})
}

/// A stored object that goes, and how to ask for changes of it.
pub(crate) struct Going<'c> {
    cluster: &'c ControlPlane,
    client: Client,
    path: String,
    pub(crate) what: String,
}

impl<'c> Going<'c> {
    /// Stores an object under a finalizer.
    pub(crate) fn store(
        cluster: &'c ControlPlane,
        client: &Client,
        namespace: &str,
        object: &Value,
    ) -> Result<Self> {
        let mut held = object.clone();
        held["metadata"]["finalizers"] = json!(FINALIZERS);
        let what = format!("{} {}", object["apiVersion"], object["kind"]);
        cluster.block_on(create(client, namespace, &held, ""))?.object().with_context(|| what.clone())?;
        let path = path(object, namespace, object["metadata"]["name"].as_str())?;
        Ok(Self { cluster, client: client.clone(), path, what })
    }

    fn send(&self, method: Method, query: &str, body: Option<&Value>) -> Result<Answer> {
        let path = format!("{}{query}", self.path);
        self.cluster.block_on(send(&self.client, method, &path, body))
    }

    pub(crate) fn delete(&self) -> Result<()> {
        self.send(Method::DELETE, "", None)?.object().with_context(|| self.what.clone())?;
        let stored = self.send(Method::GET, "", None)?.object()?;
        ensure!(!stored["metadata"]["deletionTimestamp"].is_null(), "{} does not go", self.what);
        Ok(())
    }

    /// Changes the stored object, as a rehearsal or not.
    fn change(&self, query: &str, change: impl Fn(&mut Value)) -> Result<Answer> {
        let mut object = self.send(Method::GET, "", None)?.object()?;
        change(&mut object);
        self.send(Method::PUT, query, Some(&object))
    }

    pub(crate) fn with_spec(&self, spec: &Value) -> Result<Answer> {
        self.change("?dryRun=All", |object| object["spec"] = spec.clone())
    }

    /// Gives it a label, takes one finalizer, then the other: it is gone. memgate must not be asked about any of this.
    pub(crate) fn let_go(&self) -> Result<()> {
        let label = |object: &mut Value| object["metadata"]["labels"] = json!({"team": "other"});
        let one = |object: &mut Value| object["metadata"]["finalizers"] = json!([FINALIZERS[0]]);
        let none = |object: &mut Value| object["metadata"]["finalizers"] = json!([]);
        for answer in [self.change("", label)?, self.change("", one)?, self.change("", none)?] {
            let audit_id = answer.audit_id.clone();
            answer.object().with_context(|| self.what.clone())?;
            let annotations = self.cluster.annotations(&audit_id)?;
            let asked = annotations.keys().any(|key| key.contains("memgate.dev/"));
            ensure!(!asked, "{}: {annotations:?}", self.what);
        }
        ensure!(self.send(Method::GET, "", None)?.status == 404, "{} is still there", self.what);
        Ok(())
    }

    /// Waits until a change is refused for its code, or for the rule of a policy: that is in force soon, and other
    /// objects are known soon.
    pub(crate) fn until_refused(&self, namespace: &str, change: &Change) -> Result<()> {
        let Change { spec, code } = change;
        let words = format!("(memgate policy {namespace}/{code})");
        let mut last = Value::Null;
        let refused = wait::until("the refusal", || {
            let answer = self.with_spec(spec)?;
            let is_refused = if code.contains('/') {
                let annotations = self.cluster.annotations(&answer.audit_id)?;
                let codes = annotations.iter().filter(|(key, _)| key.ends_with(".memgate.dev/codes"));
                codes.flat_map(|(_, codes)| codes.split(',')).any(|known| known == *code)
            } else {
                answer.body.to_string().contains(&words)
            };
            last = answer.body.clone();
            Ok((is_refused && !answer.granted()).then_some(()))
        });
        refused.with_context(|| format!("{} for {code}: {last}", self.what))
    }
}
