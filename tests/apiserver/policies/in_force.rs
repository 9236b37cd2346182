//! What policies and exemptions do once they are stored: memgate applies them at once, and users cannot evade them.
//! Each is about one namespace, since policies count for the whole cluster.

use anyhow::{Result, ensure};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use super::{object, refusal_of};
use crate::{
    fixture::{Fixture, Trial},
    request::create,
    samples::{agent, env_names, memory, memory_of, pod},
    support::{control_plane::ControlPlane, kubectl::Output, wait},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("policies::are_in_force_as_soon_as_they_are_stored", in_force),
        Trial::new("policies::deny_pods_that_opted_out_too", opted_out),
        Trial::new("policies::warn_where_they_say_so", warns),
        Trial::new("policies::write_defaults", defaults),
        Trial::new("policies::that_cannot_be_in_force_are_refused", invalid),
        Trial::new("policies::exemptions_count_where_they_may", exemptions),
        Trial::new("policies::hold_behind_references", behind),
    ]
}

/// A namespace that memgate is asked about, and a cluster with it.
fn scene(fixture: &Fixture) -> Result<(&ControlPlane, String)> {
    Ok((fixture.cluster()?, fixture.namespace("judged", &[])?))
}

/// A policy for one namespace, with the name of that.
fn policy(namespace: &str, mut spec: Value) -> Value {
    spec["match"] = json!({"namespaces": [namespace]});
    object("MemoryPolicy", &json!({"name": namespace}), &spec)
}

fn apply(cluster: &ControlPlane, manifest: &Value) -> Result<Output> {
    cluster.admin().run_with_input(&["apply", "-f", "-"], &manifest.to_string())
}

/// What comes of an object that is not stored.
fn rehearse(cluster: &ControlPlane, namespace: &str, object: &Value) -> Result<Output> {
    let arguments = ["create", "--dry-run=server", "--output=json", "-n", namespace, "-f", "-"];
    cluster.admin().run_with_input(&arguments, &object.to_string())
}

/// Waits until an object is denied with these words.
fn until_denied(cluster: &ControlPlane, namespace: &str, object: &Value, words: &str) -> Result<()> {
    wait::until(words, || {
        let refusal = refusal_of(rehearse(cluster, namespace, object)?);
        Ok(refusal.filter(|refusal| refusal.contains(words)).map(|_| ()))
    })
}

fn until_admitted(cluster: &ControlPlane, namespace: &str, object: &Value) -> Result<Output> {
    wait::until("the object to be admitted", || {
        let output = rehearse(cluster, namespace, object)?;
        Ok(output.status.success().then_some(output))
    })
}

fn deny(rules: &Value) -> Value {
    json!({"actions": {"admission": "deny"}, "rules": rules})
}

fn in_force(fixture: &Fixture) -> Result<()> {
    let (cluster, namespace) = scene(fixture)?;
    let scratch = memory_of("scratch", &json!({"backend": "in-context"}));
    until_admitted(cluster, &namespace, &scratch)?;
    let hint = "use redis or a vector store";
    let rules = json!([{"id": "durable", "backends": {"durable": true}, "hint": hint}]);
    apply(cluster, &policy(&namespace, deny(&rules)))?.ok()?;
    let words = format!(
        r#"backend "in-context" loses its memory with its process (memgate policy {namespace}/durable)"#
    );
    until_denied(cluster, &namespace, &scratch, &words)?;
    let answer = cluster.block_on(create(&cluster.client(), &namespace, &scratch, "?dryRun=All"))?;
    ensure!(
        answer.message().contains("spec.backend") && answer.message().contains(hint),
        "{}",
        answer.message()
    );
    until_admitted(cluster, &namespace, &memory("notes"))?;

    // One that is changed, and one that is gone.
    let rules = json!([{"id": "expiry", "retention": {"max": "10m"}}]);
    apply(cluster, &policy(&namespace, deny(&rules)))?.ok()?;
    until_admitted(cluster, &namespace, &scratch)?;
    until_denied(cluster, &namespace, &memory("notes"), "TTL of 3600s is above 10m")?;
    cluster.kubectl(&["delete", "memorypolicy", &namespace])?.ok()?;
    until_admitted(cluster, &namespace, &memory("notes"))?;
    Ok(())
}

/// The label that stops injection stops no policy, on a pod or on its namespace.
fn opted_out(fixture: &Fixture) -> Result<()> {
    let (cluster, namespace) = scene(fixture)?;
    let client = cluster.client();
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&client, &namespace, &object, ""))?.object()?;
    }
    let rules = json!([{"id": "owner", "labels": {"required": ["team"]}, "roles": ["pod"]}]);
    apply(cluster, &policy(&namespace, deny(&rules)))?.ok()?;
    let words = format!(r#"label "team" is required (memgate policy {namespace}/owner)"#);
    let disabled = ("memgate.dev/inject", "disabled");
    until_denied(cluster, &namespace, &pod("scout", "scout", &[]), &words)?;
    until_denied(cluster, &namespace, &pod("scout", "scout", &[disabled]), &words)?;
    let with_label = pod("scout", "scout", &[disabled, ("team", "a")]);
    let output = until_admitted(cluster, &namespace, &with_label)?;
    let admitted: Value = serde_json::from_str(&output.stdout)?;
    ensure!(env_names(&admitted) == ["AGENT_MODEL"], "{admitted}");

    cluster.kubectl(&["label", "namespace", &namespace, "memgate.dev/inject=disabled"])?.ok()?;
    let plain = pod("scout", "scout", &[("team", "a")]);
    wait::until("a namespace without injection", || {
        let admitted: Value = serde_json::from_str(&rehearse(cluster, &namespace, &plain)?.ok()?.stdout)?;
        Ok((env_names(&admitted) == ["AGENT_MODEL"]).then_some(()))
    })?;
    until_denied(cluster, &namespace, &pod("scout", "scout", &[]), &words)
}

/// Who changes a ModelConfig is held to the rules of the agents that embed with it, also while it is being deleted.
fn behind(fixture: &Fixture) -> Result<()> {
    let (cluster, namespace) = scene(fixture)?;
    let config = |name: &str, host: &str| {
        json!({
            "apiVersion": "kagent.dev/v1alpha2", "kind": "ModelConfig",
            "metadata": {"name": name, "namespace": namespace, "finalizers": ["example.com/keep"]},
            "spec": {
                "provider": "OpenAI", "model": "text-embedding-3-small", "apiKeySecret": "openai",
                "apiKeySecretKey": "key", "openAI": {"baseUrl": format!("https://{host}/v1")},
            },
        })
    };
    let agent = json!({
        "apiVersion": "kagent.dev/v1alpha2", "kind": "Agent",
        "metadata": {"name": "scout", "namespace": namespace},
        "spec": {"type": "Declarative", "declarative": {
            "modelConfig": "embed", "systemMessage": "help", "memory": {"modelConfig": "embed", "ttlDays": 15},
        }},
    });
    for object in [config("embed", "llm.example.com"), config("unused", "llm.example.com"), agent] {
        apply(cluster, &object)?.ok()?;
    }
    let rules = json!([{"id": "hosts", "endpoint": {"hosts": ["llm.example.com"]}}]);
    apply(cluster, &policy(&namespace, deny(&rules)))?.ok()?;
    let refused = |name: &str| -> Result<Option<String>> {
        let arguments = ["apply", "--dry-run=server", "-f", "-"];
        let changed = config(name, "evil.example.net").to_string();
        Ok(refusal_of(cluster.admin().run_with_input(&arguments, &changed)?))
    };
    let until_refused = || {
        wait::until("a refusal behind the reference", || {
            let refusal = refused("embed")?;
            let is_about_agent =
                |it: &String| it.contains("evil.example.net") && it.contains("(Agent \"scout\")");
            Ok(refusal.filter(is_about_agent).map(|_| ()))
        })
    };
    until_refused()?;
    ensure!(refused("unused")?.is_none(), "what no agent uses is refused");
    cluster
        .kubectl(&["delete", "modelconfig.kagent.dev", "embed", "-n", &namespace, "--wait=false"])?
        .ok()?;
    until_refused()?;
    for name in ["embed", "unused"] {
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        let arguments =
            ["patch", "modelconfig.kagent.dev", name, "-n", &namespace, "--type=merge", "-p", patch];
        cluster.kubectl(&arguments)?.ok()?;
    }
    Ok(())
}

fn warns(fixture: &Fixture) -> Result<()> {
    let (cluster, namespace) = scene(fixture)?;
    let spec = json!({
        "rules": [{"id": "durable", "backends": {"durable": true}}],
        "promote": {"at": "2999-01-15T00:00:00Z", "to": "deny"},
    });
    apply(cluster, &policy(&namespace, spec))?.ok()?;
    let scratch = memory_of("scratch", &json!({"backend": "in-context"}));
    let words = format!("(memgate policy {namespace}/durable, denied from 2999-01-15)");
    wait::until(&words, || {
        let output = rehearse(cluster, &namespace, &scratch)?.ok()?;
        Ok(output.stderr.contains(&words).then_some(()))
    })
}

fn defaults(fixture: &Fixture) -> Result<()> {
    let (cluster, namespace) = scene(fixture)?;
    let default = |family, kind, field, value: Value| json!({"family": family, "kind": kind, "field": field, "value": value});
    let spec = json!({"defaults": [
        default("arkonis", "ArkMemory", "/spec/redis/maxEntries", json!(1000)),
        default("orloj", "Memory", "/spec/embedding_model", json!("embeddings")),
    ]});
    apply(cluster, &policy(&namespace, spec))?.ok()?;
    let orloj = json!({
        "apiVersion": "orloj.dev/v1", "kind": "Memory", "metadata": {"name": "notes"},
        "spec": {"provider": "in-memory"},
    });
    for (object, pointer, value) in [
        (memory("notes"), "/spec/redis/maxEntries", json!(1000)),
        (orloj, "/spec/embedding_model", json!("embeddings")),
    ] {
        wait::until(pointer, || {
            let stored: Value = serde_json::from_str(&rehearse(cluster, &namespace, &object)?.ok()?.stdout)?;
            Ok((stored.pointer(pointer) == Some(&value)).then_some(()))
        })?;
    }
    Ok(())
}

/// The definitions cannot know which kinds there are.
fn invalid(fixture: &Fixture) -> Result<()> {
    let (cluster, namespace) = scene(fixture)?;
    let rules = json!([{"id": "durable", "backends": {"durable": true}}]);
    let mut misspelt = policy(&namespace, deny(&rules));
    misspelt["spec"]["match"]["kinds"] = json!(["ArkMemry"]);
    misspelt["spec"]["rules"][0]["endpoint"] = Value::Null;
    misspelt["spec"]["defaults"] =
        json!([{"family": "ark", "kind": "Query", "field": "/spec/memory", "value": "notes"}]);
    let refusal = apply(cluster, &misspelt)?.refusal()?;
    for words in [r#"there is no kind "ArkMemry""#, r#"did you mean "ArkMemory""#, "spec.defaults[0].value"] {
        ensure!(refusal.contains(words), "{words}: {refusal}");
    }
    Ok(())
}

fn exemptions(fixture: &Fixture) -> Result<()> {
    let (cluster, namespace) = scene(fixture)?;
    let granting = cluster.fresh_namespace("granting")?;
    let mut spec = deny(&json!([{"id": "durable", "backends": {"durable": true}}]));
    spec["exemptions"] = json!({"namespaces": [granting], "maxAge": "1d"});
    apply(cluster, &policy(&namespace, spec))?.ok()?;
    let scratch = memory_of("scratch", &json!({"backend": "in-context"}));
    until_denied(cluster, &namespace, &scratch, "/durable)")?;

    let now = Timestamp::now();
    let exemption = |home: &str| {
        let spec = json!({
            "policy": namespace, "rules": ["durable"], "target": {"namespaces": [namespace], "names": ["scr*"]},
            "reason": "it moves to redis soon", "from": (now - 1.hour()).to_string(),
            "expiresAt": (now + 1.hour()).to_string(),
        });
        object("MemoryPolicyExemption", &json!({"name": "scratch", "namespace": home}), &spec)
    };
    // The policy does not allow exemptions in this namespace.
    apply(cluster, &exemption(&namespace))?.ok()?;
    apply(cluster, &exemption(&granting))?.ok()?;
    until_admitted(cluster, &namespace, &scratch)?;
    let other = memory_of("other", &json!({"backend": "in-context"}));
    until_denied(cluster, &namespace, &other, "/durable)")?;
    cluster.kubectl(&["delete", "memorypolicyexemption", "scratch", "-n", &granting])?.ok()?;
    until_denied(cluster, &namespace, &scratch, "/durable)")
}
