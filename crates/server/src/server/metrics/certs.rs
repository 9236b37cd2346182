//! Metrics of certificates.

use prometheus_client::registry::Registry;

use crate::server::metrics::labels::{CertKind, ResultLabel, config_name};
use crate::server::metrics::{Counters, Gauges, add, add_counters};
use memgate_primitives::review_path::Phase;

/// All series about certificates.
pub(in crate::server) struct CertMetrics {
    not_before: Gauges,
    renewal: Gauges,
    not_after: Gauges,
    rotations: Counters<2>,
    repairs: Counters<2>,
}

impl CertMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let results = [true, false].map(|good| ResultLabel::of(good).label());
        let rotations =
            CertKind::ALL.into_iter().flat_map(|kind| results.map(|result| [kind.label(), result]));
        let repairs = Phase::ALL
            .into_iter()
            .flat_map(|call| results.map(|result| [("webhook_config", config_name(call)), result]));
        Self {
            not_before: add(
                registry,
                "cert_not_before_seconds",
                "When the certificate began to be valid, in seconds since 1970",
            ),
            renewal: add(
                registry,
                "cert_renewal_seconds",
                "When memgate is due to replace the certificate, in seconds since 1970",
            ),
            not_after: add(
                registry,
                "cert_not_after_seconds",
                "When the certificate expires, in seconds since 1970",
            ),
            rotations: add_counters(registry, "cert_rotations", "Certificates replaced", rotations),
            repairs: add_counters(
                registry,
                "cabundle_repairs",
                "Writes of caBundle into a webhook configuration",
                repairs,
            ),
        }
    }

    /// Counts a new certificate: it replaced another one, or could not be used.
    pub(in crate::server) fn count_rotation(&self, kind: CertKind, usable: bool) {
        self.rotations.get_or_create(&[kind.label(), ResultLabel::of(usable).label()]).inc();
    }

    /// Sets the dates between which a certificate is valid, in seconds since 1970.
    pub(in crate::server) fn set_validity(&self, kind: CertKind, (not_before, not_after): (i64, i64)) {
        self.not_before.get_or_create(&[kind.label()]).set(not_before);
        self.not_after.get_or_create(&[kind.label()]).set(not_after);
    }

    /// Sets when memgate is due to replace a certificate, in seconds since 1970.
    pub(in crate::server) fn set_renewal(&self, kind: CertKind, seconds: i64) {
        self.renewal.get_or_create(&[kind.label()]).set(seconds);
    }

    /// Counts an attempt to write `caBundle` into a webhook configuration.
    pub(in crate::server) fn count_cabundle_write(&self, call: Phase, written: bool) {
        let labels = [("webhook_config", config_name(call)), ResultLabel::of(written).label()];
        self.repairs.get_or_create(&labels).inc();
    }
}
