//! Limits the log lines of decisions: those of all together, of each namespace and of each user, so that the decisions of
//! one tenant do not hide those of another. What was left out is counted, and logged once a minute for each namespace.
//!
//! A tenant may have many namespaces, or many users. So each namespace also has a few lines that no other one takes,
//! whoever writes to it: the controllers of the cluster write to all namespaces as the same users.
//!
//! Denials have buckets of their own, so that allowed requests cannot hide them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::{MissedTickBehavior, interval};

use crate::logs::Suppressed;
use memgate_primitives::name::is_dns_label;

/// How many decisions of one verdict are logged at once, and a second: all decisions of a rollout of a thousand pods, and
/// at most 50 KB a second of a flood.
const OF_ALL: [u32; 2] = [5_000, 100];

/// The share of one namespace.
const OF_NAMESPACE: [u32; 2] = [200, 10];

/// The share of one user in all namespaces, a fifth of all. The service accounts of a namespace have it together.
const OF_USER: [u32; 2] = [1_000, 20];

/// The lines of a namespace that others cannot take from it: at once, and a minute. Those of [`MAX_NAMESPACES`] are as
/// many as those of all together.
const RESERVE: [u32; 2] = [30, 6];

/// How many namespaces, and how many users, have a share of their own. If more have decisions at the same time, the rest
/// has one together.
const MAX_NAMESPACES: usize = 1_024;

/// How often the decisions that were not logged are reported.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// The name of the share of objects without a namespace. No namespace can have it, nor the next two.
const CLUSTER_SCOPED: &str = "cluster-scoped objects";

/// The name of the share of all namespaces with a name that the API does not allow.
const INVALID: &str = "invalid namespaces";

/// The name of the share of namespaces without one of their own.
const OTHERS: &str = "other namespaces";

/// One bucket of lines.
type Bucket<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// A bucket of lines for each hash of a verdict and a name.
type Buckets<C> = RateLimiter<u64, HashMapStateStore<u64>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// The buckets of each verdict, and how many lines of each namespace were left out.
pub(super) struct DecisionLog<C: Clock = DefaultClock> {
    allowed: Bucket<C>,
    denials: Bucket<C>,
    of_namespaces: Buckets<C>,
    of_users: Buckets<C>,
    /// Lines of namespaces while the user, or all together, have none left.
    reserves: Buckets<C>,
    hasher: RandomState,
    left_out: Mutex<BTreeMap<String, u64>>,
}

impl Default for DecisionLog {
    fn default() -> Self {
        Self::new(&DefaultClock::default())
    }
}

impl<C: Clock + Clone> DecisionLog<C> {
    fn new(clock: &C) -> Self {
        let count = |count: u32| NonZeroU32::MIN.saturating_add(count - 1);
        let quota =
            |[burst, per_second]: [u32; 2]| Quota::per_second(count(per_second)).allow_burst(count(burst));
        let [burst, per_minute] = RESERVE.map(count);
        Self {
            allowed: RateLimiter::direct_with_clock(quota(OF_ALL), clock.clone()),
            denials: RateLimiter::direct_with_clock(quota(OF_ALL), clock.clone()),
            of_namespaces: RateLimiter::hashmap_with_clock(quota(OF_NAMESPACE), clock.clone()),
            of_users: RateLimiter::hashmap_with_clock(quota(OF_USER), clock.clone()),
            reserves: RateLimiter::hashmap_with_clock(
                Quota::per_minute(per_minute).allow_burst(burst),
                clock.clone(),
            ),
            hasher: RandomState::new(),
            left_out: Mutex::default(),
        }
    }

    /// Takes a line for a decision about an object of a namespace (empty: cluster-scoped) that a user writes.
    ///
    /// # Errors
    /// When the line must be left out.
    pub(super) fn take<'u>(
        &self,
        is_denial: bool,
        namespace: &str,
        user: impl FnOnce() -> &'u str,
    ) -> Result<(), Suppressed> {
        let mut name = match namespace {
            "" => CLUSTER_SCOPED,
            name if is_dns_label(name) => name,
            _ => INVALID,
        };
        if self.of_namespaces.len() >= MAX_NAMESPACES {
            self.of_namespaces.retain_recent();
            self.reserves.retain_recent();
        }
        if self.of_namespaces.len() >= MAX_NAMESPACES {
            name = OTHERS;
        }
        // Its own bucket first: what it may not log takes nothing from the others.
        let key = self.hasher.hash_one((is_denial, name));
        if self.of_namespaces.check_key(&key).is_ok()
            && (self.take_shared(is_denial, user()) || self.reserves.check_key(&key).is_ok())
        {
            return Ok(());
        }
        *self.left_out().entry(name.to_owned()).or_default() += 1;
        Err(Suppressed)
    }

    /// Takes a line of a user, and of all; whether there was one.
    fn take_shared(&self, is_denial: bool, user: &str) -> bool {
        if self.of_users.len() >= MAX_NAMESPACES {
            self.of_users.retain_recent();
        }
        // A tenant makes as many accounts as it likes, but not namespaces.
        let account = user.starts_with("system:serviceaccount:").then(|| user.rsplit_once(':')).flatten();
        let owner = account.map_or(user, |(namespace, _)| namespace);
        let is_known = self.of_users.len() < MAX_NAMESPACES;
        let key = self.hasher.hash_one((is_denial, if is_known { owner } else { OTHERS }));
        let of_all = if is_denial { &self.denials } else { &self.allowed };
        self.of_users.check_key(&key).is_ok() && of_all.check().is_ok()
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

    /// How many lines are logged about decisions for the user of a namespace.
    fn logged(log: &Log, is_denial: bool, namespace: &str, count: usize) -> usize {
        (0..count).filter(|_| log.take(is_denial, namespace, || namespace).is_ok()).count()
    }

    /// How many denials are logged of a user, as many in each of so many namespaces, in turns.
    fn flooded(log: &Log, namespaces: usize, count: usize, user: impl Fn(usize) -> String) -> usize {
        let turns = (0..count).flat_map(|_| 0..namespaces);
        let taken = |number: &usize| {
            let user = user(*number);
            log.take(true, &format!("n-{number}"), || &user).is_ok()
        };
        turns.filter(taken).count()
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
        // The first lines of a namespace are logged all the same.
        assert_eq!(of_all(), 5_000 + 50 * 30);
        clock.advance(Duration::from_secs(10));
        assert_eq!(of_all(), 1_000 + 40 * 30 + 50);
    }

    /// Tenants that write to forty namespaces, and a neighbour, who may be written for by the same controller.
    #[test]
    fn a_flood_of_many_namespaces_or_users_hides_no_line_of_a_neighbour() {
        const CONTROLLER: &str = "system:serviceaccount:kube-system:replicaset-controller";
        type User = fn(usize) -> String;
        let rows: [(&str, User, &str, usize, usize); 5] = [
            ("one user", |_| "mallory".to_owned(), "ann", 1_000, 200),
            ("forty users", |number| format!("mallory-{number}"), "ann", 5_000, 30),
            ("forty accounts", |it| format!("system:serviceaccount:tenant:a-{it}"), "ann", 1_000, 200),
            (
                "accounts of forty namespaces",
                |it| format!("system:serviceaccount:n-{it}:a"),
                "ann",
                5_000,
                30,
            ),
            ("a controller for all", |_| CONTROLLER.to_owned(), CONTROLLER, 1_000, 30),
        ];
        for (name, user, neighbour, most, burst) in rows {
            let (log, clock) = log();
            assert_eq!(flooded(&log, 40, 200, user), most + 40 * 30, "{name}");
            let of_neighbour =
                |count: usize| (0..count).filter(|_| log.take(true, "quiet", || neighbour).is_ok()).count();
            assert_eq!(of_neighbour(burst), burst, "{name}");
            for _ in 0..20 {
                clock.advance(Duration::from_secs(10));
                flooded(&log, 40, 200, user);
                assert_eq!(of_neighbour(1), 1, "{name}");
            }
        }
    }

    #[test]
    fn as_many_users_as_anyone_likes_take_little_memory() {
        let (log, clock) = log();
        for _ in 0..100 {
            clock.advance(Duration::from_secs(1));
            flooded(&log, 1_000, 1, |number| format!("u-{number}"));
            flooded(&log, 40, 10, |_| "n".repeat(1 << 10));
            assert!(log.of_users.len() <= 2 + MAX_NAMESPACES);
        }
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
