//! Requests to the apiserver: the webhook configurations, timeouts, and random pauses, so that replicas and watches do not
//! all ask at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};

use memgate_primitives::review_path::Phase;

/// The webhook configurations of a kind; untyped, so that fields of a newer Kubernetes are kept.
pub fn webhook_configs(client: Client, kind: Phase) -> Api<DynamicObject> {
    let resource = match kind {
        Phase::Mutate => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        Phase::Validate => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
    };
    Api::all_with(client, &resource)
}

/// The answer to a request.
///
/// # Errors
/// Those of the request; when it takes longer than `limit`.
pub async fn with_timeout<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    let late = |_| kube::Error::Service(format!("no answer within {} s", limit.as_secs()).into());
    tokio::time::timeout(limit, answer).await.map_err(late)?
}

/// The duration plus or minus a fifth.
pub fn jitter(duration: Duration) -> Duration {
    duration * (800 + random_below(400)) / 1000
}

/// Any duration up to `max`.
pub fn random_up_to(max: Duration) -> Duration {
    max * random_below(1000) / 1000
}

/// A random number below `bound`. The standard library seeds each hasher from the system's randomness, which is good
/// enough for a pause.
fn random_below(bound: u32) -> u32 {
    let random = RandomState::new().build_hasher().finish() % u64::from(bound);
    u32::try_from(random).unwrap_or_default()
}
