//! Gets single objects from the apiserver that the watches have not delivered yet.
//!
//! Only kinds that a family names are looked up, and never a Secret. Users choose the names, which become part of a URL,
//! so no request is sent for a name that is impossible.
//!
//! The number of concurrent requests is limited, and lookups of one object share a request. But a lookup never shares a
//! request that was sent before the lookup began: its answer could be older than the object.
//!
//! Tenants choose how large the objects are. So each review has a bounded part of the memory from its first lookup on,
//! and a review that would need more goes without: none of them waits for memory while it holds some.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, Shared, WeakShared};
use futures::{FutureExt, StreamExt, stream};
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

/// How many reviews may hold objects that were looked up for them, and how many bytes of them each.
const MOST_REVIEWS: usize = 16;
const MOST_BYTES: usize = 2 << 20;

/// How many lookups of one review run at a time.
const AT_A_TIME: usize = 4;

/// From how many bytes of JSON on an object is large, and how many large ones are read at a time. One takes at most 16
/// times its JSON while it is read, and has no more values than a decision may read.
const LARGE_BYTES: usize = 64 << 10;
const MOST_LARGE: usize = 2;

/// The timeout of one request, also of a request that no review waits for any more.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The object, or `None` when it does not exist.
type LookupResult = Result<Option<Arc<Object>>, LookupFailed>;

type SharedLookup = Shared<BoxFuture<'static, LookupResult>>;

/// What was looked up; `None` for an object that does not exist.
pub(super) type Answers = Vec<(Reference, Option<Arc<Object>>)>;

/// A lookup failed; the log has the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LookupFailed;

/// Looks up objects at the apiserver.
pub(super) struct Lookups {
    client: Client,
    permits: Arc<Semaphore>,
    /// The turn to read a large object.
    large: Arc<Semaphore>,
    reviews: Arc<Semaphore>,
    latest: Mutex<BTreeMap<Reference, Latest>>,
    metrics: Arc<Metrics>,
    log_limiter: Arc<LogRateLimiter>,
}

/// The lookups of one review, until it is answered.
pub(super) struct ReviewLookups<'l> {
    lookups: &'l Lookups,
    /// How many bytes of objects it may still get.
    bytes: usize,
    _turn: OwnedSemaphorePermit,
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
        let (large, reviews) = [MOST_LARGE, MOST_REVIEWS].map(|most| Arc::new(Semaphore::new(most))).into();
        Self { client, permits, large, reviews, latest: Mutex::default(), metrics, log_limiter }
    }

    /// Whether a reference can be looked up: it has a name, and is not a Secret.
    pub(super) fn is_supported(reference: &Reference) -> bool {
        *reference.kind != SECRET && !reference.name.is_empty()
    }

    /// The lookups of a review; `None` if other reviews have all of the memory until then.
    pub(super) async fn of_review(&self, until: Instant) -> Option<ReviewLookups<'_>> {
        let turn = timeout_at(until, Arc::clone(&self.reviews).acquire_owned()).await.ok()?.ok()?;
        Some(ReviewLookups { lookups: self, bytes: MOST_BYTES, _turn: turn })
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
        let large = Arc::clone(&self.large);
        async move {
            if let Some(previous) = previous {
                let _either_way = timeout(PREVIOUS_LOOKUP_WAIT, previous).await;
            }
            let _permit = permits.acquire().await;
            sent.store(true, Ordering::Release);
            match timeout(REQUEST_TIMEOUT, get(&client, &reference, &large)).await {
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

impl ReviewLookups<'_> {
    /// The objects whose lookups ended by `until`, as far as there is memory for them.
    pub(super) async fn get_all(&mut self, references: Vec<Reference>, until: Instant) -> Answers {
        let lookups = self.lookups;
        let answers = references.into_iter().take(Lookups::MOST).map(|reference| async move {
            let answer = lookups.get_one(&reference, until).await.ok()?;
            Some((reference, answer))
        });
        let mut answers = stream::iter(answers).buffered(AT_A_TIME);
        let mut kept = Vec::new();
        while let Some(answer) = answers.next().await {
            let Some((reference, object)) = answer else { continue };
            let Some(left) = self.bytes.checked_sub(object.as_ref().map_or(0, |it| it.bytes())) else {
                break;
            };
            self.bytes = left;
            kept.push((reference, object));
        }
        kept
    }
}

async fn get(client: &Client, reference: &Reference, large: &Semaphore) -> kube::Result<Option<Arc<Object>>> {
    let namespace = Some(reference.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let request = Request::new(RawObject::url_path(&reference.kind, namespace));
    let request = request.get(&reference.name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    let text = match client.request_text(request).await {
        Ok(text) => text,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(error) => return Err(error),
    };
    let _turn = if text.len() > LARGE_BYTES { large.acquire().await.ok() } else { None };
    let place = (reference.namespace.as_str(), reference.name.as_str());
    let object = Object::read_once(reference.kind, place, &text).map_err(kube::Error::SerdeError)?;
    let too_large = || kube::Error::Service("the object has too many values".into());
    Ok(Some(Arc::new(object.ok_or_else(too_large)?)))
}

#[cfg(test)]
mod tests;
