//! What a user of kubectl reads, word by word: each warning once, and a denial with every cause.
//!
//! kubectl shows the refusal of a single object by its causes, and one among several objects by
//! its message. Names that no other trial uses keep hints at other namespaces out of the words.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    samples::{agent, memory_of, pod},
    support::{kubectl::Output, wait},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("kubectl_output::of_a_denial_name_every_cause", of_a_denial),
        Trial::new("kubectl_output::of_a_required_pod_name_what_is_missing", of_a_required_pod),
        Trial::new("kubectl_output::of_a_warning_come_once", of_a_warning),
        Trial::new("kubectl_output::of_several_objects_come_once_each", of_several_objects),
        Trial::new("kubectl_output::of_a_deletion_name_who_needs_it", of_a_deletion),
    ]
}

fn of_a_denial(fixture: &Fixture) -> Result<()> {
    let namespace = fixture.namespace("denied", &[])?;
    let memory = memory_of(
        "notes",
        &json!({
            "backend": "vector-store",
            "vectorStore": {"provider": "qdrant", "endpoint": "", "secretRef": {"name": ""}},
        }),
    );
    let stderr = apply(fixture, &namespace, &memory)?.refusal()?;
    is(
        &stderr,
        &[
            "The ArkMemory \"notes\" is invalid: ",
            "* spec.vectorStore.endpoint: spec.vectorStore.endpoint is required \
             (memgate arkonis/endpoint-required)",
            "* spec.vectorStore.secretRef.name: spec.vectorStore.secretRef.name is required when secretRef is set \
             (memgate arkonis/vector-secret-name)",
        ],
    )
}

fn of_a_required_pod(fixture: &Fixture) -> Result<()> {
    let namespace = fixture.namespace("insisting", &[])?;
    let pod = pod("scout", "scout", &[("memgate.dev/inject", "required")]);
    let stderr = apply(fixture, &namespace, &pod)?.refusal()?;
    is(
        &stderr,
        &[&format!(
            "The Pod \"scout\" is invalid: spec: the pod requires its memory (memgate.dev/inject: required), but ArkAgent \"scout\" not found in \
             namespace \"{namespace}\"; see metadata.labels[arkonis.dev/deployment] \
             (memgate arkonis/pod-agent-not-found)"
        )],
    )
}

fn of_a_warning(fixture: &Fixture) -> Result<()> {
    let namespace = fixture.namespace("warned", &[])?;
    let warning = format!("ArkMemory \"diary\" not found in namespace \"{namespace}\"");
    for (object, field, code) in [
        (agent("scout", "diary"), "spec.memoryRef.name", "arkonis/memory-not-found"),
        (
            pod("scout", "scout", &[]),
            "metadata.labels[arkonis.dev/deployment]",
            "arkonis/pod-memory-not-found",
        ),
    ] {
        let warning = format!("Warning: {field}: {warning} (memgate {code})");
        is(&apply(fixture, &namespace, &object)?.ok()?.stderr, &[&warning])?;
    }
    Ok(())
}

fn of_several_objects(fixture: &Fixture) -> Result<()> {
    let namespace = fixture.namespace("several", &[])?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        memory_of("notes", &json!({"backend": "in-context", "redis": {"secretRef": {"name": "old"}}})),
        memory_of(
            "bad",
            &json!({"backend": "redis", "redis": {"secretRef": {"name": "A B"}, "maxEntries": -1}}),
        ),
        agent("scout", "notes"),
        agent("ranger", "diary"),
        pod("scout", "absent", &[("memgate.dev/inject", "required")]),
    ]});
    let output = apply(fixture, &namespace, &list)?;
    let refused = "Error from server (Invalid): error when creating \"STDIN\": admission webhook";
    is(
        &output.refusal()?,
        &[
            "Warning: spec.redis is ignored when backend is \"in-context\" (memgate arkonis/section-unused)",
            "Warning: spec.redis.maxEntries is negative and means unlimited; write 0 (memgate arkonis/number-negative)",
            &format!(
                "Warning: spec.memoryRef.name: ArkMemory \"diary\" not found in namespace \"{namespace}\" \
             (memgate arkonis/memory-not-found)"
            ),
            &format!(
                "{refused} \"resources.memgate.dev\" denied the request: ArkMemory.arkonis.dev \"bad\" is \
             invalid: spec.redis.secretRef.name: \"A B\" is not a valid Secret name; did you mean \"a-b\"? (memgate \
             arkonis/secret-name-invalid)"
            ),
            &format!(
                "{refused} \"required.pods.memgate.dev\" denied the request: Pod \"scout\" is invalid: the \
             pod requires its memory (memgate.dev/inject: required), but ArkAgent \"absent\" not found in namespace \"{namespace}\"; see \
             metadata.labels[arkonis.dev/deployment] (memgate arkonis/pod-agent-not-found)"
            ),
        ],
    )
}

fn of_a_deletion(fixture: &Fixture) -> Result<()> {
    let namespace = fixture.namespace("deleted", &[])?;
    for object in [memory_of("notes", &json!({"backend": "in-context"})), agent("scout", "notes")] {
        apply(fixture, &namespace, &object)?.ok()?;
    }
    let cluster = fixture.cluster()?;
    let delete = ["delete", "arkmemory", "notes", "-n", &namespace];
    // Who refers to a memory is known from a watch alone.
    wait::until("memgate to know the agent", || {
        let dry = cluster.kubectl(&[&delete[..], &["--dry-run=server"]].concat())?.ok()?;
        Ok((!dry.stderr.is_empty()).then_some(()))
    })?;
    is(
        &cluster.kubectl(&delete)?.ok()?.stderr,
        &[
            "Warning: ArkAgent \"scout\" still references ArkMemory \"notes\" (memgate arkonis/in-use-deleted)",
        ],
    )
}

fn apply(fixture: &Fixture, namespace: &str, object: &Value) -> Result<Output> {
    fixture.cluster()?.admin().apply_in(namespace, &object.to_string())
}

fn is(stderr: &str, expected: &[&str]) -> Result<()> {
    ensure!(
        stderr.lines().eq(expected.iter().copied()),
        "kubectl said:\n{stderr}\nnot:\n{}",
        expected.join("\n")
    );
    Ok(())
}
