//! Limits the log lines of decisions: those of all namespaces together, and those of each one, so that the decisions of
//! one tenant do not hide those of another. What was left out is counted, and logged once a minute for each namespace.
//!
//! Denials have buckets of their own, so that allowed requests cannot hide them.

use std::collections::BTreeMap;
use std::mem;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use tokio::time::{MissedTickBehavior, interval};

use crate::logs::Suppressed;
use memgate_primitives::name::is_dns_label;

/// How many decisions of one verdict are logged at once, and a second: all decisions of a rollout of a thousand pods, and
/// at most 50 KB a second of a flood.
const OF_ALL: [u32; 2] = [5_000, 100];

/// The share of one namespace.
const OF_NAMESPACE: [u32; 2] = [200, 10];

/// The lines a minute that many namespaces together cannot take from one.
const BEYOND: NonZeroU32 = NonZeroU32::MIN;

/// How many namespaces have a share of their own. If more have decisions at the same time, the rest has one together.
const MAX_NAMESPACES: usize = 1_024;

/// How often the decisions that were not logged are reported.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// The name of the share of objects without a namespace. No namespace can have it, nor the next two.
const CLUSTER_SCOPED: &str = "cluster-scoped objects";

/// The name of the share of all namespaces with a name that the API does not allow.
const INVALID: &str = "invalid namespaces";

/// The name of the share of namespaces without one of their own.
const OTHERS: &str = "other namespaces";

/// A bucket of lines for each key.
type Buckets<K, C> = RateLimiter<K, HashMapStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// The buckets of each verdict, and how many lines of each namespace were left out.
pub(super) struct DecisionLog<C: Clock = DefaultClock> {
    of_all: Buckets<bool, C>,
    of_namespaces: Buckets<(bool, String), C>,
    /// Lines of namespaces while all together have none left.
    beyond: Buckets<(bool, String), C>,
    left_out: Mutex<BTreeMap<String, u64>>,
}

impl Default for DecisionLog {
    fn default() -> Self {
        Self::new(&DefaultClock::default())
    }
}

impl<C: Clock + Clone> DecisionLog<C> {
    fn new(clock: &C) -> Self {
        let quota = |count: u32| Quota::per_second(NonZeroU32::MIN.saturating_add(count - 1));
        let [of_all, of_namespace] = [OF_ALL, OF_NAMESPACE]
            .map(|[burst, per_second]| quota(per_second).allow_burst(quota(burst).burst_size()));
        Self {
            of_all: RateLimiter::hashmap_with_clock(of_all, clock.clone()),
            of_namespaces: RateLimiter::hashmap_with_clock(of_namespace, clock.clone()),
            beyond: RateLimiter::hashmap_with_clock(Quota::per_minute(BEYOND), clock.clone()),
            left_out: Mutex::default(),
        }
    }

    /// Takes a line for a decision about an object of a namespace (empty: cluster-scoped).
    ///
    /// # Errors
    /// When the line must be left out.
    pub(super) fn take(&self, is_denial: bool, namespace: &str) -> Result<(), Suppressed> {
        let mut name = match namespace {
            "" => CLUSTER_SCOPED,
            name if is_dns_label(name) => name,
            _ => INVALID,
        };
        if self.of_namespaces.len() >= MAX_NAMESPACES {
            self.of_namespaces.retain_recent();
            self.beyond.retain_recent();
        }
        if self.of_namespaces.len() >= MAX_NAMESPACES {
            name = OTHERS;
        }
        // Its own bucket first: what it may not log takes nothing from the others.
        let key = (is_denial, name.to_owned());
        if self.of_namespaces.check_key(&key).is_ok()
            && (self.of_all.check_key(&is_denial).is_ok() || self.beyond.check_key(&key).is_ok())
        {
            return Ok(());
        }
        *self.left_out().entry(name.to_owned()).or_default() += 1;
        Err(Suppressed)
    }

    /// Reports what was left out, once a minute; never ends.
    pub(super) async fn report(self: Arc<Self>) {
        let mut ticks = interval(REPORT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.report_now();
        }
    }

    /// Logs how many decisions of each namespace were left out since the last report.
    pub(super) fn report_now(&self) {
        for (namespace, count) in mem::take(&mut *self.left_out()) {
            tracing::info!("{count} decisions of {namespace} not logged");
        }
    }

    fn left_out(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    type Log = DecisionLog<FakeRelativeClock>;

    fn log() -> (Log, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Log::new(&clock), clock)
    }

    fn logged(log: &Log, is_denial: bool, namespace: &str, count: usize) -> usize {
        (0..count).filter(|_| log.take(is_denial, namespace).is_ok()).count()
    }

    fn left_out(log: &Log) -> Vec<String> {
        let counts = mem::take(&mut *log.left_out());
        counts.into_iter().map(|(name, count)| format!("{count} of {name}")).collect()
    }

    #[test]
    fn a_flood_of_one_namespace_hides_no_line_of_another() {
        for is_denial in [false, true] {
            let (log, clock) = log();
            assert_eq!(logged(&log, is_denial, "flood", 7_000), 200);
            assert_eq!(logged(&log, is_denial, "team", 200), 200);
            assert_eq!(logged(&log, !is_denial, "flood", 1), 1, "another verdict");
            assert_eq!(left_out(&log), ["6800 of flood"]);
            clock.advance(Duration::from_secs(1));
            assert_eq!(logged(&log, is_denial, "flood", 100), 10);
            assert_eq!(left_out(&log), ["90 of flood"]);
            assert!(left_out(&log).is_empty(), "each line is reported once");
        }
    }

    #[test]
    fn all_namespaces_together_have_a_limit() {
        let (log, clock) = log();
        let of_all = || (0..100).map(|it| logged(&log, true, &format!("n-{it}"), 100)).sum::<usize>();
        // The first line of a namespace is logged all the same.
        assert_eq!(of_all(), 5_000 + 50);
        clock.advance(Duration::from_secs(1));
        assert_eq!(of_all(), 100 + 49);
    }

    #[test]
    fn so_many_namespaces_have_a_share_of_their_own() {
        let (log, clock) = log();
        for number in 0..MAX_NAMESPACES {
            assert_eq!(logged(&log, true, &format!("n-{number}"), 1), 1);
        }
        assert_eq!(logged(&log, true, "one", 150) + logged(&log, true, "two", 150), 200);
        assert_eq!(left_out(&log), ["100 of other namespaces"]);
        clock.advance(Duration::from_mins(1));
        assert_eq!(logged(&log, true, "one", 201), 200, "the others were silent");
        assert_eq!(left_out(&log), ["1 of one"]);
    }

    #[test]
    fn no_text_of_a_caller_is_reported_as_a_namespace() {
        let (log, _) = log();
        let endless = "n".repeat(1 << 20);
        for namespace in ["", "a\nb", "A", "other namespaces", endless.as_str()] {
            logged(&log, true, namespace, 200);
        }
        assert_eq!(left_out(&log), ["600 of invalid namespaces"]);
        logged(&log, true, "", 1);
        assert_eq!(left_out(&log), ["1 of cluster-scoped objects"]);
    }
}
