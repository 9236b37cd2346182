//! Events about pods that are admitted without their memory, on the object whose pods they are.
//!
//! ```text
//! review ──PodEvent──▶ Outbox (told a moment ago? room?) ──queue──▶ Delivery (one a second) ──▶ apiserver
//! ```
//!
//! Advice and no part of an admission: nobody waits for an Event, and one that is lost is not missed.
//! A notice that was told in the last ten minutes is not told again, neither by this replica nor, since
//! all give the Event the same name, by another one.
//!
//! Anybody who reaches the port can send a review. So Events are about objects that memgate itself knows;
//! about what only a pod speaks of (its Job) just where callers show that they are the apiserver. Each
//! namespace has a share of the room, and none has any in which memgate is asked about nothing.

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
use thiserror::Error;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until, timeout};

use crate::model::event::{InvolvedObject, PodEvent};
use crate::model::kind::SYSTEM_NAMESPACES;
use crate::server::clock::Clock;
use crate::server::metrics::{Metrics, Told};

/// After so long the same is told again.
const QUIET: Duration = Duration::from_mins(10);

/// The least time from one Event to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest that writing one may take.
const LONGEST: Duration = Duration::from_secs(10);

/// How many notices wait at most: what is written in a minute.
const WAITING: usize = 64;

/// How many notices are remembered at most: all that can be written while they are.
const REMEMBERED: usize = 600;

/// How many of those may be about one namespace: no more than half of what can wait.
const REMEMBERED_OF_ONE: usize = WAITING / 2;

/// The longest note. Source: k8s.io/api/events/v1, Event.
const NOTE_BYTES: usize = 1024;

/// The longest part of a referrer's name in that of an Event, which has 253 characters.
const NAME_BYTES: usize = 200;

/// Who tells it.
const REPORTER: &str = "memgate";

/// What was told: about whom, and which code. Without the uid, of which a caller can make up any number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Topic {
    namespace: String,
    kind: Cow<'static, str>,
    name: String,
    code: &'static str,
}

impl Topic {
    fn of(notice: &PodEvent) -> Self {
        let InvolvedObject { kind, namespace, name, .. } = &notice.regarding;
        let (namespace, name) = (namespace.clone(), name.clone());
        Self { namespace, kind: kind.clone(), name, code: notice.finding.code.name }
    }
}

/// What was told, and when.
type Topics = Mutex<BTreeMap<Topic, Instant>>;

/// Where reviews leave their notices.
#[derive(Debug)]
pub(super) struct Outbox {
    /// Whether what only a pod speaks of is believed.
    trusting: bool,
    told: Arc<Topics>,
    queue: Sender<PodEvent>,
    metrics: Arc<Metrics>,
}

/// What takes notices out of an [`Outbox`] and writes them.
pub(super) struct Delivery {
    client: Client,
    clock: Clock,
    notices: Receiver<PodEvent>,
    told: Arc<Topics>,
    metrics: Arc<Metrics>,
}

/// An outbox, and the way from it to the apiserver. It is `trusting` when all reviews come from the
/// apiserver.
pub(super) fn outbox(
    client: Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    trusting: bool,
) -> (Outbox, Delivery) {
    let (queue, notices) = channel(WAITING);
    let told = Arc::<Topics>::default();
    let delivery =
        Delivery { client, clock, notices, told: Arc::clone(&told), metrics: Arc::clone(&metrics) };
    (Outbox { trusting, told, queue, metrics }, delivery)
}

impl Outbox {
    /// Takes a notice, unless nobody is to be told, or was a short while ago, or there is no room.
    pub(super) fn put(&self, notice: PodEvent, now: Instant) {
        let InvolvedObject { namespace, known, .. } = &notice.regarding;
        if !(*known || self.trusting) || SYSTEM_NAMESPACES.contains(&namespace.as_str()) {
            return;
        }
        if let Some(lost) = self.take(notice, now).err() {
            self.metrics.told(lost);
        }
    }

    fn take(&self, notice: PodEvent, now: Instant) -> Result<(), Told> {
        let topic = Topic::of(&notice);
        let mut told = lock(&self.told);
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < QUIET;
        if told.get(&topic).is_some_and(is_recent) {
            return Err(Told::Duplicate);
        }
        told.retain(|_, at| is_recent(at));
        let of_namespace = told.keys().filter(|other| other.namespace == topic.namespace).count();
        let is_full = told.len() >= REMEMBERED || of_namespace >= REMEMBERED_OF_ONE;
        if is_full || self.queue.try_send(notice).is_err() {
            return Err(Told::Dropped);
        }
        told.insert(topic, now);
        Ok(())
    }
}

fn lock(topics: &Topics) -> MutexGuard<'_, BTreeMap<Topic, Instant>> {
    topics.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why an Event was not written.
#[derive(Debug, Error)]
enum Error {
    #[error("the apiserver refuses it: {0}")]
    Refused(String),
    #[error("the apiserver did not answer well")]
    Api(#[source] kube::Error),
    #[error("the apiserver did not answer in time")]
    Late,
}

impl Delivery {
    /// Writes an Event for each notice, with pauses; never ends. What cannot be written is lost, and may
    /// be told again at once.
    pub(super) async fn run(mut self) {
        let mut failing = false;
        while let Some(notice) = self.notices.recv().await {
            let start = Instant::now();
            let told = write(&self.client, &notice, self.clock.unix_now()).await;
            if let Err(error) = &told {
                warn(error, failing);
                lock(&self.told).remove(&Topic::of(&notice));
            }
            failing = told.is_err();
            self.metrics.told(told.unwrap_or(Told::Failed));
            sleep_until(start + PAUSE).await;
        }
        // Nobody has anything to tell any more: the server is about to end.
        std::future::pending::<()>().await;
    }
}

/// The first failure in a row is worth a line; whoever looks for the others finds them in the metric.
fn warn(error: &Error, again: bool) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    if again {
        tracing::debug!(cause, "an Event could not be written: {error}");
    } else {
        tracing::warn!(
            cause,
            "an Event could not be written: {error}; \
             allow it to create events of events.k8s.io, or give --no-events"
        );
    }
}

async fn write(client: &Client, notice: &PodEvent, now: i64) -> Result<Told, Error> {
    let event = event(notice, now);
    let events: Api<Event> = Api::namespaced(client.clone(), &notice.regarding.namespace);
    match timeout(LONGEST, events.create(&PostParams::default(), &event)).await {
        Ok(Ok(_)) => Ok(Told::Written),
        Ok(Err(kube::Error::Api(status))) if status.is_already_exists() => Ok(Told::Duplicate),
        Ok(Err(kube::Error::Api(status))) => Err(Error::Refused(status.message)),
        Ok(Err(error)) => Err(Error::Api(error)),
        Err(_) => Err(Error::Late),
    }
}

fn event(notice: &PodEvent, now: i64) -> Event {
    let InvolvedObject { api_version, kind, namespace, name, uid, .. } = &notice.regarding;
    let regarding = ObjectReference {
        api_version: Some(api_version.clone()),
        kind: Some(kind.to_string()),
        namespace: Some(namespace.clone()),
        name: Some(name.clone()),
        uid: Some(uid.clone()).filter(|uid| !uid.is_empty()),
        ..ObjectReference::default()
    };
    let reason = if notice.partly { "MemoryPartlyInjected" } else { "MemoryNotInjected" };
    Event {
        metadata: ObjectMeta {
            name: Some(event_name(notice, now)),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(Timestamp::from_second(now).unwrap_or_default())),
        type_: Some("Warning".to_owned()),
        reason: Some(reason.to_owned()),
        action: Some("Inject".to_owned()),
        note: Some(note(notice)),
        regarding: Some(regarding),
        reporting_controller: Some(REPORTER.to_owned()),
        reporting_instance: Some(REPORTER.to_owned()),
        ..Event::default()
    }
}

/// The same for all replicas that tell the same within the same ten minutes of the clock.
fn event_name(notice: &PodEvent, now: i64) -> String {
    let InvolvedObject { api_version, kind, name, uid, .. } = &notice.regarding;
    let window = now.div_euclid(i64::try_from(QUIET.as_secs()).unwrap_or(i64::MAX)).to_string();
    let parts = [api_version, kind.as_ref(), name, uid, notice.finding.code.name, &window];
    let hash = digest(&SHA256, parts.join("\n").as_bytes());
    let hash = u64::from_be_bytes(hash.as_ref().first_chunk().copied().unwrap_or_default());
    format!("{}.{hash:016x}", cut(name, NAME_BYTES).trim_end_matches(['.', '-']))
}

fn note(notice: &PodEvent) -> String {
    let finding = &notice.finding;
    let (code, message) = (finding.code.name, &finding.message);
    let part = if notice.partly { "a part of its memory" } else { "its memory" };
    let advice = finding.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    let note = format!(
        "a pod starts without {part}: {message}{advice} [{code}]; see \"memgate explain {code}\", \
         and make the pod anew when it is mended"
    );
    cut(&note, NOTE_BYTES).to_owned()
}

/// As much of a text as fits into so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
