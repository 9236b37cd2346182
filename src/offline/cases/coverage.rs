//! Which rules of policies the cases try: how often each fired, and whether a case would notice a change of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::casefile::Case;
use crate::casefile::compare::failures;
use crate::model::decision::Decision;
use crate::model::kind::MEMORY_POLICY;
use crate::model::snapshot::Snapshot;
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
    /// The policies that are in the state of every case, by name.
    given: BTreeMap<String, Value>,
    /// The state with them.
    base: Snapshot,
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
    pub(super) fn new(given: Vec<Value>, base: Snapshot) -> Self {
        let policies = given.into_iter().filter(is_policy).map(|it| (name(&it).to_owned(), it));
        let given: BTreeMap<String, Value> = policies.collect();
        let rules =
            given.iter().flat_map(|(name, it)| rules(it).into_iter().map(|rule| (name.clone(), rule)));
        let rules = rules.map(|rule| (rule, Counts::default())).collect();
        Self { given, base, rules, cases: Vec::new() }
    }

    pub(super) const fn base(&self) -> &Snapshot {
        &self.base
    }

    /// Adds what came of a case.
    pub(super) fn add(&mut self, case: Case, decision: &Decision, passed: bool) {
        let own: BTreeMap<&str, &Value> =
            case.state.iter().filter(|it| is_policy(it)).map(|it| (name(it), it)).collect();
        for (policy, manifest) in &own {
            for rule in rules(manifest) {
                self.rules.entry(((*policy).to_owned(), rule)).or_default();
            }
        }
        if decision.policies.is_empty() {
            return;
        }
        let fired: BTreeSet<(&str, &str)> =
            decision.fired.iter().map(|rule| (rule.policy.as_str(), rule.id.as_str())).collect();
        for policy in &decision.policies {
            let given = || self.given.get(policy);
            let Some(manifest) = own.get(policy.as_str()).copied().or_else(given) else { continue };
            for rule in rules(manifest) {
                let has_fired = fired.contains(&(policy.as_str(), rule.as_str()));
                let counts = self.rules.entry((policy.clone(), rule)).or_default();
                counts.judged += 1;
                counts.fired += usize::from(has_fired);
                if passed {
                    counts.cases.push(self.cases.len());
                }
            }
        }
        drop(own);
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
        let own = case.state.iter().rfind(|it| is_policy(it) && name(it) == policy);
        let manifest = own.or_else(|| self.given.get(policy));
        let mutant =
            manifest.and_then(|manifest| mutant::policy(manifest, &crate::family::ALL, rule, mutation));
        let Some(mutant) = mutant else { return false };
        match answer(case, &self.base, Some(mutant)) {
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
