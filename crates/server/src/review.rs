//! Answers one AdmissionReview: parse, decide, look up what the decision did not know, decide again.
//!
//! A [`Step`] computes from the bytes of the review to its answer, or to the references that have to be looked up first.
//! A step of a small review runs where the review was read, because handing it to another thread takes longer than
//! deciding it. A step of a large one runs on a thread for blocking work, because it would keep other connections
//! waiting. Between two steps only the bytes of the review are kept.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use crate::deadline::Deadline;
use crate::decision_log::DecisionLog;
use crate::events::EventRecorder;
use crate::lookup::{self, Lookups};
use crate::metrics::Metrics;
use crate::metrics::labels::{RequestLabels, ShedCause};
use crate::options::Decide;
use crate::rejection::Rejection;
use crate::store::Store;
use crate::store::missing::Wait;
use memgate_certs::clock::Clock;
use memgate_core::admission::{self, Review};
use memgate_model::decision::Decision;
use memgate_model::finding::codes;
use memgate_model::object::Reference;
use memgate_model::reason::Reason;
use memgate_model::request::{Occasion, Operation, Point};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::plain_text::{cut, shown_name};
use memgate_primitives::review_path::Phase;

/// How often a review is decided at most. An object that was looked up can refer to another one: a Query to its memory, a
/// memory to a Service. No family goes deeper than this.
const MAX_DECISIONS: usize = 6;

/// The largest review that is decided where it was read. Nearly all pods are smaller, and take less than 0.5 ms.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// A large review waits for a permit for at most this part of the time until its deadline.
const WAIT_DIVISOR: u32 = 4;

/// How many characters of a value of a request are logged: the longest name in Kubernetes.
const MAX_VALUE_CHARS: usize = 253;

/// Answers reviews.
pub(super) struct ReviewHandler {
    pub(super) store: Arc<Store>,
    pub(super) lookups: Option<Lookups>,
    pub(super) metrics: Arc<Metrics>,
    /// Permits for steps of large reviews.
    pub(super) large_steps: Arc<Semaphore>,
    /// Decides a review.
    pub(super) decide: Decide,
    /// The wall clock, for policies.
    pub(super) clock: Clock,
    /// Records Events; `None` without a cluster.
    pub(super) event_recorder: Option<EventRecorder>,
    /// Limits the log lines about decisions.
    pub(super) decision_log: Arc<DecisionLog>,
}

/// The answer to a review, and how it is counted and logged.
#[derive(Debug)]
pub(super) struct HandledReview {
    /// The response review as JSON.
    pub(super) body: Bytes,
    /// The labels to count it under.
    pub(super) labels: RequestLabels,
    /// Whether the object belongs to a family.
    is_ours: bool,
    /// Why the object is refused: the first reason, and its field, which is empty for what a pod waits for.
    denial: Option<(String, String)>,
}

/// A review that came in.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    /// Which of the two calls it is.
    pub(super) phase: Phase,
    /// The review as JSON.
    pub(super) body: Bytes,
    /// When it came.
    pub(super) start: Instant,
    /// The address of the caller, for the log; `None` without a socket.
    pub(super) peer: Option<IpAddr>,
}

/// The input of one step. A step owns its input, because it may run on another thread.
struct Step {
    arrival: Arrival,
    snapshot: Arc<Snapshot>,
    /// The references that were looked up before.
    looked_up: BTreeSet<Reference>,
    /// Whether references may be looked up after this step.
    may_look_up: bool,
    /// The wall-clock time, the same for all steps.
    now: Timestamp,
    /// When the step was made, by the clock of the runtime: tests can stop that clock, but not on another thread.
    made: Instant,
}

/// The result of a step.
enum StepResult {
    Answered(HandledReview),
    /// These references have to be looked up first.
    Unresolved {
        references: Vec<Reference>,
        /// Whether the object is refused without them.
        required: bool,
    },
}

/// Sets the flag of a decision when it is dropped: the deadline has passed, or the caller has hung up.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ReviewHandler {
    /// The answer to a review.
    pub(super) async fn answer(
        self: &Arc<Self>,
        arrival: &Arrival,
        deadline: Deadline,
    ) -> Result<HandledReview, Rejection> {
        let mut snapshot = self.store.snapshot();
        // Until the review is answered, it holds what was looked up for it.
        let (mut looked_up, mut own_lookups) = (BTreeSet::new(), None);
        let now = self.clock.timestamp();
        let mut steps = 1;
        loop {
            let step = Step {
                arrival: arrival.clone(),
                snapshot: Arc::clone(&snapshot),
                looked_up: looked_up.clone(),
                may_look_up: self.lookups.is_some() && steps < MAX_DECISIONS,
                now,
                made: Instant::now(),
            };
            let result = if arrival.body.len() <= MAX_INLINE_BYTES {
                self.take(&step, None)?
            } else {
                self.take_blocking(step, deadline).await?
            };
            let (new, until) = match result {
                StepResult::Answered(answer) => return Ok(answer),
                StepResult::Unresolved { references, required: true } => {
                    (references, deadline.required_lookups)
                }
                StepResult::Unresolved { references, required: false } => (references, deadline.lookups),
            };
            let Some(lookups) = &self.lookups else { return Err(Rejection::LookupFailed) };
            looked_up.extend(new.iter().cloned());
            if own_lookups.is_none() {
                own_lookups = lookups.of_review(until).await;
            }
            let answers = match &mut own_lookups {
                Some(lookups) => lookups.get_all(new, until).await,
                None => lookup::none(new),
            };
            self.store.record_found(&answers);
            snapshot = Arc::new(Snapshot::overlaid(&snapshot, answers));
            steps += 1;
        }
    }

    /// The answer that refuses a review whose object cannot be judged; the rejection where there is another cause, or
    /// where the review does not say which one it is.
    pub(super) fn refuse(&self, arrival: &Arrival, rejection: Rejection) -> Result<HandledReview, Rejection> {
        let mut rejection = rejection;
        if let Rejection::Overloaded(cause) = rejection
            && arrival.body.len() > MAX_INLINE_BYTES
        {
            rejection = Rejection::Crowded(cause);
        }
        let Some((reason, status)) = rejection.refusal() else { return Err(rejection) };
        let head = admission::head(&arrival.body).unwrap_or_default();
        let Ok(review) = admission::parse(&head) else { return Err(rejection) };
        // No decision refuses them, so an object of any size can be deleted.
        if review.request.operation == Operation::Delete || !review.request.subresource.is_empty() {
            return Err(rejection);
        }
        if let Rejection::Crowded(cause) = rejection {
            self.metrics.admission.count_shed(cause);
        }
        let decision = Decision { phase: arrival.phase, ..Decision::pass(reason) };
        let message = rejection.to_string();
        let status = (rejection.status().as_u16(), status, &*message);
        let answer = HandledReview {
            body: admission::refuse(&review, &decision, status).into(),
            labels: labels(arrival.phase, &review, false, reason),
            is_ours: true,
            denial: Some((message, String::new())),
        };
        self.log(arrival, &review, &decision, &answer);
        Ok(answer)
    }

    /// Takes the step on a thread for blocking work, as soon as there is a permit. The permit ends with the step, which
    /// can go on for a moment after its caller has gone. A step that waits for long gets 429 while its caller still has
    /// time to try again.
    async fn take_blocking(
        self: &Arc<Self>,
        step: Step,
        deadline: Deadline,
    ) -> Result<StepResult, Rejection> {
        let wait = deadline.answer.duration_since(Instant::now()) / WAIT_DIVISOR;
        let permit = timeout(wait, Arc::clone(&self.large_steps).acquire_owned()).await;
        let permit = permit.map_err(|_| Rejection::Overloaded(ShedCause::Queue))?;
        let cancel = CancelOnDrop::default();
        let (handler, cancelled) = (Arc::clone(self), Arc::clone(&cancel.0));
        let taking = spawn_blocking(move || {
            let _permit = permit;
            handler.take(&step, Some(&cancelled))
        });
        taking.await.unwrap_or(Err(Rejection::Panicked))
    }

    /// Reads the review, decides it, and makes the answer if no reference has to be looked up for it.
    fn take(&self, step: &Step, cancelled: Option<&AtomicBool>) -> Result<StepResult, Rejection> {
        let text = str::from_utf8(&step.arrival.body).map_err(Rejection::NotUtf8)?;
        let mut review = admission::parse(text).map_err(Rejection::Malformed)?;
        review.request.cancelled = cancelled;
        let user = review.request.occasion.user;
        review.request.occasion = Occasion { user, ..Occasion::new(Point::Admission, step.now) };
        let decision = (self.decide)(&review.request, &step.snapshot);
        if is_cancelled(cancelled) || decision.reason == Reason::Cancelled {
            return Err(Rejection::Late);
        }
        let new = self.to_look_up(step, &decision)?;
        if new.is_empty() {
            review.state_age = self.state_age(&decision);
            Ok(StepResult::Answered(self.finish(step, &review, decision)?))
        } else {
            Ok(StepResult::Unresolved { references: new, required: decision.required })
        }
    }

    /// The references that must be looked up before the decision can be answered.
    fn to_look_up(&self, step: &Step, decision: &Decision) -> Result<Vec<Reference>, Rejection> {
        let unresolved = self.unresolved(decision)?;
        if step.may_look_up {
            let is_new = |reference: &&Reference| !step.looked_up.contains(*reference);
            let new: Vec<_> = unresolved.iter().filter(is_new).cloned().collect();
            if !new.is_empty() {
                return Ok(new);
            }
        }
        // A required pod must not be admitted without its memory. The decision itself refuses the pod after a lookup that
        // has failed, but not after so many that no further one is made.
        if decision.required && !unresolved.is_empty() && decision.allowed() {
            return Err(Rejection::LookupFailed);
        }
        Ok(Vec::new())
    }

    /// For how many seconds nothing was heard of what the decision goes by.
    fn state_age(&self, decision: &Decision) -> Option<u64> {
        let is_ours = !matches!(decision.reason, Reason::NotOurs | Reason::NotJudged);
        is_ours.then(|| self.store.state_age(&decision.families))?.map(|age| age.as_secs())
    }

    /// Makes the answer to a decision, and logs and counts it.
    fn finish(
        &self,
        step: &Step,
        review: &Review<'_>,
        decision: Decision,
    ) -> Result<HandledReview, Rejection> {
        let phase = step.arrival.phase;
        if let Some(wait) = self.must_hold(phase, review, &decision, step.made) {
            let answer = self.hold(review, &decision, &wait);
            self.log(&step.arrival, review, &decision, &answer);
            return Ok(answer);
        }
        let mut body = admission::respond(phase, review, &decision)?;
        // The claim of the answer covers its length, not its capacity.
        body.shrink_to_fit();
        let findings = decision.findings_for(phase);
        let denial = admission::first_denial(&decision, &findings);
        let allowed = denial.is_none();
        self.metrics.policies.count(findings.iter().copied());
        let answer = HandledReview {
            body: body.into(),
            labels: labels(phase, review, allowed, decision.reason),
            is_ours: !matches!(decision.reason, Reason::NotOurs | Reason::NotJudged),
            denial,
        };
        if phase == decision.phase {
            self.log(&step.arrival, review, &decision, &answer);
        }
        if let (Some(event_recorder), false) = (&self.event_recorder, review.dry_run) {
            for event in decision.events {
                event_recorder.record(event, step.made);
            }
        }
        Ok(answer)
    }

    /// Logs a verdict: the caller, the object, and the reason. What is empty is left out.
    fn log(&self, arrival: &Arrival, review: &Review<'_>, decision: &Decision, answer: &HandledReview) {
        let request = &review.request;
        let origin = decision.origin.as_ref();
        let denial = answer.denial.as_ref();
        let mut missing = None;
        let user = LazyCell::new(|| request.occasion.user_name());
        let micros = || u64::try_from(arrival.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    webhook = answer.labels.webhook,
                    uid = &*cut(&review.uid, MAX_VALUE_CHARS),
                    user = filled(&cut(&user, MAX_VALUE_CHARS)),
                    kind = &*cut(&request.kind, MAX_VALUE_CHARS),
                    namespace = filled(&cut(&shown_name(&request.namespace), MAX_VALUE_CHARS)),
                    name = filled(&cut(&shown_name(&request.name), MAX_VALUE_CHARS)),
                    "generateName" = origin.and_then(|origin| filled(&origin.generate_name)),
                    owner = origin.and_then(|origin| origin.owner.as_deref()),
                    operation = answer.labels.operation,
                    verdict = answer.labels.verdict,
                    reason = answer.labels.reason,
                    codes = filled(&codes(&decision.findings_for(arrival.phase))),
                    denial = denial.map(|(text, _)| &**text),
                    field = denial.and_then(|(_, field)| filled(field)),
                    missing = missing.as_deref(),
                    peer = arrival.peer.map(tracing::field::display),
                    micros = micros(),
                    dry_run = review.dry_run,
                    "decided"
                )
            };
        }
        if !answer.is_ours {
            line!(debug);
        } else if self.decision_log.take(denial.is_some(), &request.namespace, || &user).is_err() {
            self.metrics.admission.not_logged.inc();
        } else if denial.is_none() && decision.unmet.is_some() {
            missing = admission::admitted_without(decision);
            line!(warn);
        } else {
            line!(info);
        }
    }

    /// The missing object for which the pod must be held: the pod would be admitted without its memory, and its
    /// controller will make it again. A dry run has no effects, so it is not held and does not start the grace time of
    /// the missing object.
    fn must_hold(
        &self,
        phase: Phase,
        review: &Review<'_>,
        decision: &Decision,
        now: Instant,
    ) -> Option<Wait> {
        let may_hold = phase == Phase::Mutate
            && decision.from_controller
            && !decision.missing.is_empty()
            && decision.allowed()
            && !review.dry_run;
        may_hold.then(|| self.store.must_hold(&decision.missing, now))?
    }

    /// Refuses the pod for now.
    fn hold(&self, review: &Review<'_>, decision: &Decision, wait: &Wait) -> HandledReview {
        let message = wait.message();
        if let Some(family) = self.store.family_of(wait.reference.kind) {
            self.metrics.admission.count_held(family);
        }
        HandledReview {
            body: admission::hold(review, decision, &message).into(),
            labels: labels(Phase::Mutate, review, false, Reason::ReferencePending),
            is_ours: true,
            denial: Some((message, String::new())),
        }
    }

    /// The references of a decision that a lookup could find.
    ///
    /// # Errors
    /// When a reference is of a kind that is not synced yet.
    fn unresolved(&self, decision: &Decision) -> Result<Vec<Reference>, Rejection> {
        let unknown = &decision.unknown;
        // A policy that was not read yet could deny the object.
        let is_judged = !matches!(decision.reason, Reason::NotOurs);
        if is_judged && !self.store.has_policies() {
            return Err(Rejection::NotSynced);
        }
        if unknown.iter().any(|reference| !self.store.is_synced(reference.kind)) {
            return Err(Rejection::NotSynced);
        }
        let known = |reference: &&Reference| self.store.can_look_up(reference.kind);
        let unresolved = unknown.iter().filter(known).filter(|reference| Lookups::is_supported(reference));
        Ok(unresolved.cloned().collect())
    }
}

fn labels(phase: Phase, review: &Review<'_>, allowed: bool, reason: Reason) -> RequestLabels {
    let verdict = if allowed { "allowed" } else { "denied" };
    RequestLabels {
        webhook: phase.name(),
        operation: review.request.operation.name(),
        verdict,
        reason: reason.name(),
    }
}

/// The text, unless it is empty.
fn filled(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn is_cancelled(flag: Option<&AtomicBool>) -> bool {
    flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests;
