//! What memgate adds to the creation of pods through a real kube-apiserver, beside no webhook, a constant answer, a
//! webhook in Go and a policy of the apiserver's own; and its slowest calls while it lists 10,000 memories anew, and
//! while it ends.
//!
//! ```text
//! cluster full  memgate=PROGRAM [peer=PROGRAM]   writes stress/benches/results/cluster.json, of which `wire` makes tables
//! cluster short memgate=PROGRAM [peer=PROGRAM]   a moment of it; writes nothing, and fails only on crashes and wrong
//!                                                answers
//! cluster constant ADDRESS FOLDER                serves: the same answer to all reviews
//! ```
//!
//! `tools/bench.sh` builds the programs and calls this. The control plane is that of the tests; see CONTRIBUTING.md for
//! where it comes from. Goals and results: stress/PERFORMANCE.md.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark stops when it cannot be set up, and reads JSON by indexing"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the result, and how far it is")]

#[path = "cluster/cases.rs"]
#[allow(dead_code, reason = "goals use more of it")]
mod cases;
mod common;
#[path = "wire/connection.rs"]
mod connection;
#[path = "cluster/constant.rs"]
mod constant;
#[path = "cluster/cores.rs"]
mod cores;
#[path = "cluster/creation.rs"]
mod creation;
#[path = "cluster/creators.rs"]
mod creators;
#[path = "cluster/disturbances.rs"]
mod disturbances;
#[path = "wire/figures.rs"]
mod figures;
#[path = "../../tests/apiserver/installed.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod installed;
#[path = "wire/limit.rs"]
mod limit;
#[path = "wire/load.rs"]
#[allow(dead_code, reason = "the other benchmark uses more of it")]
mod load;
#[path = "cluster/pool.rs"]
mod pool;
#[path = "../../tests/apiserver/request.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod request;
#[path = "wire/results.rs"]
#[allow(dead_code, reason = "the goals use more of it")]
mod results;
#[path = "../../tests/apiserver/samples.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod samples;
#[path = "wire/state.rs"]
mod state;
#[path = "../../tests/support/mod.rs"]
mod support;
#[path = "wire/tables.rs"]
mod tables;
#[path = "cluster/ways.rs"]
mod ways;

use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use results::{Results, Table};
use support::control_plane::ControlPlane;

/// Where the results are kept.
const RAW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results/cluster.json");

/// How often and how long.
struct Plan {
    creation: creation::Plan,
    disturbances: disturbances::Plan,
}

/// Less than six minutes, five on a machine with nothing else to do.
const FULL: Plan = Plan {
    creation: creation::Plan { rounds: 5, longest: Duration::from_secs(190), pods: [200, 500, 1_000, 300] },
    disturbances: disturbances::Plan {
        rounds: 3,
        longest: Duration::from_secs(40),
        lasting: Duration::from_secs(5),
        memories: 10_000,
        rate: 2_000,
        apart: true,
    },
};

/// About half a minute, with unoptimized builds too.
const SHORT: Plan = Plan {
    creation: creation::Plan { rounds: 1, longest: Duration::ZERO, pods: [10, 50, 50, 50] },
    disturbances: disturbances::Plan {
        rounds: 1,
        longest: Duration::ZERO,
        lasting: Duration::from_secs(2),
        memories: 100,
        rate: 50,
        apart: false,
    },
};

fn main() -> Result<()> {
    // The second time there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["full", programs @ ..] => {
            let results = everything(&FULL, programs)?;
            fs::create_dir_all(Path::new(RAW).with_file_name(""))?;
            Ok(fs::write(RAW, serde_json::to_string(&results)? + "\n")?)
        }
        ["constant", address, folder] => constant::serve(address.parse()?, Path::new(folder)),
        ["short", programs @ ..] => everything(&SHORT, programs).map(drop),
        // As part of all benchmarks there is nothing to say in a short time.
        _ => {
            println!("cluster: run tools/bench.sh; see the head of stress/benches/cluster.rs");
            Ok(())
        }
    }
}

fn everything(plan: &Plan, programs: &[&str]) -> Result<Results> {
    let (mut memgate, mut peer) = (None, None);
    for program in programs {
        match program.split_once('=').with_context(|| format!("{program} is not NAME=PROGRAM"))? {
            ("memgate", path) => memgate = Some(Path::new(path)),
            ("peer", path) => peer = Some(Path::new(path)),
            (name, _) => bail!("{name} is neither memgate nor peer"),
        }
    }
    let memgate = memgate.context("which memgate?")?;
    eprintln!("a cluster …");
    let cluster = ControlPlane::start()?;
    installed::install_crds(&cluster)?;
    let kubeconfig = installed::install_account(&cluster)?;
    creation::populate(&cluster)?;
    eprintln!("creation of pods …");
    let mut tables = Vec::from(creation::creation(&cluster, &kubeconfig, (memgate, peer), &plan.creation)?);
    // At once, as they took a while.
    print(&tables)?;
    eprintln!("disturbances …");
    let disturbed = disturbances::disturbances(&cluster, &kubeconfig, memgate, &plan.disturbances)?;
    tables.push(disturbed);
    print(&tables[2..])?;
    Results::of(tables, Vec::new())
}

fn print(tables: &[Table]) -> Result<()> {
    let mut text = String::new();
    tables::write_tables(&mut text, tables)?;
    println!("{text}");
    Ok(())
}
