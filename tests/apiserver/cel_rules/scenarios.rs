//! What policies do over several steps.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use super::{PolicyCluster, objects, refused_for};
use crate::{
    fixture::Fixture,
    going::{Also, Going, rows},
    request::{Answer, path},
    samples::{memory, memory_of},
    support::wait,
};

/// The apiserver knows every field that a rule reads, of every kind that the rule is for.
pub(super) fn knows_types(fixture: &Fixture) -> Result<()> {
    let policies = fixture.policies()?;
    let mut checked = 0;
    for policy in objects()?.iter().filter(|object| object["kind"] == "ValidatingAdmissionPolicy") {
        let name = policy["metadata"]["name"].as_str().context("a policy has a name")?;
        let warnings = policies.type_warnings(name)?;
        ensure!(warnings.is_null(), "{name}: {warnings:#}");
        checked += 1;
    }
    ensure!(checked >= 14, "{checked} policies were checked");
    Ok(())
}

/// A fault that is stored does not stop a change of a label, but a change of what it rests on has to
/// mend it.
pub(super) fn lets_stored_faults_be(fixture: &Fixture) -> Result<()> {
    let policies = fixture.policies()?;
    let namespace = policies.cluster.fresh_namespace("stored")?;
    let vectors = |endpoint: &str, labels: Value| {
        let store = json!({"provider": "qdrant", "endpoint": endpoint, "secretRef": {"name": ""}});
        let mut object = memory_of("notes", &json!({"backend": "vector-store", "vectorStore": store}));
        object["metadata"]["labels"] = labels;
        object
    };
    let stored = policies.store(&namespace, &vectors(" ", json!({})))?.object()?;
    let code = |object: &Value| refused_for(&policies.update(&namespace, &stored, object)?);
    ensure!(code(&vectors(" ", json!({"tier": "gold"})))?.is_none());
    // Another fault of the same rule, and one of two faults mended.
    ensure!(code(&vectors("  ", json!({})))?.as_deref() == Some("arkonis/endpoint-required"));
    ensure!(code(&vectors("http://qdrant:6333", json!({})))?.is_none());
    // A fault that comes with the change.
    let redis = memory_of("notes", &json!({"backend": "redis"}));
    ensure!(code(&redis)?.as_deref() == Some("arkonis/redis-required"));
    ensure!(code(&memory("notes"))?.is_none());
    policies.remove(&namespace, &stored)
}

/// The largest objects that rules look at, as bad as can be, cost less than the apiserver allows.
/// What is larger is not looked at.
pub(super) fn costs_little(fixture: &Fixture) -> Result<()> {
    let policies = fixture.policies()?;
    let namespace = policies.cluster.fresh_namespace("large")?;
    for (count, covered) in [(128, true), (129, false)] {
        for (name, object) in large(count) {
            let stored = policies.store(&namespace, &object).and_then(Answer::object).context(name)?;
            // Both the new and the stored object are looked at, and none of the faults is the same.
            let other = serde_json::from_str(
                &object.to_string().replace("xx", "yy").replace("recall_memory", "remember"),
            )?;
            let code = refused_for(&policies.update(&namespace, &stored, &other)?).context(name)?;
            ensure!(code.is_some() == covered, "{count} {name}: {code:?}");
            // All of them are.
            let mut same = object.clone();
            same["metadata"]["labels"] = json!({"tier": "gold"});
            let code = refused_for(&policies.update(&namespace, &stored, &same)?).context(name)?;
            ensure!(code.is_none(), "{count} {name}: {code:?}");
            policies.remove(&namespace, &stored)?;
        }
    }
    Ok(())
}

/// Objects with so many faults each.
fn large(count: usize) -> Vec<(&'static str, Value)> {
    let list = |entry: &dyn Fn(usize) -> Value| Value::Array((0..count).map(entry).collect());
    let object = |version: &str, kind: &str, spec: Value| {
        let metadata = json!({"name": "large"});
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
    };
    // The numbers are at the end, so that texts are compared as a whole.
    let text = |length: usize, number: usize| json!(format!("{}{number:04}", "x".repeat(length - 4)));
    let header = |number| {
        let value = format!("{}{number:04}\u{7f}", "x".repeat(4091));
        json!({"name": format!("{}{number:04} ", "x".repeat(251)), "value": {"value": value}})
    };
    let tool = |number: usize| json!(format!("{}recall_memory", " ".repeat(number)));
    let config = |number| json!({"name": text(256, number), "systemPrompt": "x"});
    let excluded = list(&|number| text(256, number + count));
    vec![
        (
            "headers",
            object(
                "ark.mckinsey.com/v1alpha1",
                "Memory",
                json!({"address": {"value": "http://xx"}, "headers": list(&header)}),
            ),
        ),
        (
            "operations",
            object(
                "orloj.dev/v1",
                "Agent",
                json!({
                    "prompt": "x", "memory": {"ref": "kb", "allow": list(&|number| text(256, number))},
                }),
            ),
        ),
        (
            "approvals",
            object(
                "core.orka.ai/v1alpha1",
                "Agent",
                json!({"coordination": {"enabled": true, "approvalRequiredTools": list(&tool)}}),
            ),
        ),
        (
            "configs",
            object(
                "sympozium.ai/v1alpha1",
                "Ensemble",
                json!({"agentConfigs": list(&config), "excludePersonas": excluded}),
            ),
        ),
    ]
}

/// An object that a finalizer keeps is judged where its spec changes; its labels and finalizers go unseen.
pub(super) fn judges_objects_that_go(fixture: &Fixture) -> Result<()> {
    let policies = fixture.policies()?;
    let namespace = policies.cluster.fresh_namespace("going")?;
    let mut kinds = 0;
    for row in rows(&namespace) {
        let changes: Vec<_> = row.changes.iter().filter(|change| change.also == Also::Vap).collect();
        if changes.is_empty() {
            continue;
        }
        kinds += 1;
        let going = Going::store(&policies.cluster, &policies.cluster.client(), &namespace, &row.object)?;
        let refuses = || {
            for change in &changes {
                let answer = going.with_spec(&change.spec)?;
                let code = refused_for(&answer)?;
                ensure!(code.as_deref() == Some(change.code), "{}: {}", change.code, answer.message());
            }
            anyhow::Ok(())
        };
        refuses()?;
        going.delete()?;
        refuses()?;
        going.let_go()?;
    }
    ensure!(kinds >= 7, "{kinds} kinds");
    Ok(())
}

/// Only where the namespace has a Memory `default` that stays, and the Query names none.
pub(super) fn gives_a_query_its_memory(fixture: &Fixture) -> Result<()> {
    let policies = fixture.policies()?;
    let namespace = policies.cluster.fresh_namespace("queries")?;
    ensure!(memory_of_query(policies, &namespace, json!({}))?.is_null(), "there is no Memory yet");
    let mut default = json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory",
        "metadata": {"name": "default", "finalizers": ["test.memgate.dev/hold"]},
        "spec": {"address": {"value": "http://ark-broker"}},
    });
    policies.store(&namespace, &default)?.object()?;
    // Params reach the policy through a watch.
    let written = wait::until("a Query to get its Memory", || {
        let memory = memory_of_query(policies, &namespace, json!({}))?;
        Ok((!memory.is_null()).then_some(memory))
    })?;
    ensure!(written == json!({"name": "default"}), "{written}");
    let own = memory_of_query(policies, &namespace, json!({"name": "own"}))?;
    ensure!(own == json!({"name": "own"}), "{own}");

    let at = path(&default, &namespace, Some("default"))?;
    policies.send_exempt(Method::DELETE, &at, None)?.object()?;
    wait::until("a Query to be left alone", || {
        Ok(memory_of_query(policies, &namespace, json!({}))?.is_null().then_some(()))
    })?;
    default = policies.send_exempt(Method::GET, &at, None)?.object()?;
    default["metadata"]["finalizers"] = json!([]);
    policies.send_exempt(Method::PUT, &at, Some(&default))?.object()?;
    Ok(())
}

/// `spec.memory` of a Query that is created with this one; an empty one stands for none.
fn memory_of_query(policies: &PolicyCluster, namespace: &str, memory: Value) -> Result<Value> {
    let mut query = json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Query",
        "metadata": {"name": "ask"},
        "spec": {"input": "What did we say?", "target": {"type": "agent", "name": "scout"}},
    });
    if memory != json!({}) {
        query["spec"]["memory"] = memory;
    }
    let created = policies.create(namespace, &query)?.object()?;
    Ok(created["spec"]["memory"].clone())
}
