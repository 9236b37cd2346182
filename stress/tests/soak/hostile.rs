//! Ordinary calls of one tenant beside the worst that others can send, for long and in the memory of a small
//! container: nothing ends, memory stays as it is, and the ordinary calls are about as fast as alone.

use std::{path::Path, sync::Arc, time::Instant};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    day::check_growth,
    faults::{
        calls::{Call, Caller, through_apiserver},
        fleet::Fleet,
    },
    installed::{MEMGATE, install_account, install_crds},
    replicas::pace,
    request::create,
    runs::Parameters,
    support::{
        cgroup::Cgroup,
        control_plane::ControlPlane,
        load::{Failure, Load, Pace, Tally},
        process::Usage,
        review,
        scratch::Scratch,
    },
};

/// The memory limit of the container in the manifests.
const MEMORY_LIMIT: u64 = 256 << 20;

/// How much slower the slowest hundredth of ordinary calls may be beside the others.
const MAX_SLOWDOWN: u32 = 2;

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let cluster = ControlPlane::start()?;
    let Confined { cgroup, mut fleet, call, alone, .. } = Confined::start(&cluster, parameters)?;

    let worst = Pace { per_second: parameters.number("hostile")?, at_once: 20 };
    let hostile = Load::start(cluster.runtime(), worst, hostile(&cluster, &fleet)?);
    let ordinary = Load::start(cluster.runtime(), pace(parameters)?, call);
    let (begin, time, window) = (Instant::now(), parameters.seconds("time")?, parameters.seconds("window")?);
    let (mut used, mut beside, mut sent) = (Vec::new(), Tally::default(), Tally::default());
    while begin.elapsed() < time {
        std::thread::sleep(window);
        let usage = usage(&mut fleet)?;
        let (called, hostile) = (ordinary.take(), hostile.take());
        println!(
            "{:>5.0?} {usage:?}, at most {} KiB in all; {called}",
            begin.elapsed(),
            cgroup.peak()? >> 10
        );
        used.push(usage);
        beside.add(called);
        sent.add(hostile);
    }
    sent.add(hostile.stop()?);
    beside.add(ordinary.stop()?);
    println!("beside hostile calls: {beside}\nhostile: {sent}");
    println!("at most {} KiB in all, {} killed", cgroup.peak()? >> 10, cgroup.kills()?);
    let _running = usage(&mut fleet).context("the replica has ended")?;
    ensure!(cgroup.kills()? == 0, "the memory of the container did not do");
    beside.all_good()?;
    check_growth(&used)?;
    as_fast(&alone, &beside)
}

/// A replica in the memory of the container, and calls of one tenant that were measured alone.
pub(crate) struct Confined<C> {
    pub(crate) cgroup: Cgroup,
    pub(crate) fleet: Fleet,
    pub(crate) call: C,
    pub(crate) alone: Tally,
    _scratch: Scratch,
}

impl Confined<()> {
    /// Starts the replica, and measures the calls for the time of the parameter `quiet`.
    pub(crate) fn start(
        cluster: &ControlPlane,
        parameters: &Parameters,
    ) -> Result<Confined<impl Fn(u64) -> Call + Clone + Send + 'static>> {
        let (cgroup, scratch) = (Cgroup::new(MEMORY_LIMIT)?, Scratch::new("confined")?);
        let program = Path::new(parameters.text_or("memgate", MEMGATE)?);
        install_crds(cluster)?;
        let kubeconfig = install_account(cluster)?;
        let fleet = Fleet::of(&[cgroup.program(program, &scratch)?], cluster, &kubeconfig, 1)?;
        let call = through_apiserver(cluster, &fleet.namespace)?;
        let alone = Load::start(cluster.runtime(), pace(parameters)?, call.clone());
        std::thread::sleep(parameters.seconds("quiet")?);
        let alone = alone.stop()?;
        println!("alone: {alone}");
        alone.all_good()?;
        Ok(Confined { cgroup, fleet, call, alone, _scratch: scratch })
    }
}

/// Fails when the slowest hundredth of calls took too much longer than that of the calls alone.
pub(crate) fn as_fast(alone: &Tally, beside: &Tally) -> Result<()> {
    let (fast, slow) = (alone.within(0.99), beside.within(0.99));
    ensure!(slow <= fast * MAX_SLOWDOWN, "p99 went from {fast:.1?} to {slow:.1?}");
    Ok(())
}

fn usage(fleet: &mut Fleet) -> Result<Usage> {
    let replica = fleet.replicas.first_mut().context("there is no replica")?;
    replica.process().usage().context("the replica is gone")
}

/// A call of the hostile tenant: through the apiserver, or past it straight to the port of the webhook.
#[derive(Clone)]
enum Hostile {
    /// Creates an object in a dry run.
    Object(Arc<Value>),
    /// Sends a review to a path.
    Review(&'static str, Arc<Value>),
}

/// The hostile calls in turns. Every answer will do, as long as there is one.
fn hostile(cluster: &ControlPlane, fleet: &Fleet) -> Result<impl Fn(u64) -> Call + Send + 'static> {
    let replica = fleet.replicas.first().context("there is no replica")?;
    let caller = Caller::new(cluster, &replica.endpoint(), &fleet.namespace)?;
    let (client, namespace, calls) = (cluster.client(), fleet.namespace.clone(), calls());
    Ok(move |number: u64| -> Call {
        let turn = usize::try_from(number).unwrap_or_default() % calls.len();
        let (call, client, caller, namespace) =
            (calls[turn].clone(), client.clone(), caller.clone(), namespace.clone());
        Box::pin(async move { send(call, &client, &caller, &namespace).await })
    })
}

async fn send(call: Hostile, client: &Client, caller: &Caller, namespace: &str) -> Result<(), Failure> {
    let failed = |error: anyhow::Error| Failure::new("not answered", format!("{error:#}"));
    match call {
        Hostile::Object(object) => {
            create(client, namespace, &object, "?dryRun=All").await.map_err(failed)?;
        }
        Hostile::Review(path, review) => {
            caller.send(Method::POST, path, &review).await.map_err(failed)?;
        }
    }
    Ok(())
}

/// Lists of tiny, wrong, equal and unique elements: as large as an apiserver takes them, and up to the largest body
/// straight to the port.
fn calls() -> Vec<Hostile> {
    let object = |object: Value| Hostile::Object(Arc::new(object));
    let review = |path, object: &Value| Hostile::Review(path, Arc::new(review(object)));
    let allow = |entry: &Value, count| agent(&vec![entry.clone(); count]);
    vec![
        object(allow(&json!("wrong"), 10_000)),
        object(headers(5_000)),
        object(pod(&vec![json!({"name": "c", "image": "i"}); 1_000], "scout")),
        review("/validate?timeout=5s", &allow(&json!(1), 1_500_000)),
        review("/validate?timeout=5s", &headers(10_000)),
        review("/mutate?timeout=5s", &pod(&vec![json!({}); 2_000_000], "scout")),
        review(
            "/mutate?timeout=5s",
            &pod(&vec![json!({"name": "c", "env": vec![json!({}); 2_000]}); 20], "scout"),
        ),
        review("/mutate?timeout=5s", &pod(&[json!({"name": "x".repeat(3 << 20)})], "scout")),
    ]
}

fn agent(allow: &[Value]) -> Value {
    json!({
        "apiVersion": "orloj.dev/v1", "kind": "Agent", "metadata": {"name": "hostile"},
        "spec": {"model_ref": "m", "memory": {"ref": "notes", "allow": allow}},
    })
}

fn headers(count: usize) -> Value {
    let header = |index| json!({"name": format!("X-{index}"), "value": {"value": "v"}});
    json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": {"name": "hostile"},
        "spec": {"address": {"value": "http://memory"}, "headers": (0..count).map(header).collect::<Vec<_>>()},
    })
}

fn pod(containers: &[Value], agent: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "hostile", "labels": {"arkonis.dev/deployment": agent}},
        "spec": {"containers": containers},
    })
}

fn review(object: &Value) -> Value {
    let mut review = review::review("hostile", object);
    review["request"]["dryRun"] = json!(true);
    review
}
