//! Whether memgate answers the apiserver, by dry runs: whatever stands in the configurations, this is
//! what counts.

use crate::cli::doctor::check::Check;
use crate::cli::wait::Outcome;
use crate::cli::wait::reading::Reading;

/// Judges what the dry runs came to. A kind that is not served needs no answer.
#[must_use]
pub fn checks(outcomes: &[Outcome]) -> Vec<Check> {
    const ID: &str = "answers";
    let check = |outcome: &Outcome| {
        let (name, code) = (&outcome.name, outcome.code);
        match &outcome.reading {
            Reading::Answered { webhook: Some(webhook) } => {
                Some(Check::ok(ID, name, format!("{webhook} refuses what it has to refuse ({code})")))
            }
            Reading::Answered { webhook: None } => {
                Some(Check::ok(ID, name, format!("memgate warns where it has to ({code})")))
            }
            Reading::Guarded { policy } => Some(Check::ok(
                ID,
                name,
                format!("the policy {policy} refuses it before memgate is asked ({code})"),
            )),
            Reading::NotServed => None,
            Reading::NotAllowed(why) => Some(Check::unknown(ID, name, why.clone())),
            Reading::NotAsked => Some(Check::fail(ID, name, "the apiserver does not ask memgate")),
            Reading::Missing(why) => {
                Some(Check::fail(ID, name, why.clone()).help("`memgate wait` tries again until it works"))
            }
        }
    };
    outcomes.iter().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Status;

    #[test]
    fn judges_what_dry_runs_came_to() {
        for (reading, expected) in [
            (Reading::Answered { webhook: Some("a.memgate.dev".to_owned()) }, Some(Status::Ok)),
            (Reading::Answered { webhook: None }, Some(Status::Ok)),
            (Reading::Guarded { policy: "memgate-ark-memories".to_owned() }, Some(Status::Ok)),
            (Reading::NotServed, None),
            (Reading::NotAllowed("no".to_owned()), Some(Status::Unknown)),
            (Reading::NotAsked, Some(Status::Fail)),
            (Reading::Missing("no".to_owned()), Some(Status::Fail)),
        ] {
            let outcome = Outcome { name: "pods".to_owned(), code: "memgate/pod-not-recognised", reading };
            let checks = checks(std::slice::from_ref(&outcome));
            assert_eq!(checks.first().map(|check| check.status), expected, "{outcome:?}");
        }
    }
}
