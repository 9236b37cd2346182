//! Metrics of policies. The names of policies are the only names of a cluster that become label values. Their number is
//! limited: a server remembers the first policies that it counts, and all others share one name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::{Gauges, add, number};
use memgate_model::finding::{Finding, Severity};
use memgate_model::policy::{Action, Policies};
use memgate_model::policy_rule::PolicyStatus;
use memgate_policy::next_expiries;

/// How many policies have their own series.
pub(super) const MAX_POLICIES: usize = 200;

/// The label value of all other policies.
const OTHER: &str = "other";

/// A policy, and another label.
type PolicyLabels = [(&'static str, String); 2];

/// A policy by its name.
type PolicyLabel = [(&'static str, String); 1];

/// What an audit found of a policy, as the status of the policy has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// How often stored objects violate it.
    pub(crate) violations: i64,
    /// Whether its promotion is going to deny some of them.
    pub(crate) is_at_risk: bool,
}

/// All series about policies.
#[derive(Debug)]
pub(crate) struct PolicyMetrics {
    findings: Labelled<PolicyLabels, Counter>,
    exempted: Labelled<PolicyLabel, Counter>,
    policies: Gauges,
    expiries: Labelled<PolicyLabel, Gauge>,
    violations: Labelled<PolicyLabel, Gauge>,
    risks: Labelled<PolicyLabel, Gauge>,
    names: Mutex<BTreeSet<String>>,
}

impl PolicyMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            findings: add(registry, "policy_findings", "Findings of policies by what came of them"),
            exempted: add(registry, "policy_exempted", "Findings of policies that were exempt"),
            policies: add(registry, "policies", "Policies by whether they are in force"),
            expiries: add(
                registry,
                "policy_exemption_expires_timestamp_seconds",
                "When the first of a policy's exemptions in force ends, in seconds since 1970",
            ),
            violations: add(
                registry,
                "policy_violations",
                "Violations of policies by stored objects, as the statuses of the policies have them",
            ),
            risks: add(
                registry,
                "policy_promotion_at_risk_timestamp_seconds",
                "When a policy begins to deny stored objects, in seconds since 1970",
            ),
            names: Mutex::default(),
        }
    }

    /// Counts the findings of policies about an object.
    pub(crate) fn count<'f>(&self, findings: impl IntoIterator<Item = &'f Finding>) {
        for finding in findings {
            let Some(found) = &finding.policy else { continue };
            let policy = self.label(&found.rule.policy);
            if found.status == PolicyStatus::Exempt {
                self.exempted.get_or_create(&[("policy", policy)]).inc();
            } else {
                self.findings.get_or_create(&by_action(policy, action(finding.severity))).inc();
            }
        }
    }

    /// Sets the gauges of the known policies and of what audits found; measured at each scrape.
    pub(crate) fn set(&self, policies: &Policies, found: &BTreeMap<String, Found>, now: Timestamp) {
        let invalid = policies.iter().filter(|policy| policy.invalid.is_some()).count();
        for (state, count) in [("in_force", policies.iter().count() - invalid), ("invalid", invalid)] {
            self.policies.get_or_create(&[("state", state)]).set(number(count));
        }
        for policy in policies.iter().filter(|policy| policy.invalid.is_none()) {
            self.begin_at_zero(&policy.name);
        }
        self.expiries.clear();
        for (policy, expiry) in next_expiries(policies, now) {
            self.set_first(&self.expiries, policy, expiry);
        }
        self.violations.clear();
        self.risks.clear();
        for (policy, Found { violations, is_at_risk }) in found {
            self.violations.get_or_create(&[("policy", self.label(policy))]).inc_by(*violations);
            let promotion = policies.get(policy).and_then(|policy| policy.promote).filter(|_| *is_at_risk);
            if let Some(promotion) = promotion {
                self.set_first(&self.risks, policy, promotion.at);
            }
        }
    }

    /// Sets a time of a policy. Several policies may share one name, and the first of their times counts.
    fn set_first(&self, times: &Labelled<PolicyLabel, Gauge>, policy: &str, time: Timestamp) {
        let (seconds, gauge) =
            (time.as_second(), times.get_or_create_owned(&[("policy", self.label(policy))]));
        let first = if gauge.get() == 0 { seconds } else { gauge.get().min(seconds) };
        gauge.set(first);
    }

    /// Makes the counters of a policy, so that its first finding is an increase.
    fn begin_at_zero(&self, policy: &str) {
        let policy = self.label(policy);
        for action in [Action::Deny, Action::Warn, Action::Report] {
            drop(self.findings.get_or_create(&by_action(policy.clone(), action)));
        }
        drop(self.exempted.get_or_create(&[("policy", policy)]));
    }

    /// The name of a policy, as a label.
    fn label(&self, policy: &str) -> String {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() < MAX_POLICIES && !names.contains(policy) {
            names.insert(policy.to_owned());
        }
        names.get(policy).cloned().unwrap_or_else(|| OTHER.to_owned())
    }
}

fn by_action(policy: String, action: Action) -> PolicyLabels {
    [("policy", policy), ("action", action.name().to_owned())]
}

/// The action behind a severity.
const fn action(severity: Severity) -> Action {
    match severity {
        Severity::Deny => Action::Deny,
        Severity::Warn => Action::Warn,
        Severity::Note => Action::Report,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_policies_have_names() {
        let metrics = PolicyMetrics::new(&mut Registry::default());
        let labels: Vec<_> =
            (0..MAX_POLICIES + 50).map(|index| metrics.label(&format!("p{index}"))).collect();
        assert_eq!(labels[MAX_POLICIES - 1], format!("p{}", MAX_POLICIES - 1));
        assert!(labels[MAX_POLICIES..].iter().all(|label| label == OTHER));
        assert_eq!(metrics.label("p0"), "p0");
    }
}
