//! `/livez`, `/readyz` and `/metrics`, on a port of their own and without TLS.
//!
//! They are served from a thread and a runtime of their own: the main runtime's heartbeat can be
//! judged only from outside, and no amount of reviews keeps a probe waiting. Alive means that the
//! main runtime still gets around to its tasks, not that the apiserver can be reached: a restart
//! mends only the former.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::model::kind::Kind;
use crate::server::connection::seats::Seats;
use crate::server::drain::Drain;
use crate::server::metrics::{CONTENT_TYPE as METRICS_TYPE, CertKind, Metrics};
use crate::server::router::App;
use crate::server::tls::Certificate;

/// How often the heart beats.
const BEAT: Duration = Duration::from_secs(1);

/// How many kinds are named of which nothing was heard: often it is all of them.
const TOLD: usize = 3;

/// What the state of health is read from.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) app: Arc<App>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) certificate: Arc<Certificate>,
    pub(super) drain: Drain,
    pub(super) heart: Heart,
    /// The connections of the webhook.
    pub(super) seats: Arc<Seats>,
    /// Whether connections are being accepted.
    pub(super) listening: AtomicBool,
}

/// When the main runtime was last known to be running its tasks.
#[derive(Debug)]
pub(super) struct Heart {
    born: Instant,
    /// After so long without a beat it has stopped.
    stuck: Duration,
    /// Milliseconds after `born`.
    last: AtomicU64,
}

impl Heart {
    /// A heart that beats now.
    pub(super) fn new(stuck: Duration) -> Self {
        Self { born: Instant::now(), stuck, last: AtomicU64::new(0) }
    }

    /// Beats for as long as the runtime runs it.
    pub(super) async fn beat(&self) {
        loop {
            let millis = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.last.store(millis, Ordering::Release);
            tokio::time::sleep(BEAT.min(self.stuck / 4)).await;
        }
    }

    /// For how long it has not beaten, in words; `None` while it is well.
    fn stopped(&self) -> Option<String> {
        let last = Duration::from_millis(self.last.load(Ordering::Acquire));
        let since = self.born.elapsed().saturating_sub(last);
        (since > self.stuck).then(|| format!("no task has run for {} s", since.as_secs()))
    }
}

/// The routes.
pub(super) fn router(health: Arc<Health>) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health)
}

async fn live(State(health): State<Arc<Health>>) -> Response {
    match health.heart.stopped() {
        Some(text) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{text}\n")).into_response(),
        None => "ok\n".into_response(),
    }
}

async fn ready(State(health): State<Arc<Health>>) -> Response {
    let missing = health.missing();
    let (status, mut text) = if missing.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned())
    };
    for line in missing.into_iter().chain(silent(&health.app.desk.store.stale())) {
        let _infallible = writeln!(text, "- {line}");
    }
    (status, text).into_response()
}

async fn metrics(State(health): State<Arc<Health>>) -> Response {
    health.measure();
    match health.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl Health {
    /// What is missing before reviews should be sent here.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.listening.load(Ordering::Acquire) {
            missing.push("no connections are accepted yet".to_owned());
        }
        missing.extend(self.heart.stopped());
        if self.drain.has_begun() {
            missing.push("shutting down".to_owned());
        }
        missing.extend(self.certificate.missing().map(str::to_owned));
        let cold = self.app.desk.store.cold();
        missing.extend(cold.iter().map(|kind| format!("not read yet: {} {}", kind.api_version(), kind.kind)));
        missing
    }

    /// Sets the series that are measured only when somebody asks.
    fn measure(&self) {
        self.metrics.set_ready(self.missing().is_empty());
        self.metrics.set_bytes_in_flight(self.app.gate.bytes());
        self.metrics.connections.set(i64::try_from(self.seats.taken()).unwrap_or(i64::MAX));
        if let Some(not_after) = self.certificate.not_after() {
            self.metrics.set_not_after(CertKind::Leaf, not_after);
        }
        if let Some(not_after) = self.certificate.callers_not_after() {
            self.metrics.set_not_after(CertKind::ClientCa, not_after);
        }
        for (family, objects, age) in self.app.desk.store.measure() {
            self.metrics.set_store(family, objects, age);
        }
    }
}

/// What is worth knowing of kinds of which nothing was heard, but no reason to go elsewhere: every
/// replica sees the same apiserver, and an answer from what was true a while ago is better than none,
/// however long that while.
fn silent(kinds: &[(&Kind, Duration)]) -> Vec<String> {
    let line = |(kind, age): &(&Kind, Duration)| {
        format!("nothing heard for {} s: {} {}", age.as_secs(), kind.api_version(), kind.kind)
    };
    let mut lines: Vec<String> = kinds.iter().take(TOLD).map(line).collect();
    if kinds.len() > TOLD {
        lines.push(format!("nothing heard for long: {} more kinds", kinds.len() - TOLD));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kind::NAMESPACE;

    #[test]
    fn a_few_silent_kinds_are_named_and_the_others_counted() {
        let kind = (&NAMESPACE, Duration::from_millis(300_900));
        assert!(silent(&[]).is_empty());
        assert_eq!(silent(&[kind]), ["nothing heard for 300 s: v1 Namespace"]);
        let many = silent(&[kind; TOLD + 2]);
        assert_eq!(many.len(), TOLD + 1);
        assert_eq!(many[TOLD], "nothing heard for long: 2 more kinds");
    }
}
