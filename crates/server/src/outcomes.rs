//! The labels under which a request can be counted.

use crate::metrics::labels::RequestLabels;
use crate::rejection::REASONS;
use memgate_model::reason::Reason;
use memgate_model::request::Operation;
use memgate_primitives::review_path::Phase;

/// All labels of requests, each once: those of decisions, and of requests that are answered with an error.
pub(super) fn all() -> impl Iterator<Item = RequestLabels> {
    let webhooks = || Phase::ALL.map(Phase::name).into_iter();
    let decided = webhooks().flat_map(|webhook| {
        let operations = Operation::ALL.into_iter().map(Operation::name);
        operations.flat_map(move |operation| {
            let is_answer = |reason: &Reason| !matches!(reason, Reason::Cancelled);
            Reason::ALL.into_iter().filter(is_answer).flat_map(move |reason| {
                let reason = reason.name();
                ["allowed", "denied"].map(|verdict| RequestLabels { webhook, operation, verdict, reason })
            })
        })
    });
    let refused = webhooks().chain(["none"]).flat_map(|webhook| {
        REASONS.map(|reason| RequestLabels { webhook, operation: "none", verdict: "error", reason })
    });
    decided.chain(refused)
}
