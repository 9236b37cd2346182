//! The lines and the data about how often each rule of the policies judged and fired.

use serde_json::{Value, json};

use crate::report::plain;
use memgate_policy::counts::{RuleCount, RuleCounts};

/// A line for each rule by policy and rule; the rules of a policy that judged nothing share one.
pub fn lines(counts: &RuleCounts) -> Vec<String> {
    let all: Vec<(&str, &str, RuleCount)> = counts.iter().collect();
    let mut lines = Vec::new();
    for of_policy in all.chunk_by(|(one, ..), (other, ..)| one == other) {
        let mut idle = Vec::new();
        for (policy, rule, RuleCount { judged, fired, unknown }) in of_policy {
            let name = format!("{}/{}", plain(policy), plain(rule));
            if *judged == 0 {
                idle.push(name);
            } else {
                lines.push(format!("policy {name}: judged {judged}, fired {fired}, unknown {unknown}"));
            }
        }
        if !idle.is_empty() {
            lines.push(format!("policy {}: judged nothing", idle.join(", ")));
        }
    }
    lines
}

/// The same as data; `None` without a rule.
pub(super) fn values(counts: &RuleCounts) -> Option<Vec<Value>> {
    let value = |(policy, rule, RuleCount { judged, fired, unknown })| json!({"policy": policy, "rule": rule, "judged": judged, "fired": fired, "unknown": unknown});
    let values: Vec<Value> = counts.iter().map(value).collect();
    (!values.is_empty()).then_some(values)
}
