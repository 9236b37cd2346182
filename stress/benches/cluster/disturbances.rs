//! The slowest calls while a server lists what it knows anew, and while it ends.
//!
//! The apiserver and its store have what the server leaves of its core, so that the times are those of the server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use axum::http::Method;
use hdrhistogram::Histogram;
use serde_json::json;
use tokio::runtime::Runtime;

use super::cases::{DISTURBANCES, DRAINED, LISTED, MEMGATE, QUIET};
use super::cores;
use super::pool::Pool;
use crate::common::review;
use crate::figures::latency_figures;
use crate::installed::known_objects;
use crate::load::request;
use crate::many::create_all;
use crate::request::send;
use crate::results::Table;
use crate::state::memory;
use crate::support::control_plane::ControlPlane;
use crate::support::https::Caller;
use crate::support::wait;
use crate::support::webhook::{Identity, Serve, Webhook};

/// How often, how long, and among how many memories.
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// After which no more rounds are begun.
    pub(crate) longest: Duration,
    pub(crate) lasting: Duration,
    pub(crate) memories: usize,
    /// Calls a second.
    pub(crate) rate: u32,
    /// Whether apiserver and store get no more than what the server leaves; on a machine that has other things to do, that
    /// may be nothing.
    pub(crate) apart: bool,
}

/// When in a round it is disturbed.
const BEFORE: Duration = Duration::from_secs(1);

/// Among how many namespaces the memories are.
const NAMESPACES: usize = 10;

/// What defines memories.
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/arkmemories.arkonis.dev";

/// What memgate says when it has listed all of a kind.
const HAS_LISTED: [&str; 2] = ["all objects are read", "ArkMemory"];

/// How long calls took, and how many were refused.
type Times = (Histogram<u64>, u64);

/// What calls go on beside.
struct Scene<'c> {
    cluster: &'c ControlPlane,
    serve: Serve,
    ca: String,
    request: Arc<[u8]>,
    runtime: Runtime,
    plan: &'c Plan,
}

/// Times of calls to memgate, undisturbed and disturbed.
pub(crate) fn disturbances(
    cluster: &ControlPlane,
    kubeconfig: &Path,
    program: &Path,
    plan: &Plan,
) -> Result<Table> {
    if plan.apart {
        for process in cluster.processes()? {
            cores::leave_rest_to(cores::SERVER, process)?;
        }
    }
    cores::move_to(cores::LOAD)?;
    let memories = fill(cluster, plan.memories)?;
    let identity = Identity::new()?;
    let scene = Scene {
        cluster,
        serve: Serve::new(program).kubeconfig(kubeconfig).identity(&identity),
        ca: identity.ca().to_owned(),
        request: request(&review("arkonis.dev/deployment", 20, 600, false)),
        runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        plan,
    };
    let mut table = Table::new(DISTURBANCES, "what happens");
    let mut memgate = scene.start()?;
    ensure!(known_objects(&memgate)? >= memories, "memgate does not know all memories");
    let start = Instant::now();
    for round in 0..plan.rounds {
        if round > 0 && start.elapsed() > plan.longest {
            eprintln!("no more than {round} rounds in {:.0?}", plan.longest);
            break;
        }
        let mut note =
            |case, (times, refused): Times| table.row(case, MEMGATE).note(&latency_figures(&times, refused));
        note(QUIET, scene.quiet(&memgate)?);
        note(LISTED, scene.listed_again(&memgate)?);
        ensure!(known_objects(&memgate)? >= memories, "memgate does not know all memories any more");
        let next = scene.start()?;
        note(DRAINED, scene.drained(memgate, &next)?);
        memgate = next;
    }
    Ok(table)
}

impl Scene<'_> {
    /// One more memgate, ready, on the core of servers.
    fn start(&self) -> Result<Webhook> {
        cores::on(cores::SERVER, || self.serve.ready())
    }

    fn caller(&self, memgate: &Webhook) -> Result<Caller> {
        Caller::new(memgate.addresses().listen, &self.ca)
    }

    fn quiet(&self, memgate: &Webhook) -> Result<Times> {
        let pool = self.runtime.block_on(Pool::full(self.caller(memgate)?))?;
        self.calls_while(&pool, || Ok(()))
    }

    /// While the definition of memories changes: the apiserver ends all watches of them, and knows none of what was before.
    fn listed_again(&self, memgate: &Webhook) -> Result<Times> {
        let pool = self.runtime.block_on(Pool::full(self.caller(memgate)?))?;
        // Of which no two are equal: a definition that stays as it is ends no watch.
        let description = format!("Listed anew for {}.", memgate.addresses().listen);
        let before = lists(memgate);
        self.calls_while(&pool, || {
            change_definition(self.cluster, &description)?;
            wait::until("memgate to list all memories again", || Ok((lists(memgate) > before).then_some(())))
        })
    }

    /// While a memgate ends and callers go over to another one.
    fn drained(&self, mut memgate: Webhook, next: &Webhook) -> Result<Times> {
        let pool = self.runtime.block_on(Pool::full(self.caller(&memgate)?))?;
        pool.turn_to(self.caller(next)?);
        let times = self.calls_while(&pool, || memgate.process().signal("TERM"))?;
        // A server that ends waits for open connections, also unused ones.
        drop(pool);
        let status = memgate.process().wait()?;
        let log = memgate.log();
        let end = log.lines().next_back().unwrap_or_default();
        ensure!(status.success() && end.contains("drained=true"), "{status}, a call was cut off: {end}");
        Ok(times)
    }

    /// Times of calls until something has happened, and for as long as a round is at least.
    fn calls_while(&self, pool: &Arc<Pool>, happens: impl FnOnce() -> Result<()> + Send) -> Result<Times> {
        let stopped = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let happening = scope.spawn(|| {
                let start = Instant::now();
                let aside = if self.plan.apart { cores::step_back_to(cores::SERVER) } else { Ok(()) };
                let happened = aside.and_then(|()| {
                    sleep(BEFORE);
                    happens()
                });
                sleep(self.plan.lasting.saturating_sub(start.elapsed()));
                stopped.store(true, Relaxed);
                happened
            });
            let times = self.runtime.block_on(pool.calls(&self.request, self.plan.rate, &stopped));
            happening.join().map_err(|_| anyhow!("it panicked"))??;
            times
        })
    }
}

/// Creates so many memories beside the agent's own; how many objects there are at least.
fn fill(cluster: &ControlPlane, memories: usize) -> Result<u64> {
    let namespaces =
        (0..NAMESPACES).map(|_| cluster.fresh_namespace("filled")).collect::<Result<Vec<_>>>()?;
    let objects = namespaces
        .iter()
        .cycle()
        .take(memories)
        .enumerate()
        .map(|(number, namespace)| (namespace.as_str(), memory(&format!("notes-{number}"), namespace)));
    create_all(cluster, objects)?;
    Ok(u64::try_from(memories)?)
}

/// Describes memories otherwise.
fn change_definition(cluster: &ControlPlane, description: &str) -> Result<()> {
    let (client, path) = (cluster.client(), DEFINITION);
    cluster.block_on(async {
        let mut definition = send(&client, Method::GET, path, None).await?.object()?;
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!(description);
        send(&client, Method::PUT, path, Some(&definition)).await?.object().map(drop)
    })
}

/// How often memgate has listed all memories.
fn lists(memgate: &Webhook) -> usize {
    memgate.log().lines().filter(|line| HAS_LISTED.iter().all(|part| line.contains(part))).count()
}
