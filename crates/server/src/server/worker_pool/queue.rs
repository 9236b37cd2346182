//! The queue of a pool: two lanes, and how long new work would wait in each.
//!
//! How long a wait is expected to be is estimated from how much work there is and how long such work has
//! taken. As an estimate lags behind when work gets dearer, what the oldest work has waited already counts
//! too: nobody who comes later waits for less.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The largest work of the small lane, in bytes: nearly all pods are smaller.
pub(in crate::server) const SMALL_BYTES: usize = 64 << 10;

/// How long small work is expected to wait at most. With what it takes itself it is done within 50 ms; a caller
/// that is refused asks again after a second.
const LONGEST_SMALL_WAIT: Duration = Duration::from_millis(40);

/// How long the oldest small work has waited at most when more is taken: any machine is away for some time now and
/// then, and is no slower after that.
const OLDEST_SMALL_WAIT: Duration = Duration::from_millis(100);

/// What part of the time left may pass in the queue: the estimate can be wrong by as much.
const WAIT_DIVISOR: u32 = 4;

/// What a piece of work takes beside its bytes, as bytes: about 5 µs, which is what 4 KiB take.
const FIXED_BYTES: usize = 4 << 10;

/// How much of an average each new measurement is.
const AVERAGE_SHARE: u64 = 16;

/// The two kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Up to [`SMALL_BYTES`].
    Small,
    /// More.
    Large,
}

/// The two kinds of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    /// Takes all work.
    General,
    /// Takes small work; there is one.
    Reserved,
}

/// A piece of work.
#[derive(Debug)]
pub(super) struct Job<W> {
    pub(super) lane: Lane,
    /// How much it is, in bytes.
    pub(super) weight: usize,
    /// Set when nobody waits for it any more.
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) work: W,
    queued: Instant,
    deadline: Instant,
}

/// What waits, and what is being done.
#[derive(Debug)]
pub(super) struct Queue<W> {
    small: LaneState<W>,
    large: LaneState<W>,
    /// How many general threads there are.
    workers: usize,
    capacity: usize,
    next_number: u64,
    /// Whether the reserved thread works.
    reserved_busy: bool,
    general_busy: usize,
}

#[derive(Debug)]
struct LaneState<W> {
    /// In the order in which it came.
    waiting: BTreeMap<u64, Job<W>>,
    /// The weight of what waits and of what is being done.
    weight: usize,
    running: usize,
    /// What 1 KiB took lately, in nanoseconds.
    nanos_per_kib: u64,
}

impl Lane {
    /// The lane of work on so many bytes.
    pub(super) const fn of(bytes: usize) -> Self {
        if bytes <= SMALL_BYTES { Self::Small } else { Self::Large }
    }
}

impl<W> Queue<W> {
    /// An empty queue for so many general threads.
    pub(super) const fn new(workers: usize, capacity: usize) -> Self {
        let small = LaneState::new();
        let large = LaneState::new();
        Self { small, large, workers, capacity, next_number: 0, reserved_busy: false, general_busy: 0 }
    }

    /// How many threads of a kind there may be.
    pub(super) const fn seats(&self, seat: Seat) -> usize {
        match seat {
            Seat::General => self.workers,
            Seat::Reserved => 1,
        }
    }

    /// How many pieces of work wait.
    pub(super) fn waiting(&self) -> usize {
        self.small.waiting.len() + self.large.waiting.len()
    }

    /// How many are being done.
    pub(super) const fn running(&self) -> usize {
        self.small.running + self.large.running
    }

    /// Whether there is no work.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting() + self.running() == 0
    }

    /// Whether work that comes now, and must be done by `deadline`, can begin soon enough.
    pub(super) fn has_room(&self, lane: Lane, now: Instant, deadline: Instant) -> bool {
        if self.waiting() >= self.capacity {
            return false;
        }
        let state = self.lane(lane);
        let general_free = self.general_busy + self.waiting() < self.workers;
        let reserved_free = lane == Lane::Small && !self.reserved_busy && state.waiting.is_empty();
        if general_free || reserved_free {
            return true;
        }
        let part = deadline.saturating_duration_since(now) / WAIT_DIVISOR;
        let (expected, oldest) = match lane {
            Lane::Small => (part.min(LONGEST_SMALL_WAIT), part.min(OLDEST_SMALL_WAIT)),
            Lane::Large => (part, part),
        };
        self.expected_wait(lane) <= expected && state.longest_waiting(now) <= oldest
    }

    /// How long new work of this lane will wait, if what is before it takes as long as such work did lately.
    fn expected_wait(&self, lane: Lane) -> Duration {
        let (nanos, threads) = match lane {
            // General threads may go on with large work.
            Lane::Small => (self.small.nanos(), 1 + self.workers.saturating_sub(self.large.running)),
            Lane::Large => (self.small.nanos().saturating_add(self.large.nanos()), self.workers),
        };
        Duration::from_nanos(nanos) / u32::try_from(threads).unwrap_or(u32::MAX)
    }

    /// Adds work; its number.
    pub(super) fn push(
        &mut self,
        lane: Lane,
        bytes: usize,
        now: Instant,
        deadline: Instant,
        cancelled: Arc<AtomicBool>,
        work: W,
    ) -> u64 {
        let weight = bytes.saturating_add(FIXED_BYTES);
        let number = self.next_number;
        self.next_number += 1;
        let state = self.lane_mut(lane);
        state.weight += weight;
        state.waiting.insert(number, Job { lane, weight, cancelled, work, queued: now, deadline });
        number
    }

    /// Takes work back that has not begun.
    pub(super) fn remove(&mut self, lane: Lane, number: u64) -> Option<Job<W>> {
        let state = self.lane_mut(lane);
        let job = state.waiting.remove(&number)?;
        state.weight -= job.weight;
        Some(job)
    }

    /// The work that a thread of this kind does next, and how many pieces were dropped because it is too late
    /// for them.
    pub(super) fn take(&mut self, seat: Seat, now: Instant) -> (Option<Job<W>>, usize) {
        let mut dropped = 0;
        while let Some((lane, number)) = self.next_for(seat) {
            let Some(job) = self.remove(lane, number) else { break };
            if job.deadline <= now || job.cancelled.load(Ordering::Relaxed) {
                dropped += 1;
                continue;
            }
            let state = self.lane_mut(lane);
            state.weight += job.weight;
            state.running += 1;
            self.set_busy(seat, true);
            return (Some(job), dropped);
        }
        (None, dropped)
    }

    /// Notes that a thread of this kind has done work of this weight.
    pub(super) fn finish(&mut self, seat: Seat, lane: Lane, weight: usize, took: Duration) {
        let state = self.lane_mut(lane);
        state.weight -= weight;
        state.running -= 1;
        state.observe(weight, took);
        self.set_busy(seat, false);
    }

    /// What has waited longest.
    fn next_for(&self, seat: Seat) -> Option<(Lane, u64)> {
        let first = |state: &LaneState<W>| state.waiting.first_key_value().map(|(number, _)| *number);
        let small = first(&self.small).map(|number| (Lane::Small, number));
        let large = first(&self.large).filter(|_| seat == Seat::General).map(|number| (Lane::Large, number));
        small.into_iter().chain(large).min_by_key(|(_, number)| *number)
    }

    const fn set_busy(&mut self, seat: Seat, busy: bool) {
        match (seat, busy) {
            (Seat::Reserved, _) => self.reserved_busy = busy,
            (Seat::General, true) => self.general_busy += 1,
            (Seat::General, false) => self.general_busy -= 1,
        }
    }

    const fn lane(&self, lane: Lane) -> &LaneState<W> {
        match lane {
            Lane::Small => &self.small,
            Lane::Large => &self.large,
        }
    }

    const fn lane_mut(&mut self, lane: Lane) -> &mut LaneState<W> {
        match lane {
            Lane::Small => &mut self.small,
            Lane::Large => &mut self.large,
        }
    }
}

impl<W> LaneState<W> {
    const fn new() -> Self {
        Self { waiting: BTreeMap::new(), weight: 0, running: 0, nanos_per_kib: 0 }
    }

    /// What all work of this lane will take on one thread.
    fn nanos(&self) -> u64 {
        let kib = u64::try_from(self.weight >> 10).unwrap_or(u64::MAX);
        kib.saturating_mul(self.nanos_per_kib)
    }

    fn longest_waiting(&self, now: Instant) -> Duration {
        let first = self.waiting.first_key_value();
        first.map_or(Duration::ZERO, |(_, job)| now.saturating_duration_since(job.queued))
    }

    fn observe(&mut self, weight: usize, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let measured = nanos / u64::try_from((weight >> 10).max(1)).unwrap_or(1);
        let average = self.nanos_per_kib;
        self.nanos_per_kib = match average {
            0 => measured,
            _ => average - average / AVERAGE_SHARE + measured / AVERAGE_SHARE,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 1 << 20;
    const SECOND: Duration = Duration::from_secs(1);

    struct Bench {
        queue: Queue<&'static str>,
        now: Instant,
    }

    impl Bench {
        fn new(workers: usize) -> Self {
            Self { queue: Queue::new(workers, 100), now: Instant::now() }
        }

        fn push(&mut self, bytes: usize, name: &'static str) {
            let deadline = self.now + 9 * SECOND;
            self.queue.push(Lane::of(bytes), bytes, self.now, deadline, Arc::default(), name);
        }

        fn take(&mut self, seat: Seat) -> Option<&'static str> {
            self.queue.take(seat, self.now).0.map(|job| job.work)
        }

        fn has_room(&self, bytes: usize) -> bool {
            self.queue.has_room(Lane::of(bytes), self.now, self.now + 7 * SECOND)
        }

        /// Work on so many bytes that has taken so long.
        fn did(&mut self, bytes: usize, took: Duration) {
            self.push(bytes, "done");
            assert_eq!(self.take(Seat::General), Some("done"));
            self.queue.finish(Seat::General, Lane::of(bytes), bytes + FIXED_BYTES, took);
        }
    }

    #[test]
    fn the_oldest_is_next_and_the_reserved_thread_takes_what_is_small() {
        let mut bench = Bench::new(1);
        bench.push(LARGE, "large");
        bench.push(LARGE, "second large");
        bench.push(10, "small");
        bench.push(10, "second small");
        assert_eq!(bench.take(Seat::Reserved), Some("small"));
        assert_eq!(bench.take(Seat::General), Some("large"));
        assert_eq!((bench.queue.waiting(), bench.queue.running()), (2, 2));
        for (seat, bytes) in [(Seat::Reserved, 10), (Seat::General, LARGE)] {
            bench.queue.finish(seat, Lane::of(bytes), bytes + FIXED_BYTES, SECOND);
        }
        assert_eq!(bench.take(Seat::General), Some("second large"));
        assert_eq!(bench.take(Seat::Reserved), Some("second small"));
        assert_eq!(bench.take(Seat::Reserved), None);
    }

    #[test]
    fn the_queue_holds_what_can_be_done_in_a_quarter_of_the_time_left() {
        let mut bench = Bench::new(1);
        bench.did(LARGE, SECOND);
        let mut taken = 0;
        while bench.has_room(LARGE) {
            bench.push(LARGE, "more");
            if taken == 0 {
                assert_eq!(bench.take(Seat::General), Some("more"));
            }
            taken += 1;
        }
        assert_eq!(taken, 2, "one that runs and one that waits; a third would wait for two seconds");
        assert!(bench.has_room(10), "for what is small a thread is free");
    }

    #[test]
    fn small_work_never_waits_for_long() {
        let mut bench = Bench::new(1);
        bench.did(60 << 10, Duration::from_millis(12));
        bench.push(LARGE, "large");
        assert_eq!(bench.take(Seat::General), Some("large"));
        let mut taken = 0;
        while bench.has_room(60 << 10) {
            bench.push(60 << 10, "small");
            taken += 1;
        }
        assert_eq!(taken, 4, "36 ms before it");
        assert_eq!(bench.take(Seat::Reserved), Some("small"));
    }

    #[test]
    fn what_the_oldest_has_waited_counts_when_nothing_was_measured_yet() {
        let mut bench = Bench::new(1);
        for bytes in [LARGE, LARGE, 10, 10] {
            bench.push(bytes, "stuck");
        }
        assert_eq!((bench.take(Seat::General), bench.take(Seat::Reserved)), (Some("stuck"), Some("stuck")));
        assert!(bench.has_room(LARGE) && bench.has_room(10));
        bench.now += Duration::from_millis(101);
        assert!(bench.has_room(LARGE) && !bench.has_room(10));
        bench.now += 2 * SECOND;
        assert!(!bench.has_room(LARGE));
    }

    #[test]
    fn a_free_thread_takes_whatever_comes() {
        let mut bench = Bench::new(1);
        bench.did(LARGE, 100 * SECOND);
        assert!(bench.has_room(LARGE));
        bench.push(LARGE, "large");
        assert!(!bench.has_room(LARGE));
    }

    #[test]
    fn it_holds_no_more_than_its_capacity() {
        let mut bench = Bench::new(200);
        for _ in 0..100 {
            assert!(bench.has_room(10));
            bench.push(10, "small");
        }
        assert!(!bench.has_room(10));
    }

    #[test]
    fn what_is_cancelled_or_too_late_is_dropped() {
        let mut bench = Bench::new(1);
        bench.push(10, "late");
        bench.now += 10 * SECOND;
        bench.push(10, "cancelled");
        let earlier = bench.now.checked_sub(5 * SECOND).expect("a past");
        let (job, _) = bench.queue.take(Seat::Reserved, earlier);
        assert_eq!(job.map(|job| job.work), Some("late"));
        bench.push(10, "good");
        for job in bench.queue.small.waiting.values() {
            job.cancelled.store(job.work == "cancelled", Ordering::Relaxed);
        }
        let (job, dropped) = bench.queue.take(Seat::General, bench.now);
        assert_eq!((job.map(|job| job.work), dropped), (Some("good"), 1));
        bench.push(10, "late too");
        assert_eq!(bench.queue.take(Seat::General, bench.now + 10 * SECOND).1, 1);
        assert!(bench.queue.waiting() == 0);
    }

    #[test]
    fn what_is_removed_weighs_nothing() {
        let mut bench = Bench::new(1);
        bench.push(10, "small");
        assert_eq!(bench.queue.remove(Lane::Small, 0).map(|job| job.work), Some("small"));
        assert!(bench.queue.remove(Lane::Small, 0).is_none());
        assert_eq!((bench.queue.small.weight, bench.queue.waiting()), (0, 0));
        bench.did(10, SECOND);
        assert_eq!((bench.queue.small.weight, bench.queue.running()), (0, 0));
    }
}
