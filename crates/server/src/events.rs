//! Kubernetes Events about pods that are admitted without their memory, on the object that owns the pods.
//!
//! ```text
//! review ──PodEvent──▶ EventRecorder (duplicate? full?) ──queue──▶ EventWriter (one a second) ──▶ apiserver
//! ```
//!
//! Events are advice and not part of an admission: reviews do not wait for them, and a lost Event does no harm. An Event
//! that was recorded in the last ten minutes is not written again, neither by this replica nor by another one, since
//! all replicas give it the same name.
//!
//! Any client that reaches the port can send a review. So Events are written only about objects that memgate watches.
//! They are written about an owner that only the pod names (its Job) if client certificates show that reviews come from
//! the apiserver. Each namespace has a share of the queue; system namespaces have none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use ring::digest::{SHA256, digest};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

use crate::logs::{LogRate, LogRateLimiter};
use crate::metrics::Metrics;
use crate::metrics::labels::ResultLabel;
use memgate_certs::clock::Clock;
use memgate_certs::kube_api::with_timeout;
use memgate_certs::library_error::explained;
use memgate_model::event::{InvolvedObject, PodEvent};
use memgate_model::kind::SYSTEM_NAMESPACES;
use memgate_primitives::credential::masked_keys;

/// For how long an equal Event is a duplicate.
const DEDUPLICATION_WINDOW: Duration = Duration::from_mins(10);

/// The least time between two writes.
const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// The timeout of one write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The rate of log lines about Events that could not be written; the metric counts all of them.
const FAILURE_LOG_RATE: LogRate = LogRate { burst: 1, refill: Duration::from_mins(5) };

/// How many Events the queue holds: what is written in a minute.
const QUEUE_CAPACITY: usize = 64;

/// How many recent Events are remembered: all that can be written in the deduplication window.
const MAX_RECENT: usize = 600;

/// How many of those may be about one namespace: half of the queue.
const MAX_RECENT_PER_NAMESPACE: usize = QUEUE_CAPACITY / 2;

/// The longest `note` of an Event. Source: k8s.io/api/events/v1, Event.
const MAX_NOTE_BYTES: usize = 1024;

/// How much of the owner's name goes into the name of the Event, which may have 253 bytes.
const MAX_NAME_BYTES: usize = 200;

/// The reporting controller and instance of the Events.
const REPORTING_CONTROLLER: &str = "memgate";

/// The namespace, kind and name of an object, and the code of a finding. Two Events are equal if these are. The uid does
/// not count: a caller can invent any number of uids.
type EventKey = (String, Cow<'static, str>, String, &'static str);

fn key(pod_event: &PodEvent) -> EventKey {
    let InvolvedObject { kind, namespace, name, .. } = &pod_event.regarding;
    (namespace.clone(), kind.clone(), name.clone(), pod_event.finding.code.name)
}

/// The recorded Events, and when they were recorded.
type RecentEvents = Mutex<BTreeMap<EventKey, Instant>>;

/// Queues Events; never waits.
pub(super) struct EventRecorder {
    /// Whether Events may be about owners that only the pod names.
    trust_pods: bool,
    recent: Arc<RecentEvents>,
    queue: Sender<PodEvent>,
    metrics: Arc<Metrics>,
}

/// Writes the Events that an [`EventRecorder`] has queued.
pub(super) struct EventWriter {
    client: Client,
    clock: Clock,
    pod_events: Receiver<PodEvent>,
    recent: Arc<RecentEvents>,
    metrics: Arc<Metrics>,
}

/// A recorder and its writer. `trust_pods` when all reviews come from the apiserver.
pub(super) fn recorder(
    client: Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    trust_pods: bool,
) -> (EventRecorder, EventWriter) {
    let (queue, pod_events) = channel(QUEUE_CAPACITY);
    let recent = Arc::<RecentEvents>::default();
    let writer =
        EventWriter { client, clock, pod_events, recent: Arc::clone(&recent), metrics: Arc::clone(&metrics) };
    (EventRecorder { trust_pods, recent, queue, metrics }, writer)
}

impl EventRecorder {
    /// Queues an Event, unless it must not be written, is a duplicate, or the queue is full.
    pub(super) fn record(&self, pod_event: PodEvent, now: Instant) {
        let InvolvedObject { namespace, known, .. } = &pod_event.regarding;
        if !(*known || self.trust_pods) || SYSTEM_NAMESPACES.contains(&namespace.as_str()) {
            return;
        }
        if let Some(reason) = self.enqueue(pod_event, now).err() {
            self.metrics.count_event(reason);
        }
    }

    fn enqueue(&self, pod_event: PodEvent, now: Instant) -> Result<(), ResultLabel> {
        let key = key(&pod_event);
        let mut recent = lock(&self.recent);
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < DEDUPLICATION_WINDOW;
        if recent.get(&key).is_some_and(is_recent) {
            return Err(ResultLabel::Duplicate);
        }
        recent.retain(|_, at| is_recent(at));
        let of_namespace = recent.keys().filter(|(namespace, ..)| *namespace == key.0).count();
        let is_full = recent.len() >= MAX_RECENT || of_namespace >= MAX_RECENT_PER_NAMESPACE;
        if is_full || self.queue.try_send(pod_event).is_err() {
            return Err(ResultLabel::Dropped);
        }
        // Only now: a dropped Event may be recorded again at once.
        recent.insert(key, now);
        Ok(())
    }
}

fn lock(recent: &RecentEvents) -> MutexGuard<'_, BTreeMap<EventKey, Instant>> {
    recent.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EventWriter {
    /// Writes the queued Events, with pauses; never ends. One that cannot be written is dropped, and
    /// may be recorded again at once.
    pub(super) async fn run(mut self) {
        let log_limiter = LogRateLimiter::new(FAILURE_LOG_RATE);
        while let Some(pod_event) = self.pod_events.recv().await {
            let start = Instant::now();
            let written = write(&self.client, &pod_event, self.clock.unix_now()).await;
            if let Err(error) = &written {
                if let Ok(suppressed) = log_limiter.take("events") {
                    let error = explained(error);
                    tracing::warn!(
                        error,
                        suppressed,
                        "an Event could not be written; allow it to create events of events.k8s.io, or give --no-events"
                    );
                }
                lock(&self.recent).remove(&key(&pod_event));
            }
            self.metrics.count_event(written.unwrap_or(ResultLabel::Failed));
            sleep_until(start + MIN_WRITE_INTERVAL).await;
        }
        // All recorders are gone: the server is about to end.
        std::future::pending::<()>().await;
    }
}

async fn write(client: &Client, pod_event: &PodEvent, now: i64) -> kube::Result<ResultLabel> {
    let event = event(pod_event, now);
    let events: Api<Event> = Api::namespaced(client.clone(), &pod_event.regarding.namespace);
    match with_timeout(WRITE_TIMEOUT, events.create(&PostParams::default(), &event)).await {
        Ok(_) => Ok(ResultLabel::Written),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(ResultLabel::Duplicate),
        Err(error) => Err(error),
    }
}

/// A text of fixed length for these parts.
fn hashed(parts: &[&str]) -> String {
    let hash = digest(&SHA256, parts.join("\n").as_bytes());
    let hash = u64::from_be_bytes(hash.as_ref().first_chunk().copied().unwrap_or_default());
    format!("{hash:016x}")
}

fn event(pod_event: &PodEvent, now: i64) -> Event {
    let InvolvedObject { api_version, kind, namespace, name, uid, .. } = &pod_event.regarding;
    let regarding = ObjectReference {
        api_version: Some(api_version.clone()),
        kind: Some(kind.to_string()),
        namespace: Some(namespace.clone()),
        name: Some(name.clone()),
        uid: Some(uid.clone()).filter(|uid| !uid.is_empty()),
        ..ObjectReference::default()
    };
    let reason = if pod_event.partly { "MemoryPartlyInjected" } else { "MemoryNotInjected" };
    Event {
        metadata: ObjectMeta {
            name: Some(event_name(pod_event, now)),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(Timestamp::from_second(now).unwrap_or_default())),
        type_: Some("Warning".to_owned()),
        reason: Some(reason.to_owned()),
        action: Some("Inject".to_owned()),
        note: Some(note(pod_event)),
        regarding: Some(regarding),
        reporting_controller: Some(REPORTING_CONTROLLER.to_owned()),
        reporting_instance: Some(REPORTING_CONTROLLER.to_owned()),
        ..Event::default()
    }
}

/// The name, equal for all replicas within the same ten minutes of the clock: the second create gets a 409.
fn event_name(pod_event: &PodEvent, now: i64) -> String {
    let InvolvedObject { api_version, kind, name, uid, .. } = &pod_event.regarding;
    let window =
        now.div_euclid(i64::try_from(DEDUPLICATION_WINDOW.as_secs()).unwrap_or(i64::MAX)).to_string();
    let hash = hashed(&[api_version, kind.as_ref(), name, uid, pod_event.finding.code_name(), &window]);
    format!("{}.{hash}", truncate(name, MAX_NAME_BYTES).trim_end_matches(['.', '-']))
}

fn note(pod_event: &PodEvent) -> String {
    let finding = &pod_event.finding;
    let (code, message) = (finding.code_name(), finding.message());
    let part = if pod_event.partly { "a part of its memory" } else { "its memory" };
    let advice = finding.help_text().map(|help| format!("; {help}")).unwrap_or_default();
    let note = format!(
        "a pod starts without {part}: {message}{advice} [{code}]; see \"memgate explain {code}\", \
         and make the pod anew when it is mended"
    );
    truncate(&masked_keys(&note), MAX_NOTE_BYTES).to_owned()
}

/// The beginning of a text, at most so many bytes long.
fn truncate(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
