//! Which rules of policies the cases try: how often each fired, and whether a case would notice a change of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::casefile::Case;
use crate::casefile::compare::failures;
use crate::model::decision::Decision;
use crate::model::kind::MEMORY_POLICY;
use crate::model::policy_rule::PolicyStatus;
use crate::policy::mutant::{self, Mutation};
use crate::state;

use super::answer;

/// How often a rule fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCoverage {
    /// The name of the policy.
    pub policy: String,
    /// The id of the rule.
    pub rule: String,
    /// How many cases are about an object that the policy judges.
    pub judged: usize,
    /// In how many of them the rule fired.
    pub fired: usize,
}

/// A change of a rule that no case notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// The name of the policy.
    pub policy: String,
    /// The id of the rule.
    pub rule: String,
    /// What was done to it.
    pub mutation: Mutation,
}

/// Counts while cases run.
pub(super) struct Coverage {
    /// The policies that are in the state of every case.
    given: Vec<Value>,
    rules: BTreeMap<(String, String), Counts>,
    /// The cases that passed and that a policy judged.
    cases: Vec<Case>,
}

#[derive(Default)]
struct Counts {
    judged: usize,
    fired: usize,
    /// Which of the cases the policy judged.
    cases: Vec<usize>,
}

impl Coverage {
    pub(super) fn new(given: Vec<Value>) -> Self {
        let mut coverage = Self { given, rules: BTreeMap::new(), cases: Vec::new() };
        for manifest in &coverage.given {
            for rule in rules(manifest) {
                coverage.rules.entry((name(manifest).to_owned(), rule)).or_default();
            }
        }
        coverage
    }

    pub(super) fn given(&self) -> &[Value] {
        &self.given
    }

    /// Adds what came of a case.
    pub(super) fn add(&mut self, case: Case, decision: Option<&Decision>, passed: bool) {
        for manifest in case.state.iter().filter(|it| is_policy(it)) {
            for rule in rules(manifest) {
                self.rules.entry((name(manifest).to_owned(), rule)).or_default();
            }
        }
        let Some(decision) = decision.filter(|decision| !decision.policies.is_empty()) else { return };
        let judged: BTreeSet<&str> = decision.policies.iter().map(String::as_str).collect();
        let of_policy = decision.findings.iter().filter_map(|finding| finding.policy.as_ref());
        let fired: BTreeSet<(&str, &str)> = of_policy
            .filter(|it| it.status != PolicyStatus::Unknown)
            .map(|it| (it.rule.policy.as_str(), it.rule.id.as_str()))
            .collect();
        for policy in judged {
            let Some(manifest) = manifest(&case, &self.given, policy) else { continue };
            for rule in rules(manifest) {
                let has_fired = fired.contains(&(policy, rule.as_str()));
                let counts = self.rules.entry((policy.to_owned(), rule)).or_default();
                counts.judged += 1;
                counts.fired += usize::from(has_fired);
                if passed {
                    counts.cases.push(self.cases.len());
                }
            }
        }
        if passed {
            self.cases.push(case);
        }
    }

    /// Changes each rule, one at a time, and runs the cases again that its policy judges.
    pub(super) fn survivors(&self) -> Vec<Survivor> {
        let mut survivors = Vec::new();
        for ((policy, rule), counts) in &self.rules {
            for mutation in Mutation::ALL {
                let mut cases = counts.cases.iter().filter_map(|index| self.cases.get(*index));
                if !cases.any(|case| self.notices(case, policy, rule, mutation)) {
                    survivors.push(Survivor { policy: policy.clone(), rule: rule.clone(), mutation });
                }
            }
        }
        survivors
    }

    /// Whether a case fails with a rule that was changed.
    fn notices(&self, case: &Case, policy: &str, rule: &str, mutation: Mutation) -> bool {
        let mutant = manifest(case, &self.given, policy).and_then(|it| mutant::policy(it, rule, mutation));
        let Some(mutant) = mutant else { return false };
        match answer(case, &self.given, Some(mutant)) {
            Ok(answer) => !failures(&case.expect, &answer.outcome).is_empty(),
            Err(_) => true,
        }
    }

    /// All rules, by policy and id.
    pub(super) fn into_rules(self) -> Vec<RuleCoverage> {
        let rule =
            |((policy, rule), Counts { judged, fired, .. })| RuleCoverage { policy, rule, judged, fired };
        self.rules.into_iter().map(rule).collect()
    }
}

fn is_policy(value: &Value) -> bool {
    let (group, kind) = state::group_and_kind(value);
    MEMORY_POLICY.is(group, kind)
}

fn name(manifest: &Value) -> &str {
    manifest.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn rules(manifest: &Value) -> Vec<String> {
    let rules = manifest.pointer("/spec/rules").and_then(Value::as_array).into_iter().flatten();
    rules.filter_map(|rule| rule.get("id")?.as_str()).map(str::to_owned).collect()
}

/// The policy of this name that counts in a case: the last one, its own before those that are given.
fn manifest<'v>(case: &'v Case, given: &'v [Value], policy: &str) -> Option<&'v Value> {
    let mut all = given.iter().chain(&case.state);
    all.rfind(|it| is_policy(it) && name(it) == policy)
}
