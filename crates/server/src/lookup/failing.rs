//! Since when every lookup fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::store::lock;

/// For how long every lookup must fail before the replica is not ready.
const LONG: Duration = Duration::from_mins(1);

/// The state of the lookups of one replica: whether all of them fail.
#[derive(Debug, Default)]
pub(super) struct Failing(Mutex<Option<Failure>>);

#[derive(Debug)]
struct Failure {
    /// When the first lookup failed after the last one that did not.
    since: Instant,
    /// Why the last one failed.
    why: Arc<str>,
}

impl Failing {
    /// Notes that the apiserver has answered.
    pub(super) fn answered(&self) {
        *lock(&self.0) = None;
    }

    /// Notes that the apiserver has not answered, or has refused to.
    pub(super) fn failed(&self, why: &Arc<str>, now: Instant) {
        let mut failure = lock(&self.0);
        let since = failure.as_ref().map_or(now, |failure| failure.since);
        *failure = Some(Failure { since, why: Arc::clone(why) });
    }

    /// Whether a lookup has failed since the last answer.
    pub(super) fn has_begun(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Why the replica is not ready; `None` unless every lookup has failed for a minute.
    pub(super) fn for_long(&self, now: Instant) -> Option<String> {
        let failure = lock(&self.0);
        let Failure { since, why } = failure.as_ref()?;
        let seconds = now.saturating_duration_since(*since).as_secs();
        (seconds >= LONG.as_secs()).then(|| {
            format!("every lookup at the apiserver has failed for {seconds} s, the last one with: {why}")
        })
    }
}
