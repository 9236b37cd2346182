//! The metric of pauses. Namespaces are names of a cluster; only who may pause can make a series, and their number is limited.

use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::add;
use memgate_model::pause::Pause;

/// How many pauses have a series: the first by namespace and platform.
const MAX_PAUSES: usize = 200;

/// A namespace and a platform; `*` stands for all.
type PauseLabels = [(&'static str, String); 2];

/// What is paused.
#[derive(Debug)]
pub(crate) struct PauseMetrics {
    paused: Labelled<PauseLabels, Gauge>,
}

impl PauseMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self { paused: add(registry, "paused", "Whether memgate is paused in a namespace, for a platform") }
    }

    /// Sets what is paused now.
    pub(crate) fn set<'p>(&self, pauses: impl Iterator<Item = &'p Pause>) {
        self.paused.clear();
        for pause in pauses.take(MAX_PAUSES) {
            let namespace = ("namespace", pause.namespace_or_all().to_owned());
            let family = ("family", pause.family_or_all().to_owned());
            self.paused.get_or_create_owned(&[namespace, family]).set(1);
        }
    }
}
