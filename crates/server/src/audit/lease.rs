//! The Lease by which one replica at a time audits.
//!
//! It saves work, and is not needed for correctness: two replicas that both believe to hold it write the same.

use std::error::Error;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use crate::logs::{LogRate, LogRateLimiter};
use crate::options::AuditOptions;
use crate::store::idle_timeout::{Pages, with_idle_timeout};
use memgate_certs::kube_api::{jitter, with_timeout};
use memgate_certs::library_error::explained;

use super::API_TIMEOUT;

/// After how many seconds without a renewal another replica takes the Lease, and how long before that the holder renews
/// it.
const SECONDS: u64 = 15;
const RENEWED_BEFORE: u64 = 7;

/// How often to check that the Lease exists.
const LOOK: Duration = Duration::from_secs(10);

/// The log lines about a Lease that cannot be used.
static FAILURES: LogRateLimiter = LogRateLimiter::new(LogRate { burst: 1, refill: Duration::from_hours(1) });

/// The pause after a failed attempt to use the Lease.
const RETRY: Duration = Duration::from_secs(30);

/// Follows whether this replica holds the Lease. Dropping the receiver releases it.
pub(super) async fn hold(client: &Client, options: &AuditOptions) -> Receiver<bool> {
    loop {
        match manager(client, options).await {
            Ok(manager) => return manager.watch().await.0,
            // Its own text repeats that of its cause.
            Err(error) => log(options, error.source().unwrap_or(&error)),
        }
        sleep(jitter(RETRY)).await;
    }
}

fn log(AuditOptions { namespace, lease, .. }: &AuditOptions, error: &(dyn Error + 'static)) {
    if FAILURES.take("lease").is_ok() {
        tracing::warn!(
            namespace,
            error = explained(error),
            "the Lease {lease} cannot be used, so stored objects are not audited; \
             allow to create, get and patch it, or give --audit-interval 0"
        );
    }
}

/// Waits until the Lease was deleted: only a new manager creates another one.
pub(super) async fn until_gone(client: &Client, options: &AuditOptions) {
    let leases = Api::<Lease>::namespaced(client.clone(), &options.namespace);
    loop {
        sleep(jitter(LOOK)).await;
        match with_timeout(API_TIMEOUT, leases.get_opt(&options.lease)).await {
            Ok(None) => return,
            Ok(Some(_)) => {}
            Err(error) => log(options, &error),
        }
    }
}

async fn manager(client: &Client, options: &AuditOptions) -> Result<LeaseManager, LeaseManagerError> {
    // A request that is never answered must not keep the Lease from its next holder.
    let client = with_idle_timeout(client, API_TIMEOUT, &Pages::default(), || ());
    LeaseManagerBuilder::new(client, &options.lease)
        .with_namespace(&options.namespace)
        .with_identity(identity())
        .with_field_manager(format!("memgate-{:08x}", random()))
        .with_duration(SECONDS)
        .with_grace(RENEWED_BEFORE)
        .build()
        .await
}

/// The name of the host, which is the name of the pod, and a random part for this process.
fn identity() -> String {
    format!("{}_{:08x}", host(), random())
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    "memgate".to_owned()
}

/// Different for two processes. It need not be secret.
fn random() -> u32 {
    u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or_default()
}
