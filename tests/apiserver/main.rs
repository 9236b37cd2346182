//! Everything that is tested against a real kube-apiserver, in one program, so that one cluster
//! serves it all. The cluster starts with the first trial that asks for it: `--list` and a filter
//! that leaves only trials without it start none.
//!
//! ```text
//! control_plane, stub                                the cluster itself, and a webhook that is not memgate
//! installed                                          memgate in it, installed by its own commands
//! manifests, access                                  its objects and its rights
//! deletion                                           objects that a finalizer keeps after their deletion
//! going                                              those objects, for several modules
//! deploy                                             components, upgrades and removal
//! cases                                              cases of tests/cases
//! pods, resources, crds, events                      scenarios of several steps
//! policies                                           policies and exemptions in an apiserver
//! kubectl_output                                     messages that a user of kubectl reads
//! meshes                                             pods that a mesh changes before and behind memgate
//! families                                           scenarios of each platform
//! order, order_cluster                               pods that come before their memory
//! schema_parity                                      a check of files decides as a cluster does
//! layouts                                            and so does one of kustomizations and charts
//! certs                                              memgate's own certificates
//! wait, doctor, explain_pod, what_if, aggregated   commands that read a cluster
//! failing_lookups                                    lookups that fail
//! sizes                                              objects whose reviews are large
//! faults                                             failures around memgate that must not lose a call
//! knowledge                                          what a replica knows of itself, and how old that is
//! releases                                           which trials a run takes
//! request, samples, shell                            helpers
//! ```
//!
//! To add a trial, write a function `fn name(fixture: &Fixture) -> anyhow::Result<()>` in one of the
//! modules, or a new one, and name it in that module's `trials`. A trial works in a namespace of
//! its own ([`Fixture::namespace`] when memgate has to be called for it) and changes nothing else.
//! A trial that cannot do so is a [`Trial::alone`], and one that takes minutes a [`Trial::soak`].

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may panic, and reads JSON by indexing, where a missing key is null"
)]

#[path = "../support/mod.rs"]
mod support;

mod access;
mod aggregated;
mod audit;
mod cases;
mod certs;
mod control_plane;
mod crds;
mod deletion;
mod deploy;
mod doctor;
mod events;
mod explain_pod;
mod failing_lookups;
mod families;
mod faults;
mod fixture;
mod going;
mod installed;
mod knowledge;
mod kubectl_output;
mod layouts;
mod manifests;
mod meshes;
mod order;
mod order_cluster;
mod pods;
mod policies;
mod releases;
mod request;
mod resources;
mod samples;
mod schema_parity;
mod shell;
mod sizes;
mod stub;
mod valid;
mod wait;
mod what_if;

use std::{ops::RangeInclusive, process::ExitCode, sync::Arc, thread};

use anyhow::Result;
use libtest_mimic::{Arguments, Failed};

use fixture::{Fixture, Trial};
use releases::is_sample;
use support::needs::needs;

/// Trials mostly wait, but each wait takes some CPU time.
const THREADS: RangeInclusive<usize> = 3..=4;

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.clamp(*THREADS.start(), *THREADS.end());
    arguments.test_threads.get_or_insert(threads);

    let fixture = Arc::new(Fixture::default());
    let trials = releases::of_this_run(trials()?)?.into_iter().map(|trial| as_test(trial, &fixture));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if let Some(summary) = cases::summary() {
        println!("{summary}\n");
    }
    // The last owner: this ends the cluster.
    drop(fixture);
    Ok(conclusion.exit_code())
}

fn trials() -> Result<Vec<Trial>> {
    let modules = [
        control_plane::trials(),
        manifests::trials(),
        pods::trials(),
        meshes::trials(),
        valid::trials(),
        families::trials(),
        order::trials(),
        crds::trials(),
        policies::trials(),
        audit::trials(),
        events::trials(),
        failing_lookups::trials(),
        faults::trials(),
        knowledge::trials(),
        access::trials(),
        deletion::trials(),
        deploy::trials(),
        wait::trials(),
        aggregated::trials(),
        doctor::trials(),
        explain_pod::trials(),
        what_if::trials(),
        resources::trials(),
        sizes::trials(),
        kubectl_output::trials(),
        schema_parity::trials(),
        layouts::trials(),
        certs::trials(),
        cases::trials()?,
    ];
    Ok(modules.into_iter().flatten().collect())
}

fn as_test(trial: Trial, fixture: &Arc<Fixture>) -> libtest_mimic::Trial {
    let (fixture, name, soak) = (Arc::clone(fixture), trial.name.clone(), trial.soak);
    let run = move || fixture.run(trial).map_err(|error| Failed::from(format!("{error:#}")));
    let trial = libtest_mimic::Trial::test(name, run).with_ignored_flag(soak);
    if is_sample() { trial } else { needs("Go, for a control plane", trial) }
}
