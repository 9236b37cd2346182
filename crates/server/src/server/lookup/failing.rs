//! Since when every lookup fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::server::store::lock;
use memgate_model::object::Reference;

/// For how long every lookup must fail before the replica is not ready.
const LONG: Duration = Duration::from_mins(1);

/// The state of the lookups of one replica: whether all of them fail.
#[derive(Debug, Default)]
pub(super) struct Failing(Mutex<Option<LastFailure>>);

#[derive(Debug)]
struct LastFailure {
    /// When the first lookup failed after the last one that did not.
    since: Instant,
    reference: Reference,
    why: Arc<str>,
}

impl Failing {
    /// Notes that the apiserver has answered.
    pub(super) fn answered(&self) {
        *lock(&self.0) = None;
    }

    /// Notes that the apiserver has not answered, or has refused to. Only kinds of a platform count, which memgate must
    /// be able to read. An operator may keep it from reading Services or ConfigMaps, to which any tenant can refer.
    pub(super) fn failed(&self, reference: &Reference, why: &Arc<str>, now: Instant) {
        if reference.kind.group.is_empty() {
            return;
        }
        let mut last = lock(&self.0);
        let since = last.as_ref().map_or(now, |last| last.since);
        *last = Some(LastFailure { since, reference: reference.clone(), why: Arc::clone(why) });
    }

    /// The object whose lookup failed last, while every lookup fails.
    pub(super) fn last(&self) -> Option<Reference> {
        lock(&self.0).as_ref().map(|last| last.reference.clone())
    }

    /// Why the replica is not ready; `None` unless every lookup has failed for a minute.
    pub(super) fn for_long(&self, now: Instant) -> Option<String> {
        let last = lock(&self.0);
        let LastFailure { since, why, .. } = last.as_ref()?;
        let seconds = now.saturating_duration_since(*since).as_secs();
        (seconds >= LONG.as_secs()).then(|| {
            format!("every lookup at the apiserver has failed for {seconds} s, the last one with: {why}")
        })
    }
}
