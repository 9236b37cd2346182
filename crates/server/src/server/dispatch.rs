//! Decides where a review is decided: where it was read, or in the pool.
//!
//! A small review takes less time than handing it to another thread and back, so it is decided at once by the
//! thread that read it. That thread reads and writes other sockets too, which have to wait meanwhile; so what
//! takes longer goes to the pool: large reviews, and small ones for as long as the runtime lags behind, or
//! reviews of their size have lately taken too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::server::runtime_lag::LagMonitor;
use crate::server::worker_pool::{RunError, SMALL_BYTES, WorkerPool};

/// Work of a size that has lately taken longer goes to the pool: ten times as long as a pod with hundreds of
/// variables takes, and a quarter of the lag that is allowed.
const LONGEST_INLINE: Duration = Duration::from_micros(500);

/// When tasks of the runtime wait for longer than this, all work goes to the pool. Twenty-five callers that send 64 KB
/// make them wait for 3 ms on one core, in turn, and there is no other core to hand their reviews to.
const MAX_INLINE_LAG: Duration = Duration::from_millis(5);

/// Where work is done.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pool: WorkerPool,
    lag: Arc<LagMonitor>,
    cost: Arc<SmallCost>,
}

impl Dispatcher {
    /// Uses this pool when the runtime that `lag` watches is behind.
    pub(super) fn new(pool: WorkerPool, lag: Arc<LagMonitor>) -> Self {
        Self { pool, lag, cost: Arc::default() }
    }

    /// The pool.
    pub(super) const fn pool(&self) -> &WorkerPool {
        &self.pool
    }

    /// Whether work on so many bytes, which must be done by `deadline`, would be taken now.
    pub(super) fn has_room(&self, bytes: usize, deadline: Instant) -> bool {
        self.is_inline(bytes) || self.pool.has_room(bytes, deadline)
    }

    /// Does work on so many bytes, here or in the pool. In the pool it gets a flag that is set when this future
    /// is dropped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        deadline: Instant,
        work: impl FnOnce(Option<&AtomicBool>) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        if self.is_inline(bytes) {
            return Ok(self.cost.measured(bytes, || work(None)));
        }
        let cost = Arc::clone(&self.cost);
        let work = move |cancelled: &AtomicBool| cost.measured(bytes, || work(Some(cancelled)));
        self.pool.run(bytes, deadline, work).await
    }

    fn is_inline(&self, bytes: usize) -> bool {
        bytes <= SMALL_BYTES
            && !self.lag.is_above(MAX_INLINE_LAG)
            && self.cost.expected(bytes) <= LONGEST_INLINE
    }
}

/// What small work took lately, wherever it was done, for each class of sizes.
///
/// An average would not do: many that are cheap would hide the one that is dear, and somebody who knows that can keep
/// all threads of the runtime at dear ones. So it is about the most that such work took.
///
/// What counts is the time on the processor, not on the clock: who has waited for a processor was not dear. But it is
/// never more than the time on the clock, and to ask the kernel for it costs 0.4 µs, twice for each review. So it is
/// asked for only when the clock has shown more than [`LONGEST_INLINE`], and then for a while.
#[derive(Debug, Default)]
struct SmallCost {
    nanos: [AtomicU64; 5],
    /// How many are still to be measured on the processor.
    suspect: [AtomicU64; 5],
}

impl SmallCost {
    /// By which part the most goes down with each measurement that is less: a hundred cheap ones make up for one that
    /// was five times too dear.
    const DECAY: u64 = 64;

    /// How many are measured on the processor after one that was long by the clock: what is dear now and then is found
    /// as long as it would be remembered.
    const SUSPECTS: u64 = 500;

    fn measured<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let Some(suspect) = self.suspect.get(class(bytes)).filter(|_| bytes <= SMALL_BYTES) else {
            return work();
        };
        let left = suspect.load(Ordering::Relaxed);
        let on_processor = (left > 0).then(thread_time);
        let start = Instant::now();
        let result = work();
        let by_clock = start.elapsed();
        match on_processor {
            Some(start) => self.observe(bytes, thread_time().saturating_sub(start)),
            // Of the first that is long it is not known whether it was dear or has waited.
            None if by_clock > LONGEST_INLINE => {}
            None => self.observe(bytes, by_clock),
        }
        if by_clock > LONGEST_INLINE {
            suspect.store(Self::SUSPECTS, Ordering::Relaxed);
        } else if left > 0 {
            suspect.store(left - 1, Ordering::Relaxed);
        }
        result
    }

    /// Measurements of two threads at the same moment may lose one of them, which changes little.
    fn observe(&self, bytes: usize, took: Duration) {
        let Some(most) = self.nanos.get(class(bytes)) else { return };
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let before = most.load(Ordering::Relaxed);
        most.store(took.max(before - before / Self::DECAY), Ordering::Relaxed);
    }

    fn expected(&self, bytes: usize) -> Duration {
        let most = self.nanos.get(class(bytes)).map_or(u64::MAX, |most| most.load(Ordering::Relaxed));
        Duration::from_nanos(most)
    }
}

/// The class of a size: up to 4 KiB, 8, 16, 32 and 64.
const fn class(bytes: usize) -> usize {
    let pages = bytes.div_ceil(4 << 10).next_power_of_two();
    pages.trailing_zeros() as usize
}

/// How long this thread has had a processor.
#[cfg(unix)]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// How long this thread has been looking: what waited for a processor counts as work, so more of it goes to the pool.
#[cfg(not(unix))]
fn thread_time() -> Duration {
    thread_local!(static START: Instant = Instant::now());
    START.with(Instant::elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::metrics::Metrics;

    fn dispatcher() -> Dispatcher {
        let pool = WorkerPool::new(1, 16, Arc::new(Metrics::new([])));
        Dispatcher::new(pool, Arc::new(LagMonitor::new()))
    }

    /// The name of the thread that does the work.
    async fn thread(dispatcher: &Dispatcher, bytes: usize) -> String {
        let deadline = Instant::now() + Duration::from_mins(1);
        let name = |_: Option<&AtomicBool>| std::thread::current().name().unwrap_or_default().to_owned();
        dispatcher.run(bytes, deadline, name).await.expect("it is done")
    }

    #[tokio::test]
    async fn what_is_small_is_done_where_it_was_read() {
        let (dispatcher, here) = (dispatcher(), std::thread::current().name().unwrap_or_default().to_owned());
        assert_eq!(thread(&dispatcher, SMALL_BYTES).await, here);
        assert_eq!(thread(&dispatcher, SMALL_BYTES + 1).await, "decide-0");
    }

    #[tokio::test]
    async fn what_is_small_goes_to_the_pool_while_such_work_takes_long() {
        let dispatcher = dispatcher();
        assert!(dispatcher.is_inline(8 << 10), "nothing is known yet");
        dispatcher.cost.observe(8 << 10, Duration::from_millis(10));
        assert!(dispatcher.is_inline(4 << 10) && dispatcher.is_inline(16 << 10), "of other sizes nothing is");
        assert_eq!(thread(&dispatcher, 8 << 10).await, "decide-small");
        while !dispatcher.is_inline(8 << 10) {
            dispatcher.cost.observe(8 << 10, Duration::from_micros(10));
        }
    }

    #[test]
    fn one_that_is_dear_does_not_hide_among_many_that_are_not() {
        let dispatcher = dispatcher();
        for number in 0..1_000 {
            let is_dear = number % 50 == 0;
            let took = if is_dear { Duration::from_millis(5) } else { Duration::from_micros(20) };
            dispatcher.cost.observe(60_000, took);
            assert!(!dispatcher.is_inline(60_000), "after {number}");
        }
    }

    #[test]
    fn sizes_have_classes_up_to_the_largest_that_is_small() {
        let sizes = [0, 1, 4 << 10, (4 << 10) + 1, 8 << 10, 9_000, 20_000, 33_000, SMALL_BYTES];
        assert_eq!(sizes.map(class), [0, 0, 0, 1, 1, 2, 3, 4, 4]);
    }

    #[test]
    fn only_time_on_the_processor_counts() {
        let cost = SmallCost::default();
        for _ in 0..3 {
            cost.measured(10, || std::thread::sleep(Duration::from_millis(50)));
            assert!(cost.expected(10) < Duration::from_millis(50));
        }
        cost.measured(10, || spin(Duration::from_millis(5)));
        assert!(cost.expected(10) >= Duration::from_millis(5));
    }

    #[test]
    fn what_is_dear_is_found_however_rare_it_is() {
        let cost = SmallCost::default();
        cost.measured(10, || spin(Duration::from_millis(5)));
        for _ in 1..SmallCost::SUSPECTS {
            cost.measured(10, || {});
        }
        cost.measured(10, || spin(Duration::from_millis(5)));
        assert!(cost.expected(10) >= Duration::from_millis(5));
        assert!(cost.expected(10 << 10) < Duration::from_millis(1), "of other sizes nothing is known");
    }

    fn spin(time: Duration) {
        let start = thread_time();
        while thread_time().saturating_sub(start) < time {
            std::hint::spin_loop();
        }
    }

    #[tokio::test]
    async fn what_is_small_goes_to_the_pool_while_the_runtime_is_behind() {
        let dispatcher = dispatcher();
        dispatcher.lag.begin_probe(tokio::time::Instant::now());
        while !dispatcher.lag.is_above(MAX_INLINE_LAG) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(thread(&dispatcher, 100).await, "decide-small");
        dispatcher.lag.begin_probe(tokio::time::Instant::now() + Duration::from_mins(1));
        assert_ne!(thread(&dispatcher, 100).await, "decide-small");
    }
}
