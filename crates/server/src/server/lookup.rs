//! Asks the apiserver for single objects that the watches have not delivered (yet).
//!
//! Only for kinds that a family's tables name, and never for a Secret. Names come from users and become part of a URL,
//! so one that no object can have is answered without asking.
//!
//! Bounded: so many requests at a time, and equal questions share one. A question never shares a
//! request that was sent before it was asked: the answer could be older than the object.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared, join_all};
use kube::core::{Request, Resource};
use kube::{Client, api::GetParams};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::model::kind::SECRET;
use crate::model::name::is_dns_subdomain;
use crate::model::snapshot::{Object, Reference};
use crate::server::metrics::{LookedUp, Metrics};
use crate::server::ration::{Rate, Ration};
use crate::server::store::fold::Raw;

/// The longest that a request waits for the one before it about the same object, which may hang.
const BEFORE: Duration = Duration::from_millis(200);

/// How many lines a second may tell of lookups of one kind that failed.
const FAILURES: Rate = Rate { burst: 5, per_second: 1 };

/// The longest that one request may take; also frees its place when nobody waits any more.
const LONGEST: Duration = Duration::from_secs(5);

/// The most questions of one review that are asked; a pod of good will has one or two.
const MOST: usize = 16;

/// What came of a question; the object, or `None` when there is none.
type Answer = Result<Option<Object>, Unanswered>;

type Flight = Shared<BoxFuture<'static, Answer>>;

/// A question without an answer; the log has the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unanswered;

#[derive(Debug, Error)]
enum Error {
    #[error("the request could not be built")]
    Build(#[source] kube::core::request::Error),
    #[error("the apiserver did not answer well")]
    Api(#[source] kube::Error),
    #[error("the answer could not be read")]
    Read(#[source] serde_json::Error),
    #[error("the answer is no object")]
    NoObject,
}

/// The way to the apiserver.
pub(super) struct Lookups {
    client: Client,
    room: Arc<Semaphore>,
    latest: Mutex<BTreeMap<Reference, Latest>>,
    metrics: Arc<Metrics>,
    lines: Arc<Ration>,
}

/// The last request for an object that was set up.
struct Latest {
    flight: WeakShared<BoxFuture<'static, Answer>>,
    sent: Arc<AtomicBool>,
}

impl Lookups {
    /// At most `most` requests at a time.
    pub(super) fn new(client: Client, most: usize, metrics: Arc<Metrics>) -> Self {
        let room = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        let lines = Arc::new(Ration::new(FAILURES));
        Self { client, room, latest: Mutex::default(), metrics, lines }
    }

    /// Whether this can be asked at all: one object, and never a Secret, whatever a table says.
    pub(super) fn can_ask(reference: &Reference) -> bool {
        *reference.kind != SECRET && !reference.name.is_empty()
    }

    /// The answers that came in time.
    pub(super) async fn ask(
        &self,
        references: Vec<Reference>,
        until: Instant,
    ) -> Vec<(Reference, Option<Object>)> {
        let questions = references.into_iter().take(MOST).map(|reference| async {
            let answer = self.ask_one(&reference, until).await.ok()?;
            Some((reference, answer))
        });
        join_all(questions).await.into_iter().flatten().collect()
    }

    async fn ask_one(&self, reference: &Reference, until: Instant) -> Answer {
        if !is_possible(reference) {
            return Ok(None);
        }
        let answer = timeout_at(until, self.flight(reference)).await;
        self.metrics.looked_up(match &answer {
            Ok(Ok(Some(_))) => LookedUp::Found,
            Ok(Ok(None)) => LookedUp::Absent,
            Ok(Err(Unanswered)) => LookedUp::Failed,
            Err(_) => LookedUp::TimedOut,
        });
        answer.unwrap_or(Err(Unanswered))
    }

    /// A request for the object that has not been sent yet; it waits for the one before it, briefly.
    fn flight(&self, reference: &Reference) -> Flight {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.retain(|_, flight| flight.flight.upgrade().is_some());
        let before = latest.get(reference).and_then(|latest| {
            let flight = latest.flight.upgrade()?;
            Some((flight, latest.sent.load(Ordering::Acquire)))
        });
        let before = match before {
            Some((flight, false)) => return flight,
            Some((flight, true)) => Some(flight),
            None => None,
        };
        let sent = Arc::new(AtomicBool::new(false));
        let flight = self.fly(reference.clone(), before, Arc::clone(&sent)).boxed().shared();
        if let Some(weak) = flight.downgrade() {
            latest.insert(reference.clone(), Latest { flight: weak, sent });
        }
        flight
    }

    fn fly(
        &self,
        reference: Reference,
        before: Option<Flight>,
        sent: Arc<AtomicBool>,
    ) -> impl Future<Output = Answer> + use<> {
        let (client, room, lines) = (self.client.clone(), Arc::clone(&self.room), Arc::clone(&self.lines));
        async move {
            if let Some(before) = before {
                let _earlier = timeout(BEFORE, before).await;
            }
            let _place = room.acquire().await;
            sent.store(true, Ordering::Release);
            match timeout(LONGEST, get(&client, &reference)).await {
                Ok(Ok(object)) => Ok(object),
                Ok(Err(error)) => {
                    let kind = reference.kind.kind;
                    if let Some(withheld) = lines.take(kind) {
                        let withheld = (withheld > 0).then_some(withheld);
                        tracing::warn!(kind, withheld, error = %chain(&error), "a lookup at the apiserver failed");
                    }
                    Err(Unanswered)
                }
                Err(_) => Err(Unanswered),
            }
        }
    }
}

async fn get(client: &Client, reference: &Reference) -> Result<Option<Object>, Error> {
    let namespace = Some(reference.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let request = Request::new(Raw::url_path(&reference.kind, namespace))
        .get(&reference.name, &GetParams::default())
        .map_err(Error::Build)?;
    let text = match client.request_text(request).await {
        Ok(text) => text,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(error) => return Err(Error::Api(error)),
    };
    let object = Object::read(reference.kind, &mut serde_json::Deserializer::from_str(&text));
    object.map_err(Error::Read)?.ok_or(Error::NoObject).map(Some)
}

/// Whether an object can have this name and namespace.
fn is_possible(reference: &Reference) -> bool {
    let Reference { namespace, name, .. } = reference;
    is_dns_subdomain(name) && (namespace.is_empty() || is_dns_subdomain(namespace))
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl fmt::Debug for Lookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookups")
    }
}

#[cfg(test)]
mod tests;
