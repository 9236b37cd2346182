//! What the server counts and measures, in the OpenMetrics text format.
//!
//! Label values are fixed words from the enums in [`labels`], never a part of a request, and the names of a limited
//! number of [`policies`], so the number of series is bounded. docs/metrics.md lists them all.

mod admission;
pub(super) mod labels;
pub(super) mod policies;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use crate::metrics::admission::AdmissionMetrics;
use crate::metrics::labels::{RequestLabels, ResultLabel};
use crate::metrics::policies::PolicyMetrics;
use memgate_certs::metrics::{CertMetrics, Label};
use memgate_model::family::Family;
use memgate_primitives::review_path::{Phase, config_name};

/// The content type of [`Metrics::text`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Seconds = Gauge<f64, AtomicU64>;
type Counters<const N: usize> = Labelled<[Label; N], Counter>;
type Gauges<M = Gauge> = Labelled<[Label; 1], M>;
/// All series.
pub(super) struct Metrics {
    registry: Registry,
    pub(super) admission: AdmissionMetrics,
    store_objects: Gauges,
    store_age: Gauges<Seconds>,
    pub(super) store_bytes: Gauge,
    store_not_held: Gauges,
    lookups: Counters<1>,
    events: Counters<1>,
    pub(super) policies: PolicyMetrics,
    handshakes: Counters<1>,
    pub(super) connections: Gauge,
    pub(super) certs: Arc<CertMetrics>,
    pub(super) ready: Gauge,
    pub(super) clock_offset: Gauge,
    pub(super) rights_missing: Gauge,
    replicas: Gauges,
    entries: Labelled<[Label; 2], Gauge>,
    entries_differing: Gauges,
}

impl Metrics {
    /// All series at zero, those of requests for each of these labels.
    pub(super) fn new(requests: impl IntoIterator<Item = RequestLabels>) -> Self {
        let mut registry = Registry::default();
        let all = registry.sub_registry_with_prefix("memgate");
        all.register("build", "What is running", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Self {
            admission: AdmissionMetrics::new(all, requests),
            store_objects: add(all, "store_objects", "Objects in the state"),
            store_age: add(
                all,
                "store_age_seconds",
                "Time since the last activity of the most silent watch of a platform; normally up to 75",
            ),
            store_bytes: add(all, "store_bytes", "Bytes of the objects in the state"),
            store_not_held: add(
                all,
                "store_objects_not_held",
                "Objects that take too much memory and are looked up when they are needed",
            ),
            lookups: add_results(all, "reference_lookups", "Lookups at the apiserver", ResultLabel::LOOKUPS),
            events: add_results(all, "events", "Events about pods without their memory", ResultLabel::EVENTS),
            policies: PolicyMetrics::new(all),
            certs: Arc::new(cert_metrics(all)),
            handshakes: add_results(
                all,
                "tls_handshakes",
                "TLS handshakes by how they ended",
                ResultLabel::HANDSHAKES,
            ),
            connections: add(all, "connections", "Open connections"),
            ready: add(all, "ready", "Whether the server is ready"),
            clock_offset: add(
                all,
                "clock_offset_seconds",
                "By how much the clock of the machine is ahead of the apiserver's",
            ),
            rights_missing: add(all, "rights_missing", "Rights that memgate's account lacks"),
            replicas: add(all, "replicas", "Replicas by their Leases"),
            entries: add(
                all,
                "webhook_entries",
                "Entries of the webhook configurations that ask about something",
            ),
            entries_differing: add(
                all,
                "webhook_entries_differing",
                "Entries of the webhook configurations that are not as memgate would install them",
            ),
            registry,
        }
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

    /// Sets how many objects of a family are cached, how many are not held, and how old the cache may be.
    pub(super) fn set_store(&self, family: &'static Family, objects: usize, not_held: usize, age: Duration) {
        let family = [("family", family.name)];
        self.store_objects.get_or_create(&family).set(number(objects));
        self.store_not_held.get_or_create(&family).set(number(not_held));
        self.store_age.get_or_create(&family).set(age.as_secs_f64());
    }

    /// Sets how many replicas are in each state.
    pub(super) fn set_replicas(&self, counts: [(&'static str, usize); 3]) {
        for (state, count) in counts {
            self.replicas.get_or_create(&[("state", state)]).set(number(count));
        }
    }

    /// Sets how many entries of a configuration ask about something, by failure policy, and how many differ.
    pub(super) fn set_entries(&self, call: Phase, asking: [(&'static str, usize); 2], differing: usize) {
        let config = ("webhook_config", config_name(call));
        for (policy, count) in asking {
            self.entries.get_or_create(&[("failure_policy", policy), config]).set(number(count));
        }
        self.entries_differing.get_or_create(&[config]).set(number(differing));
    }

    /// All series as text.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn cert_metrics(all: &mut Registry) -> CertMetrics {
    CertMetrics {
        not_before: add(
            all,
            "cert_not_before_seconds",
            "When the certificate began to be valid, in seconds since 1970",
        ),
        renewal: add(
            all,
            "cert_renewal_seconds",
            "When memgate is due to replace the certificate, in seconds since 1970",
        ),
        not_after: add(all, "cert_not_after_seconds", "When the certificate expires, in seconds since 1970"),
        rotations: add_counters(
            all,
            "cert_rotations",
            "Certificates replaced",
            CertMetrics::rotation_labels(),
        ),
        repairs: add_counters(
            all,
            "cabundle_repairs",
            "Writes of caBundle into a webhook configuration",
            CertMetrics::repair_labels(),
        ),
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
pub(super) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
