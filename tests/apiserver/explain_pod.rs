//! That `memgate explain-pod NAMESPACE/NAME` says what a pod was given.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    samples::{agent, memory, pod},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("explain_pod::says_what_was_added", added)]
}

fn explain(kubeconfig: &Path, pod: &str) -> Result<(String, Output)> {
    let mut command = Command::new(MEMGATE);
    command.arg("explain-pod").arg(pod).arg("--kubeconfig").arg(kubeconfig).env_clear();
    let output = command.output().context("memgate does not start")?;
    let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    Ok((String::from_utf8(all)?, output))
}

/// With the right to get pods alone.
fn added(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("explained", &[])?;
    for mut object in [memory("notes"), agent("scout", "notes"), pod("scout-0", "scout", &[])] {
        object["metadata"]["namespace"] = json!(namespace);
        cluster.admin().apply(&object.to_string())?;
    }
    let kubeconfig = cluster.account_that_may("get", "pods", &namespace)?;
    let (text, output) = explain(&kubeconfig, &format!("{namespace}/scout-0"))?;
    ensure!(output.status.success() && output.stderr.is_empty(), "{text}");
    let head = format!("Pod {namespace}/scout-0: memory of ArkMemory/notes, added by memgate ");
    ensure!(text.starts_with(&head) && text.contains("\n    AGENT_MEMORY_REDIS_TTL\n"), "{text}");

    let (text, output) = explain(&kubeconfig, &format!("{namespace}/absent"))?;
    ensure!(output.status.code() == Some(2), "{text}");
    ensure!(text == format!("error: there is no Pod {namespace}/absent\n"), "{text}");
    Ok(())
}
