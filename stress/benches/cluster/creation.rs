//! The creation of pods in rounds that all ways take in turn.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::http::Request;

use super::cases::{
    BOTH, CALL, CONSTANT, CREATION, CREATION_CPU, LOADS, MEMGATE, NOTHING, P50, P50_ADDED, P99_ADDED, PEER,
};
use super::constant::write_answer;
use super::creators::{Created, Creators, NAMESPACE};
use super::ways::{POINTERS, Way};
use crate::figures::millis;
use crate::request::create;
use crate::results::Table;
use crate::state::{agent, memory};
use crate::support::certs::Authority;
use crate::support::control_plane::ControlPlane;
use crate::support::process::{Process, cpu_time};
use crate::support::release::Release;
use crate::support::scratch::Scratch;
use crate::support::wait;
use crate::support::webhook::{Endpoint, Serve, Webhook, sum};

/// What the series of calls of webhooks begin with.
const CALLS: &str = "apiserver_admission_webhook_admission_duration_seconds";

/// How often, and how many pods by each of [`LOADS`].
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// After which no more rounds are begun.
    pub(crate) longest: Duration,
    pub(crate) pods: [usize; LOADS.len()],
}

/// What creates and is created.
struct Scene<'c> {
    cluster: &'c ControlPlane,
    creators: Creators<'c>,
    ways: Vec<Way>,
    memgate: Webhook,
    constant: Other,
    peer: Option<Other>,
}

/// What one load came to.
struct Measured {
    created: Created,
    usage: Usage,
    /// Seconds of all calls of webhooks, of which each pod has one or none.
    calls: f64,
    /// New connections to memgate.
    handshakes: f64,
}

/// CPU times: all that was used so far, or what was used meanwhile.
struct Usage {
    apiserver: Duration,
    etcd: Duration,
    webhook: Duration,
    creators: Duration,
}

/// Times of creation, and what it costs.
pub(crate) fn creation(
    cluster: &ControlPlane,
    kubeconfig: &Path,
    (memgate, peer): (&Path, Option<&Path>),
    plan: &Plan,
) -> Result<[Table; 2]> {
    let mut scene = Scene::new(cluster, kubeconfig, memgate, peer)?;
    let mut tables = [Table::new(CREATION, "load"), Table::new(CREATION_CPU, "load")];
    let start = Instant::now();
    for round in 0..plan.rounds {
        if round > 0 && start.elapsed() > plan.longest {
            eprintln!("no more than {round} rounds in {:.0?}", plan.longest);
            break;
        }
        // Each is the first one in some round.
        let ways = scene.ways.len();
        let mut measured: Vec<Option<Vec<Measured>>> = (0..ways).map(|_| None).collect();
        for turn in 0..ways {
            let way = (round + turn) % ways;
            measured[way] = Some(scene.visit(way, plan)?);
        }
        let measured = measured.into_iter().collect::<Option<Vec<_>>>().context("a way was left out")?;
        for (case, load) in LOADS.into_iter().enumerate() {
            for (way, of_way) in scene.ways.iter().zip(&measured) {
                note(&mut tables, (&load.case(), way.name), &of_way[case], &measured[0][case])?;
            }
        }
    }
    Ok(tables)
}

impl<'c> Scene<'c> {
    fn new(
        cluster: &'c ControlPlane,
        kubeconfig: &Path,
        program: &Path,
        peer: Option<&Path>,
    ) -> Result<Self> {
        let memgate = Serve::new(program).kubeconfig(kubeconfig).ready()?;
        let constant = Other::constant(cluster, &memgate)?;
        let peer = peer.map(Other::peer).transpose()?;
        let mut ways = vec![Way::nothing(), Way::memgate(program, cluster, &memgate)?];
        ways.push(ways[1].constant(&constant.endpoint)?);
        if let Some(peer) = &peer {
            ways.push(ways[1].peer(&peer.endpoint)?);
        }
        // Before, the kind is behind a gate.
        if Release::from_environment()?.number() >= (1, 36) {
            ways.push(ways[1].policy()?);
        }
        Ok(Self { cluster, creators: Creators::new(cluster)?, ways, memgate, constant, peer })
    }

    /// Pods of all loads, in one way.
    fn visit(&mut self, way: usize, plan: &Plan) -> Result<Vec<Measured>> {
        let way = self.ways[way].clone();
        way.begin(self.cluster)?;
        let mut measured = Vec::new();
        for (load, pods) in LOADS.into_iter().zip(plan.pods) {
            let ((count, seconds), met) = (calls(self.cluster)?, handshakes(&self.memgate)?);
            let before = self.usage(way.name)?;
            let created = self.creators.create(load, pods, &way.expected())?;
            let usage = self.usage(way.name)?.since(&before);
            let (after, seconds_after) = calls(self.cluster)?;
            let wanted = if way.calls_webhook() { created.times.len() } else { 0 };
            let made = after - count;
            ensure!(made == wanted, "{}: {made} calls for {} pods", way.name, created.times.len());
            measured.push(Measured {
                created,
                usage,
                calls: seconds_after - seconds,
                handshakes: handshakes(&self.memgate)? - met,
            });
            self.creators.delete_all()?;
        }
        way.end(self.cluster)?;
        Ok(measured)
    }

    /// The CPU times of all until now; of the webhooks that of the one that is called.
    fn usage(&mut self, way: &str) -> Result<Usage> {
        let of = |process: u32| cpu_time(process).context("a process has ended");
        let [apiserver, etcd, _] = self.cluster.processes()?;
        let webhook = match way {
            MEMGATE => self.memgate.process().cpu_time(),
            CONSTANT => self.constant.process.cpu_time(),
            PEER => self.peer.as_ref().and_then(|peer| peer.process.cpu_time()),
            _ => Some(Duration::ZERO),
        };
        Ok(Usage {
            apiserver: of(apiserver)?,
            etcd: of(etcd)?,
            webhook: webhook.context("a webhook has ended")?,
            creators: of(process::id())?,
        })
    }
}

/// Puts what one load came to into the tables, beside the same load without any webhook.
fn note(
    tables: &mut [Table; 2],
    (case, way): (&str, &str),
    measured: &Measured,
    bare: &Measured,
) -> Result<()> {
    let Measured { created, usage, calls, handshakes } = measured;
    let at = |measured: &Measured, quantile| millis(measured.created.times.value_at_quantile(quantile));
    let pods = f64::from(u32::try_from(created.times.len())?);
    tables[0].row(case, way).note(&[
        ("pods/s", pods / created.took.as_secs_f64()),
        (P50, at(measured, 0.5)),
        (P50_ADDED, at(measured, 0.5) - at(bare, 0.5)),
        ("p99, ms", at(measured, 0.99)),
        (P99_ADDED, at(measured, 0.99) - at(bare, 0.99)),
        (CALL, 1_000.0 * calls / pods),
    ]);
    // The peer does not count its calls.
    if [NOTHING, MEMGATE].contains(&way) {
        tables[0].row(case, way).note(&[("of connections new, %", 100.0 * handshakes / pods)]);
    }
    let each = |time: Duration| time.as_secs_f64() * 1_000_000.0 / pods;
    tables[1].row(case, way).note(&[
        ("apiserver, µs", each(usage.apiserver)),
        ("webhook, µs", each(usage.webhook)),
        (BOTH, each(usage.apiserver + usage.webhook)),
        ("etcd, µs", each(usage.etcd)),
        ("creators, µs", each(usage.creators)),
    ]);
    Ok(())
}

impl Usage {
    fn since(&self, before: &Self) -> Self {
        Self {
            apiserver: self.apiserver.saturating_sub(before.apiserver),
            etcd: self.etcd.saturating_sub(before.etcd),
            webhook: self.webhook.saturating_sub(before.webhook),
            creators: self.creators.saturating_sub(before.creators),
        }
    }
}

/// How many calls of webhooks the apiserver has made, and how many seconds they took.
fn calls(cluster: &ControlPlane) -> Result<(u64, f64)> {
    let metrics =
        cluster.block_on(cluster.client().request_text(Request::get("/metrics").body(Vec::new())?))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let count = sum(&metrics, &format!("{CALLS}_count{{")) as u64;
    Ok((count, sum(&metrics, &format!("{CALLS}_sum{{"))))
}

/// How many connections were made to memgate.
fn handshakes(memgate: &Webhook) -> Result<f64> {
    Ok(sum(&memgate.metrics()?, "memgate_tls_handshakes_total{"))
}

/// A webhook beside memgate, running.
struct Other {
    process: Process,
    endpoint: Endpoint,
    _scratch: Scratch,
}

impl Other {
    /// stress/benches/peers/controller-runtime.
    fn peer(program: &Path) -> Result<Self> {
        Self::start("peer", |folder, address| {
            let mut command = Command::new(program);
            command.arg("--state").arg(crate::state::write(folder, 2)?).arg("--certs").arg(folder);
            command.args(["--listen", &address.to_string()]);
            Ok(command)
        })
    }

    /// This program, answering what memgate answers.
    fn constant(cluster: &ControlPlane, memgate: &Webhook) -> Result<Self> {
        Self::start("constant", |folder, address| {
            write_answer(cluster, memgate, POINTERS, folder)?;
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["constant", &address.to_string()]).arg(folder);
            Ok(command)
        })
    }

    fn start(name: &str, command: impl Fn(&Path, SocketAddr) -> Result<Command>) -> Result<Self> {
        wait::with_free_ports(|[port]| {
            let scratch = Scratch::new(name)?;
            let authority = Authority::new(name)?;
            authority.server(name)?.write(&scratch, "tls")?;
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let log = scratch.path().join(format!("{name}.log"));
            let mut process = Process::start(name, &command(scratch.path(), address)?, &log)?;
            process.until("it to listen", || Ok(std::net::TcpStream::connect(address).ok()))?;
            Ok(Self { process, endpoint: Endpoint::new(address, &authority.pem()), _scratch: scratch })
        })
    }
}

/// The namespace with its agent and its memory.
pub(crate) fn populate(cluster: &ControlPlane) -> Result<()> {
    cluster.kubectl(&["create", "namespace", NAMESPACE])?.ok()?;
    for object in [memory("notes", NAMESPACE), agent()] {
        cluster.block_on(create(&cluster.client(), NAMESPACE, &object, ""))?.object()?;
    }
    Ok(())
}
