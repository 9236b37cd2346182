//! What the server counts and measures, in the OpenMetrics text format.
//!
//! Label values are fixed words from the enums in [`labels`], never a part of a request, and the names of a limited
//! number of [`policies`], so the number of series is bounded. docs/metrics.md lists them all.

pub(super) mod audit;
pub(super) mod labels;
mod policies;
mod process;
mod starting;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::server::metrics::audit::AuditMetrics;
use crate::server::metrics::labels::{
    ByCause, ByConfigAndResult, ByFamily, ByKind, ByKindAndResult, ByResult, ByWebhook, CertKind,
    EventOutcome, HandshakeOutcome, LookupOutcome, RequestLabels, ShedCause, SpanOutcome, WebhookKind,
};
use crate::server::metrics::policies::PolicyMetrics;
use crate::server::metrics::process::Process;
use memgate_model::family::Family;

/// The content type of [`Metrics::text`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The bounds of the buckets of durations, in seconds: from the time of a decision to the timeout of an apiserver.
const DURATION_BUCKETS: [f64; 14] =
    [5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 1.0, 5.0];

/// The bounds of the buckets of patches, in JSON patch operations.
const OPERATION_BUCKETS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0];

type Seconds = Gauge<f64, AtomicU64>;

/// All series.
pub(super) struct Metrics {
    registry: Registry,
    process: Registry,
    requests: Labelled<RequestLabels, Counter>,
    durations: Labelled<ByWebhook, Histogram, fn() -> Histogram>,
    pub(super) in_flight: Gauge,
    bytes_in_flight: Gauge,
    shed: Labelled<ByCause, Counter>,
    abandoned: Labelled<ByWebhook, Counter>,
    pub(super) panics: Counter,
    store_objects: Labelled<ByFamily, Gauge>,
    store_age: Labelled<ByFamily, Seconds>,
    lookups: Labelled<ByResult, Counter>,
    events: Labelled<ByResult, Counter>,
    handshakes: Labelled<ByResult, Counter>,
    pub(super) connections: Gauge,
    cert_not_before: Labelled<ByKind, Gauge>,
    cert_not_after: Labelled<ByKind, Gauge>,
    cert_renewal: Labelled<ByKind, Gauge>,
    cert_rotations: Labelled<ByKindAndResult, Counter>,
    cabundle_repairs: Labelled<ByConfigAndResult, Counter>,
    trace_spans: Labelled<ByResult, Counter>,
    ready: Gauge,
    patch_operations: Labelled<ByFamily, Histogram, fn() -> Histogram>,
    pods_held: Labelled<ByFamily, Counter>,
    pub(super) policies: PolicyMetrics,
    pub(super) audit: AuditMetrics,
}

impl Metrics {
    /// All series at zero, those of requests for each of these labels.
    pub(super) fn new(requests: impl IntoIterator<Item = RequestLabels>) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("memgate"),
            process: Registry::default(),
            requests: Labelled::default(),
            durations: Labelled::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
            in_flight: Gauge::default(),
            bytes_in_flight: Gauge::default(),
            shed: Labelled::default(),
            abandoned: Labelled::default(),
            panics: Counter::default(),
            store_objects: Labelled::default(),
            store_age: Labelled::default(),
            lookups: Labelled::default(),
            events: Labelled::default(),
            handshakes: Labelled::default(),
            connections: Gauge::default(),
            cert_not_before: Labelled::default(),
            cert_not_after: Labelled::default(),
            cert_renewal: Labelled::default(),
            cert_rotations: Labelled::default(),
            cabundle_repairs: Labelled::default(),
            trace_spans: Labelled::default(),
            ready: Gauge::default(),
            pods_held: Labelled::default(),
            policies: PolicyMetrics::default(),
            audit: AuditMetrics::default(),
            patch_operations: Labelled::new_with_constructor(|| Histogram::new(OPERATION_BUCKETS)),
        };
        metrics.register_admission();
        metrics.register_state();
        metrics.policies.register(&mut metrics.registry);
        metrics.audit.register(&mut metrics.registry);
        metrics.register_listener();
        metrics.process.register_collector(Box::new(Process::new()));
        metrics.begin_at_zero(requests);
        metrics
    }

    fn register_admission(&mut self) {
        let registry = &mut self.registry;
        registry.register("admission_requests", "Requests by how they ended", self.requests.clone());
        registry.register(
            "admission_duration_seconds",
            "Time from the first byte of a request to its answer",
            self.durations.clone(),
        );
        registry.register("admission_in_flight", "Requests being answered", self.in_flight.clone());
        registry.register(
            "admission_bytes_in_flight",
            "Bytes claimed by request bodies and by answers that are not written yet",
            self.bytes_in_flight.clone(),
        );
        registry.register(
            "admission_shed",
            "Requests and connections that exceeded a limit",
            self.shed.clone(),
        );
        registry.register(
            "admission_abandoned",
            "Reviews whose callers hung up before the answer",
            self.abandoned.clone(),
        );
        registry.register("panics", "Panics caught", self.panics.clone());
        registry.register(
            "patch_operations",
            "Operations of one family in one patch",
            self.patch_operations.clone(),
        );
        registry.register(
            "pods_held",
            "Pods refused for now, because an object that they refer to is missing",
            self.pods_held.clone(),
        );
    }

    fn register_state(&mut self) {
        let registry = &mut self.registry;
        registry.register("store_objects", "Objects in the state", self.store_objects.clone());
        registry.register(
            "store_age_seconds",
            "Time since the last activity of the most silent watch of a family; normally up to 75",
            self.store_age.clone(),
        );
        registry.register("reference_lookups", "Lookups at the apiserver", self.lookups.clone());
        registry.register("events", "Events about pods without their memory", self.events.clone());
    }

    fn register_listener(&mut self) {
        let registry = &mut self.registry;
        registry.register("tls_handshakes", "TLS handshakes by how they ended", self.handshakes.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "cert_not_before_seconds",
            "When the certificate began to be valid, in seconds since 1970",
            self.cert_not_before.clone(),
        );
        registry.register(
            "cert_renewal_seconds",
            "When memgate is due to replace the certificate, in seconds since 1970",
            self.cert_renewal.clone(),
        );
        registry.register(
            "cert_not_after_seconds",
            "When the certificate expires, in seconds since 1970",
            self.cert_not_after.clone(),
        );
        registry.register("cert_rotations", "Certificates replaced", self.cert_rotations.clone());
        registry.register(
            "cabundle_repairs",
            "Writes of caBundle into a webhook configuration",
            self.cabundle_repairs.clone(),
        );
        registry.register("ready", "Whether the server is ready", self.ready.clone());
        registry.register("trace_spans", "Spans for the collector of traces", self.trace_spans.clone());
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What is running", build);
    }

    /// Counts a request and its time.
    pub(super) fn count_request(&self, labels: RequestLabels, took: Duration) {
        self.requests.get_or_create(&labels).inc();
        let webhook = ByWebhook { webhook: labels.webhook };
        self.durations.get_or_create(&webhook).observe(took.as_secs_f64());
    }

    /// Counts a request or connection that exceeded a limit.
    pub(super) fn count_shed(&self, cause: ShedCause) {
        self.shed.get_or_create(&ByCause { cause: cause.name() }).inc();
    }

    /// Counts a review whose caller hung up before the answer.
    pub(super) fn count_abandoned(&self, webhook: &'static str) {
        self.abandoned.get_or_create(&ByWebhook { webhook }).inc();
    }

    /// Records how many operations a patch has.
    #[expect(clippy::cast_precision_loss, reason = "no patch has 2^52 operations")]
    pub(super) fn observe_patch(&self, family: &'static Family, operations: usize) {
        let family = ByFamily { family: family.name };
        self.patch_operations.get_or_create(&family).observe(operations as f64);
    }

    /// Counts a pod that is refused for now, because an object of this family is missing.
    pub(super) fn count_held(&self, family: &'static Family) {
        self.pods_held.get_or_create(&ByFamily { family: family.name }).inc();
    }

    /// Counts a TLS handshake.
    pub(super) fn count_handshake(&self, outcome: HandshakeOutcome) {
        self.handshakes.get_or_create(&ByResult { result: outcome.name() }).inc();
    }

    /// Counts a lookup at the apiserver.
    pub(super) fn count_lookup(&self, outcome: LookupOutcome) {
        self.lookups.get_or_create(&ByResult { result: outcome.name() }).inc();
    }

    /// Counts an Event.
    pub(super) fn count_event(&self, outcome: EventOutcome) {
        self.events.get_or_create(&ByResult { result: outcome.name() }).inc();
    }

    /// Counts a new certificate: it replaced another one, or could not be used.
    pub(super) fn count_cert_rotation(&self, kind: CertKind, usable: bool) {
        let labels = ByKindAndResult { kind: kind.name(), result: result(usable) };
        self.cert_rotations.get_or_create(&labels).inc();
    }

    /// Sets the dates between which a certificate is valid, in seconds since 1970.
    pub(super) fn set_validity(&self, kind: CertKind, (not_before, not_after): (i64, i64)) {
        let kind = ByKind { kind: kind.name() };
        self.cert_not_before.get_or_create(&kind).set(not_before);
        self.cert_not_after.get_or_create(&kind).set(not_after);
    }

    /// Sets when memgate is due to replace a certificate, in seconds since 1970.
    pub(super) fn set_renewal(&self, kind: CertKind, seconds: i64) {
        self.cert_renewal.get_or_create(&ByKind { kind: kind.name() }).set(seconds);
    }

    /// Counts an attempt to write `caBundle` into a webhook configuration.
    pub(super) fn count_cabundle_write(&self, kind: WebhookKind, written: bool) {
        let labels = ByConfigAndResult { webhook_config: kind.name(), result: result(written) };
        self.cabundle_repairs.get_or_create(&labels).inc();
    }

    /// Counts spans.
    pub(super) fn count_spans(&self, outcome: SpanOutcome, spans: usize) {
        let labels = ByResult { result: outcome.name() };
        self.trace_spans.get_or_create(&labels).inc_by(u64::try_from(spans).unwrap_or(u64::MAX));
    }

    /// Sets whether reviews should be sent here.
    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }

    /// Sets the bytes that request bodies and answers occupy; measured at each scrape.
    pub(super) fn set_bytes_in_flight(&self, bytes: usize) {
        self.bytes_in_flight.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Sets how many objects of a family are cached, and how old the cache may be.
    pub(super) fn set_store(&self, family: &'static Family, objects: usize, age: Duration) {
        let family = ByFamily { family: family.name };
        self.store_objects.get_or_create(&family).set(i64::try_from(objects).unwrap_or(i64::MAX));
        self.store_age.get_or_create(&family).set(age.as_secs_f64());
    }

    /// All series as text.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode_registry(&mut text, &self.registry)?;
        text::encode_registry(&mut text, &self.process)?;
        text::encode_eof(&mut text)?;
        Ok(text)
    }
}

const fn result(good: bool) -> &'static str {
    if good { "ok" } else { "failed" }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}
