//! One audit of all stored objects.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use crate::decide::audit::{Audit, audit};
use crate::model::object::{Object, Reference};
use crate::model::policy::Policies;
use crate::model::request::{Occasion, Operation, Point, Request};
use crate::model::snapshot::Snapshot;
use crate::policy::judge::Judgement;
use crate::server::certs::kube_api::{error_message, with_timeout};
use crate::server::lookup::Lookups;
use crate::server::store::Store;

use super::policies::{self, Head, Listed};
use super::report::{Report, cut};
use super::reports::Reports;
use super::status::{AllFound, MAX_VIOLATIONS, status};
use super::subjects::{Stored, Subjects};
use super::{API_TIMEOUT, FIELD_MANAGER, given, without_nulls};

/// How many objects are judged at a time, where their rate is limited: ten such steps a second.
const STEPS_PER_SECOND: u32 = 10;
/// And where it is not.
const UNLIMITED_STEP: u32 = 500;

/// How often an object is judged again after what it refers to was looked up.
const MAX_ROUNDS: usize = 4;

/// How many looked-up objects are remembered: those of one namespace come one after the other, and each may have a
/// megabyte.
const MAX_REMEMBERED: usize = 64;

/// The most bytes of a violation's place and message in a status, as its definition has them.
const MAX_FIELD_BYTES: usize = 1024;
const MAX_MESSAGE_BYTES: usize = 512;

/// What a pass needs.
pub(super) struct Context<'c> {
    pub(super) store: &'c Store,
    pub(super) client: &'c Client,
    pub(super) lookups: &'c Lookups,
    /// The most objects a second.
    pub(super) rate: Option<NonZeroU32>,
    pub(super) installation: &'c str,
    pub(super) now: Timestamp,
}

/// Why a pass did not come to its end.
#[derive(Debug, Error)]
pub(super) enum Error {
    #[error("the apiserver did not answer well: {}", error_message(.0))]
    Api(#[from] kube::Error),
    #[error("an object could not be judged")]
    Panicked(#[from] JoinError),
}

/// What came of a pass.
#[derive(Debug)]
pub(super) struct Outcome {
    /// How many objects were judged.
    pub(super) subjects: usize,
    pub(super) found: AllFound,
    pub(super) policies: Policies,
    /// How many statuses could not be written.
    pub(super) failed: usize,
}

/// Judges all stored objects, and writes what came of it.
///
/// # Errors
/// When policies or objects cannot be read. Reports are then as they were, or newer.
pub(super) async fn run(context: &Context<'_>, reports: &mut Reports) -> Result<Outcome, Error> {
    let Listed { policies, heads } = policies::list(context.client).await?;
    let policies = Arc::new(policies);
    let mut found = AllFound::default();
    let mut subjects = Subjects::new(context.store, context.client, &policies);
    let mut remembered = BTreeMap::new();
    let mut count = 0;
    let step = context.rate.map_or(UNLIMITED_STEP, |rate| rate.get().div_ceil(STEPS_PER_SECOND));
    let mut next = Instant::now();
    loop {
        let objects = subjects.next(step).await?;
        if objects.is_empty() {
            break;
        }
        count += objects.len();
        if let Some(rate) = context.rate {
            next = next.max(Instant::now()) + Duration::from_secs(1) * length(&objects) / rate.get();
        }
        let judged = judge_all(context, &policies, objects, &mut remembered).await?;
        for (stored, judgement) in judged {
            found.add(&stored, &judgement);
            if let Some(report) = Report::new(&stored, &judgement, context.installation) {
                reports.put(report).await;
            }
        }
        sleep_until(next).await;
    }
    reports.delete_others().await;
    let failed = write_statuses(context, &heads, &policies, &found).await;
    let policies = Arc::unwrap_or_clone(policies);
    Ok(Outcome { subjects: count, found, policies, failed })
}

fn length(objects: &[Stored]) -> u32 {
    u32::try_from(objects.len()).unwrap_or(u32::MAX)
}

type Judged = Vec<(Stored, Judgement)>;
type Answers = BTreeMap<Reference, Option<Object>>;

/// Judges some objects, on a thread that nobody waits for; those that refer to what the state does not hold once more
/// when that was looked up.
async fn judge_all(
    context: &Context<'_>,
    policies: &Arc<Policies>,
    objects: Vec<Stored>,
    remembered: &mut Answers,
) -> Result<Judged, Error> {
    let mut snapshot = Snapshot::clone(&context.store.snapshot());
    snapshot.policies = Arc::clone(policies);
    let (mut judged, mut left) = (Vec::new(), objects);
    for round in 0..MAX_ROUNDS {
        let (of_round, now) = (snapshot.clone(), context.now);
        let audits = spawn_blocking(move || {
            left.into_iter().map(|stored| (judge(&stored, &of_round, now), stored)).collect::<Vec<_>>()
        });
        let audits = audits.await?;
        left = Vec::new();
        let mut wanted = Vec::new();
        for (Audit { judgement, mut unknown }, stored) in audits {
            unknown.retain(|reference| {
                context.store.can_look_up(reference.kind) && Lookups::is_supported(reference)
            });
            if unknown.is_empty() || round + 1 == MAX_ROUNDS {
                judged.push((stored, judgement));
            } else {
                wanted.append(&mut unknown);
                left.push(stored);
            }
        }
        if left.is_empty() {
            break;
        }
        snapshot = snapshot.overlaid(look_up(context, wanted, remembered).await);
    }
    Ok(judged)
}

fn judge(stored: &Stored, snapshot: &Snapshot, now: Timestamp) -> Audit {
    let request = Request {
        operation: Operation::Create,
        group: stored.kind.group.into(),
        version: stored.kind.version.into(),
        kind: stored.kind.kind.into(),
        subresource: "".into(),
        namespace: stored.namespace.as_str().into(),
        name: stored.name.as_str().into(),
        object: Some(&stored.text),
        old_object: None,
        occasion: Occasion::new(Point::Audit, now),
        read_pod: None,
        cancelled: None,
    };
    audit(&request, snapshot)
}

/// What there is of these. A kind that is watched is in the state as far as it exists; others are asked for, once
/// while they are remembered.
async fn look_up(context: &Context<'_>, mut wanted: Vec<Reference>, remembered: &mut Answers) -> Answers {
    wanted.sort();
    wanted.dedup();
    let (mut answers, mut asked) = (Answers::new(), Vec::new());
    for reference in wanted {
        if context.store.is_watched(reference.kind) {
            answers.insert(reference, None);
        } else if let Some(answer) = remembered.get(&reference) {
            answers.insert(reference, answer.clone());
        } else {
            asked.push(reference);
        }
    }
    if remembered.len() > MAX_REMEMBERED {
        remembered.clear();
    }
    // Each review may look up so many; a step is as good as one review after the other.
    while !asked.is_empty() {
        let some = asked.split_off(asked.len().saturating_sub(Lookups::MOST));
        let found = context.lookups.get_all(some, Instant::now() + API_TIMEOUT).await;
        remembered.extend(found.iter().cloned());
        answers.extend(found);
    }
    answers
}

impl AllFound {
    fn add(&mut self, stored: &Stored, judgement: &Judgement) {
        for name in &judgement.policies {
            self.policies.entry(name.clone()).or_default().matched += 1;
        }
        for (name, counts) in &judgement.counts {
            self.policies.entry(name.clone()).or_default().counts.add(*counts);
        }
        for finding in &judgement.findings {
            let Some(policy) = &finding.policy else { continue };
            let Some(found) = self.policies.get_mut(&policy.rule.policy) else { continue };
            if policy.is_violation() && found.first.len() < MAX_VIOLATIONS {
                found.first.push(violation(
                    stored,
                    &policy.rule.id,
                    finding.pointer.as_str(),
                    &finding.message,
                ));
            }
        }
        for key in &judgement.exemptions {
            *self.exemptions.entry(key.clone()).or_default() += 1;
        }
    }
}

/// A violation, as a status has it.
fn violation(stored: &Stored, rule: &str, field: &str, message: &str) -> Value {
    without_nulls(json!({
        "rule": rule,
        "kind": stored.kind.kind,
        "namespace": given(&stored.namespace),
        "name": stored.name,
        "field": cut(field, MAX_FIELD_BYTES),
        "message": cut(message, MAX_MESSAGE_BYTES),
    }))
}

/// Writes the statuses that are to change; how many could not be written.
async fn write_statuses(
    context: &Context<'_>,
    heads: &[Head],
    policies: &Policies,
    found: &AllFound,
) -> usize {
    let mut failed = 0;
    for head in heads {
        let Some(status) = status(head, policies, found, context.now) else { continue };
        if let Err(error) = write_status(context, head, status).await {
            if failed == 0 {
                tracing::warn!(
                    kind = head.kind.kind,
                    namespace = head.namespace,
                    name = head.name,
                    error = error_message(&error),
                    "a status could not be written"
                );
            }
            failed += 1;
        }
    }
    failed
}

async fn write_status(context: &Context<'_>, head: &Head, status: Value) -> kube::Result<()> {
    let kind = head.kind;
    let metadata = without_nulls(json!({"name": head.name, "namespace": given(&head.namespace)}));
    let object =
        json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "status": status});
    let api = policies::api(context.client, head);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match with_timeout(API_TIMEOUT, api.patch_status(&head.name, &params, &Patch::Apply(&object))).await {
        Ok(_) => Ok(()),
        // It is gone.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}
