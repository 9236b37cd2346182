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

use crate::server::connection::seats::Seats;
use crate::server::drain::Drain;
use crate::server::metrics::{CONTENT_TYPE as METRICS_TYPE, CertKind, Metrics};
use crate::server::router::App;
use crate::server::tls::Certificate;

/// How often the heart beats.
const BEAT: Duration = Duration::from_secs(1);

/// After so long without a beat the runtime counts as stuck; a review takes microseconds.
const STUCK: Duration = Duration::from_secs(10);

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
    /// Milliseconds after `born`.
    last: AtomicU64,
}

impl Heart {
    /// A heart that beats now.
    pub(super) fn new() -> Self {
        Self { born: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Beats for as long as the runtime runs it.
    pub(super) async fn beat(&self) {
        loop {
            let millis = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.last.store(millis, Ordering::Release);
            tokio::time::sleep(BEAT).await;
        }
    }

    fn since_last(&self) -> Duration {
        self.born.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Acquire)))
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
    let since = health.heart.since_last();
    if since > STUCK {
        let text = format!("no task has run for {} s\n", since.as_secs());
        return (StatusCode::INTERNAL_SERVER_ERROR, text).into_response();
    }
    "ok\n".into_response()
}

async fn ready(State(health): State<Arc<Health>>) -> Response {
    let missing = health.missing();
    if missing.is_empty() {
        return "ok\n".into_response();
    }
    let mut text = String::from("not ready\n");
    for reason in missing {
        let _infallible = writeln!(text, "- {reason}");
    }
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
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
