//! How soon a change of a policy or an exemption counts on each of two replicas. Each is asked itself: through the
//! apiserver the quicker one could answer for both.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use super::{
    asked::{Asked, Said, delete, store},
    object,
};
use crate::{
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    samples::memory_of,
    support::{control_plane::ControlPlane, webhook::Serve},
};

/// How often everything changes.
const ROUNDS: usize = 10;

/// It is to take a second; a machine on which other trials run gets more.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("policies::changes_are_in_force_on_each_replica", in_force)]
}

fn in_force(fixture: &Fixture) -> Result<()> {
    let (cluster, memgate) = (fixture.cluster()?, fixture.memgate()?);
    let namespace = cluster.fresh_namespace("replicas")?;
    let serve = Serve::new(MEMGATE).kubeconfig(&memgate.kubeconfig);
    let replicas = [serve.ready()?, serve.ready()?];
    let asked = replicas.iter().map(|replica| Asked::new(cluster, replica, &namespace));
    let watched = Watched { cluster, asked: asked.collect::<Result<Vec<_>>>()? };

    let client = memgate.exempt_client();
    let (policy, exemption) = (policy(&namespace, "deny"), exemption(&namespace));
    let write = |object: &Value| -> Result<()> {
        store(cluster, &client, object)?.object()?;
        Ok(())
    };
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        took.extend(watched.after(|| write(&policy), "denied")?);
        took.extend(watched.after(|| write(&exemption), "exempt")?);
        took.extend(watched.after(|| delete(cluster, &client, &exemption), "denied")?);
        took.extend(watched.after(|| write(&self::policy(&namespace, "warn")), "warned")?);
        took.extend(watched.after(|| delete(cluster, &client, &policy), "nothing")?);
    }
    took.sort_unstable();
    let (median, longest) = (took[took.len() / 2], took.last().context("nothing was measured")?);
    println!("{} changes were in force after {median:?} in the middle, {longest:?} at most", took.len());
    Ok(())
}

/// The replicas, watched by asking.
struct Watched<'c> {
    cluster: &'c ControlPlane,
    asked: Vec<Asked>,
}

impl Watched<'_> {
    /// How long after the beginning of a change each replica says so of a memory that loses everything.
    fn after(&self, change: impl FnOnce() -> Result<()>, expected: &str) -> Result<Vec<Duration>> {
        let start = Instant::now();
        change()?;
        let mut took = vec![None; self.asked.len()];
        let scratch = memory_of("scratch", &json!({"backend": "in-context"}));
        while took.contains(&None) {
            let waited = start.elapsed();
            ensure!(
                waited < PATIENCE,
                "not all replicas say that it is {expected}: {took:?} of {PATIENCE:?}"
            );
            for (asked, took) in self.asked.iter().zip(&mut took).filter(|(_, took)| took.is_none()) {
                let said = asked.about(self.cluster, "arkmemories", &scratch)?;
                *took = (word(&said) == expected).then(|| start.elapsed());
            }
            sleep(Duration::from_millis(1));
        }
        Ok(took.into_iter().flatten().collect())
    }
}

/// What came of the policy.
fn word(said: &Said) -> &'static str {
    match said {
        Said { allowed: false, .. } => "denied",
        Said { exemptions, .. } if !exemptions.is_empty() => "exempt",
        Said { codes, .. } if codes.contains("/durable") => "warned",
        _ => "nothing",
    }
}

fn policy(namespace: &str, action: &str) -> Value {
    let spec = json!({
        "match": {"namespaces": [namespace]}, "actions": {"admission": action},
        "rules": [{"id": "durable", "backends": {"durable": true}}],
        "exemptions": {"namespaces": [namespace], "maxAge": "1d"},
    });
    object("MemoryPolicy", &json!({"name": namespace}), &spec)
}

fn exemption(namespace: &str) -> Value {
    let now = Timestamp::now();
    let spec = json!({
        "policy": namespace, "rules": ["durable"], "target": {"namespaces": [namespace]},
        "reason": "it moves to redis soon", "from": (now - 1.hour()).to_string(),
        "expiresAt": (now + 1.hour()).to_string(),
    });
    object("MemoryPolicyExemption", &json!({"name": "scratch", "namespace": namespace}), &spec)
}
