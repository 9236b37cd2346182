//! Metrics of requests and decisions.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metrics::labels::{RequestLabels, ShedCause};
use crate::metrics::{Counters, Label, add, add_as, add_counters};
use memgate_model::family::Family;
use memgate_primitives::review_path::Phase;

/// The bounds of the buckets of durations, in seconds: from the time of a decision to the timeout of an apiserver.
const DURATION_BUCKETS: [f64; 14] =
    [5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 1.0, 5.0];

/// Makes a histogram of durations.
const NEW_DURATION: fn() -> Histogram = || Histogram::new(DURATION_BUCKETS);

type Histograms = Labelled<[Label; 1], Histogram, fn() -> Histogram>;

/// All series about requests and decisions.
pub(crate) struct AdmissionMetrics {
    requests: Labelled<RequestLabels, Counter>,
    durations: Histograms,
    pub(crate) in_flight: Gauge,
    pub(crate) bytes_in_flight: Gauge,
    shed: Counters<1>,
    abandoned: Counters<1>,
    pub(crate) panics: Counter,
    pub(crate) not_logged: Counter,
    pods_held: Counters<1>,
}

impl AdmissionMetrics {
    pub(super) fn new(registry: &mut Registry, requests: impl IntoIterator<Item = RequestLabels>) -> Self {
        let families = memgate_platforms::ALL.map(|family| [("family", family.name)]);
        let metrics = Self {
            requests: add(registry, "admission_requests", "Requests by how they ended"),
            durations: add_as(
                registry,
                "admission_duration_seconds",
                "Time from the first byte of a request to its answer",
                Labelled::new_with_constructor(NEW_DURATION),
            ),
            in_flight: add(registry, "admission_in_flight", "Requests being answered"),
            bytes_in_flight: add(
                registry,
                "admission_bytes_in_flight",
                "Bytes claimed by request bodies and by answers that are not written yet",
            ),
            shed: add_counters(
                registry,
                "admission_shed",
                "Requests and connections that exceeded a limit",
                ShedCause::ALL.map(|cause| [cause.label()]),
            ),
            abandoned: add_counters(
                registry,
                "admission_abandoned",
                "Reviews whose callers hung up before the answer",
                Phase::ALL.map(|call| [("webhook", call.name())]),
            ),
            panics: add(registry, "panics", "Panics caught"),
            not_logged: add(
                registry,
                "decisions_not_logged",
                "Decisions without a log line, because their namespace, their user, or all together, had too many",
            ),
            pods_held: add_counters(
                registry,
                "pods_held",
                "Pods refused for now, because an object that they refer to is missing",
                families,
            ),
        };
        for labels in requests {
            drop(metrics.requests.get_or_create(&labels));
            drop(metrics.durations.get_or_create(&[("webhook", labels.webhook)]));
        }
        metrics
    }

    /// Counts a request and its time.
    pub(crate) fn count_request(&self, labels: RequestLabels, took: Duration) {
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&[("webhook", labels.webhook)]).observe(took.as_secs_f64());
    }

    /// Counts a request or connection that exceeded a limit.
    pub(crate) fn count_shed(&self, cause: ShedCause) {
        self.shed.get_or_create(&[cause.label()]).inc();
    }

    /// Counts a review whose caller hung up before the answer.
    pub(crate) fn count_abandoned(&self, webhook: &'static str) {
        self.abandoned.get_or_create(&[("webhook", webhook)]).inc();
    }

    /// Counts a pod that is refused for now, because an object of this family is missing.
    pub(crate) fn count_held(&self, family: &'static Family) {
        self.pods_held.get_or_create(&[("family", family.name)]).inc();
    }
}
