//! What happens around memgate that should not cost anybody anything: replicas come and go, one is
//! killed, the apiserver is away, its store stalls.
//!
//! The functions here take how often and how long; the trials of `cases` are the short form, and
//! tests/soak has the long one.

#![allow(dead_code, reason = "tests/soak uses the rest")]

pub(crate) mod calls;
pub(crate) mod fleet;
pub(crate) mod replicas;

use std::time::Duration;

use anyhow::Result;

use crate::{
    support::load::Pace,
    world::{Case, World},
};

use fleet::Fleet;

/// A load that a busy machine still carries beside the other trials.
const PACE: Pace = Pace { per_second: 40, at_once: 20 };

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("faults::rolling_restarts_lose_no_call", rolling_restarts),
        Case::new("faults::a_killed_replica_takes_only_its_own_calls_along", killed_replica),
    ]
}

fn rolling_restarts(world: &World) -> Result<()> {
    let cluster = world.cluster()?;
    let mut fleet = Fleet::start(cluster, &world.memgate()?.kubeconfig, 2)?;
    let tally = replicas::restarts(cluster, &mut fleet, PACE, 6, Duration::from_secs(1))?;
    tally.all_good()
}

fn killed_replica(world: &World) -> Result<()> {
    let cluster = world.cluster()?;
    let mut fleet = Fleet::start(cluster, &world.memgate()?.kubeconfig, 2)?;
    replicas::kills(cluster, &mut fleet, PACE, 1).map(|_| ())
}
