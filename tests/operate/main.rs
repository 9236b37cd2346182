//! docs/install.md, operate.md and emergencies.md, and README's "On a kind cluster", word by word, on a cluster that calls
//! memgate through its Service.
//!
//! ```text
//! cluster      a control plane of its own, whose apiserver reaches Services through `network`
//! network      CONNECT memgate.memgate-system.svc:443 goes to a replica that is ready
//! kubelet      runs memgate's pods: the Deployment's arguments, the account's own token
//! pod_logs     `kubectl logs` of them
//! document     the commands in a document, in order, each section on the state that it names
//! sections     which sections there are, and what is true after each
//! lockout      the section whose blocks are ways out, each of them tried by itself
//! ```
//!
//! Trials share the cluster and run one after another.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may panic, reads JSON by indexing, where a missing key is null, and says what it runs"
)]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod document;
mod kubelet;
mod lockout;
mod network;
mod pod_logs;
mod sections;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};

use cluster::Cluster;
use support::needs::needs;

/// The cluster, started by the first trial that runs.
type Shared = Arc<Mutex<OnceLock<Cluster>>>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let shared = Shared::default();
    let trials = sections::trials().into_iter().map(|(name, run)| {
        let shared = Arc::clone(&shared);
        let trial = Trial::test(name, move || {
            let once = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if once.get().is_none() {
                let cluster = Cluster::start().map_err(|error| Failed::from(format!("{error:#}")))?;
                once.set(cluster).map_err(|_| Failed::from("there are two clusters"))?;
            }
            let cluster = once.get().ok_or("there is no cluster")?;
            run(cluster).map_err(|error| format!("{error:#}\n{}", cluster.state()).into())
        });
        needs("Go, for a control plane and Helm", trial)
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    drop(shared);
    conclusion.exit_code()
}
