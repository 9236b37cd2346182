//! What the server counts and measures, in the OpenMetrics text format.
//!
//! Label values are fixed words from the enums in [`labels`], never a part of a request, and the names of a limited
//! number of [`policies`], so the number of series is bounded. docs/metrics.md lists them all.

pub(super) mod audit;
pub(super) mod labels;
mod policies;
mod process;
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
use prometheus_client::registry::{Metric, Registry};

use crate::server::metrics::audit::AuditMetrics;
use crate::server::metrics::labels::{
    CertKind, Label, RequestLabels, ResultLabel, ShedCause, config_name, webhook,
};
use crate::server::metrics::policies::PolicyMetrics;
use crate::server::metrics::process::Process;
pub(super) use crate::server::metrics::process::max_files;
use memgate_core::family;
use memgate_model::family::Family;
use memgate_model::finding::Phase;

/// The content type of [`Metrics::text`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The bounds of the buckets of durations, in seconds: from the time of a decision to the timeout of an apiserver.
const DURATION_BUCKETS: [f64; 14] =
    [5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 1.0, 5.0];

/// The bounds of the buckets of patches, in JSON patch operations.
const OPERATION_BUCKETS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0];

type Seconds = Gauge<f64, AtomicU64>;
type Counters<const N: usize> = Labelled<[Label; N], Counter>;
type Gauges<M = Gauge> = Labelled<[Label; 1], M>;
type Histograms = Labelled<[Label; 1], Histogram, fn() -> Histogram>;

/// All series.
pub(super) struct Metrics {
    registry: Registry,
    requests: Labelled<RequestLabels, Counter>,
    durations: Histograms,
    pub(super) in_flight: Gauge,
    bytes_in_flight: Gauge,
    shed: Counters<1>,
    abandoned: Counters<1>,
    pub(super) panics: Counter,
    patch_operations: Histograms,
    pods_held: Counters<1>,
    store_objects: Gauges,
    store_age: Gauges<Seconds>,
    lookups: Counters<1>,
    events: Counters<1>,
    pub(super) policies: PolicyMetrics,
    pub(super) audit: AuditMetrics,
    handshakes: Counters<1>,
    pub(super) connections: Gauge,
    cert_not_before: Gauges,
    cert_renewal: Gauges,
    cert_not_after: Gauges,
    cert_rotations: Counters<2>,
    cabundle_repairs: Counters<2>,
    ready: Gauge,
    trace_spans: Counters<1>,
}

impl Metrics {
    /// All series at zero, those of requests for each of these labels.
    pub(super) fn new(requests: impl IntoIterator<Item = RequestLabels>) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process::new()));
        let all = registry.sub_registry_with_prefix("memgate");
        all.register("build", "What is running", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let new_duration: fn() -> Histogram = || Histogram::new(DURATION_BUCKETS);
        let new_operations: fn() -> Histogram = || Histogram::new(OPERATION_BUCKETS);
        let families = family::ALL.map(|family| [("family", family.name)]);
        let results = [true, false].map(|good| ResultLabel::of(good).label());
        let rotations =
            CertKind::ALL.into_iter().flat_map(|kind| results.map(|result| [kind.label(), result]));
        let repairs = Phase::ALL
            .into_iter()
            .flat_map(|call| results.map(|result| [("webhook_config", config_name(call)), result]));
        let metrics = Self {
            requests: add(all, "admission_requests", "Requests by how they ended"),
            durations: add_as(
                all,
                "admission_duration_seconds",
                "Time from the first byte of a request to its answer",
                Labelled::new_with_constructor(new_duration),
            ),
            in_flight: add(all, "admission_in_flight", "Requests being answered"),
            bytes_in_flight: add(
                all,
                "admission_bytes_in_flight",
                "Bytes claimed by request bodies and by answers that are not written yet",
            ),
            shed: add_counters(
                all,
                "admission_shed",
                "Requests and connections that exceeded a limit",
                ShedCause::ALL.map(|cause| [cause.label()]),
            ),
            abandoned: add_counters(
                all,
                "admission_abandoned",
                "Reviews whose callers hung up before the answer",
                Phase::ALL.map(|call| [("webhook", webhook(call))]),
            ),
            panics: add(all, "panics", "Panics caught"),
            patch_operations: add_as(
                all,
                "patch_operations",
                "Operations of one family in one patch",
                Labelled::new_with_constructor(new_operations),
            ),
            pods_held: add_counters(
                all,
                "pods_held",
                "Pods refused for now, because an object that they refer to is missing",
                families,
            ),
            store_objects: add(all, "store_objects", "Objects in the state"),
            store_age: add(
                all,
                "store_age_seconds",
                "Time since the last activity of the most silent watch of a family; normally up to 75",
            ),
            lookups: add_results(all, "reference_lookups", "Lookups at the apiserver", ResultLabel::LOOKUPS),
            events: add_results(all, "events", "Events about pods without their memory", ResultLabel::EVENTS),
            policies: PolicyMetrics::new(all),
            audit: AuditMetrics::new(all),
            handshakes: add_results(
                all,
                "tls_handshakes",
                "TLS handshakes by how they ended",
                ResultLabel::HANDSHAKES,
            ),
            connections: add(all, "connections", "Open connections"),
            cert_not_before: add(
                all,
                "cert_not_before_seconds",
                "When the certificate began to be valid, in seconds since 1970",
            ),
            cert_renewal: add(
                all,
                "cert_renewal_seconds",
                "When memgate is due to replace the certificate, in seconds since 1970",
            ),
            cert_not_after: add(
                all,
                "cert_not_after_seconds",
                "When the certificate expires, in seconds since 1970",
            ),
            cert_rotations: add_counters(all, "cert_rotations", "Certificates replaced", rotations),
            cabundle_repairs: add_counters(
                all,
                "cabundle_repairs",
                "Writes of caBundle into a webhook configuration",
                repairs,
            ),
            ready: add(all, "ready", "Whether the server is ready"),
            trace_spans: add_results(
                all,
                "trace_spans",
                "Spans for the collector of traces",
                ResultLabel::SPANS,
            ),
            registry,
        };
        for labels in requests {
            drop(metrics.requests.get_or_create(&labels));
            drop(metrics.durations.get_or_create(&[("webhook", labels.webhook)]));
        }
        for family in &families {
            drop(metrics.patch_operations.get_or_create(family));
        }
        metrics
    }

    /// Counts a request and its time.
    pub(super) fn count_request(&self, labels: RequestLabels, took: Duration) {
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&[("webhook", labels.webhook)]).observe(took.as_secs_f64());
    }

    /// Counts a request or connection that exceeded a limit.
    pub(super) fn count_shed(&self, cause: ShedCause) {
        self.shed.get_or_create(&[cause.label()]).inc();
    }

    /// Counts a review whose caller hung up before the answer.
    pub(super) fn count_abandoned(&self, webhook: &'static str) {
        self.abandoned.get_or_create(&[("webhook", webhook)]).inc();
    }

    /// Records how many operations a patch has.
    #[expect(clippy::cast_precision_loss, reason = "no patch has 2^52 operations")]
    pub(super) fn observe_patch(&self, family: &'static Family, operations: usize) {
        self.patch_operations.get_or_create(&[("family", family.name)]).observe(operations as f64);
    }

    /// Counts a pod that is refused for now, because an object of this family is missing.
    pub(super) fn count_held(&self, family: &'static Family) {
        self.pods_held.get_or_create(&[("family", family.name)]).inc();
    }

    /// Counts a TLS handshake.
    pub(super) fn count_handshake(&self, result: ResultLabel) {
        self.handshakes.get_or_create(&[result.label()]).inc();
    }

    /// Counts a lookup at the apiserver.
    pub(super) fn count_lookup(&self, result: ResultLabel) {
        self.lookups.get_or_create(&[result.label()]).inc();
    }

    /// Counts an Event.
    pub(super) fn count_event(&self, result: ResultLabel) {
        self.events.get_or_create(&[result.label()]).inc();
    }

    /// Counts a new certificate: it replaced another one, or could not be used.
    pub(super) fn count_cert_rotation(&self, kind: CertKind, usable: bool) {
        self.cert_rotations.get_or_create(&[kind.label(), ResultLabel::of(usable).label()]).inc();
    }

    /// Sets the dates between which a certificate is valid, in seconds since 1970.
    pub(super) fn set_validity(&self, kind: CertKind, (not_before, not_after): (i64, i64)) {
        self.cert_not_before.get_or_create(&[kind.label()]).set(not_before);
        self.cert_not_after.get_or_create(&[kind.label()]).set(not_after);
    }

    /// Sets when memgate is due to replace a certificate, in seconds since 1970.
    pub(super) fn set_renewal(&self, kind: CertKind, seconds: i64) {
        self.cert_renewal.get_or_create(&[kind.label()]).set(seconds);
    }

    /// Counts an attempt to write `caBundle` into a webhook configuration.
    pub(super) fn count_cabundle_write(&self, call: Phase, written: bool) {
        let labels = [("webhook_config", config_name(call)), ResultLabel::of(written).label()];
        self.cabundle_repairs.get_or_create(&labels).inc();
    }

    /// Counts spans.
    pub(super) fn count_spans(&self, result: ResultLabel, spans: usize) {
        let spans = u64::try_from(spans).unwrap_or(u64::MAX);
        self.trace_spans.get_or_create(&[result.label()]).inc_by(spans);
    }

    /// Sets whether reviews should be sent here.
    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }

    /// Sets the bytes that request bodies and answers occupy; measured at each scrape.
    pub(super) fn set_bytes_in_flight(&self, bytes: usize) {
        self.bytes_in_flight.set(number(bytes));
    }

    /// Sets how many objects of a family are cached, and how old the cache may be.
    pub(super) fn set_store(&self, family: &'static Family, objects: usize, age: Duration) {
        let family = [("family", family.name)];
        self.store_objects.get_or_create(&family).set(number(objects));
        self.store_age.get_or_create(&family).set(age.as_secs_f64());
    }

    /// All series as text.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Adds a metric to the registry.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    add_as(registry, name, help, M::default())
}

fn add_as<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Adds counters for these labels, at zero: a counter that first appears with 1 is not an increase for Prometheus, so no
/// alert would see the first failure.
fn add_counters<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    labels: impl IntoIterator<Item = [Label; N]>,
) -> Counters<N> {
    let counters: Counters<N> = add(registry, name, help);
    for labels in labels {
        drop(counters.get_or_create(&labels));
    }
    counters
}

/// Adds counters for these results.
fn add_results<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    results: [ResultLabel; N],
) -> Counters<1> {
    add_counters(registry, name, help, results.map(|result| [result.label()]))
}

/// The value of a gauge.
fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
