//! Counts what the rules of policies made of the objects of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use memgate_model::policy::Policies;
use memgate_model::policy_rule::{PolicyRule, RuleResult};

/// The numbers of each rule, by policy and rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleCounts(BTreeMap<(String, String), RuleCount>);

/// How many objects a rule judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// The objects to which it applied.
    pub judged: usize,
    /// Of these the objects that violate it, exempt or not.
    pub fired: usize,
    /// Of these the objects that could not be judged.
    pub unknown: usize,
}

impl RuleCount {
    fn add(&mut self, other: Self) {
        self.judged += other.judged;
        self.fired += other.fired;
        self.unknown += other.unknown;
    }
}

impl RuleCounts {
    /// Lists the rules of policies, so that a rule that judges nothing is listed too.
    pub fn add_rules(&mut self, policies: &Policies) {
        for rule in policies.iter().flat_map(|policy| &policy.rules) {
            self.of(&rule.about);
        }
    }

    /// Counts one object, by what the rules made of it. A rule counts once, although several platforms may know the object.
    pub fn add(&mut self, rules: &[(Arc<PolicyRule>, RuleResult)]) {
        let mut results: BTreeMap<&str, (&PolicyRule, RuleResult)> = BTreeMap::new();
        for (rule, result) in rules {
            let known = results.entry(&rule.code).or_insert((rule, *result));
            known.1 = known.1.max(*result);
        }
        for (rule, result) in results.into_values() {
            let (fired, unknown) = (result == RuleResult::Fired, result == RuleResult::Unknown);
            self.of(rule).add(RuleCount { judged: 1, fired: fired.into(), unknown: unknown.into() });
        }
    }

    /// Adds the numbers of another run.
    pub fn join(&mut self, other: Self) {
        for (key, count) in other.0 {
            self.0.entry(key).or_default().add(count);
        }
    }

    /// The policy, the rule and its numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, RuleCount)> {
        self.0.iter().map(|((policy, rule), count)| (&**policy, &**rule, *count))
    }

    fn of(&mut self, rule: &PolicyRule) -> &mut RuleCount {
        self.0.entry((rule.policy.clone(), rule.id.clone())).or_default()
    }
}
