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

/// The duration plus or minus a fifth. The standard library seeds each hasher from the system's randomness, which is good
/// enough for a pause.
pub fn jitter(duration: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 400;
    duration * (800 + u32::try_from(random).unwrap_or_default()) / 1000
}
