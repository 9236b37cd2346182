//! `/livez`, `/readyz` and `/metrics`, on a port of their own and without TLS.
//!
//! A thread with its own runtime serves them: a stalled main runtime can be seen only from outside, and probes do not
//! wait behind reviews. Alive means that the main runtime still runs its tasks, because a restart helps with that. It
//! does not mean that the apiserver can be reached.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::connection_limiter::ConnectionLimiter;
use crate::lookup::Lookups;
use crate::metrics::{CONTENT_TYPE as METRICS_TYPE, Metrics, number};
use crate::router::AppState;
use crate::shutdown::Drain;
use memgate_certs::metrics::CertKind;
use memgate_certs::tls::ServingCert;

/// The sources of the answers of the health port.
pub(super) struct Health {
    pub(super) app: Arc<AppState>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) certificate: Arc<ServingCert>,
    pub(super) drain: Drain,
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
        .with_state(health)
}

async fn live(State(health): State<Arc<Health>>) -> Response {
    match health.app.watchdog.stalled() {
        Some(text) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{text}\n")).into_response(),
        None => "ok\n".into_response(),
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
    // These do not make a replica unready: every replica watches the same apiserver, and an answer from an old state is
    // better than no answer. A replica whose lookups all fail has no answer for new objects.
    for (kind, age) in health.app.handler.store.stale() {
        let (seconds, api_version) = (age.as_secs(), kind.api_version());
        let _infallible = writeln!(text, "- nothing heard for {seconds} s: {api_version} {}", kind.kind);
    }
    (status, text).into_response()
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
    fn not_ready_reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.listening.load(Ordering::Acquire) {
            reasons.push("no connections are accepted yet".to_owned());
        }
        reasons.extend(self.app.watchdog.stalled());
        if self.drain.has_begun() {
            reasons.push("shutting down".to_owned());
        }
        reasons.extend(self.certificate.not_ready_reason().map(str::to_owned));
        if !self.app.paths.is_ready() {
            reasons.push("the path for reviews has not been read from the CA Secret yet".to_owned());
        }
        let not_synced = self.app.handler.store.not_synced();
        reasons.extend(
            not_synced.iter().map(|kind| format!("not read yet: {} {}", kind.api_version(), kind.kind)),
        );
        reasons.extend(self.app.handler.lookups.as_ref().and_then(Lookups::failing_for_long));
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
        self.metrics.policies.set(&handler.store.snapshot().policies, handler.clock.timestamp());
        let (bytes, not_held) = handler.store.holdings();
        self.metrics.store_bytes.set(number(bytes));
        for (family, objects, age) in handler.store.stats() {
            let kinds = family.kinds.watched.iter();
            let not_held = kinds.filter_map(|kind| not_held.get(kind)).sum();
            self.metrics.set_store(family, objects, not_held, age);
        }
    }
}
