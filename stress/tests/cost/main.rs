//! What inputs cost: `just cost` lists the ways to run this, `just cost NAME [KEY=VALUE]…` runs one.
//!
//! ```text
//! tests/cases, policies ──scene──▶ bases, their state   deploy/crds ──shape──▶ places of each kind
//! base + place + fill ──plan──▶ inputs ──outline──▶ a review of any size
//! review ──target──▶ CPU time, answer, memory ──measure──▶ share of each bound ──table──▶ target/cost
//! ```
//!
//! Beside other load all inputs take longer: in `short` the one in the middle 0.50 and 0.66 of what it may, and the worst 2.5
//! and 3.2. So `middle` says in hundredths what the one in the middle takes beside nothing, and `fails-at` grows with it,
//! but not where `input` asks for certain ones.
//!
//! The program that is measured is built apart, for the bounds are those of what is shipped. CPU time is the
//! scheduler's, in nanoseconds, of all threads; neither waiting nor this program's own work is part of it.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "reads JSON by indexing, and prints what it measured"
)]

mod caller;
mod cluster;
mod door;
mod files;
mod fill;
mod input;
mod measure;
mod memory;
mod modes;
mod outline;
mod plan;
mod policies;
#[path = "../../support/runs.rs"]
mod runs;
mod scene;
mod search;
mod shape;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod table;
mod target;
mod words;
mod worst;

use std::process::ExitCode;

use runs::Run;

/// The ways to run this.
const MODES: &[Run] = &[
    Run {
        name: "search",
        about: "sends inputs of every sort to the server, and the worst of each place in all sizes",
        parameters: "bases=2 one-in=1 per-place=2 changes=all seed=0 input= \
            sizes=32768,65536,3145728,6291456,8380416 keep=1 seconds=900 stop=1000 fails-at=100 middle=100 program= out=search",
        action: modes::search,
    },
    Run {
        name: "short",
        about: "the known worst and one place in thirty: what CI runs, within four minutes",
        parameters: "bases=1 one-in=30 per-place=1 changes=one seed=0 input= \
            sizes=32768,65536,3145728 keep=1 seconds=15 stop=1000 fails-at=350 middle=50 program= out=short",
        action: modes::search,
    },
    Run {
        name: "files",
        about: "inputs of every sort through `memgate check`, as form=json, flow or block (both YAML)",
        parameters: "bases=1 one-in=4 per-place=1 changes=one seed=0 input= \
            form=json sizes=32768,65536,3145728 keep=1 seconds=300 stop=1000 fails-at=100 middle=100 program= out=files",
        action: modes::files,
    },
    Run {
        name: "cluster",
        about: "the routes alone on a cluster's state, without schemas; build it with --release",
        parameters: "bases=2 one-in=1 per-place=1 changes=one seed=0 input= \
            sizes=32768,65536,3145728 keep=1 seconds=300 stop=1000 fails-at=100 middle=100 out=cluster",
        action: modes::cluster,
    },
    Run {
        name: "state",
        about: "small reviews on a cluster's state with one large object; build it with --release",
        parameters: "bases=2 one-in=1 per-place=2 changes=one seed=0 input= \
            sizes=262144,1048576 keep=1 seconds=300 stop=1000 fails-at=100 middle=100 out=state",
        action: modes::state,
    },
    Run {
        name: "memory",
        about: "many of the worst inputs at once, in a memory cgroup of 256 MiB; needs root",
        parameters: "bases=1 size=3145728 callers=64 rounds=3 seconds=60 from= program=",
        action: modes::memory,
    },
    Run {
        name: "list",
        about: "prints the names of the inputs that are chosen",
        parameters: "bases=2 one-in=1 per-place=1000000 changes=all seed=0 input=",
        action: modes::list,
    },
    Run {
        name: "dump",
        about: "writes one input to a file: as=review, or as=object alone",
        parameters: "bases=2 one-in=1 per-place=1000000 changes=all seed=0 input= size=32768 as=review file=input.json",
        action: modes::dump,
    },
];

fn main() -> ExitCode {
    runs::main(("way", 8), MODES, |mode, parameters| (mode.action)(parameters))
}
