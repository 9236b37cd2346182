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

/// Work that is expected to take longer goes to the pool: ten times as long as a pod with hundreds of
/// variables takes, and a quarter of the lag that is allowed.
const LONGEST_INLINE: Duration = Duration::from_micros(500);

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
        bytes <= SMALL_BYTES && !self.lag.is_behind() && self.cost.expected(bytes) <= LONGEST_INLINE
    }
}

/// What small work took lately, wherever it was done.
#[derive(Debug, Default)]
struct SmallCost {
    nanos_per_kib: AtomicU64,
}

impl SmallCost {
    /// How much of the average each new measurement is.
    const SHARE: u64 = 16;

    fn measured<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        if bytes <= SMALL_BYTES {
            self.observe(bytes, start.elapsed());
        }
        result
    }

    /// Measurements of two threads at the same moment may lose one of them, which changes little.
    fn observe(&self, bytes: usize, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let average = self.nanos_per_kib.load(Ordering::Relaxed);
        let average = average - average / Self::SHARE + nanos / kib(bytes) / Self::SHARE;
        self.nanos_per_kib.store(average, Ordering::Relaxed);
    }

    fn expected(&self, bytes: usize) -> Duration {
        Duration::from_nanos(self.nanos_per_kib.load(Ordering::Relaxed).saturating_mul(kib(bytes)))
    }
}

/// What work on so many bytes counts as, in KiB: 4 for what each review takes, and its size.
fn kib(bytes: usize) -> u64 {
    4 + u64::try_from(bytes >> 10).unwrap_or(u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::metrics::Metrics;

    fn dispatcher() -> Dispatcher {
        let pool = WorkerPool::new(1, 16, Arc::new(Metrics::new()));
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
        let expensive = Duration::from_millis(10);
        while dispatcher.is_inline(8 << 10) {
            dispatcher.cost.observe(8 << 10, expensive);
        }
        assert!(dispatcher.is_inline(0), "what is smaller takes less");
        assert_eq!(thread(&dispatcher, 8 << 10).await, "decide-small");
        while !dispatcher.is_inline(8 << 10) {
            dispatcher.cost.observe(8 << 10, Duration::from_micros(10));
        }
    }

    #[tokio::test]
    async fn what_is_small_goes_to_the_pool_while_the_runtime_is_behind() {
        let dispatcher = dispatcher();
        dispatcher.lag.begin_probe(tokio::time::Instant::now());
        while !dispatcher.lag.is_behind() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(thread(&dispatcher, 100).await, "decide-small");
        dispatcher.lag.begin_probe(tokio::time::Instant::now() + Duration::from_mins(1));
        assert_ne!(thread(&dispatcher, 100).await, "decide-small");
    }
}
