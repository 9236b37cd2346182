//! The measurements, each in rounds that all servers take in turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use tokio::runtime::Runtime;

use super::answers::variables;
use super::certificates::Certificates;
use super::figures::{latency_figures, millis, percent};
use super::load::{Tally, histogram, plain_request, request};
use super::results::{Curve, Table};
use super::server::{Kind, Program, Server};
use super::state;
use super::tables::thousands;
use crate::common::review;

/// How often and how long.
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// Of each round, but for those of latency.
    pub(crate) lasting: Duration,
    /// Of a round of latency.
    pub(crate) latency: Duration,
    /// Of a round in which the certificate is replaced; longer than it takes memgate to notice.
    pub(crate) rotation: Option<Duration>,
    /// Before the memory that load leaves is read.
    pub(crate) load: Duration,
    /// How many objects are in the state, of which the first is the usual state.
    pub(crate) objects: &'static [usize],
}

/// The usual case, as tables call it.
pub(crate) const SMALL: &str = "4 KB";
pub(crate) const LARGE: &str = "64 KB, 500 variables";
pub(crate) const OTHER: &str = "4 KB, pod outside all platforms";

/// Calls a second of the open loop.
pub(crate) const RATE: u32 = 2_000;

/// What all measurements share.
pub(crate) struct Bench {
    pub(crate) plan: Plan,
    programs: Vec<Program>,
    runtime: Runtime,
    certificates: Certificates,
    small: Arc<[u8]>,
    state: PathBuf,
}

impl Bench {
    pub(crate) fn new(plan: Plan, programs: Vec<Program>) -> Result<Self> {
        let certificates = Certificates::new()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let state = state::write(certificates.folder.path(), plan.objects.first().copied().unwrap_or(2))?;
        let small = request(&small_review());
        Ok(Self { plan, programs, runtime, certificates, small, state })
    }

    fn start(&self, program: &Program, state: &Path) -> Result<Server> {
        Server::start(program, state, &self.certificates, (&self.runtime, &self.request_of(program)))
    }

    /// Those that answer reviews.
    fn webhooks(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter().filter(|program| program.kind != Kind::OpenSsl)
    }

    fn start_all<'p>(&self, programs: impl Iterator<Item = &'p Program>) -> Result<Vec<Server>> {
        programs.map(|program| self.start(program, &self.state)).collect()
    }

    /// A small review, or what the program answers instead.
    fn request_of(&self, program: &Program) -> Arc<[u8]> {
        if program.kind == Kind::OpenSsl { plain_request() } else { Arc::clone(&self.small) }
    }

    /// Requests a second from 25 connections, and what they cost, of the reviews of all sizes.
    pub(crate) fn throughput(&self) -> Result<Table> {
        let mut table = Table::new("Throughput", "review");
        let mut servers = self.start_all(self.webhooks())?;
        for (case, text) in reviews() {
            self.same_answers(&servers, &text)?;
            let request = request(&text);
            for _ in 0..self.plan.rounds {
                for server in &mut servers {
                    let figures = self.closed(server, &request)?;
                    table.row(case, &server.program.name).note(&figures);
                }
            }
        }
        Ok(table)
    }

    /// One round of a closed loop, after a short one that is not counted.
    fn closed(&self, server: &mut Server, request: &Arc<[u8]>) -> Result<[(&'static str, f64); 4]> {
        self.runtime.block_on(server.caller.closed_loop(request, self.plan.lasting / 10))?;
        let before = server.cpu()?;
        let tally = self.runtime.block_on(server.caller.closed_loop(request, self.plan.lasting))?;
        let cpu = server.cpu()?.saturating_sub(before);
        server.must_live()?;
        Ok(per_request(&tally, cpu))
    }

    /// All servers that change a pod add the same variables. The limit does not answer the review.
    fn same_answers(&self, servers: &[Server], review: &str) -> Result<()> {
        let request = request(review);
        let mut first = None;
        for server in servers.iter().filter(|server| server.program.kind != Kind::Limit) {
            let answer =
                self.runtime.block_on(async { server.caller.connect().await?.call(&request).await })?;
            let answer = answer.context("refused the only call")?;
            let found = variables(review, &answer)?;
            let (name, wanted) = first.get_or_insert_with(|| (server.program.name.clone(), found.clone()));
            ensure!(
                found == *wanted,
                "{} and {name} make different pods: {found}\n{wanted}",
                server.program.name
            );
        }
        Ok(())
    }

    /// Times of calls at a fixed rate.
    pub(crate) fn latency(&self) -> Result<(Table, Vec<Curve>)> {
        let mut table = Table::new("Latency", "rate");
        let mut servers = self.start_all(self.webhooks())?;
        let mut merged: Vec<Histogram<u64>> = Vec::new();
        for _ in &servers {
            merged.push(histogram()?);
        }
        for _ in 0..self.plan.rounds {
            for (server, merged) in servers.iter_mut().zip(&mut merged) {
                let (start, before) = (Instant::now(), server.cpu()?);
                let run = server.caller.open_loop(&self.small, RATE, self.plan.latency);
                let (times, refused) = self.runtime.block_on(run)?;
                let busy = server.cpu()?.saturating_sub(before).as_secs_f64() / start.elapsed().as_secs_f64();
                server.must_live()?;
                let row = table.row(&quiet(), &server.program.name);
                row.note(&latency_figures(&times, refused));
                row.note(&[("core busy, %", 100.0 * busy)]);
                merged.add(&times)?;
            }
        }
        let curves = servers
            .iter()
            .zip(&merged)
            .map(|(server, times)| Curve { server: server.program.name.clone(), points: points(times) });
        Ok((table, curves.collect()))
    }

    /// The same while the server gets a new certificate, which it must have in the end.
    pub(crate) fn rotation(&self, table: &mut Table) -> Result<()> {
        let Some(lasting) = self.plan.rotation else { return Ok(()) };
        let memgates = self.programs.iter().filter(|program| program.kind == Kind::Memgate);
        let mut servers = self.start_all(memgates)?;
        for _ in 0..self.plan.rounds {
            for server in &mut servers {
                let replace = async {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    self.certificates.replace()
                };
                let run = server.caller.open_loop(&self.small, RATE, lasting);
                let (done, new) = self.runtime.block_on(async { tokio::join!(run, replace) });
                let ((times, refused), new) = (done?, new?);
                server.must_live()?;
                let connection = self.runtime.block_on(server.caller.connect())?;
                ensure!(
                    connection.certificate() == Some(new.as_slice()),
                    "the old certificate is still used"
                );
                table.row(&rotating(), &server.program.name).note(&latency_figures(&times, refused));
            }
        }
        Ok(())
    }

    /// New connections a second, each with one review.
    pub(crate) fn handshakes(&self) -> Result<Table> {
        let mut table = Table::new("Handshakes", "review");
        let mut servers = self.start_all(self.programs.iter())?;
        for _ in 0..self.plan.rounds {
            for server in &mut servers {
                let request = self.request_of(&server.program);
                let before = server.cpu()?;
                let tally = self.runtime.block_on(server.caller.handshakes(&request, self.plan.lasting))?;
                let cpu = server.cpu()?.saturating_sub(before);
                server.must_live()?;
                table.row(SMALL, &server.program.name).note(&per_request(&tally, cpu));
            }
        }
        Ok(table)
    }

    /// Start, memory and cost of a request with states of all sizes; the limit has none.
    pub(crate) fn growth(&self) -> Result<Table> {
        let mut table = Table::new("State", "objects");
        for &objects in self.plan.objects {
            let state = state::write(self.certificates.folder.path(), objects)?;
            for _ in 0..self.plan.rounds {
                for program in self.webhooks().filter(|program| program.kind != Kind::Limit) {
                    let mut server = self.start(program, &state)?;
                    // What a start leaves behind is given back within a second or not at all.
                    std::thread::sleep(Duration::from_secs(1));
                    let (started, resident) = (server.started_in, server.resident()?);
                    let [_, cpu, _, _] = self.closed(&mut server, &self.small)?;
                    table.row(&thousands(objects), &program.name).note(&[
                        ("start to first answer, ms", started.as_secs_f64() * 1_000.0),
                        ("resident at rest, MiB", resident),
                        cpu,
                    ]);
                }
            }
        }
        Ok(table)
    }

    /// Memory after a load that goes on for longer.
    pub(crate) fn memory(&self) -> Result<Table> {
        let mut table = Table::new("Memory", "after");
        let case = format!("{} s of {SMALL} and of {LARGE} each", self.plan.load.as_secs() / 2);
        // The limit has no state, and a minute for it would be one too many.
        for program in self.webhooks().filter(|program| program.kind != Kind::Limit) {
            let server = self.start(program, &self.state)?;
            let rest = server.resident()?;
            for text in [small_review(), large_review()] {
                self.runtime.block_on(server.caller.closed_loop(&request(&text), self.plan.load / 2))?;
            }
            table
                .row(&case, &program.name)
                .note(&[("resident at the start, MiB", rest), ("resident after, MiB", server.resident()?)]);
        }
        Ok(table)
    }
}

/// The reviews, by the names of their cases.
fn reviews() -> [(&'static str, String); 3] {
    [(SMALL, small_review()), (LARGE, large_review()), (OTHER, review("example.dev/other", 20, 600, false))]
}

fn small_review() -> String {
    review("arkonis.dev/deployment", 20, 600, false)
}

fn large_review() -> String {
    review("arkonis.dev/deployment", 500, 36_000, false)
}

/// The cases of latency, as tables call them.
pub(crate) fn quiet() -> String {
    format!("{RATE}/s, {SMALL}")
}

pub(crate) fn rotating() -> String {
    format!("{}, certificate replaced", quiet())
}

/// How many bytes the reviews have.
pub(crate) fn sizes() -> [(&'static str, usize); 3] {
    reviews().map(|(name, text)| (name, text.len()))
}

#[allow(clippy::cast_precision_loss, reason = "a count of seconds")]
fn per_request(tally: &Tally, cpu: Duration) -> [(&'static str, f64); 4] {
    let (answered, took) = (tally.answered as f64, tally.took.as_secs_f64());
    [
        ("requests/s", answered / took),
        ("CPU, µs", cpu.as_secs_f64() * 1_000_000.0 / answered),
        ("core busy, %", 100.0 * cpu.as_secs_f64() / took),
        ("refused, %", percent(tally.refused, tally.answered + tally.refused)),
    ]
}

/// The percentiles of a picture, denser towards the slowest.
fn points(times: &Histogram<u64>) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for nines in [0.0, 0.9, 0.99, 0.999] {
        for step in 0..90_u32 {
            let quantile = nines + (1.0 - nines) * f64::from(step) / 100.0;
            points.push((100.0 * quantile, millis(times.value_at_quantile(quantile))));
        }
    }
    points
}
