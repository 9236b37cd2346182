//! Judges stored objects by policies, on threads of their own, so reviews do not wait.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::Instant;

use crate::server::lookup::Lookups;
use crate::server::store::Store;
use memgate_core::decide::audit::{Audit, audit};
use memgate_model::object::{Object, Reference};
use memgate_model::policy::Policies;
use memgate_model::snapshot::Snapshot;
use memgate_policy::judge::Judgement;

use super::API_TIMEOUT;
use super::report::Report;
use super::subjects::Stored;

/// How often an object is judged again after what it refers to was looked up.
const MAX_ROUNDS: usize = 4;

/// How many objects with looked-up references are judged at a time: each referenced object may have a megabyte.
const LOOKED_UP: usize = 4;

/// How many looked-up objects are remembered, and the most bytes of one, as JSON.
const MAX_REMEMBERED: usize = 256;
const MAX_REMEMBERED_BYTES: usize = 16 << 10;

/// The inputs of a pass.
pub(super) struct Context<'c> {
    pub(super) store: &'c Arc<Store>,
    pub(super) client: &'c Client,
    pub(super) lookups: &'c Lookups,
    /// The most objects a second.
    pub(super) rate: Option<NonZeroU32>,
    pub(super) installation: &'c str,
    pub(super) now: Timestamp,
}

/// The findings of policies about a stored object.
pub(super) struct Judged {
    pub(super) stored: Stored,
    pub(super) judgement: Judgement,
    pub(super) report: Option<Report>,
    /// Whether the result is complete. Otherwise the existing report stays.
    pub(super) is_sure: bool,
}

impl Judged {
    /// An object without a result: its report stays as it is.
    fn unsure(stored: Stored) -> Self {
        Self { stored, judgement: Judgement::default(), report: None, is_sure: false }
    }
}

/// Answers of lookups.
type Answers = BTreeMap<Reference, Option<Object>>;

/// Judges stored objects.
pub(super) struct Judges<'c> {
    context: &'c Context<'c>,
    policies: Arc<Policies>,
    remembered: Answers,
    /// Whether a lookup has failed.
    pub(super) has_failed: bool,
}

impl<'c> Judges<'c> {
    pub(super) fn new(context: &'c Context<'c>, policies: Arc<Policies>) -> Self {
        Self { context, policies, remembered: Answers::new(), has_failed: false }
    }

    /// Judges some objects. References that the state does not hold are looked up, and the objects judged again.
    pub(super) async fn judge(&mut self, objects: Vec<Stored>) -> Result<Vec<Judged>, JoinError> {
        let mut snapshot = Snapshot::clone(&self.context.store.snapshot());
        snapshot.policies = Arc::clone(&self.policies);
        let mut judged = Vec::new();
        let mut left = self.step(objects, snapshot.clone(), &mut judged).await?;
        while !left.is_empty() {
            let some = left.split_off(left.len().saturating_sub(LOOKED_UP));
            self.judge_with_lookups(some, snapshot.clone(), &mut judged).await?;
        }
        Ok(judged)
    }

    async fn judge_with_lookups(
        &mut self,
        mut left: Vec<(Stored, Vec<Reference>)>,
        mut snapshot: Snapshot,
        judged: &mut Vec<Judged>,
    ) -> Result<(), JoinError> {
        for _ in 0..MAX_ROUNDS {
            let mut wanted: Vec<_> = left.iter().flat_map(|(_, unknown)| unknown.iter().cloned()).collect();
            wanted.sort();
            wanted.dedup();
            let count = wanted.len();
            let answers = self.look_up(wanted).await;
            let all_known = answers.len() == count;
            self.has_failed |= !all_known;
            snapshot = snapshot.overlaid(answers);
            let objects = left.into_iter().map(|(stored, _)| stored).collect();
            let before = judged.len();
            left = self.step(objects, snapshot.clone(), judged).await?;
            if !all_known {
                let unsure = judged.iter_mut().skip(before);
                unsure.for_each(|it| it.is_sure = false);
                break;
            }
            if left.is_empty() {
                return Ok(());
            }
        }
        // The other references stay unknown.
        judged.extend(left.into_iter().map(|(stored, _)| Judged::unsure(stored)));
        Ok(())
    }

    /// Judges objects with this snapshot. Returns the objects with references that it does not hold.
    async fn step(
        &self,
        objects: Vec<Stored>,
        snapshot: Snapshot,
        judged: &mut Vec<Judged>,
    ) -> Result<Vec<(Stored, Vec<Reference>)>, JoinError> {
        let (now, installation) = (self.context.now, self.context.installation.to_owned());
        let store = Arc::clone(self.context.store);
        let step = move || {
            let (mut judged, mut left) = (Vec::new(), Vec::new());
            for stored in objects {
                let caught = catch_unwind(AssertUnwindSafe(|| audit(&stored.request(now), &snapshot)));
                let Ok(Audit { judgement, mut unknown, is_read }) = caught else {
                    let (kind, namespace, name) = (stored.kind.kind, &stored.namespace, &stored.name);
                    tracing::error!(
                        kind,
                        namespace,
                        name,
                        "an object could not be judged: a fault of memgate"
                    );
                    judged.push(Judged::unsure(stored));
                    continue;
                };
                unknown.retain(|it| store.can_look_up(it.kind) && Lookups::is_supported(it));
                if unknown.is_empty() {
                    let report = Report::new(&stored, &judgement, &installation);
                    judged.push(Judged { stored, judgement, report, is_sure: is_read });
                } else {
                    left.push((stored, unknown));
                }
            }
            (judged, left)
        };
        let (some, left) = spawn_blocking(step).await?;
        judged.extend(some);
        Ok(left)
    }

    /// Answers for these references. An object of a watched kind that the state does not hold does not exist; others are
    /// looked up.
    async fn look_up(&mut self, wanted: Vec<Reference>) -> Answers {
        let (mut answers, mut asked) = (Answers::new(), Vec::new());
        for reference in wanted {
            if self.context.store.is_watched(reference.kind) {
                answers.insert(reference, None);
            } else if let Some(answer) = self.remembered.get(&reference) {
                answers.insert(reference, answer.clone());
            } else {
                asked.push(reference);
            }
        }
        while !asked.is_empty() {
            let some = asked.split_off(asked.len().saturating_sub(Lookups::MOST));
            let found = self.context.lookups.get_all(some, Instant::now() + API_TIMEOUT).await;
            self.remember(&found);
            answers.extend(found);
        }
        answers
    }

    /// Remembers small objects, so that they are looked up once per pass.
    fn remember(&mut self, found: &[(Reference, Option<Object>)]) {
        for (reference, object) in found {
            let bytes = object.as_ref().map_or(0, |object| object.tree.to_json().to_string().len());
            if bytes <= MAX_REMEMBERED_BYTES && self.remembered.len() < MAX_REMEMBERED {
                self.remembered.insert(reference.clone(), object.clone());
            }
        }
    }
}
