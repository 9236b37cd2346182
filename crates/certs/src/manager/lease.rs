//! The Lease of the one replica that writes.
//!
//! It saves writes and races, and no answer depends on it: the Secret is written only if it has not changed since it was
//! read. kube-lease-manager compares the machine's clock with the times in the Lease, so a replica whose clock is wrong
//! stays away from it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use axum::BoxError;
use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::sync::watch::Sender;
use tokio::time::{sleep, timeout};

use crate::Builtin;
use crate::clock::Clock;
use crate::failure_log::FailureLog;
use crate::kube_api::jitter;

/// After how many seconds without a renewal another replica takes the Lease, and how long before that the holder renews
/// it.
const SECONDS: u64 = 15;
const RENEWED_BEFORE: u64 = 7;

/// After this time a Lease that another client holds is read anew: it may have been deleted.
const LOOK: Duration = Duration::from_secs(30);

/// The pause after a failed attempt to use the Lease.
const RETRY: Duration = Duration::from_secs(5);

/// Takes the Lease when it is free, and tells whether this replica holds it; never ends.
pub(super) async fn hold(client: Client, builtin: Builtin, clock: Clock, held: Sender<bool>) {
    let step = format!("use the Lease {}, by which one replica writes certificates", builtin.secret);
    // The name of the pod, and a random part for this process.
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "memgate".to_owned());
    let identity = format!("{host}_{:016x}", RandomState::new().build_hasher().finish());
    let mut failures = FailureLog::default();
    loop {
        let manager = LeaseManagerBuilder::new(client.clone(), &builtin.secret)
            .with_namespace(&builtin.namespace)
            .with_identity(&identity)
            .with_field_manager(&identity)
            .with_duration(SECONDS)
            .with_grace(RENEWED_BEFORE);
        let used = match manager.build().await {
            Ok(manager) => follow(&manager, &clock, &held).await,
            Err(error) => Err(cause(error)),
        };
        held.send_if_modified(std::mem::take);
        if failures.log(&step, used).is_none() {
            sleep(jitter(RETRY)).await;
        }
    }
}

/// Follows the Lease until it must be read anew.
async fn follow(manager: &LeaseManager, clock: &Clock, held: &Sender<bool>) -> Result<(), BoxError> {
    loop {
        if let Some(seconds) = clock.wrong_by() {
            return Err(format!("the clock of this machine is wrong by {seconds} s").into());
        }
        match timeout(LOOK, manager.changed()).await {
            Ok(is_held) => drop(held.send_replace(is_held.map_err(cause)?)),
            Err(_) if *held.borrow() => {}
            Err(_) => return Ok(()),
        }
    }
}

/// The text of such an error repeats that of its cause.
fn cause(error: LeaseManagerError) -> BoxError {
    match error {
        LeaseManagerError::KubeError(error) => error.into(),
        error => error.into(),
    }
}
