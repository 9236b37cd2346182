//! Judges stored objects, on threads of their own, so reviews do not wait.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::Instant;

use crate::lookup::Lookups;
use crate::store::Store;
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

/// The references of how many objects are looked up together; their answers are in memory at once.
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
type Answers = BTreeMap<Reference, Option<Arc<Object>>>;

/// Judges one object at a time, without I/O.
pub(super) trait Judge: Send + Sync + 'static {
    type Subject: Send + 'static;
    type Judged: Send + 'static;

    /// Judges an object. Returns it with what it refers to, if that decides and the snapshot does not hold it.
    fn judge(
        &self,
        subject: Self::Subject,
        snapshot: &Snapshot,
    ) -> Result<Self::Judged, (Self::Subject, Vec<Reference>)>;

    /// The same where some of it could not be looked up.
    fn in_doubt(judged: Self::Judged) -> Self::Judged;

    /// An object of which that is still not known.
    fn unsure(subject: Self::Subject) -> Self::Judged;
}

/// Judges objects by policies.
pub(super) struct ByPolicies {
    store: Arc<Store>,
    installation: String,
    now: Timestamp,
}

impl ByPolicies {
    pub(super) fn new(context: &Context<'_>) -> Self {
        let (store, installation) = (Arc::clone(context.store), context.installation.to_owned());
        Self { store, installation, now: context.now }
    }
}

/// Keeps the references that can be looked up.
pub(super) fn retain_possible(unknown: &mut Vec<Reference>, store: &Store) {
    unknown.retain(|it| store.can_look_up(it.kind) && Lookups::is_supported(it));
}

impl Judge for ByPolicies {
    type Subject = Stored;
    type Judged = Judged;

    fn judge(&self, stored: Stored, snapshot: &Snapshot) -> Result<Judged, (Stored, Vec<Reference>)> {
        let caught = catch_unwind(AssertUnwindSafe(|| audit(&stored.request(self.now), snapshot)));
        let Ok(Audit { judgement, mut unknown, is_read }) = caught else {
            let (kind, namespace, name) = (stored.kind.kind, &stored.namespace, &stored.name);
            tracing::error!(kind, namespace, name, "an object could not be judged: a fault of memgate");
            return Ok(Judged::unsure(stored));
        };
        retain_possible(&mut unknown, &self.store);
        if !unknown.is_empty() {
            return Err((stored, unknown));
        }
        let report = Report::new(&stored, &judgement, &self.installation);
        Ok(Judged { stored, judgement, report, is_sure: is_read })
    }

    fn in_doubt(judged: Judged) -> Judged {
        Judged { is_sure: false, ..judged }
    }

    fn unsure(stored: Stored) -> Judged {
        Judged::unsure(stored)
    }
}

/// Judges objects, and looks up what the state does not hold.
pub(super) struct Judges<'c, J> {
    store: &'c Arc<Store>,
    lookups: &'c Lookups,
    judge: Arc<J>,
    policies: Arc<Policies>,
    remembered: Answers,
    /// Whether a lookup has failed.
    pub(super) has_failed: bool,
}

impl<'c, J: Judge> Judges<'c, J> {
    /// `judge` sees these policies.
    pub(super) fn new(
        store: &'c Arc<Store>,
        lookups: &'c Lookups,
        judge: Arc<J>,
        policies: Arc<Policies>,
    ) -> Self {
        Self { store, lookups, judge, policies, remembered: Answers::new(), has_failed: false }
    }

    /// Judges some objects. References that the state does not hold are looked up, and the objects judged again.
    pub(super) async fn judge(&mut self, objects: Vec<J::Subject>) -> Result<Vec<J::Judged>, JoinError> {
        let mut snapshot = Snapshot::clone(&self.store.snapshot());
        snapshot.policies = Arc::clone(&self.policies);
        let (judge, known) = (Arc::clone(&self.judge), snapshot.clone());
        let step = move || objects.into_iter().map(|stored| judge.judge(stored, &known)).collect::<Vec<_>>();
        let (mut judged, mut open) = (Vec::new(), Vec::new());
        for result in spawn_blocking(step).await? {
            match result {
                Ok(done) => judged.push(done),
                Err(unfinished) => open.push(unfinished),
            }
        }
        while !open.is_empty() {
            let some = open.split_off(open.len().saturating_sub(LOOKED_UP));
            let unknown = some.iter().flat_map(|(_, unknown)| unknown.iter().cloned()).collect();
            let answers = self.look_up(unknown).await;
            for (stored, unknown) in some {
                let (snapshot, answers) = (snapshot.clone(), answers.clone());
                judged.push(self.judge_with_answers(stored, unknown, snapshot, answers).await?);
            }
        }
        Ok(judged)
    }

    /// Judges an object again with the answers for its unknown references.
    async fn judge_with_answers(
        &mut self,
        mut stored: J::Subject,
        mut unknown: Vec<Reference>,
        mut snapshot: Snapshot,
        mut answers: Answers,
    ) -> Result<J::Judged, JoinError> {
        for _ in 0..MAX_ROUNDS {
            let all_known = unknown.iter().all(|reference| answers.contains_key(reference));
            self.has_failed |= !all_known;
            let known = std::mem::take(&mut answers).into_iter();
            snapshot = snapshot.overlaid(known.map(|(reference, object)| (reference, Ok(object))));
            let (judge, known) = (Arc::clone(&self.judge), snapshot.clone());
            match spawn_blocking(move || judge.judge(stored, &known)).await? {
                Ok(judged) => return Ok(if all_known { judged } else { J::in_doubt(judged) }),
                Err((again, _)) if !all_known => return Ok(J::unsure(again)),
                Err(again) => (stored, unknown) = again,
            }
            answers = self.look_up(unknown.clone()).await;
        }
        // The other references stay unknown.
        Ok(J::unsure(stored))
    }

    /// Answers for these references. An object of a watched kind that the state does not have does not exist, if the state
    /// holds all of the kind; others are looked up.
    async fn look_up(&mut self, mut wanted: Vec<Reference>) -> Answers {
        wanted.sort();
        wanted.dedup();
        let (mut answers, mut asked) = (Answers::new(), Vec::new());
        for reference in wanted {
            if self.store.is_watched(reference.kind) && self.store.holds_all(reference.kind) {
                answers.insert(reference, None);
            } else if let Some(answer) = self.remembered.get(&reference) {
                answers.insert(reference, answer.clone());
            } else {
                asked.push(reference);
            }
        }
        while !asked.is_empty() {
            let some = asked.split_off(asked.len().saturating_sub(Lookups::MOST));
            let until = Instant::now() + API_TIMEOUT;
            let Some(mut lookups) = self.lookups.of_review(until).await else { continue };
            let found = lookups.get_all(some, until).await.into_iter();
            let found: Vec<_> =
                found.filter_map(|(reference, answer)| Some((reference, answer.ok()?))).collect();
            self.remember(&found);
            answers.extend(found);
        }
        answers
    }

    /// Remembers small objects, so that they are looked up once per pass.
    fn remember(&mut self, found: &[(Reference, Option<Arc<Object>>)]) {
        for (reference, object) in found {
            let bytes = object.as_ref().map_or(0, |object| object.tree().to_json().to_string().len());
            if bytes <= MAX_REMEMBERED_BYTES && self.remembered.len() < MAX_REMEMBERED {
                self.remembered.insert(reference.clone(), object.clone());
            }
        }
    }
}
