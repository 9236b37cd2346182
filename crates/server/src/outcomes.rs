//! The labels under which a request can be counted.
//!
//! All combinations of webhook, operation, verdict and reason would be four times as many series. The table has the
//! combinations that a decision can make, because a caller can send any object with any operation to both calls.

use crate::metrics::labels::{RequestLabels, webhook};
use crate::rejection;
use memgate_model::reason::Reason;
use memgate_model::request::Operation::{self, Create, Delete, Update};
use memgate_primitives::review_path::Phase;

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
    Phase::ALL
        .into_iter()
        .flat_map(move |call| decisions(call).chain(rejections(Some(call), webhook(call))))
        .chain(rejections(None, "none"))
}

fn decisions(call: Phase) -> impl Iterator<Item = RequestLabels> {
    let webhook = webhook(call);
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

/// The results of requests that are decided for this reason. Findings about a pod belong to the mutating call, all others
/// to the validating one. The other call allows the object.
const fn rows(reason: Reason) -> &'static [Row] {
    match reason {
        Reason::NotOurs | Reason::NotJudged => &[(&Operation::ALL, ALLOWED, ALLOWED)],
        Reason::OptedOut | Reason::MirrorPod | Reason::Malformed | Reason::Defaulted => {
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
        // The first is answered with an error, and the second is not answered.
        Reason::Unreadable | Reason::Cancelled => &[],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn has_every_reason_of_an_answer() {
        let seen: BTreeSet<&str> = all().map(|labels| labels.reason).collect();
        for reason in Reason::ALL {
            let is_answer = !matches!(reason, Reason::Unreadable | Reason::Cancelled);
            assert_eq!(seen.contains(reason.name()), is_answer, "{reason:?}");
        }
        let rejected = rejection::reasons(None).chain(rejection::reasons(Some(Phase::Mutate)));
        assert!(rejected.into_iter().all(|reason| seen.contains(reason)));
    }

    #[test]
    fn lists_no_labels_twice() {
        let all: Vec<_> = all().map(|it| (it.webhook, it.operation, it.verdict, it.reason)).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
