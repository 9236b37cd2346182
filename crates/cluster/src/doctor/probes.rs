//! Whether memgate answers the apiserver, as dry runs show it.

use crate::check::{Check, CheckStatus, abbreviated};
use crate::wait::ProbeResult;

/// A check for each cause, with the first probes that have it; kinds that are not served aside.
pub fn checks(results: &[ProbeResult]) -> Vec<Check> {
    let mut checks: Vec<(Check, Vec<String>)> = Vec::new();
    for check in results.iter().filter_map(ProbeResult::check) {
        match checks.iter_mut().find(|(other, _)| cause(other) == cause(&check)) {
            Some((_, subjects)) => subjects.push(check.subject),
            None => checks.push((check.clone(), vec![check.subject])),
        }
    }
    let joined = |(check, subjects): (Check, Vec<String>)| Check { subject: abbreviated(&subjects), ..check };
    checks.into_iter().map(joined).collect()
}

/// What a failure has in common with others: its message without the entry that was asked, in brackets.
fn cause(check: &Check) -> (CheckStatus, &str, Option<&str>) {
    let message = match check.status {
        CheckStatus::Fail => check.message.split(" (").next().unwrap_or_default(),
        _ => &check.message,
    };
    (check.status, message, check.help.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe_outcome::ProbeOutcome;
    use memgate_model::family::AggregatedServer;

    const SERVER: AggregatedServer = AggregatedServer { api_service: "v1.example.org", help: "a setting" };

    #[test]
    fn has_a_status_for_each_outcome() {
        for (outcome, expected) in [
            (ProbeOutcome::Answered { webhook: Some("a.memgate.dev".to_owned()) }, Some(CheckStatus::Ok)),
            (ProbeOutcome::Answered { webhook: None }, Some(CheckStatus::Ok)),
            (ProbeOutcome::NotServed, None),
            (ProbeOutcome::Aggregated(SERVER), Some(CheckStatus::Warn)),
            (ProbeOutcome::MaybeAggregated(SERVER), Some(CheckStatus::Unknown)),
            (ProbeOutcome::Forbidden("no".to_owned()), Some(CheckStatus::Unknown)),
            (ProbeOutcome::NotAsked, Some(CheckStatus::Fail)),
            (ProbeOutcome::Missing("no".to_owned()), Some(CheckStatus::Fail)),
        ] {
            let result = ProbeResult { name: "pods".to_owned(), code: "memgate/pod-not-recognised", outcome };
            let checks = checks(std::slice::from_ref(&result));
            assert_eq!(checks.first().map(|check| check.status), expected, "{result:?}");
        }
    }

    #[test]
    fn a_cause_has_one_line() {
        let result = |name: &str, why: &str| ProbeResult {
            name: name.to_owned(),
            code: "memgate/pod-not-recognised",
            outcome: ProbeOutcome::Missing(why.to_owned()),
        };
        let results = [
            result("pods", "no (a.memgate.dev: EOF)"),
            result("ark memories", "late"),
            result("orloj memories", "no (b.memgate.dev: EOF)"),
        ];
        let subjects: Vec<_> = checks(&results).into_iter().map(|check| check.subject).collect();
        assert_eq!(subjects, ["pods, orloj memories", "ark memories"]);
    }
}
