//! Everything that is tested against a real kube-apiserver, in one program, so that one cluster
//! serves it all. The cluster starts with the first trial that asks for it: `--list` and a filter
//! that leaves only trials without it start none.
//!
//! ```text
//! assets, processes, control_plane, webhooks, stub   the cluster is what trials take it for
//! installed                                          memgate in it, as its own commands install it
//! manifests, access                                  what it takes, and no more
//! deploy                                             what is installed, through its whole life
//! cases                                              every case of tests/cases
//! pods, resources, words, crds                       scenarios of several steps
//! families                                           scenarios of each platform
//! certs                                              certificates of memgate's own making
//! request, scene                                     what they are written with
//! ```
//!
//! To add a trial, write a function `fn name(world: &World) -> anyhow::Result<()>` in one of the
//! modules, or a new one, and name it in that module's `cases`. A trial works in a namespace of
//! its own ([`World::namespace`] if memgate is to be asked about it) and leaves everything else
//! alone; one that cannot is a [`Case::alone`], and one that takes minutes a [`Case::soak`].

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may panic, and reads JSON by indexing, where a missing key is null"
)]

#[path = "../support/mod.rs"]
mod support;

mod access;
mod assets;
mod cases;
mod certs;
mod control_plane;
mod crds;
mod deploy;
mod families;
mod installed;
mod manifests;
mod pods;
mod processes;
mod request;
mod resources;
mod scene;
mod stub;
mod webhooks;
mod words;
mod world;

use std::{ops::RangeInclusive, process::ExitCode, sync::Arc, thread};

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};

use world::{Case, World};

/// Trials mostly wait for others, but each wait takes some of the processor.
const THREADS: RangeInclusive<usize> = 2..=4;

fn main() -> Result<ExitCode> {
    if let Some(role) = processes::role() {
        return Ok(role());
    }
    let mut arguments = Arguments::from_args();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.clamp(*THREADS.start(), *THREADS.end());
    arguments.test_threads.get_or_insert(threads);

    let world = Arc::new(World::default());
    let trials = cases()?.into_iter().map(|case| trial(case, &world));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if let Some(summary) = cases::summary() {
        println!("{summary}\n");
    }
    // The last owner: this ends the cluster.
    drop(world);
    Ok(conclusion.exit_code())
}

fn cases() -> Result<Vec<Case>> {
    let modules = [
        assets::cases(),
        processes::cases(),
        control_plane::cases(),
        webhooks::cases(),
        manifests::cases(),
        pods::cases(),
        families::cases(),
        crds::cases(),
        access::cases(),
        deploy::cases(),
        resources::cases(),
        words::cases(),
        certs::cases(),
        cases::cases()?,
    ];
    Ok(modules.into_iter().flatten().collect())
}

fn trial(case: Case, world: &Arc<World>) -> Trial {
    let (world, name, soak) = (Arc::clone(world), case.name.clone(), case.soak);
    let run = move || world.run(case).map_err(|error| Failed::from(format!("{error:#}")));
    Trial::test(name, run).with_ignored_flag(soak)
}
