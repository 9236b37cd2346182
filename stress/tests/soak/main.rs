//! Scenarios that take longer than a test may: `just soak` lists them, `just soak NAME [KEY=VALUE]…`
//! runs one. What came of the last run is in stress/FAULTS.md.
//!
//! `cargo test` neither builds nor runs this. To add a scenario, write a module with a function
//! `fn run(parameters: &Parameters) -> anyhow::Result<()>` that prints what it measured and fails
//! when something was lost, and a row in [`SCENARIOS`]. Each is bounded in time and in calls, stays
//! on this machine, and starts what it needs itself.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test may panic, reads JSON by indexing, and prints what it measured"
)]

#[path = "../../../tests/apiserver/faults/mod.rs"]
mod faults;
#[path = "../../../tests/apiserver/fixture.rs"]
#[allow(dead_code, reason = "each test program uses the part of it that it needs")]
mod fixture;
#[path = "../../../tests/apiserver/going.rs"]
#[allow(dead_code, reason = "each test program uses the part of it that it needs")]
mod going;
#[path = "../../../tests/apiserver/installed.rs"]
#[allow(dead_code, reason = "each test program uses the part of it that it needs")]
mod installed;
#[path = "../../../tests/operate/kubelet.rs"]
#[allow(dead_code, reason = "each test program uses the part of it that it needs")]
mod kubelet;
#[path = "../../support/many.rs"]
mod many;
#[path = "../../../tests/operate/network.rs"]
mod network;
#[path = "../../../tests/apiserver/order_cluster.rs"]
#[allow(dead_code, reason = "each test program uses the part of it that it needs")]
mod order_cluster;
#[path = "../../../tests/operate/pod_logs.rs"]
mod pod_logs;
#[path = "../../../tests/apiserver/request.rs"]
#[allow(dead_code, reason = "each test program uses the part of it that it needs")]
mod request;
#[path = "../../support/runs.rs"]
mod runs;
#[path = "../../../tests/apiserver/samples.rs"]
#[allow(dead_code, reason = "each test program uses the part of it that it needs")]
mod samples;
#[path = "../../../tests/support/mod.rs"]
mod support;

mod audit;
mod day;
mod greedy;
mod hostile;
mod outage;
mod races;
mod replicas;
mod scale;
mod state;
mod upgrade;

use std::{process::ExitCode, time::Instant};

use runs::Run;

const SCENARIOS: &[Run] = &[
    Run {
        name: "restarts",
        about: "replicas are replaced one by one under load: no call fails",
        parameters: "times=100 rate=200 pause=4 memgate=",
        action: replicas::restarts,
    },
    Run {
        name: "kills",
        about: "replicas are killed under load: only their own calls fail, no pod goes bare",
        parameters: "times=20 rate=200 memgate=",
        action: replicas::kills,
    },
    Run {
        name: "outage",
        about: "the apiserver stalls, dies silently, is away: what is known is served, and then learned anew",
        parameters: "quiet=130 stall=30 outage=330",
        action: outage::run,
    },
    Run {
        name: "day",
        about: "a long time under load while memories come and go: memory and files stay as they are",
        parameters: "time=86400 window=60 rate=200 churn=1000 memgate=",
        action: day::run,
    },
    Run {
        name: "hostile",
        about: "ordinary calls beside the worst ones, in the memory of a container (as root): all stays as it is",
        parameters: "time=3600 window=60 quiet=120 rate=20 hostile=2 memgate=",
        action: hostile::run,
    },
    Run {
        name: "greedy",
        about: "a tenant writes 50 MB of lists that say nothing, in the memory of a container (as root): others stay as fast",
        parameters: "megabytes=50 elements=9900 writes=4 quiet=60 rate=20 memgate=",
        action: greedy::run,
    },
    Run {
        name: "upgrade",
        about: "an older build's installation becomes this one's and goes back: no call fails (`just upgrade BASE`)",
        parameters: "old= rate=20 pause=20 twice=no",
        action: upgrade::run,
    },
    Run {
        name: "scale",
        about: "a Deployment grows to many pods at once: each pod has its memory",
        parameters: "pods=1000",
        action: scale::run,
    },
    Run {
        name: "audit",
        about: "two audits of many stored objects, the second of which writes nothing: time, memory",
        parameters: "objects=100000 failing=1000 policies=5 memgate=",
        action: audit::run,
    },
    Run {
        name: "state",
        about: "many objects of one kind, and changes of them: CPU time, memory, time to be ready",
        parameters: "kind=Query objects=50000 rate=500 time=60 more=50000 memgate=",
        action: state::run,
    },
    Run {
        name: "races",
        about: "memory, agent and pod in one apply, many times: each pod gets its memory",
        parameters: "times=1000",
        action: races::run,
    },
];

fn main() -> ExitCode {
    runs::main(("scenario", 12), SCENARIOS, |scenario, parameters| {
        let start = Instant::now();
        println!("{} {parameters}", scenario.name);
        (scenario.action)(parameters)?;
        println!("{}: passed in {:.0?}", scenario.name, start.elapsed());
        Ok(())
    })
}
