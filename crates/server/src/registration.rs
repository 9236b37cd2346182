//! Registers an installation once a replica has been ready for a while, for `--register-after-ready`.
//!
//! Entries that fail closed then have a match condition that asks the authorizer whether an account may do what only one
//! role allows. The binding of that role is installed without a subject, so they match nothing. A replica adds the
//! subject and never removes it, so the entries still fail closed when all replicas are gone.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::health::Health;
use crate::options::Registration;
use memgate_certs::kube_api::with_timeout;
use memgate_certs::library_error::explained;

/// How long a replica is ready before it registers: until then every apiserver has read the `caBundle`, and every machine
/// the address of the replica.
const SETTLE: Duration = Duration::from_secs(10);

/// How often readiness is read.
const POLL: Duration = Duration::from_secs(1);

/// The time between two writes. The binding may be deleted and installed again; a write without a change has no effect.
const INTERVAL: Duration = Duration::from_mins(1);

/// The timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Registers again and again; never ends.
pub(super) async fn register(client: Client, registration: Registration, health: Arc<Health>) {
    let Registration { namespace, name } = &registration;
    let bindings: Api<RoleBinding> = Api::namespaced(client, namespace);
    let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
    let patch = Patch::Merge(json!({"subjects": [subject]}));
    let params = PatchParams { field_manager: Some(name.clone()), ..PatchParams::default() };
    loop {
        ready_for(&health, SETTLE).await;
        match with_timeout(REQUEST_TIMEOUT, bindings.patch(name, &params, &patch)).await {
            Ok(_) => tracing::debug!("registered: entries that fail closed are in force"),
            Err(error) => {
                let error = explained(&error);
                tracing::warn!(error, "failed to register: entries that fail closed may match nothing yet");
            }
        }
        sleep(INTERVAL).await;
    }
}

/// Waits until the replica has been ready without a break for this time.
async fn ready_for(health: &Health, time: Duration) {
    let mut since = Instant::now();
    while since.elapsed() < time {
        sleep(POLL).await;
        if !health.is_ready() {
            since = Instant::now();
        }
    }
}
