//! The request path over TLS, beside what limits it and beside the usual way in Go; alone, and through an apiserver.
//!
//! ```text
//! wire full          [NAME=PROGRAM]…   everything; writes stress/benches/results/wire.json, and what `wire write` does
//! wire write                           stress/PERFORMANCE.md and stress/pictures anew from stress/benches/results
//! wire short         [NAME=PROGRAM]…   a moment of everything; writes nothing, and fails only on crashes and wrong answers
//! wire compare       [NAME=PROGRAM]…   throughput and latency of several builds of memgate
//! wire cluster full  memgate=PROGRAM [peer=PROGRAM]   through an apiserver; writes stress/benches/results/cluster.json
//! wire cluster short memgate=PROGRAM [peer=PROGRAM]   a moment of it; writes nothing, and fails as `wire short` does
//! wire limit         ADDRESS FOLDER    serves: memgate's listener answering a constant
//! wire constant      ADDRESS FOLDER    serves: the same answer to all reviews
//! ```
//!
//! `tools/bench.sh` builds the programs and calls this: with `cluster` on all cores, else on one core of two; the servers
//! have the other one. The names are `memgate`, `static`, `peer` and `openssl`; for `compare` any others, all of which are
//! memgate. Goals and results: stress/PERFORMANCE.md.

#![allow(
    clippy::expect_used,
    reason = "what is shared with the other benchmarks stops when it cannot be set up"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the result, and how far it is")]
#![allow(clippy::indexing_slicing, reason = "a benchmark")]

#[path = "wire/answers.rs"]
mod answers;
#[path = "wire/certificates.rs"]
mod certificates;
mod cluster;
mod common;
#[path = "wire/figures.rs"]
mod figures;
#[path = "wire/goals.rs"]
mod goals;
#[path = "../../tests/apiserver/installed.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod installed;
#[path = "wire/limit.rs"]
mod limit;
#[path = "wire/load.rs"]
mod load;
#[path = "../support/many.rs"]
mod many;
#[path = "wire/measure.rs"]
mod measure;
#[path = "wire/page.rs"]
mod page;
#[path = "wire/pictures.rs"]
mod pictures;
#[path = "../../tests/apiserver/request.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod request;
#[path = "wire/results.rs"]
mod results;
#[path = "../../tests/apiserver/samples.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod samples;
#[path = "wire/server.rs"]
mod server;
#[path = "wire/state.rs"]
mod state;
#[path = "../../tests/support/mod.rs"]
mod support;
#[path = "wire/tables.rs"]
mod tables;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use measure::{Bench, Plan};
use results::Results;
use server::{Kind, Program};

/// Where the results are kept.
const RAW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results/wire.json");

/// The servers as tables call them.
const LIMIT: &str = "limit";
const MEMGATE: &str = "memgate";
const STATIC: &str = "memgate, static binary";
const PEER: &str = "Go peer";

/// About ten minutes; `cluster` takes five.
const FULL: Plan = Plan {
    rounds: 5,
    lasting: Duration::from_secs(1),
    latency: Duration::from_secs(4),
    rotation: Some(Duration::from_secs(8)),
    load: Duration::from_mins(1),
    objects: &[10, 1_000, 10_000, 50_000, 100_000],
};

/// About half a minute, with unoptimized builds too.
const SHORT: Plan = Plan {
    rounds: 1,
    lasting: Duration::from_millis(500),
    latency: Duration::from_secs(1),
    rotation: None,
    load: Duration::from_secs(1),
    objects: &[10, 1_000],
};

fn main() -> Result<()> {
    // The second time there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["limit", address, folder] => limit::serve(address.parse()?, Path::new(folder), common::constant()),
        ["full", programs @ ..] => full(programs),
        ["write"] => write(),
        ["short", programs @ ..] => short(programs),
        ["compare", programs @ ..] => compare(programs),
        ["cluster", "full", programs @ ..] => cluster::full(programs),
        ["cluster", "short", programs @ ..] => cluster::short(programs),
        ["constant", address, folder] => cluster::constant::serve(address.parse()?, Path::new(folder)),
        // As part of all benchmarks there is nothing to say in a short time.
        _ => {
            println!("wire: run tools/bench.sh; see the head of stress/benches/wire.rs");
            Ok(())
        }
    }
}

fn full(programs: &[&str]) -> Result<()> {
    let bench = Bench::new(FULL, servers(programs, role)?)?;
    let raw = serde_json::to_string(&everything(&bench)?)? + "\n";
    fs::write(RAW, raw)?;
    write()
}

/// Writes the tables and pictures of the results that are kept.
fn write() -> Result<()> {
    let mut results: Results = serde_json::from_str(&fs::read_to_string(RAW)?)?;
    let of_cluster: Results = serde_json::from_str(&fs::read_to_string(cluster::RAW)?)?;
    let run = |results: &Results| (results.commit.clone(), results.date.clone());
    ensure!(run(&results) == run(&of_cluster), "{RAW} and {} are not of one run", cluster::RAW);
    results.tables.extend(of_cluster.tables);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    pictures::draw(&results, &folder.join("pictures"))?;
    let page = page::page(&results, &goals::goals(&results))?;
    print!("{page}");
    page::replace(&folder.join("PERFORMANCE.md"), &page)
}

fn short(programs: &[&str]) -> Result<()> {
    let bench = Bench::new(SHORT, servers(programs, role)?)?;
    let results = everything(&bench)?;
    pictures::draw(&results, tempfile::tempdir()?.path())?;
    print!("{}", page::page(&results, &[])?);
    Ok(())
}

fn everything(bench: &Bench) -> Result<Results> {
    eprintln!("latency …");
    let (mut latency, curves) = bench.latency()?;
    bench.rotation(&mut latency)?;
    eprintln!("throughput …");
    let throughput = bench.throughput()?;
    eprintln!("handshakes …");
    let handshakes = bench.handshakes()?;
    eprintln!("states of all sizes …");
    let growth = bench.growth()?;
    eprintln!("memory after load …");
    Results::of(vec![throughput, latency, handshakes, growth, bench.memory()?], curves)
}

fn compare(programs: &[&str]) -> Result<()> {
    let bench = Bench::new(FULL, servers(programs, |name| Ok((name.to_owned(), Kind::Memgate)))?)?;
    let (latency, curves) = bench.latency()?;
    let results = Results::of(vec![bench.throughput()?, latency], curves)?;
    print!("{}", page::page(&results, &[])?);
    Ok(())
}

/// This program as the limit, and those of the arguments.
fn servers(programs: &[&str], role: impl Fn(&str) -> Result<(String, Kind)>) -> Result<Vec<Program>> {
    let mut servers = vec![Program { name: LIMIT.to_owned(), path: env::current_exe()?, kind: Kind::Limit }];
    for program in programs {
        let (name, path) =
            program.split_once('=').with_context(|| format!("{program} is not NAME=PROGRAM"))?;
        let (name, kind) = role(name)?;
        servers.push(Program { name, path: PathBuf::from(path), kind });
    }
    Ok(servers)
}

fn role(name: &str) -> Result<(String, Kind)> {
    let (name, kind) = match name {
        "memgate" => (MEMGATE, Kind::Memgate),
        "static" => (STATIC, Kind::Memgate),
        "peer" => (PEER, Kind::Peer),
        "openssl" => ("openssl s_server", Kind::OpenSsl),
        _ => bail!("{name} is neither memgate, static, peer nor openssl"),
    };
    Ok((name.to_owned(), kind))
}
