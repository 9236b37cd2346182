//! Makes series at zero when the server starts. A counter that first appears with 1 is not an increase for Prometheus, so
//! no alert would see the first failure.

use crate::server::metrics::labels::{
    ByCause, ByConfigAndResult, ByFamily, ByKindAndResult, ByResult, ByWebhook, CertKind, EventOutcome,
    HandshakeOutcome, LookupOutcome, RequestLabels, ShedCause, SpanOutcome, WebhookKind,
};
use crate::server::metrics::{Metrics, result};
use memgate_core::family;

impl Metrics {
    /// Makes each series of the counters whose labels are known before anything is counted.
    pub(super) fn begin_at_zero(&self, requests: impl IntoIterator<Item = RequestLabels>) {
        for labels in requests {
            let webhook = ByWebhook { webhook: labels.webhook };
            drop(self.requests.get_or_create(&labels));
            drop(self.durations.get_or_create(&webhook));
            if labels.operation != "none" {
                drop(self.abandoned.get_or_create(&webhook));
            }
        }
        for family in family::ALL {
            let family = ByFamily { family: family.name };
            drop(self.pods_held.get_or_create(&family));
            drop(self.patch_operations.get_or_create(&family));
        }
        for cause in ShedCause::ALL {
            drop(self.shed.get_or_create(&ByCause { cause: cause.name() }));
        }
        for (counter, names) in [
            (&self.lookups, LookupOutcome::ALL.map(LookupOutcome::name).as_slice()),
            (&self.events, &EventOutcome::ALL.map(EventOutcome::name)),
            (&self.handshakes, &HandshakeOutcome::ALL.map(HandshakeOutcome::name)),
            (&self.trace_spans, &SpanOutcome::ALL.map(SpanOutcome::name)),
        ] {
            for result in names {
                drop(counter.get_or_create(&ByResult { result }));
            }
        }
        for result in [true, false].map(result) {
            for kind in CertKind::ALL.map(CertKind::name) {
                drop(self.cert_rotations.get_or_create(&ByKindAndResult { kind, result }));
            }
            for webhook_config in WebhookKind::ALL.map(WebhookKind::name) {
                drop(self.cabundle_repairs.get_or_create(&ByConfigAndResult { webhook_config, result }));
            }
        }
    }
}
