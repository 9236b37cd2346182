//! Limits the log lines of decisions: those of all namespaces together, and those of each one, so that the decisions of
//! one tenant do not hide those of another. What was left out is counted, and logged once a minute for each namespace.
//!
//! Denials have buckets of their own, so that allowed requests cannot hide them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::logs::{Bucket, LogRate, Suppressed};
use memgate_primitives::name::is_dns_label;

/// How many decisions of one verdict are logged: all decisions of a rollout of a thousand pods, and at most 50 KB a second
/// of a flood.
const TOTAL_RATE: LogRate = LogRate { burst: 5_000, refill: Duration::from_millis(10) };

/// The share of one namespace.
const NAMESPACE_RATE: LogRate = LogRate { burst: 200, refill: Duration::from_millis(100) };

/// How many namespaces are remembered. One more, and the one without a decision for the longest time is forgotten.
const MAX_NAMESPACES: usize = 1_024;

/// How often the decisions that were not logged are reported.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// The name of the share of objects without a namespace. No namespace can have it, nor the next two.
const CLUSTER_SCOPED: &str = "cluster-scoped objects";

/// The name of the share of all namespaces with a name that the API does not allow.
const INVALID: &str = "invalid namespaces";

/// What is reported of namespaces that are no longer remembered.
const FORGOTTEN: &str = "other namespaces";

/// The buckets of all namespaces.
#[derive(Debug, Default)]
pub(super) struct DecisionLog(Mutex<Shares>);

#[derive(Debug, Default)]
struct Shares {
    total: Buckets,
    of_namespaces: BTreeMap<String, Share>,
    /// How many lines of namespaces that are no longer remembered were left out.
    forgotten: u64,
}

/// The lines of one namespace.
#[derive(Debug)]
struct Share {
    buckets: Buckets,
    last: Instant,
    left_out: u64,
}

/// The buckets of each verdict.
#[derive(Debug, Default)]
struct Buckets {
    allowed: Bucket,
    denied: Bucket,
}

impl Buckets {
    fn take(&mut self, is_denial: bool, rate: LogRate, now: Instant) -> bool {
        let bucket = if is_denial { &mut self.denied } else { &mut self.allowed };
        bucket.take(rate, now)
    }

    fn are_full(&self, is_denial: bool, now: Instant) -> bool {
        if is_denial { self.denied.is_full(now) } else { self.allowed.is_full(now) }
    }
}

impl Share {
    /// Takes one line, and counts it if it must not be logged.
    fn take(&mut self, total: &mut Buckets, is_denial: bool, now: Instant) -> bool {
        self.last = now;
        // Many namespaces together may use up all lines, which does not take the first one of a namespace that was silent.
        let was_silent = self.buckets.are_full(is_denial, now);
        // Its own bucket first: what it may not log takes nothing from the others.
        let may_log = self.buckets.take(is_denial, NAMESPACE_RATE, now)
            && (total.take(is_denial, TOTAL_RATE, now) || was_silent);
        self.left_out += u64::from(!may_log);
        may_log
    }
}

impl DecisionLog {
    /// Takes one line of a namespace.
    ///
    /// # Errors
    /// When the line must not be logged.
    pub(super) fn take(&self, is_denial: bool, namespace: &str, now: Instant) -> Result<(), Suppressed> {
        let mut shares = self.lock();
        let Shares { total, of_namespaces, forgotten } = &mut *shares;
        let name = share_name(namespace);
        let may_log = if let Some(share) = of_namespaces.get_mut(name) {
            share.take(total, is_denial, now)
        } else {
            *forgotten += make_room(of_namespaces);
            let mut share = Share { buckets: Buckets::default(), last: now, left_out: 0 };
            let may_log = share.take(total, is_denial, now);
            of_namespaces.insert(name.to_owned(), share);
            may_log
        };
        may_log.then_some(()).ok_or(Suppressed)
    }

    /// Reports once a minute what was not logged, for as long as it is polled.
    pub(super) async fn report(self: Arc<Self>) {
        let mut ticks = interval(REPORT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.report_now();
        }
    }

    /// Reports what was not logged since the last report.
    pub(super) fn report_now(&self) {
        for (namespace, count) in self.left_out() {
            tracing::info!("{count} decisions of {namespace} not logged");
        }
    }

    /// How many lines of each namespace were left out since the last call.
    fn left_out(&self) -> Vec<(String, u64)> {
        let mut shares = self.lock();
        let forgotten = (FORGOTTEN.to_owned(), std::mem::take(&mut shares.forgotten));
        let of_namespaces = shares.of_namespaces.iter_mut();
        let counts = of_namespaces.map(|(name, share)| (name.clone(), std::mem::take(&mut share.left_out)));
        let mut left_out: Vec<_> = counts.chain([forgotten]).filter(|(_, count)| *count > 0).collect();
        left_out.sort();
        left_out
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The share that the lines of a namespace belong to. A caller can send any text as a namespace.
fn share_name(namespace: &str) -> &str {
    match namespace {
        "" => CLUSTER_SCOPED,
        name if is_dns_label(name) => name,
        _ => INVALID,
    }
}

/// Forgets the namespace that was silent the longest, if there are as many as may be; how many of its lines were left out.
fn make_room(of_namespaces: &mut BTreeMap<String, Share>) -> u64 {
    if of_namespaces.len() < MAX_NAMESPACES {
        return 0;
    }
    let silent = of_namespaces.iter().min_by_key(|(_, share)| share.last).map(|(name, _)| name.clone());
    silent.and_then(|name| of_namespaces.remove(&name)).map_or(0, |share| share.left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many lines of a namespace are logged.
    fn logged(log: &DecisionLog, is_denial: bool, namespace: &str, count: usize, now: Instant) -> usize {
        (0..count).filter(|_| log.take(is_denial, namespace, now).is_ok()).count()
    }

    fn left_out(log: &DecisionLog) -> Vec<String> {
        log.left_out().into_iter().map(|(name, count)| format!("{count} of {name}")).collect()
    }

    #[test]
    fn a_flood_of_one_namespace_hides_no_line_of_another() {
        for is_denial in [false, true] {
            let (log, start) = (DecisionLog::default(), Instant::now());
            assert_eq!(logged(&log, is_denial, "flood", 7_000, start), 200);
            assert_eq!(logged(&log, is_denial, "team", 200, start), 200);
            assert_eq!(logged(&log, !is_denial, "flood", 1, start), 1, "another verdict");
            assert_eq!(left_out(&log), ["6800 of flood"]);
            let later = start + Duration::from_secs(1);
            assert_eq!(logged(&log, is_denial, "flood", 100, later), 10);
            assert_eq!(left_out(&log), ["90 of flood"]);
            assert!(left_out(&log).is_empty(), "each line is reported once");
        }
    }

    #[test]
    fn all_namespaces_together_have_a_limit() {
        let (log, start) = (DecisionLog::default(), Instant::now());
        let of_all = |now| (0..100).map(|it| logged(&log, true, &format!("n-{it}"), 100, now)).sum::<usize>();
        // The first line of a namespace that was silent is logged all the same.
        assert_eq!(of_all(start), 5_000 + 50);
        assert_eq!(of_all(start + Duration::from_secs(1)), 100);
    }

    #[test]
    fn remembers_so_many_namespaces_and_all_that_was_left_out() {
        let (log, start) = (DecisionLog::default(), Instant::now());
        let name = |number: usize| format!("n-{number}");
        let at = |number| start + Duration::from_millis(u64::try_from(number).expect("a number"));
        logged(&log, true, "silent", 210, start);
        for number in 1..MAX_NAMESPACES {
            assert_eq!(logged(&log, true, &name(number), 1, at(number)), 1);
        }
        let of_known = |name: &str| log.lock().of_namespaces.contains_key(name);
        assert!(of_known("silent"));
        logged(&log, true, "newest", 1, at(MAX_NAMESPACES));
        assert!(!of_known("silent") && of_known("n-1") && of_known("newest"));
        assert_eq!(log.lock().of_namespaces.len(), MAX_NAMESPACES);
        assert_eq!(left_out(&log), ["10 of other namespaces"]);
    }

    #[test]
    fn no_text_of_a_caller_is_reported_as_a_namespace() {
        let (log, start) = (DecisionLog::default(), Instant::now());
        let endless = "n".repeat(1 << 20);
        for namespace in ["", "a\nb", "A", "other namespaces", endless.as_str()] {
            logged(&log, true, namespace, 200, start);
        }
        assert_eq!(left_out(&log), ["600 of invalid namespaces"]);
        logged(&log, true, "", 1, start);
        assert_eq!(left_out(&log), ["1 of cluster-scoped objects"]);
    }
}
