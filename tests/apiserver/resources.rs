//! That a family's own objects are validated on their way in, and that what is stored can be mended
//! and removed.

use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    request::{Answer, create, path, send},
    samples::{COMPLETE, agent, env_names, memory, memory_of, pod},
    support::{control_plane::ControlPlane, kubectl::Output},
};

const REDIS_REQUIRED: &str = "spec.redis is required when backend is \"redis\"";
const VECTOR_STORE_REQUIRED: &str = "spec.vectorStore is required when backend is \"vector-store\"";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("resources::stored_invalid_can_be_labelled_and_mended", stored_invalid),
        Trial::new("resources::being_deleted_lose_their_finalizers", being_deleted),
        Trial::new("resources::have_a_status_that_is_not_validated", status),
        Trial::new("resources::dry_runs_decide_the_same_and_store_nothing", dry_runs),
    ]
}

/// A memory that memgate would refuse, stored without asking it, with a finalizer.
fn invalid(fixture: &Fixture, namespace: &str) -> Result<Value> {
    let mut memory = memory_of("notes", &json!({"backend": "redis"}));
    memory["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let exempt = fixture.memgate()?.exempt_client();
    fixture.cluster()?.block_on(create(&exempt, namespace, &memory, ""))?.object()
}

fn patch(cluster: &ControlPlane, namespace: &str, patch: &Value) -> Result<Output> {
    let patch = patch.to_string();
    cluster.kubectl(&["patch", "arkmemory", "notes", "-n", namespace, "--type=merge", "--patch", &patch])
}

fn stored_invalid(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("stored", &[])?;
    invalid(fixture, &namespace)?;

    let labels = json!({"metadata": {"labels": {"team": "a"}, "annotations": {"seen": "1"}}});
    let labelled = patch(cluster, &namespace, &labels)?.ok()?;
    ensure!(
        labelled.stderr == format!("Warning: {REDIS_REQUIRED} (memgate arkonis/redis-required)\n"),
        "{}",
        labelled.stderr
    );

    let other = patch(cluster, &namespace, &json!({"spec": {"backend": "vector-store"}}))?.refusal()?;
    ensure!(other.matches(VECTOR_STORE_REQUIRED).count() == 1, "{other}");
    ensure!(!other.contains(REDIS_REQUIRED), "{other}");

    let redis = json!({"spec": {"redis": {"secretRef": {"name": "notes-redis"}}}});
    let mended = patch(cluster, &namespace, &redis)?.ok()?;
    ensure!(mended.stderr.is_empty(), "{}", mended.stderr);
    Ok(())
}

fn being_deleted(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("leaving", &[])?;
    invalid(fixture, &namespace)?;
    let delete = ["delete", "arkmemory", "notes", "-n", &namespace, "--wait=false"];
    let deleted = cluster.kubectl(&delete)?.ok()?;
    ensure!(deleted.stderr.is_empty(), "{}", deleted.stderr);
    // Pods still use it, so a new spec is validated.
    let refused = patch(cluster, &namespace, &json!({"spec": {"backend": "vector-store"}}))?.refusal()?;
    ensure!(refused.contains(VECTOR_STORE_REQUIRED), "{refused}");
    let freed = patch(cluster, &namespace, &json!({"metadata": {"finalizers": null}}))?.ok()?;
    ensure!(freed.stderr.is_empty(), "{}", freed.stderr);
    let gone = cluster.kubectl(&["get", "arkmemory", "notes", "-n", &namespace])?.refusal()?;
    ensure!(gone.contains("(NotFound)"), "{gone}");
    Ok(())
}

/// As the operator writes it, on an object that memgate would refuse.
fn status(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("status", &[])?;
    let mut memory = invalid(fixture, &namespace)?;
    memory["status"] = json!({"observedGeneration": 1});
    let path = path(&memory, &namespace, Some("notes"))? + "/status";
    let answer = cluster.block_on(send(&cluster.client(), Method::PUT, &path, Some(&memory)))?;
    ensure!(answer.warnings.is_empty(), "{:?}", answer.warnings);
    ensure!(answer.object()?["status"]["observedGeneration"] == 1);
    Ok(())
}

fn dry_runs(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let client = cluster.client();
    let namespace = fixture.namespace("dry", &[])?;
    let objects = [
        memory_of("bad", &json!({"backend": "redis"})),
        memory_of("odd", &json!({"backend": "in-context", "redis": {"secretRef": {"name": "left-over"}}})),
        memory("notes"),
        agent("scout", "notes"),
        pod("scout", "scout", &[]),
        pod("lost", "absent", &[]),
        pod("insisting", "absent", &[("memgate.dev/inject", "required")]),
    ];
    for object in &objects {
        let attempt = |query| cluster.block_on(create(&client, &namespace, object, query));
        let dry = attempt("?dryRun=All")?;
        let name = object["metadata"]["name"].as_str();
        let path = path(object, &namespace, name)?;
        let stored = cluster.block_on(send(&client, Method::GET, &path, None))?;
        ensure!(stored.status == 404, "a dry run stored {object}");

        let real = attempt("")?;
        let outcome = |answer: &Answer| {
            let annotations = &answer.body["metadata"]["annotations"];
            (answer.status, answer.message().to_owned(), answer.warnings.clone(), annotations.clone())
        };
        ensure!(outcome(&dry) == outcome(&real), "{:?} is not {:?}", outcome(&dry), outcome(&real));
        ensure!(env_names(&dry.body) == env_names(&real.body), "{} is not {}", dry.body, real.body);
        if name == Some("scout") && object["kind"] == "Pod" {
            ensure!(env_names(&real.body) == COMPLETE, "{}", real.body);
        }
    }
    Ok(())
}
