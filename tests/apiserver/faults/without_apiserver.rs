//! memgate without the apiserver, which is away, does not answer, or has lost what it knew.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use axum::http::Request;
use serde_json::{Value, json};

use super::calls::Caller;
use crate::{
    installed::MEMGATE,
    request::{Answer, create},
    samples::{agent, memory},
    support::{
        control_plane::ControlPlane,
        load::{Load, Pace},
        wait,
        webhook::{Serve, Webhook},
        wire::Wire,
    },
};

/// How often it is asked, and looked whether it is ready.
const PACE: Pace = Pace { per_second: 20, at_once: 10 };

/// A memgate whose way to the apiserver is a wire, and which knows one agent with its memory.
pub(crate) struct WithoutApiserver {
    /// The memgate.
    pub(crate) memgate: Webhook,
    /// Its way to the apiserver.
    pub(crate) wire: Wire,
    /// Where the agent is.
    pub(crate) namespace: String,
    caller: Caller,
    load: Load,
}

impl WithoutApiserver {
    /// Starts it with the identity in a kubeconfig file, and asks it all the time from then on.
    pub(crate) fn start(cluster: &ControlPlane, kubeconfig: &Path) -> Result<Self> {
        let wire = Wire::start(cluster.runtime(), address(&cluster.url())?)?;
        let namespace = cluster.fresh_namespace("isolated")?;
        for object in [memory("notes"), agent("scout", "notes")] {
            cluster.block_on(create(&cluster.client(), &namespace, &object, ""))?.object()?;
        }
        let kubeconfig = by_way_of(cluster, kubeconfig, wire.address(), &namespace)?;
        let memgate = Serve::new(MEMGATE).kubeconfig(&kubeconfig).ready()?;
        let caller = Caller::new(cluster, &memgate.endpoint(), &namespace)?;
        let always = caller.clone();
        let load = Load::start(cluster.runtime(), PACE, move |_| {
            let caller = always.clone();
            Box::pin(async move { caller.ask("scout").await })
        });
        let isolated = Self { memgate, wire, namespace, caller, load };
        isolated.still_serves()?;
        Ok(isolated)
    }

    /// That every call since the last time got its memory, and that it is ready.
    pub(crate) fn still_serves(&self) -> Result<()> {
        let calls =
            wait::until("some calls", || Ok(Some(self.load.take()).filter(|calls| calls.ended() > 0)))?;
        calls.all_good()?;
        let ready = self.memgate.probe("/readyz").context("memgate does not answer probes")?;
        ensure!(ready.0 == 200, "{ready:?}");
        Ok(())
    }

    /// The same, looked at all the time for so long.
    pub(crate) fn serves_for(&self, time: Duration) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < time {
            self.still_serves()?;
            sleep(Duration::from_millis(500).min(time));
        }
        Ok(())
    }

    /// Its answer about a pod of an agent with further labels.
    pub(crate) fn answer(
        &self,
        cluster: &ControlPlane,
        agent: &str,
        labels: &[(&str, &str)],
    ) -> Result<Answer> {
        cluster.block_on(self.caller.answer(agent, labels))
    }

    /// How old what it knows of arkonis is, by its own word.
    pub(crate) fn age(&self) -> Result<Duration> {
        Ok(Duration::from_secs_f64(self.memgate.metric("memgate_store_age_seconds{family=\"arkonis\"}")?))
    }

    /// The lines of its log that are more than information.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let log = self.memgate.log();
        let lines = log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR "));
        lines.map(str::to_owned).collect()
    }

    /// Has the memory refer to another Secret.
    pub(crate) fn change(&self, cluster: &ControlPlane, secret: &str) -> Result<()> {
        let patch = json!({"spec": {"redis": {"secretRef": {"name": secret}}}}).to_string();
        let patch = ["patch", "arkmemory", "notes", "-n", &self.namespace, "--type=merge", "-p", &patch];
        cluster.kubectl(&patch)?.ok()?;
        Ok(())
    }

    /// Whether it goes by a memory that refers to this Secret; only its watches can have shown it.
    pub(crate) fn goes_by(&self, cluster: &ControlPlane, secret: &str) -> Result<bool> {
        Ok(cluster.block_on(self.caller.patch("scout"))?.contains(secret))
    }

    /// Waits until it does; how long that took.
    pub(crate) fn learns(
        &self,
        cluster: &ControlPlane,
        secret: &str,
        patience: Duration,
    ) -> Result<Duration> {
        let start = Instant::now();
        while !self.goes_by(cluster, secret)? {
            let log = || self.memgate.log();
            ensure!(start.elapsed() < patience, "it has not learned of {secret} in {patience:?}:\n{}", log());
            self.still_serves()?;
            sleep(Duration::from_millis(50));
        }
        Ok(start.elapsed())
    }

    /// Ends the calls, which all must have been good.
    pub(crate) fn end(self) -> Result<()> {
        self.load.stop()?.all_good()
    }
}

/// How often the apiserver that runs now was asked to list a resource: of two groups with one of that name, the one that
/// was listed more often.
pub(crate) fn lists(cluster: &ControlPlane, resource: &str) -> Result<u64> {
    let request = Request::get("/metrics").body(Vec::new())?;
    let metrics = cluster.block_on(cluster.client().request_text(request))?;
    let resource = format!("resource=\"{resource}\"");
    let series = metrics.lines().filter(|line| {
        line.starts_with("apiserver_request_total{")
            && line.contains("verb=\"LIST\"")
            && line.contains(&resource)
    });
    let mut by_group = BTreeMap::<&str, u64>::new();
    for line in series {
        let group = line.split("group=\"").nth(1).and_then(|rest| rest.split('"').next());
        let count = line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
        *by_group.entry(group.unwrap_or_default()).or_default() += count.unwrap_or_default();
    }
    Ok(by_group.into_values().max().unwrap_or_default())
}

/// `127.0.0.1:PORT` of `https://127.0.0.1:PORT`.
pub(crate) fn address(url: &str) -> Result<SocketAddr> {
    let address = url.strip_prefix("https://").context("the address does not begin with https")?;
    address.parse().with_context(|| format!("{url} has no address"))
}

/// A kubeconfig file like this one that leads elsewhere.
pub(crate) fn by_way_of(
    cluster: &ControlPlane,
    kubeconfig: &Path,
    way: SocketAddr,
    name: &str,
) -> Result<PathBuf> {
    let mut config: Value = serde_json::from_str(&fs::read_to_string(kubeconfig)?)?;
    config["clusters"][0]["cluster"]["server"] = json!(format!("https://{way}"));
    cluster.scratch().write(&format!("{name}.kubeconfig"), &config.to_string())
}
