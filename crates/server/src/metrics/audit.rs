//! The results of audits of stored objects. Only the replica that audits has series of single policies, so that a sum over
//! replicas counts each violation once.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::labels::ResultLabel;
use crate::metrics::policies::{OTHER, PolicyLabel};
use crate::metrics::{Counters, Seconds, add, add_results, number};
use memgate_model::policy::{Policies, Policy};
use memgate_model::policy_rule::Counts;

/// How many policies have their own series about stored objects: fewer than in admission, because each has several.
pub(super) const MAX_POLICIES: usize = 40;

/// How many owners of pods without their memory have their own series.
pub(super) const MAX_OWNERS: usize = 100;

/// The number of pods by namespace and owner.
pub(crate) type PodCounts = BTreeMap<(String, String), usize>;

/// All series about audits.
#[derive(Debug)]
pub(crate) struct AuditMetrics {
    passes: Counters<1>,
    leading: Gauge,
    last: Gauge,
    seconds: Seconds,
    subjects: Gauge,
    reports: Gauge,
    left_out: Gauge,
    violations: Labelled<[(&'static str, String); 2], Gauge>,
    promotions: Labelled<PolicyLabel, Gauge>,
    pods: Labelled<[(&'static str, String); 2], Gauge>,
}

/// The result of the last audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastPass {
    /// When it began, in seconds since 1970.
    pub(crate) at: i64,
    pub(crate) took: Duration,
    /// Whether all objects were judged and all results written.
    pub(crate) is_done: bool,
    /// How many objects were judged.
    pub(crate) subjects: usize,
    /// How many of them have reports.
    pub(crate) reports: usize,
    /// How many objects have no report because of the limit.
    pub(crate) left_out: usize,
}

impl AuditMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let results = [ResultLabel::Done, ResultLabel::Failed];
        Self {
            passes: add_results(registry, "audit_passes", "Audits of all stored objects", results),
            leading: add(registry, "audit_leading", "Whether this replica audits"),
            last: add(
                registry,
                "audit_last_pass_timestamp_seconds",
                "When the last audit began that came to its end, in seconds since 1970",
            ),
            seconds: add(registry, "audit_last_pass_seconds", "How long it took"),
            subjects: add(registry, "audit_subjects", "Stored objects that it judged"),
            reports: add(registry, "audit_reports", "Objects of which there is a report"),
            left_out: add(
                registry,
                "audit_reports_left_out",
                "Objects that should have a report, beyond the limit",
            ),
            violations: add(
                registry,
                "policy_violations",
                "Violations of policies by stored objects, by what admission makes of them",
            ),
            promotions: add(
                registry,
                "policy_promotion_timestamp_seconds",
                "When a policy becomes stricter at admission, in seconds since 1970",
            ),
            pods: add(
                registry,
                "pods_without_memory",
                "Running pods of agents that lack their memory, by the controller that owns them",
            ),
        }
    }

    /// Counts a complete audit, and sets its results.
    pub(crate) fn complete(
        &self,
        pass: &LastPass,
        policies: &Policies,
        found: impl IntoIterator<Item = (String, Counts)>,
    ) {
        self.passes.get_or_create(&[ResultLabel::of(pass.is_done).label()]).inc();
        self.leading.set(1);
        self.last.set(pass.at);
        self.seconds.set(pass.took.as_secs_f64());
        self.subjects.set(number(pass.subjects));
        self.reports.set(number(pass.reports));
        self.left_out.set(number(pass.left_out));
        self.set_violations(found);
        self.set_promotions(policies, pass.at);
    }

    /// The violations of the policies that will deny them, then of those with the most; all other policies share one name.
    fn set_violations(&self, found: impl IntoIterator<Item = (String, Counts)>) {
        self.violations.clear();
        let mut found: Vec<_> = found.into_iter().filter(|(_, counts)| counts.violations > 0).collect();
        // Policies that will deny come first, because an alert uses them.
        found.sort_by_key(|(name, counts)| {
            (counts.denied_later == 0, Reverse(counts.violations), name.clone())
        });
        for (index, (name, counts)) in found.into_iter().enumerate() {
            let policy = if index < MAX_POLICIES { name } else { OTHER.to_owned() };
            let admitted = counts.violations.saturating_sub(counts.denied + counts.denied_later);
            let all =
                [("denied", counts.denied), ("denied_later", counts.denied_later), ("admitted", admitted)];
            for (admission, count) in all {
                let labels = [("policy", policy.clone()), ("admission", admission.to_owned())];
                self.violations.get_or_create(&labels).inc_by(number(count));
            }
        }
    }

    /// Sets how many pods lack their memory: those of the owners with the most, and of all others together.
    pub(crate) fn set_pods(&self, counts: &PodCounts) {
        self.pods.clear();
        let mut counts: Vec<_> = counts.iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(**count));
        let (first, others) = counts.split_at(counts.len().min(MAX_OWNERS));
        let others = others.iter().map(|(_, count)| **count).sum();
        let first = first.iter().map(|((namespace, owner), count)| (&**namespace, &**owner, **count));
        for (namespace, owner, count) in
            first.chain([(OTHER, OTHER, others)]).filter(|(.., count)| *count > 0)
        {
            let labels = [("namespace", namespace.to_owned()), ("owner", owner.to_owned())];
            self.pods.get_or_create(&labels).inc_by(number(count));
        }
    }

    /// The next promotions, and then the last ones.
    fn set_promotions(&self, policies: &Policies, now: i64) {
        self.promotions.clear();
        let day = |policy: &Policy| Some((policy.promote?.at.as_second(), policy.name.clone()));
        let mut days: Vec<_> = policies.iter().filter_map(|policy| day(policy)).collect();
        days.sort_by_key(|(at, name)| (*at < now, (*at - now).abs(), name.clone()));
        for (at, policy) in days.into_iter().take(MAX_POLICIES) {
            self.promotions.get_or_create(&[("policy", policy)]).set(at);
        }
    }

    /// Counts an audit that did not end.
    pub(crate) fn fail(&self) {
        self.passes.get_or_create(&[ResultLabel::Failed.label()]).inc();
    }

    /// Removes the results: from now on another replica reports them.
    pub(crate) fn stop(&self) {
        self.violations.clear();
        self.promotions.clear();
        self.pods.clear();
        for gauge in [&self.leading, &self.subjects, &self.reports, &self.left_out] {
            gauge.set(0);
        }
    }
}
