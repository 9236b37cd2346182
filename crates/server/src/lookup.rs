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
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, Shared, WeakShared};
use futures::{FutureExt, StreamExt, stream};
use kube::core::{Request, Resource};
use kube::{Client, api::GetParams};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::logs::{LogRate, LogRateLimiter};
use crate::metrics::Metrics;
use crate::metrics::labels::ResultLabel;
use crate::store::apply_event::RawObject;
use crate::store::lock;
use memgate_certs::library_error::{explained, status_line};
use memgate_model::kind::SECRET;
use memgate_model::object::{LookupAnswer, Object, Reference};

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

/// The reasons of failures that are not the apiserver's own.
const NO_ANSWER: &str = "the apiserver did not answer in time";
const NO_TURN: &str = "too many other objects are being looked up";
const TOO_MANY: &str = "the object depends on too many others";
const TOO_LARGE: &str = "what was looked up is too large";

/// What the apiserver has answered, or why it has not. An object that it sent may still be unusable.
type LookupResult = Result<LookupAnswer, Arc<str>>;

type SharedLookup = Shared<BoxFuture<'static, LookupResult>>;

/// The answers for the objects that were to be looked up, each once.
pub(super) type Answers = Vec<(Reference, LookupAnswer)>;

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
        // The turn of a review that has waited as long may come at the very end.
        let in_time = Instant::now() < until;
        in_time.then(|| ReviewLookups { lookups: self, bytes: MOST_BYTES, _turn: turn })
    }

    async fn get_one(&self, reference: &Reference, until: Instant) -> LookupAnswer {
        if !reference.is_possible() {
            return Ok(None);
        }
        let answer = timeout_at(until, self.lookup(reference)).await;
        self.metrics.count_lookup(match &answer {
            Ok(Ok(Ok(Some(_)))) => ResultLabel::Found,
            Ok(Ok(Ok(None))) => ResultLabel::Absent,
            Ok(_) => ResultLabel::Failed,
            Err(_) => ResultLabel::TimedOut,
        });
        answer.unwrap_or_else(|_| Err(NO_ANSWER.into()))?
    }

    /// A request for the object that has not been sent yet. It waits up to 200 ms for the previous one.
    fn lookup(&self, reference: &Reference) -> SharedLookup {
        let mut latest = lock(&self.latest);
        latest.retain(|_, latest| latest.lookup.upgrade().is_some());
        let mut previous = None;
        if let Some(known) = latest.get(reference)
            && let Some(lookup) = known.lookup.upgrade()
        {
            // A request that waits for a permit can still be shared; one that was sent may have been answered
            // before the object was written, so a new one is set up behind it.
            if !known.sent.load(Ordering::Acquire) {
                return lookup;
            }
            previous = Some(lookup);
        }
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
            let answer = timeout(REQUEST_TIMEOUT, get(&client, &reference)).await;
            let error = match answer {
                Ok(Ok(Some(text))) => return Ok(read(&reference, &text, &large).await),
                Ok(Ok(None)) => return Ok(Ok(None)),
                Ok(Err(error)) => error,
                Err(_) => return Err(NO_ANSWER.into()),
            };
            let kind = reference.kind.kind;
            if let Ok(suppressed) = log_limiter.take(kind) {
                let error = explained(&error);
                let message = "an object could not be looked up: pods that need it are refused if they require it, \
                               and else start without their memory";
                tracing::warn!(kind, suppressed, error, "{message}");
            }
            Err(match &error {
                kube::Error::Api(status) => status_line(status.code).into(),
                _ => "the apiserver cannot be reached".into(),
            })
        }
    }
}

/// The answers of lookups that were never made, since other reviews have all of the memory.
pub(super) fn none(references: Vec<Reference>) -> Answers {
    references.into_iter().map(|reference| (reference, Err(NO_TURN.into()))).collect()
}

impl ReviewLookups<'_> {
    /// The answers that come by `until`, as far as there is memory for the objects.
    pub(super) async fn get_all(&mut self, references: Vec<Reference>, until: Instant) -> Answers {
        let lookups = self.lookups;
        let answers = references.into_iter().enumerate().map(|(index, reference)| async move {
            let answer = match index {
                0..Lookups::MOST => lookups.get_one(&reference, until).await,
                _ => Err(TOO_MANY.into()),
            };
            (reference, answer)
        });
        let mut answers = stream::iter(answers).buffered(AT_A_TIME);
        let mut kept = Vec::new();
        while let Some((reference, answer)) = answers.next().await {
            kept.push((reference, answer.and_then(|object| self.keep(object))));
        }
        kept
    }

    /// The object, if there is memory for it. After one that is too large nothing is left for others.
    fn keep(&mut self, object: Option<Arc<Object>>) -> LookupAnswer {
        let left = self.bytes.checked_sub(object.as_ref().map_or(0, |object| object.bytes()));
        self.bytes = left.unwrap_or_default();
        if left.is_some() { Ok(object) } else { Err(TOO_LARGE.into()) }
    }
}

/// The text of an object, or `None` if it does not exist.
async fn get(client: &Client, reference: &Reference) -> kube::Result<Option<String>> {
    let namespace = Some(reference.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let request = Request::new(RawObject::url_path(&reference.kind, namespace));
    let request = request.get(&reference.name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    match client.request_text(request).await {
        Ok(text) => Ok(Some(text)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

async fn read(reference: &Reference, text: &str, large: &Semaphore) -> LookupAnswer {
    let _turn = if text.len() > LARGE_BYTES { large.acquire().await.ok() } else { None };
    let place = (reference.namespace.as_str(), reference.name.as_str());
    let object = Object::read_once(reference.kind, place, text).map_err(|_| "it cannot be read")?;
    let object = object.ok_or("it has too many values")?;
    Ok(Some(Arc::new(object)))
}

#[cfg(test)]
mod tests;
