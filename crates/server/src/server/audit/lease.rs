//! The Lease by which one replica at a time audits.
//!
//! It decides who works, not what may be written: two replicas that both believe to hold it write the same.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use crate::model::causes::with_causes;
use crate::server::certs::kube_api::with_timeout;
use crate::server::jitter::jitter;
use crate::server::options::AuditOptions;

use super::API_TIMEOUT;

/// After so many seconds without a sign of its holder another replica takes it, and so many before that the holder
/// gives one.
const SECONDS: u64 = 15;
const RENEWED_BEFORE: u64 = 7;

/// How often to look whether it is there.
const LOOK: Duration = Duration::from_secs(10);

/// How long to wait after the Lease could not be asked for.
const RETRY: Duration = Duration::from_secs(30);

/// Whether this replica holds the Lease, from now on. Dropping it gives the Lease up.
pub(super) async fn hold(client: &Client, options: &AuditOptions) -> Receiver<bool> {
    let AuditOptions { namespace, lease, .. } = options;
    let mut is_told = false;
    loop {
        match manager(client, options).await {
            Ok(manager) => return manager.watch().await.0,
            Err(error) => {
                let error = with_causes(&error);
                if is_told {
                    tracing::debug!(namespace, error, "the Lease {lease} is not to be had");
                } else {
                    tracing::warn!(
                        namespace,
                        error,
                        "the Lease {lease} is not to be had, so stored objects are not audited; \
                         allow to create, get and patch it, or give --audit-interval 0"
                    );
                }
                is_told = true;
            }
        }
        sleep(jitter(RETRY)).await;
    }
}

/// Waits until the Lease is gone: somebody has deleted it, and only who begins anew makes another one.
pub(super) async fn until_gone(client: &Client, options: &AuditOptions) {
    let leases = Api::<Lease>::namespaced(client.clone(), &options.namespace);
    loop {
        sleep(jitter(LOOK)).await;
        if let Ok(None) = with_timeout(API_TIMEOUT, leases.get_opt(&options.lease)).await {
            return;
        }
    }
}

async fn manager(client: &Client, options: &AuditOptions) -> Result<LeaseManager, LeaseManagerError> {
    LeaseManagerBuilder::new(client.clone(), &options.lease)
        .with_namespace(&options.namespace)
        .with_identity(identity())
        .with_field_manager(format!("memgate-{:08x}", random()))
        .with_duration(SECONDS)
        .with_grace(RENEWED_BEFORE)
        .build()
        .await
}

/// The name of the pod, which is the name of its host, and something of this process.
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

/// Different for two processes; nobody gains from guessing it.
fn random() -> u32 {
    u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or_default()
}
