//! Gets single objects from the apiserver that the watches have not delivered yet.
//!
//! Only kinds that a family names are looked up, and never a Secret. Users choose the names, which become part of a URL,
//! so no request is sent for a name that is impossible.
//!
//! The number of concurrent requests is limited, and lookups of one object share a request. But a lookup never shares a
//! request that was sent before the lookup began: its answer could be older than the object.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared, join_all};
use kube::core::{Request, Resource};
use kube::{Client, api::GetParams};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::server::log_rate_limiter::{LogRate, LogRateLimiter};
use crate::server::metrics::Metrics;
use crate::server::metrics::labels::ResultLabel;
use crate::server::store::apply_event::RawObject;
use memgate_model::causes::with_causes;
use memgate_model::kind::SECRET;
use memgate_model::object::{Object, Reference};

/// How long a request waits for the previous one about the same object, which may hang.
const PREVIOUS_LOOKUP_WAIT: Duration = Duration::from_millis(200);

/// How many lines about failed lookups of one kind are logged.
const FAILURE_LOG_RATE: LogRate = LogRate { burst: 5, refill: Duration::from_secs(1) };

/// How many KiB the objects may take that were looked up for reviews that are not answered yet.
const MOST_KIB: usize = 32 << 10;

/// How many times its JSON an object takes at most while it is read, and the most KiB that one takes: it has no more
/// values than a decision may read.
const MOST_TIMES_JSON: usize = 16;
const MOST_KIB_EACH: usize = 16 << 10;

/// The timeout of one request, also of a request that no review waits for any more.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The object, or `None` when it does not exist.
type LookupResult = Result<Option<LookedUp>, LookupFailed>;

type SharedLookup = Shared<BoxFuture<'static, LookupResult>>;

/// An object that was looked up, which all who asked for it share.
#[derive(Debug, Clone)]
pub(super) struct LookedUp {
    object: Arc<Object>,
    /// Its part of the memory for all objects that were looked up, until it is dropped.
    _claim: Arc<OwnedSemaphorePermit>,
}

impl LookedUp {
    /// The objects that were found.
    pub(super) fn objects(answers: &[(Reference, Option<Self>)]) -> Vec<(Reference, Option<Arc<Object>>)> {
        let object = |found: &Self| Arc::clone(&found.object);
        answers.iter().map(|(reference, found)| (reference.clone(), found.as_ref().map(object))).collect()
    }
}

/// A lookup failed; the log has the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LookupFailed;

/// Looks up objects at the apiserver.
pub(super) struct Lookups {
    client: Client,
    permits: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    latest: Mutex<BTreeMap<Reference, Latest>>,
    metrics: Arc<Metrics>,
    log_limiter: Arc<LogRateLimiter>,
}

/// The last request for an object, and whether it was sent already.
struct Latest {
    lookup: WeakShared<BoxFuture<'static, LookupResult>>,
    sent: Arc<AtomicBool>,
}

impl Lookups {
    /// How many lookups one review may cause; an ordinary pod needs one or two.
    pub(super) const MOST: usize = 16;

    /// Sends at most `max_requests` requests at a time.
    pub(super) fn new(client: Client, max_requests: usize, metrics: Arc<Metrics>) -> Self {
        let permits = Arc::new(Semaphore::new(max_requests.clamp(1, Semaphore::MAX_PERMITS)));
        let log_limiter = Arc::new(LogRateLimiter::new(FAILURE_LOG_RATE));
        let memory = Arc::new(Semaphore::new(MOST_KIB));
        Self { client, permits, memory, latest: Mutex::default(), metrics, log_limiter }
    }

    /// Whether a reference can be looked up: it has a name, and is not a Secret.
    pub(super) fn is_supported(reference: &Reference) -> bool {
        *reference.kind != SECRET && !reference.name.is_empty()
    }

    /// The objects whose lookups ended by `until`; `None` for one that does not exist.
    pub(super) async fn get_all(
        &self,
        references: Vec<Reference>,
        until: Instant,
    ) -> Vec<(Reference, Option<LookedUp>)> {
        let lookups = references.into_iter().take(Self::MOST).map(|reference| async {
            let answer = self.get_one(&reference, until).await.ok()?;
            Some((reference, answer))
        });
        join_all(lookups).await.into_iter().flatten().collect()
    }

    async fn get_one(&self, reference: &Reference, until: Instant) -> LookupResult {
        if !reference.is_possible() {
            return Ok(None);
        }
        let answer = timeout_at(until, self.lookup(reference)).await;
        self.metrics.count_lookup(match &answer {
            Ok(Ok(Some(_))) => ResultLabel::Found,
            Ok(Ok(None)) => ResultLabel::Absent,
            Ok(Err(LookupFailed)) => ResultLabel::Failed,
            Err(_) => ResultLabel::TimedOut,
        });
        answer.unwrap_or(Err(LookupFailed))
    }

    /// A request for the object that has not been sent yet. It waits up to 200 ms for the previous one.
    fn lookup(&self, reference: &Reference) -> SharedLookup {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.retain(|_, latest| latest.lookup.upgrade().is_some());
        let previous = latest.get(reference).and_then(|latest| {
            let lookup = latest.lookup.upgrade()?;
            Some((lookup, latest.sent.load(Ordering::Acquire)))
        });
        // A request that waits for a permit can still be shared; one that was sent may have been answered
        // before the object was written, so a new one is set up behind it.
        let previous = match previous {
            Some((lookup, false)) => return lookup,
            Some((lookup, true)) => Some(lookup),
            None => None,
        };
        let sent = Arc::new(AtomicBool::new(false));
        let lookup = self.start(reference.clone(), previous, Arc::clone(&sent)).boxed().shared();
        if let Some(weak) = lookup.downgrade() {
            latest.insert(reference.clone(), Latest { lookup: weak, sent });
        }
        lookup
    }

    fn start(
        &self,
        reference: Reference,
        previous: Option<SharedLookup>,
        sent: Arc<AtomicBool>,
    ) -> impl Future<Output = LookupResult> + use<> {
        let (client, permits, log_limiter) =
            (self.client.clone(), Arc::clone(&self.permits), Arc::clone(&self.log_limiter));
        let memory = Arc::clone(&self.memory);
        async move {
            if let Some(previous) = previous {
                let _either_way = timeout(PREVIOUS_LOOKUP_WAIT, previous).await;
            }
            let _permit = permits.acquire().await;
            sent.store(true, Ordering::Release);
            match timeout(REQUEST_TIMEOUT, get(&client, &reference, memory)).await {
                Ok(Ok(object)) => Ok(object),
                Ok(Err(error)) => {
                    let kind = reference.kind.kind;
                    if let Ok(suppressed) = log_limiter.take(kind) {
                        let error = with_causes(&error);
                        tracing::warn!(kind, suppressed, error, "a lookup at the apiserver failed");
                    }
                    Err(LookupFailed)
                }
                Err(_) => Err(LookupFailed),
            }
        }
    }
}

async fn get(
    client: &Client,
    reference: &Reference,
    memory: Arc<Semaphore>,
) -> kube::Result<Option<LookedUp>> {
    let namespace = Some(reference.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let request = Request::new(RawObject::url_path(&reference.kind, namespace));
    let request = request.get(&reference.name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    let text = match client.request_text(request).await {
        Ok(text) => text,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(error) => return Err(error),
    };
    let kib = (text.len() * MOST_TIMES_JSON).div_ceil(1 << 10).min(MOST_KIB_EACH);
    let claim = memory.acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX)).await;
    let claim = claim.map_err(|error| kube::Error::Service(error.into()))?;
    let place = (reference.namespace.as_str(), reference.name.as_str());
    let object = Object::read_once(reference.kind, place, &text).map_err(kube::Error::SerdeError)?;
    let too_large = || kube::Error::Service("the object has too many values".into());
    let object = Arc::new(object.ok_or_else(too_large)?);
    Ok(Some(LookedUp { object, _claim: Arc::new(claim) }))
}

#[cfg(test)]
mod tests;
