//! Instructions, which do not depend on what else the machine does: of a review from the bytes of its request to the bytes
//! of its answer, and of the start of `serve`.
//!
//! `tools/instructions.sh` runs it under callgrind and compares with stress/benches/results/instructions.txt. A review
//! goes through the real listener and router on a kept connection, without TLS; client and server share one thread, and
//! what the client does is part of each row. It is the same in all rows, so the row `constant` has it too.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(
    clippy::exit,
    clippy::disallowed_methods,
    missing_docs,
    unused_qualifications,
    reason = "what macros write"
)]

#[path = "../../benches/common/mod.rs"]
mod common;
#[path = "../served.rs"]
mod served;
#[path = "../../benches/wire/state.rs"]
mod state;

use std::hint::black_box;
use std::path::PathBuf;

use gungraun::Callgrind;
use gungraun::prelude::*;
use memgate_server::{Service, State, reviews};
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::load::load;
use tempfile::TempDir;

use crate::served::{Connection, changed, constant, memory, options, pod};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many reviews are counted together. tools/instructions.sh divides by it.
const REVIEWS: usize = 100;

/// Caches like those of a server, so that the counts do not depend on the machine: 32 KiB for instructions, 48 KiB for
/// data, 2 MiB for both, and the branch predictor of callgrind.
fn cached() -> LibraryBenchmarkConfig {
    let options =
        ["--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=49152,12,64", "--LL=2097152,16,64"];
    LibraryBenchmarkConfig::default().tool(Callgrind::with_args(options)).clone()
}

#[library_benchmark(config = cached())]
#[bench::constant_4_kb(args = (20, 600), setup = constant)]
#[bench::constant_64_kb(args = (500, 36_000), setup = constant)]
fn answer(mut connection: Connection) -> Connection {
    for _ in 0..REVIEWS {
        black_box(connection.exchange());
    }
    connection
}

#[library_benchmark(config = cached())]
#[bench::pod_4_kb(args = ("arkonis.dev/deployment", 20, 600, false), setup = pod)]
#[bench::pod_64_kb(args = ("arkonis.dev/deployment", 500, 36_000, false), setup = pod)]
#[bench::other_pod(args = ("example.dev/other", 20, 600, false), setup = pod)]
#[bench::memory(args = (false), setup = memory)]
#[bench::query(args = ("ark", "default", "adds-the-default-memory-of-the-namespace", false), setup = changed)]
#[bench::sidecar(args = ("sympozium", "inject-sidecar", "injects-a-native-sidecar", false), setup = changed)]
#[bench::pod_4_kb_policies(args = ("arkonis.dev/deployment", 20, 600, true), setup = pod)]
#[bench::pod_64_kb_policies(args = ("arkonis.dev/deployment", 500, 36_000, true), setup = pod)]
#[bench::other_pod_policies(args = ("example.dev/other", 20, 600, true), setup = pod)]
#[bench::memory_policies(args = (true), setup = memory)]
#[bench::query_policies(args = ("ark", "default", "adds-the-default-memory-of-the-namespace", true), setup = changed)]
#[bench::sidecar_policies(args = ("sympozium", "inject-sidecar", "injects-a-native-sidecar", true), setup = changed)]
fn review(mut connection: Connection) -> Connection {
    for _ in 0..REVIEWS {
        black_box(connection.exchange());
    }
    connection
}

/// A file with so many objects.
fn objects(count: usize) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = state::write(folder.path(), count).expect("a file");
    (folder, path)
}

#[library_benchmark]
#[bench::with_10_000_objects(args = (10_000), setup = objects)]
fn start((folder, path): (TempDir, PathBuf)) -> (TempDir, Service) {
    let state = vec![path.display().to_string()];
    let plan = Plan { state, keeps_places: false, ..Plan::default() };
    let inputs = load(&plan).expect("a state");
    if let Some(crds) = &inputs.snapshot.crds {
        crds.read_bundled(&memgate_platforms::ALL);
    }
    (folder, reviews(&options(), State::Fixed(inputs.snapshot)))
}

library_benchmark_group!(name = reviews, benchmarks = [answer, review, start]);

main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"]));
    library_benchmark_groups = reviews
);
