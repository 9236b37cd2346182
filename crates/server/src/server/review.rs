//! One review from its body to its answer: parse, decide, look up what stayed open, decide again.
//!
//! Parsing and deciding are pure computing of microseconds and happen right here on the worker;
//! only lookups wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::time::Instant;

use crate::admission::{self, Review};
use crate::model::decision::{Decision, Reason};
use crate::model::finding::{Finding, Phase, Severity, codes};
use crate::model::snapshot::{Reference, Snapshot};
use crate::server::deadline::Deadline;
use crate::server::events::Outbox;
use crate::server::lookup::Lookups;
use crate::server::metrics::{Metrics, Outcome};
use crate::server::options::{Decide, Work};
use crate::server::ration::{Ration, clip};
use crate::server::refusal::Refusal;
use crate::server::store::Store;
use crate::server::traces::Trace;

/// How often a review is decided at most. Answers can raise new questions: a Query leads to its
/// memory, a memory to what it names. No family goes deeper than this.
const ROUNDS: usize = 6;

/// What reviews are answered from.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) store: Arc<Store>,
    pub(super) lookups: Option<Lookups>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) work: Work,
    /// Where notices go; nowhere without a cluster.
    pub(super) outbox: Option<Outbox>,
    /// The lines that decisions may log.
    pub(super) lines: Ration,
}

/// An answer, and how it is counted.
#[derive(Debug)]
pub(super) struct Answer {
    /// The response review as JSON.
    pub(super) body: Bytes,
    /// The operation under review.
    pub(super) operation: &'static str,
    /// `allowed` or `denied`.
    pub(super) verdict: &'static str,
    /// The reason of the decision.
    pub(super) reason: &'static str,
    /// Whether the object was any of memgate's business.
    is_ours: bool,
}

impl Answer {
    /// The labels to count it under.
    pub(super) const fn outcome(&self, webhook: &'static str) -> Outcome {
        let Self { operation, verdict, reason, .. } = *self;
        Outcome { webhook, operation, verdict, reason }
    }
}

impl Desk {
    /// The answer to the review in `body`.
    pub(super) async fn answer(
        &self,
        phase: Phase,
        body: &[u8],
        start: Instant,
        deadline: Deadline,
        trace: &Trace,
    ) -> Result<Answer, Refusal> {
        let decide = match &self.work {
            Work::Decide(decide) => *decide,
            Work::Constant(answer) => return Ok(constant(answer)),
        };
        let text = str::from_utf8(body).map_err(Refusal::NotUtf8)?;
        let review = admission::parse(text).map_err(Refusal::Malformed)?;
        trace.about(&review);
        let mut decision = self.settle(decide, &review, deadline, trace).await?;
        let step = trace.step("answer");
        let body = admission::respond(phase, &review, &decision)?;
        let told = decision.findings_for(phase);
        let allowed = told.iter().all(|finding| finding.severity == Severity::Warn);
        let family = decision.family.filter(|_| phase == Phase::Mutate && allowed);
        if let Some(family) = family.filter(|_| !decision.edits.is_empty()) {
            self.metrics.patched(family, decision.edits.len());
        }
        drop(step);
        let answer = Answer {
            body: body.into(),
            operation: review.request.operation.name(),
            verdict: if allowed { "allowed" } else { "denied" },
            reason: decision.reason.name(),
            is_ours: !matches!(decision.reason, Reason::NotOurs | Reason::NotJudged),
        };
        log(&self.lines, &review, &told, &answer, start.elapsed());
        if let (Some(outbox), Some(notice), false) = (&self.outbox, decision.event.take(), review.dry_run) {
            outbox.put(notice, Instant::now());
        }
        Ok(answer)
    }

    /// Decides until no question is open that somebody could answer.
    async fn settle(
        &self,
        decide: Decide,
        review: &Review<'_>,
        deadline: Deadline,
        trace: &Trace,
    ) -> Result<Decision, Refusal> {
        let mut snapshot = self.store.snapshot();
        let mut asked = BTreeSet::new();
        let mut rounds = 1;
        loop {
            let step = trace.step("decide");
            let decision = decide(&review.request, &snapshot);
            drop(step);
            let open = self.open(&decision)?;
            let new: Vec<_> = open.iter().filter(|reference| !asked.contains(*reference)).cloned().collect();
            match &self.lookups {
                Some(lookups) if !new.is_empty() && rounds < ROUNDS => {
                    asked.extend(new.iter().cloned());
                    let _step = trace.lookup(new.iter().map(|reference| reference.kind.kind));
                    let answers = lookups.ask(new, deadline.lookups).await;
                    snapshot = Arc::new(Snapshot::overlaid(&snapshot, answers));
                    rounds += 1;
                }
                // Trying again may help where somebody can be asked, and is better than a silent yes.
                _ if decision.required
                    && !open.is_empty()
                    && (self.lookups.is_some() || decision.allowed()) =>
                {
                    return Err(Refusal::LookupFailed);
                }
                _ => return Ok(decision),
            }
        }
    }

    /// The questions of a decision that a lookup could answer; a refusal when it asked for what is
    /// still being read.
    fn open(&self, decision: &Decision) -> Result<Vec<Reference>, Refusal> {
        let unknown = &decision.unknown;
        if unknown.iter().any(|reference| self.store.is_cold(reference.kind)) {
            return Err(Refusal::Cold);
        }
        let known = |reference: &&Reference| self.store.can_look_up(reference.kind);
        let open = unknown.iter().filter(known).filter(|reference| Lookups::can_ask(reference));
        Ok(open.cloned().collect())
    }
}

fn constant(answer: &Bytes) -> Answer {
    let body = answer.clone();
    Answer { body, operation: "none", verdict: "allowed", reason: "constant", is_ours: false }
}

/// One line for each decision: what was asked and what came of it, never what the object says.
fn log(lines: &Ration, review: &Review<'_>, findings: &[&Finding], answer: &Answer, took: Duration) {
    let request = &review.request;
    macro_rules! line {
        ($level:ident, $withheld:expr) => {
            tracing::$level!(
                uid = clip(&review.uid),
                kind = clip(&request.kind),
                namespace = clip(&request.namespace),
                name = clip(&request.name),
                operation = answer.operation,
                verdict = answer.verdict,
                reason = answer.reason,
                codes = codes(findings),
                micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
                dry_run = review.dry_run,
                withheld = $withheld,
                "decided"
            )
        };
    }
    if !answer.is_ours {
        line!(debug, None::<u64>);
    } else if let Some(withheld) = lines.take("decided") {
        line!(info, (withheld > 0).then_some(withheld));
    }
}
