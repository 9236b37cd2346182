//! How a request can end: each combination of labels under which it can be counted, in one place.
//!
//! Every combination of webhook, operation, verdict and reason would be four times as many series as there can be.
//! Who calls the port can send any object with any operation to either call, so the table is about what a decision
//! can be, not about what an apiserver is told to ask.

use crate::model::finding::Phase;
use crate::model::reason::Reason;
use crate::model::request::Operation::{self, Create, Delete, Update};
use crate::server::metrics::labels::RequestLabels;
use crate::server::rejection;

const CALLS: [(Phase, &str); 2] = [(Phase::Mutate, "mutate"), (Phase::Validate, "validate")];

/// For which operations, and with which verdicts in the mutating and in the validating call.
type Row = (&'static [Operation], &'static [&'static str], &'static [&'static str]);

const ALLOWED: &[&str] = &["allowed"];
const DENIED: &[&str] = &["denied"];
const EITHER: &[&str] = &["allowed", "denied"];
const NEVER: &[&str] = &[];
const WRITES: &[Operation] = &[Create, Update];
const WRITES_AND_DELETE: &[Operation] = &[Create, Update, Delete];

/// The labels of every request that can be counted.
pub(super) fn all() -> impl Iterator<Item = RequestLabels> {
    let rejections = |call, webhook| {
        let labels = move |reason| RequestLabels { webhook, operation: "none", verdict: "error", reason };
        rejection::reasons(call).map(labels)
    };
    CALLS
        .into_iter()
        .flat_map(move |(call, webhook)| decisions(call, webhook).chain(rejections(Some(call), webhook)))
        .chain(rejections(None, "none"))
}

fn decisions(call: Phase, webhook: &'static str) -> impl Iterator<Item = RequestLabels> {
    let of = move |reason: Reason, &(operations, mutate, validate): &Row| {
        let verdicts = match call {
            Phase::Mutate => mutate,
            Phase::Validate => validate,
        };
        operations.iter().flat_map(move |operation| {
            let (operation, reason) = (operation.name(), reason.name());
            verdicts.iter().map(move |verdict| RequestLabels { webhook, operation, verdict, reason })
        })
    };
    Reason::ALL.into_iter().flat_map(move |reason| rows(reason).iter().flat_map(move |row| of(reason, row)))
}

/// What becomes of requests that are decided for this reason. Findings belong to one of the two calls, those about
/// a pod to the mutating one and all others to the validating one; the other call allows what they deny.
const fn rows(reason: Reason) -> &'static [Row] {
    match reason {
        Reason::NotOurs | Reason::NotJudged => &[(&Operation::ALL, ALLOWED, ALLOWED)],
        Reason::OptedOut | Reason::MirrorPod | Reason::Malformed | Reason::Defaulted | Reason::Previewed => {
            &[(WRITES, ALLOWED, ALLOWED)]
        }
        Reason::Deleting => &[(&[Update], ALLOWED, ALLOWED)],
        Reason::Valid => &[(WRITES_AND_DELETE, ALLOWED, ALLOWED)],
        Reason::Invalid => &[(WRITES_AND_DELETE, ALLOWED, DENIED)],
        Reason::OverLimit => {
            &[(&[Create], EITHER, EITHER), (&[Update], ALLOWED, EITHER), (&[Delete], ALLOWED, ALLOWED)]
        }
        Reason::PolicyDenied => &[(&[Create], EITHER, EITHER), (&[Update], ALLOWED, DENIED)],
        // From here on only new pods.
        Reason::NotRecognised => &[(&[Create], DENIED, ALLOWED)],
        Reason::ReferencePending => &[(&[Create], DENIED, NEVER)],
        Reason::NoMemory
        | Reason::ReferenceMissing
        | Reason::ReferenceInvalid
        | Reason::ReferenceUnknown
        | Reason::NoContainer
        | Reason::Conflict
        | Reason::Complete
        | Reason::Injected => &[(&[Create], EITHER, ALLOWED)],
        // The first is answered with an error, and for the second nobody waits.
        Reason::Unreadable | Reason::Cancelled => &[],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_can_come_but_those_that_are_no_answer() {
        let seen: BTreeSet<&str> = all().map(|labels| labels.reason).collect();
        for reason in Reason::ALL {
            let is_answer = !matches!(reason, Reason::Unreadable | Reason::Cancelled);
            assert_eq!(seen.contains(reason.name()), is_answer, "{reason:?}");
        }
        let rejected = rejection::reasons(None).chain(rejection::reasons(Some(Phase::Mutate)));
        assert!(rejected.into_iter().all(|reason| seen.contains(reason)));
    }

    #[test]
    fn no_outcome_is_listed_twice() {
        let all: Vec<_> = all().map(|it| (it.webhook, it.operation, it.verdict, it.reason)).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
