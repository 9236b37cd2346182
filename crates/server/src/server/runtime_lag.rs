//! Measures how long a task that could run has to wait until the runtime runs it.
//!
//! With a few thousand connections that send one review at a time this is milliseconds. If decisions take a
//! hundred times as long as usual it grows to what callers wait for, and then every answer comes too late.
//! So a request is rejected at once, which costs next to nothing, when the wait exceeds a share of the time
//! that it has left, and the requests that are accepted are answered in time.
//!
//! Long before that, when tasks wait for a few milliseconds, the threads of the runtime should do no more than they
//! must: fewer callers may shake hands then, and reviews are decided by others.
//!
//! A probe task queues up every few milliseconds behind all tasks that are ready, and stores the time when
//! it runs: the age of the last probe is the length of the queue.
//!
//! A machine that was suspended for a moment leaves an old probe too, although there is no queue. What tells
//! the two apart is the gap between requests: behind a queue one request follows another, while in a
//! suspended machine none arrived for as long as it was away. So the longest gap since the probe is
//! subtracted, unless the probe before was late too: then the machine is short of CPU, not suspended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often a probe runs when there is no queue.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// A request is rejected when the lag exceeds the time it has left divided by this.
const DEADLINE_DIVISOR: u32 = 4;

/// A lag below this is never too long: any busy machine has it now and then.
const MIN_LAG: Duration = Duration::from_millis(200);

/// How late a timer may be that is not: those of tokio are rounded up to the next millisecond.
const TIMER_GRANULARITY: Duration = Duration::from_millis(1);

/// For how long the worst lag is remembered at least: longer than the pause between two scrapes.
const WORST_KEPT: Duration = Duration::from_mins(2);

/// No probe yet: a router without a server has no probe task.
const NEVER: u64 = u64::MAX;

/// The last probe, and the requests since. Times are microseconds after `start`.
#[derive(Debug)]
pub(super) struct LagMonitor {
    start: Instant,
    /// When the last probe ran.
    probed: AtomicU64,
    /// When the probe queued up that has not run yet; [`NEVER`] when there is none.
    probing: AtomicU64,
    /// How long the last probe waited.
    waited: AtomicU64,
    /// Whether the last probe was late.
    probed_late: AtomicBool,
    /// When the last request arrived.
    last_request: AtomicU64,
    /// The longest time without a request since the last probe.
    longest_gap: AtomicU64,
    worst: Worst,
}

/// The worst lag of a while, in two periods: the one that runs, and the one before it.
#[derive(Debug, Default)]
struct Worst {
    began: AtomicU64,
    of_this: AtomicU64,
    of_last: AtomicU64,
}

impl Worst {
    fn note(&self, now: u64, lag: u64) {
        let period = u64::try_from(WORST_KEPT.as_micros()).unwrap_or(NEVER);
        if now.saturating_sub(self.began.load(Ordering::Relaxed)) >= period {
            self.began.store(now, Ordering::Relaxed);
            self.of_last.store(self.of_this.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        self.of_this.fetch_max(lag, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.of_this.load(Ordering::Relaxed).max(self.of_last.load(Ordering::Relaxed))
    }
}

impl LagMonitor {
    /// A monitor without a probe.
    pub(super) fn new() -> Self {
        let [probed, probing, waited, last_request, longest_gap] =
            [NEVER, NEVER, 0, 0, 0].map(AtomicU64::new);
        let (start, probed_late) = (Instant::now(), AtomicBool::new(false));
        Self {
            start,
            probed,
            probing,
            waited,
            probed_late,
            last_request,
            longest_gap,
            worst: Worst::default(),
        }
    }

    /// Probes for as long as the runtime runs it.
    pub(super) async fn run(&self) {
        loop {
            self.begin_probe(Instant::now());
            last_in_queue().await;
            self.probe_at(Instant::now());
            sleep(PROBE_INTERVAL).await;
        }
    }

    /// Notes that a probe queues up.
    pub(super) fn begin_probe(&self, now: Instant) {
        self.probing.store(self.micros(now), Ordering::Relaxed);
    }

    fn probe_at(&self, now: Instant) {
        let micros = self.micros(now);
        self.waited
            .store(micros.saturating_sub(self.probing.swap(NEVER, Ordering::Relaxed)), Ordering::Relaxed);
        let before = self.probed.swap(micros, Ordering::Relaxed);
        let gap = Duration::from_micros(micros.saturating_sub(before));
        self.probed_late.store(gap > PROBE_INTERVAL + MIN_LAG, Ordering::Relaxed);
        self.longest_gap.store(0, Ordering::Relaxed);
        let lag = gap.saturating_sub(PROBE_INTERVAL + TIMER_GRANULARITY);
        self.worst.note(micros, u64::try_from(lag.as_micros()).unwrap_or(NEVER));
    }

    /// How long tasks had to wait at worst in the last minutes, those included that wait now.
    pub(super) fn worst(&self) -> Duration {
        self.worst_at(Instant::now())
    }

    fn worst_at(&self, now: Instant) -> Duration {
        let age = self.micros(now).saturating_sub(self.probed.load(Ordering::Relaxed));
        let waiting = Duration::from_micros(age).saturating_sub(PROBE_INTERVAL + TIMER_GRANULARITY);
        Duration::from_micros(self.worst.get()).max(waiting)
    }

    /// Whether tasks wait for longer than this.
    pub(super) fn is_above(&self, limit: Duration) -> bool {
        let now = Instant::now();
        let [probed, probing, waited] =
            [&self.probed, &self.probing, &self.waited].map(|micros| micros.load(Ordering::Relaxed));
        let now = self.micros(now);
        // What waits now, how late the next probe is, and what the last one has waited.
        let waiting = now.saturating_sub(probing);
        let late = Duration::from_micros(now.saturating_sub(probed));
        let late = late.saturating_sub(PROBE_INTERVAL + TIMER_GRANULARITY);
        Duration::from_micros(waiting.max(waited)).max(late) > limit
    }

    /// Whether the lag is too long for one more request, which must be answered by `deadline`.
    pub(super) fn is_too_long(&self, deadline: Instant) -> bool {
        self.is_too_long_at(Instant::now(), deadline)
    }

    fn is_too_long_at(&self, now: Instant, deadline: Instant) -> bool {
        let probed = self.probed.load(Ordering::Relaxed);
        if probed == NEVER {
            return false;
        }
        let micros = self.micros(now);
        let before = self.last_request.swap(micros, Ordering::Relaxed).max(probed);
        let longest_gap = micros.saturating_sub(before);
        let longest_gap = self.longest_gap.fetch_max(longest_gap, Ordering::Relaxed).max(longest_gap);
        let excused = if self.probed_late.load(Ordering::Relaxed) { 0 } else { longest_gap };
        // The age of the probe, without the time in which the machine may have been suspended, and without
        // the pause between two probes.
        let lag = Duration::from_micros(micros.saturating_sub(probed).saturating_sub(excused));
        let lag = lag.saturating_sub(PROBE_INTERVAL);
        lag > MIN_LAG && lag > deadline.saturating_duration_since(now) / DEADLINE_DIVISOR
    }

    fn micros(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.start).as_micros()).unwrap_or(NEVER)
    }
}

/// Waits until all tasks that are ready now have run.
///
/// A worker of tokio runs the task that was woken last before all others (its LIFO slot). So a second task,
/// which does nothing, takes that slot, and the first one queues up behind the tasks that were there.
async fn last_in_queue() {
    let last = tokio::spawn(async {});
    tokio::spawn(async {});
    last.await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    /// Which of the requests that come after so many milliseconds each are rejected, when each must be
    /// answered within ten seconds and no probe runs after the first.
    fn refused(after: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let lag = LagMonitor::new();
        lag.probe_at(lag.start);
        let too_much = |after: &u32| {
            let now = lag.start + MILLI * *after;
            lag.is_too_long_at(now, now + Duration::from_secs(10))
        };
        after.into_iter().filter(too_much).collect()
    }

    #[test]
    fn is_too_long_beyond_a_share_of_the_time_left() {
        let refused = refused((0..4_000).step_by(10));
        assert_eq!(refused.first(), Some(&2_540), "a quarter of ten seconds, and what is no queue");
        assert_eq!(refused.len(), 146, "all that come later");
    }

    #[test]
    fn a_short_lag_is_accepted_however_little_time_is_left() {
        let lag = LagMonitor::new();
        lag.probe_at(lag.start);
        let is_too_long = |after| {
            let now = lag.start + MILLI * after;
            lag.is_too_long_at(now, now)
        };
        let first = (0..1_000).step_by(10).find(|after| is_too_long(*after));
        assert_eq!(first, Some(240));
    }

    #[test]
    fn a_probe_starts_anew() {
        let lag = LagMonitor::new();
        lag.probe_at(lag.start);
        let now = lag.start + MILLI * 4_000;
        let too_much = |after| lag.is_too_long_at(lag.start + MILLI * after, now);
        assert!((0..4_000).step_by(10).any(too_much));
        lag.probe_at(now);
        assert!(!lag.is_too_long_at(now + MILLI, now));
    }

    #[test]
    fn a_machine_that_was_away_is_no_queue() {
        // Three seconds, and then all that arrived meanwhile.
        assert_eq!(refused((0..50).chain(3_050..3_150)), [0; 0]);
    }

    #[test]
    fn a_machine_that_is_away_again_and_again_is_behind() {
        let lag = LagMonitor::new();
        lag.probe_at(lag.start);
        let back = lag.start + MILLI * 3_000;
        lag.probe_at(back);
        let again = back + MILLI * 3_000;
        assert!(lag.is_too_long_at(again, again + Duration::from_secs(10)));
        lag.probe_at(again);
        lag.probe_at(again + PROBE_INTERVAL);
        let later = again + PROBE_INTERVAL + MILLI * 3_000;
        assert!(!lag.is_too_long_at(later, later + Duration::from_secs(10)), "it had recovered");
    }

    #[test]
    fn the_worst_lag_can_be_seen_for_minutes() {
        let lag = LagMonitor::new();
        let probe_at = |millis| lag.probe_at(lag.start + MILLI * millis);
        assert_eq!(lag.worst_at(lag.start + MILLI * 9_000), Duration::ZERO, "no probe yet");
        for millis in [0, 20, 40] {
            probe_at(millis);
        }
        assert_eq!(lag.worst_at(lag.start + MILLI * 41), Duration::ZERO);
        assert_eq!(lag.worst_at(lag.start + MILLI * 761), MILLI * 700, "a probe that is still waiting");
        probe_at(761);
        // Every scrape of the next two minutes sees it, and none after twice that time.
        let mut millis = 761;
        let worst_until = |until, millis: &mut u32| {
            while *millis < until {
                *millis += 20;
                lag.probe_at(lag.start + MILLI * *millis);
            }
            lag.worst_at(lag.start + MILLI * *millis)
        };
        assert_eq!(worst_until(120_700, &mut millis), MILLI * 700);
        assert_eq!(worst_until(242_000, &mut millis), Duration::ZERO);
    }

    #[test]
    fn without_a_probe_no_lag_is_too_long() {
        let lag = LagMonitor::new();
        assert!((0..5_000).all(|after| !lag.is_too_long_at(lag.start + MILLI * after, lag.start)));
    }

    /// On the runtime that serves, the probe runs after the tasks that were there before it.
    #[test]
    fn a_probe_comes_after_what_was_there() {
        let runtime = crate::server::runtime_builder().worker_threads(1).build().expect("a runtime");
        let (sender, receiver) = std::sync::mpsc::channel();
        runtime.block_on(async {
            let probing = async move {
                for number in 0..100 {
                    let sender = sender.clone();
                    tokio::spawn(async move { sender.send(number).expect("a receiver") });
                }
                last_in_queue().await;
                sender.send(100).expect("a receiver");
            };
            tokio::spawn(probing).await.expect("no panic");
        });
        let order: Vec<_> = receiver.iter().collect();
        assert_eq!(order.last(), Some(&100), "{order:?}");
    }
}
