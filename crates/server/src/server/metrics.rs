//! What the server counts and measures, in the OpenMetrics text format.
//!
//! Label values are fixed words from enums, never anything that somebody sent: the number of
//! series has an upper bound. docs/metrics.md lists them all.

mod process;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::model::family::Family;
use crate::server::certs::registration::Which;
use crate::server::limits::Shed;
use crate::server::metrics::process::Process;

/// The content type of [`Metrics::text`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From what a decision takes to what an apiserver waits for, in seconds.
const DURATIONS: [f64; 14] =
    [5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 1.0, 5.0];

/// How many operations a patch has.
const OPERATIONS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0];

/// Which of the two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWebhook {
    webhook: &'static str,
}

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    /// `mutate`, `validate` or `none`.
    pub(super) webhook: &'static str,
    /// The operation under review, or `none` when that was not read.
    pub(super) operation: &'static str,
    /// `allowed`, `denied` or `error`.
    pub(super) verdict: &'static str,
    /// The reason of the decision, or of the refusal.
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCause {
    cause: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByFamily {
    family: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKindAndResult {
    kind: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Repair {
    webhook_config: &'static str,
    result: &'static str,
}

/// What became of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// The collector has them.
    Done,
    /// The collector did not take them.
    Failed,
    /// There was no room for them.
    Dropped,
}

impl Sent {
    /// Every end.
    #[cfg(test)]
    pub(super) const ALL: [Self; 3] = [Self::Done, Self::Failed, Self::Dropped];

    const fn name(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

/// Which certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CertKind {
    /// The one that is shown.
    Leaf,
    /// The one that has signed it.
    Ca,
    /// The one that has signed what callers show.
    ClientCa,
}

impl CertKind {
    /// Every kind.
    #[cfg(test)]
    pub(super) const ALL: [Self; 3] = [Self::Leaf, Self::Ca, Self::ClientCa];

    const fn name(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Ca => "ca",
            Self::ClientCa => "client-ca",
        }
    }
}

/// How a TLS handshake ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handshake {
    /// There is a connection.
    Done,
    /// The two could not agree.
    Failed,
    /// The caller showed no certificate, or none that is asked for.
    ClientRefused,
    /// It took too long.
    TimedOut,
}

impl Handshake {
    /// Every end.
    #[cfg(test)]
    pub(super) const ALL: [Self; 4] = [Self::Done, Self::Failed, Self::ClientRefused, Self::TimedOut];

    const fn name(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Failed => "failed",
            Self::ClientRefused => "client-refused",
            Self::TimedOut => "timeout",
        }
    }
}

/// How a lookup at the apiserver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookedUp {
    /// The object exists.
    Found,
    /// It does not exist.
    Absent,
    /// The apiserver did not say.
    Failed,
    /// The apiserver did not answer in time.
    TimedOut,
}

impl LookedUp {
    /// Every end.
    #[cfg(test)]
    pub(super) const ALL: [Self; 4] = [Self::Found, Self::Absent, Self::Failed, Self::TimedOut];

    const fn name(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Absent => "absent",
            Self::Failed => "failed",
            Self::TimedOut => "timeout",
        }
    }
}

/// What became of a notice about a pod without its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// There is an Event.
    Written,
    /// It was told a short while ago.
    Duplicate,
    /// There was no room for it.
    Dropped,
    /// The Event could not be written.
    Failed,
}

impl Told {
    /// Every end.
    #[cfg(test)]
    pub(super) const ALL: [Self; 4] = [Self::Written, Self::Duplicate, Self::Dropped, Self::Failed];

    const fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Duplicate => "duplicate",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
        }
    }
}

type Seconds = Gauge<f64, AtomicU64>;

/// All series.
pub(super) struct Metrics {
    registry: Registry,
    process: Registry,
    requests: Labelled<Outcome, Counter>,
    durations: Labelled<ByWebhook, Histogram, fn() -> Histogram>,
    pub(super) in_flight: Gauge,
    bytes_in_flight: Gauge,
    shed: Labelled<ByCause, Counter>,
    pub(super) panics: Counter,
    store_objects: Labelled<ByFamily, Gauge>,
    store_age: Labelled<ByFamily, Seconds>,
    lookups: Labelled<ByResult, Counter>,
    events: Labelled<ByResult, Counter>,
    handshakes: Labelled<ByResult, Counter>,
    pub(super) connections: Gauge,
    cert_not_after: Labelled<ByKind, Gauge>,
    cert_rotations: Labelled<ByKindAndResult, Counter>,
    cabundle_repairs: Labelled<Repair, Counter>,
    trace_spans: Labelled<ByResult, Counter>,
    ready: Gauge,
    patch_operations: Labelled<ByFamily, Histogram, fn() -> Histogram>,
}

impl Metrics {
    /// All series at zero.
    pub(super) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("memgate"),
            process: Registry::default(),
            requests: Labelled::default(),
            durations: Labelled::new_with_constructor(|| Histogram::new(DURATIONS)),
            in_flight: Gauge::default(),
            bytes_in_flight: Gauge::default(),
            shed: Labelled::default(),
            panics: Counter::default(),
            store_objects: Labelled::default(),
            store_age: Labelled::default(),
            lookups: Labelled::default(),
            events: Labelled::default(),
            handshakes: Labelled::default(),
            connections: Gauge::default(),
            cert_not_after: Labelled::default(),
            cert_rotations: Labelled::default(),
            cabundle_repairs: Labelled::default(),
            trace_spans: Labelled::default(),
            ready: Gauge::default(),
            patch_operations: Labelled::new_with_constructor(|| Histogram::new(OPERATIONS)),
        };
        metrics.register_admission();
        metrics.register_state();
        metrics.register_listener();
        metrics.process.register_collector(Box::new(Process));
        metrics
    }

    fn register_admission(&mut self) {
        let registry = &mut self.registry;
        registry.register("admission_requests", "Requests by how they ended", self.requests.clone());
        registry.register(
            "admission_duration_seconds",
            "Time from the head of a request to its answer",
            self.durations.clone(),
        );
        registry.register("admission_in_flight", "Requests being answered", self.in_flight.clone());
        registry.register(
            "admission_bytes_in_flight",
            "Bytes claimed by request bodies",
            self.bytes_in_flight.clone(),
        );
        registry.register("admission_shed", "Refused for want of room", self.shed.clone());
        registry.register("panics", "Panics caught", self.panics.clone());
        registry.register("patch_operations", "Operations in one patch", self.patch_operations.clone());
    }

    fn register_state(&mut self) {
        let registry = &mut self.registry;
        registry.register("store_objects", "Objects in the state", self.store_objects.clone());
        registry.register(
            "store_age_seconds",
            "Time since the last sign of life of the most silent watch of a family; up to 75 when all is well",
            self.store_age.clone(),
        );
        registry.register("reference_lookups", "Lookups at the apiserver", self.lookups.clone());
        registry.register("events", "Notices about pods without their memory", self.events.clone());
    }

    fn register_listener(&mut self) {
        let registry = &mut self.registry;
        registry.register("tls_handshakes", "TLS handshakes by how they ended", self.handshakes.clone());
        registry.register("connections", "Open connections", self.connections.clone());
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
        registry.register("ready", "Whether /readyz says yes", self.ready.clone());
        registry.register("trace_spans", "Spans for the collector of traces", self.trace_spans.clone());
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What is running", build);
    }

    /// Counts a request and its time.
    pub(super) fn answered(&self, outcome: Outcome, took: Duration) {
        self.requests.get_or_create(&outcome).inc();
        let webhook = ByWebhook { webhook: outcome.webhook };
        self.durations.get_or_create(&webhook).observe(took.as_secs_f64());
    }

    /// Counts something that was refused for want of room.
    pub(super) fn shed(&self, shed: Shed) {
        self.shed.get_or_create(&ByCause { cause: shed.name() }).inc();
    }

    /// Counts the operations of a patch.
    #[expect(clippy::cast_precision_loss, reason = "no patch has 2^52 operations")]
    pub(super) fn patched(&self, family: &'static Family, operations: usize) {
        let family = ByFamily { family: family.name };
        self.patch_operations.get_or_create(&family).observe(operations as f64);
    }

    /// Counts a handshake.
    pub(super) fn shook_hands(&self, handshake: Handshake) {
        self.handshakes.get_or_create(&ByResult { result: handshake.name() }).inc();
    }

    /// Counts a lookup.
    pub(super) fn looked_up(&self, lookup: LookedUp) {
        self.lookups.get_or_create(&ByResult { result: lookup.name() }).inc();
    }

    /// Counts a notice.
    pub(super) fn told(&self, told: Told) {
        self.events.get_or_create(&ByResult { result: told.name() }).inc();
    }

    /// Counts a certificate that took the place of another, or could not.
    pub(super) fn rotated(&self, kind: CertKind, usable: bool) {
        let labels = ByKindAndResult { kind: kind.name(), result: result(usable) };
        self.cert_rotations.get_or_create(&labels).inc();
    }

    /// Sets when a certificate expires, in seconds since 1970.
    pub(super) fn set_not_after(&self, kind: CertKind, seconds: i64) {
        self.cert_not_after.get_or_create(&ByKind { kind: kind.name() }).set(seconds);
    }

    /// Counts a write of a `caBundle` that was not as it should be.
    pub(super) fn repaired(&self, configuration: Which, written: bool) {
        let labels = Repair { webhook_config: configuration.name(), result: result(written) };
        self.cabundle_repairs.get_or_create(&labels).inc();
    }

    /// Counts spans.
    pub(super) fn traced(&self, sent: Sent, spans: usize) {
        let labels = ByResult { result: sent.name() };
        self.trace_spans.get_or_create(&labels).inc_by(u64::try_from(spans).unwrap_or(u64::MAX));
    }

    /// Sets whether reviews should be sent here.
    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }

    /// Sets what is measured only when somebody asks.
    pub(super) fn set_bytes_in_flight(&self, bytes: usize) {
        self.bytes_in_flight.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Sets what is known of a family's state.
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
