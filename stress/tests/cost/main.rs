//! What inputs cost: `just cost` lists the ways to run this, `just cost NAME [KEY=VALUE]…` runs one.
//!
//! ```text
//! tests/cases, policies ──scene──▶ bases, their state   deploy/crds ──shape──▶ places of each kind
//! base + place + fill ──plan──▶ inputs ──outline──▶ a review of any size
//! review ──target──▶ CPU time, answer, memory ──measure──▶ share of each bound ──table──▶ target/cost
//! ```
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
#[path = "../soak/parameters.rs"]
mod parameters;
mod plan;
mod policies;
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

use anyhow::Result;

use parameters::Parameters;

/// One way to run this.
struct Mode {
    name: &'static str,
    about: &'static str,
    /// The names of its parameters, and their values when none are given.
    parameters: &'static [(&'static str, &'static str)],
    run: fn(&Parameters) -> Result<()>,
}

const MODES: &[Mode] = &[
    Mode {
        name: "search",
        about: "sends inputs of every sort to the server, and the worst of each place in all sizes",
        parameters: &[
            ("bases", "2"),
            ("one-in", "1"),
            ("per-place", "2"),
            ("changes", "all"),
            ("seed", "0"),
            ("input", ""),
            ("sizes", "32768,65536,3145728,6291456,8380416"),
            ("keep", "1"),
            ("seconds", "900"),
            ("stop", "1000"),
            ("fails-at", "100"),
            ("program", ""),
            ("out", "search"),
        ],
        run: modes::search,
    },
    Mode {
        name: "short",
        about: "the known worst and one place in twelve: what CI runs, within a minute",
        parameters: &[
            ("bases", "1"),
            ("one-in", "12"),
            ("per-place", "1"),
            ("changes", "one"),
            ("seed", "0"),
            ("input", ""),
            ("sizes", "32768,65536,3145728"),
            ("keep", "1"),
            ("seconds", "15"),
            ("stop", "1000"),
            ("fails-at", "350"),
            ("program", ""),
            ("out", "short"),
        ],
        run: modes::search,
    },
    Mode {
        name: "files",
        about: "inputs of every sort through `memgate check`, as form=json, flow or block (both YAML)",
        parameters: &[
            ("bases", "1"),
            ("one-in", "4"),
            ("per-place", "1"),
            ("changes", "one"),
            ("seed", "0"),
            ("input", ""),
            ("form", "json"),
            ("sizes", "32768,65536,3145728"),
            ("keep", "1"),
            ("seconds", "300"),
            ("stop", "1000"),
            ("fails-at", "100"),
            ("program", ""),
            ("out", "files"),
        ],
        run: modes::files,
    },
    Mode {
        name: "cluster",
        about: "the routes alone on a cluster's state, without schemas; build it with --release",
        parameters: &[
            ("bases", "2"),
            ("one-in", "1"),
            ("per-place", "1"),
            ("changes", "one"),
            ("seed", "0"),
            ("input", ""),
            ("sizes", "32768,65536,3145728"),
            ("keep", "1"),
            ("seconds", "300"),
            ("stop", "1000"),
            ("fails-at", "100"),
            ("out", "cluster"),
        ],
        run: modes::cluster,
    },
    Mode {
        name: "state",
        about: "small reviews on a cluster's state with one large object; build it with --release",
        parameters: &[
            ("bases", "2"),
            ("one-in", "1"),
            ("per-place", "2"),
            ("changes", "one"),
            ("seed", "0"),
            ("input", ""),
            ("sizes", "262144,1048576"),
            ("keep", "1"),
            ("seconds", "300"),
            ("stop", "1000"),
            ("fails-at", "100"),
            ("out", "state"),
        ],
        run: modes::state,
    },
    Mode {
        name: "memory",
        about: "many of the worst inputs at once, in a memory cgroup of 256 MiB; needs root",
        parameters: &[
            ("bases", "1"),
            ("size", "3145728"),
            ("callers", "64"),
            ("rounds", "3"),
            ("seconds", "60"),
            ("from", ""),
            ("program", ""),
        ],
        run: modes::memory,
    },
    Mode {
        name: "list",
        about: "prints the names of the inputs that are chosen",
        parameters: &[
            ("bases", "2"),
            ("one-in", "1"),
            ("per-place", "1000000"),
            ("changes", "all"),
            ("seed", "0"),
            ("input", ""),
        ],
        run: modes::list,
    },
    Mode {
        name: "dump",
        about: "writes one input to a file: as=review, or as=object alone",
        parameters: &[
            ("bases", "2"),
            ("one-in", "1"),
            ("per-place", "1000000"),
            ("changes", "all"),
            ("seed", "0"),
            ("input", ""),
            ("size", "32768"),
            ("as", "review"),
            ("file", "input.json"),
        ],
        run: modes::dump,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, values)) = args.split_first() else {
        list();
        return ExitCode::SUCCESS;
    };
    let Some(mode) = MODES.iter().find(|mode| mode.name == name) else {
        eprintln!("there is no way {name}; there are:");
        list();
        return ExitCode::FAILURE;
    };
    match Parameters::read(mode.parameters, values).and_then(|parameters| (mode.run)(&parameters)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    for Mode { name, about, parameters, .. } in MODES {
        println!("{name:<8} {about}");
        let parameters: Vec<_> = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        println!("{:<8} {}", "", parameters.join(" "));
    }
}
