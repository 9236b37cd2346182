//! What is counted and measured of certificates. The server gives the series their names.

use memgate_primitives::named::named;
use memgate_primitives::review_path::{Phase, config_name};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;

/// The name and the value of a label.
pub type Label = (&'static str, &'static str);

named! {
    /// Which certificate.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CertKind {
        /// The serving certificate.
        Leaf = "leaf",
        /// The CA of the serving certificate.
        Ca = "ca",
        /// The CA of the certificates of callers.
        ClientCa = "client-ca",
    }
}

impl CertKind {
    /// As a label.
    pub const fn label(self) -> Label {
        ("kind", self.name())
    }
}

/// All series about certificates.
#[derive(Debug, Clone, Default)]
pub struct CertMetrics {
    /// When each certificate began to be valid, in seconds since 1970, by its kind.
    pub not_before: Labelled<[Label; 1], Gauge>,
    /// When memgate is due to replace it, in seconds since 1970.
    pub renewal: Labelled<[Label; 1], Gauge>,
    /// When it expires, in seconds since 1970.
    pub not_after: Labelled<[Label; 1], Gauge>,
    /// Certificates that were replaced, by kind and result.
    pub rotations: Labelled<[Label; 2], Counter>,
    /// Writes of `caBundle` into a webhook configuration, by configuration and result.
    pub repairs: Labelled<[Label; 2], Counter>,
}

/// The label of something that succeeded or failed.
pub const fn result(good: bool) -> Label {
    ("result", if good { "ok" } else { "failed" })
}

impl CertMetrics {
    /// The labels of `rotations`.
    pub fn rotation_labels() -> impl Iterator<Item = [Label; 2]> {
        CertKind::ALL.into_iter().flat_map(|kind| [true, false].map(|good| [kind.label(), result(good)]))
    }

    /// The labels of `repairs`.
    pub fn repair_labels() -> impl Iterator<Item = [Label; 2]> {
        Phase::ALL.into_iter().flat_map(|call| [true, false].map(|good| Self::repair_label(call, good)))
    }

    fn repair_label(call: Phase, written: bool) -> [Label; 2] {
        [("webhook_config", config_name(call)), result(written)]
    }

    /// Counts a new certificate: it replaced another one, or could not be used.
    pub fn count_rotation(&self, kind: CertKind, usable: bool) {
        self.rotations.get_or_create(&[kind.label(), result(usable)]).inc();
    }

    /// Sets the dates between which a certificate is valid, in seconds since 1970.
    pub fn set_validity(&self, kind: CertKind, (not_before, not_after): (i64, i64)) {
        self.not_before.get_or_create(&[kind.label()]).set(not_before);
        self.not_after.get_or_create(&[kind.label()]).set(not_after);
    }

    /// Sets when memgate is due to replace a certificate, in seconds since 1970.
    pub fn set_renewal(&self, kind: CertKind, seconds: i64) {
        self.renewal.get_or_create(&[kind.label()]).set(seconds);
    }

    /// Counts an attempt to write `caBundle` into a webhook configuration.
    pub fn count_cabundle_write(&self, call: Phase, written: bool) {
        self.repairs.get_or_create(&Self::repair_label(call, written)).inc();
    }
}
