//! What memgate adds to the creation of pods through a real kube-apiserver, beside no webhook, a constant answer, a
//! webhook in Go and a policy of the apiserver's own; and its slowest calls while it lists 10,000 memories anew, and
//! while it ends.
//!
//! The control plane is that of the tests; see CONTRIBUTING.md for where it comes from.

pub(crate) mod cases;
pub(crate) mod constant;
mod cores;
mod creation;
mod creators;
mod disturbances;
pub(crate) mod goals;
mod pool;
mod ways;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::results::{Results, Table};
use crate::support::control_plane::ControlPlane;
use crate::{installed, tables};

/// Where the results are kept.
pub(crate) const RAW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/results/cluster.json");

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

/// Measures everything, and keeps the results.
pub(crate) fn full(programs: &[&str]) -> Result<()> {
    let results = everything(&FULL, programs)?;
    Ok(fs::write(RAW, serde_json::to_string(&results)? + "\n")?)
}

/// A moment of everything.
pub(crate) fn short(programs: &[&str]) -> Result<()> {
    everything(&SHORT, programs).map(drop)
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
