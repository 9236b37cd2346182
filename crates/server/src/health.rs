//! `/livez`, `/readyz` and `/metrics`, and `/silent` for other replicas, on a port of their own and without TLS.
//!
//! A thread with its own runtime serves them: a stalled main runtime can be seen only from outside, and probes do not
//! wait behind reviews. Alive means that the main runtime still runs its tasks, because a restart helps with that. It
//! does not mean that the apiserver can be reached.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::time::{Instant, sleep};

use crate::connection_limiter::ConnectionLimiter;
use crate::metrics::{CONTENT_TYPE as METRICS_TYPE, Metrics, number};
use crate::replica::Replica;
use crate::router::AppState;
use crate::shutdown::Drain;
use crate::store::KindHeard;
use memgate_certs::metrics::CertKind;
use memgate_certs::tls::ServingCert;

/// How often readiness is compared with what was logged.
const POLL: Duration = Duration::from_secs(1);

/// How long a start may take before it is logged that the replica is not ready.
const STARTUP: Duration = Duration::from_secs(10);

/// The sources of the answers of the health port.
pub(super) struct Health {
    pub(super) app: Arc<AppState>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) certificate: Arc<ServingCert>,
    pub(super) drain: Drain,
    /// What the replica knows of itself and of the others.
    pub(super) replica: Arc<Replica>,
    /// The connections of the webhook.
    pub(super) connections: Arc<ConnectionLimiter>,
    /// Whether connections are being accepted.
    pub(super) listening: AtomicBool,
}

/// The routes.
pub(super) fn router(health: Arc<Health>) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/silent/{pod}", get(silent))
        .with_state(health)
}

async fn live(State(health): State<Arc<Health>>) -> Response {
    match health.app.watchdog.stalled() {
        Some(text) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{text}\n")).into_response(),
        None => "ok\n".into_response(),
    }
}

/// The answer to another replica: the name of this one, which the question does not have, and of how many kinds it has heard
/// nothing for a while. Only the pod that is asked about answers, as long as it is ready: its address may have been another one's.
async fn silent(State(health): State<Arc<Health>>, Path(pod): Path<String>) -> Response {
    match health.replica.pod() {
        Some(own) if own.uid == pod && health.is_ready() => {
            format!("{} {}", own.name, health.app.handler.store.stale().len()).into_response()
        }
        Some(own) if own.uid == pod => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn ready(State(health): State<Arc<Health>>) -> Response {
    let reasons = health.not_ready_reasons();
    let (status, mut text) = if reasons.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned())
    };
    for line in reasons {
        let _infallible = writeln!(text, "- {line}");
    }
    // These do not make a replica unready.
    let store = &health.app.handler.store;
    for unread in store.unread().iter().filter(|unread| !store.is_needed(unread.kind)) {
        let _infallible = writeln!(text, "- not read, so reviews that need it get 503: {unread}");
    }
    for KindHeard { kind, heard, .. } in store.stale().iter() {
        let (seconds, api_version) = (heard.elapsed().as_secs(), kind.api_version());
        let _infallible = writeln!(text, "- nothing heard for {seconds} s: {api_version} {}", kind.kind);
    }
    (status, text).into_response()
}

/// Logs when the replica becomes ready or unready, and why, until it shuts down. The text of a reason can change with
/// each second, so another reason is not logged.
pub(super) async fn log_readiness(health: Arc<Health>) {
    let start = Instant::now();
    let mut logged = Logged::Nothing;
    while !health.drain.has_begun() {
        logged = logged.and(&health.not_ready_reasons(), start.elapsed());
        sleep(POLL).await;
    }
}

/// What was logged last about readiness.
#[derive(Debug, PartialEq, Eq)]
enum Logged {
    /// Nothing yet: the replica starts.
    Nothing,
    /// That it is ready.
    Ready,
    /// That it is not, and why.
    NotReady(String),
}

impl Logged {
    /// Logs a change.
    fn and(self, reasons: &[String], since_start: Duration) -> Self {
        match (self, reasons) {
            (Self::Ready, []) => Self::Ready,
            (Self::Nothing, []) => {
                tracing::info!("ready");
                Self::Ready
            }
            (Self::NotReady(reason), []) => {
                tracing::info!(reason, "ready again");
                Self::Ready
            }
            (Self::Nothing, _) if since_start < STARTUP => Self::Nothing,
            (Self::Nothing | Self::Ready, _) => {
                let reason = reasons.join("; ");
                tracing::warn!(reason, "not ready");
                Self::NotReady(reason)
            }
            (known, _) => known,
        }
    }
}

async fn metrics(State(health): State<Arc<Health>>) -> Response {
    health.update_gauges();
    match health.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl Health {
    /// Whether reviews may be sent here.
    pub(super) fn is_ready(&self) -> bool {
        self.not_ready_reasons().is_empty()
    }

    /// Why reviews should not be sent here; empty when ready.
    pub(super) fn not_ready_reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.listening.load(Ordering::Acquire) {
            reasons.push("no connections are accepted yet".to_owned());
        }
        reasons.extend(self.app.watchdog.stalled());
        if self.drain.has_begun() {
            reasons.push("shutting down".to_owned());
        }
        reasons.extend(self.certificate.not_ready_reason().map(str::to_owned));
        let store = &self.app.handler.store;
        let unread = store.unread().into_iter().filter(|unread| store.is_needed(unread.kind));
        reasons.extend(unread.map(|unread| format!("not read yet: {unread}")));
        reasons.extend(self.replica.gives_way());
        reasons
    }

    /// Sets the gauges that are measured at each scrape.
    fn update_gauges(&self) {
        self.metrics.ready.set(i64::from(self.is_ready()));
        self.metrics.admission.bytes_in_flight.set(number(self.app.concurrency.bytes_in_use()));
        self.metrics.connections.set(number(self.connections.open()));
        if let Some(validity) = self.certificate.validity() {
            self.metrics.certs.set_validity(CertKind::Leaf, validity);
        }
        if let Some(validity) = self.certificate.client_ca_validity() {
            self.metrics.certs.set_validity(CertKind::ClientCa, validity);
        }
        let handler = &self.app.handler;
        let (policies, now) = (&handler.store.snapshot().policies, handler.clock.timestamp());
        self.metrics.policies.set(policies, &handler.store.found(), now);
        let (bytes, not_held) = handler.store.holdings();
        self.metrics.store_bytes.set(number(bytes));
        for (family, objects, age) in handler.store.stats() {
            let kinds = family.kinds.watched.iter();
            let not_held = kinds.filter_map(|kind| not_held.get(kind)).sum();
            self.metrics.set_store(family, objects, not_held, age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::Lines;

    #[test]
    fn a_change_of_readiness_is_logged_once_with_its_reason() {
        let lines = Lines::default();
        let _guard = lines.capture();
        let stalled = ["not read yet: v1 Namespace".to_owned(), "shutting down".to_owned()];
        let (mut logged, none) = (Logged::Nothing, [].as_slice());
        for (seconds, reasons) in
            [(1, &stalled[..]), (2, none), (3, none), (4, &stalled), (5, &stalled[..1]), (6, none), (7, none)]
        {
            logged = logged.and(reasons, Duration::from_secs(seconds));
        }
        let reason = "reason=\"not read yet: v1 Namespace; shutting down\"";
        let expected = [
            " INFO memgate_server::health: ready".to_owned(),
            format!(" WARN memgate_server::health: not ready {reason}"),
            format!(" INFO memgate_server::health: ready again {reason}"),
        ];
        assert_eq!(lines.take(), expected);
    }

    #[test]
    fn a_start_that_takes_long_is_logged() {
        let lines = Lines::default();
        let _guard = lines.capture();
        let reasons = ["no connections are accepted yet".to_owned()];
        let logged = Logged::Nothing.and(&reasons, STARTUP / 2);
        assert_eq!((&logged, lines.take()), (&Logged::Nothing, Vec::new()));
        let logged = logged.and(&reasons, STARTUP).and(&reasons, STARTUP * 2);
        assert_eq!(logged, Logged::NotReady(reasons.concat()));
        let expected = " WARN memgate_server::health: not ready reason=\"no connections are accepted yet\"";
        assert_eq!(lines.take(), [expected]);
    }
}
