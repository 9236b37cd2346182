//! Measures how long tasks of the runtime wait for their turn, and notices when no task runs any more.
//!
//! A task of the main runtime queues up behind all tasks that are ready: once a second, when a request asks for it, and
//! again at once while the queue is long. Meanwhile the router refuses requests: a refusal takes a small part of the
//! time of a decision, and a caller that gets 429 soon can try again. The health port, which has its own thread, reads
//! when the task last had its turn: a runtime whose threads are all blocked does not run it.

use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;

/// How long the task waits for its turn before requests are refused. A request then waits for about twice this time at
/// most; 429 is promised within 50 ms.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// After a wait of this length the task queues up again at once.
const LONG_WAIT: Duration = Duration::from_millis(1);

/// How often a request lets the task queue up.
const INTERVAL: Duration = Duration::from_millis(10);

/// How often the task queues up without a request.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// In place of a time: the task is not in the queue.
const NOT_QUEUED: u64 = u64::MAX;

/// In place of a time: no runtime runs the task.
const NOT_RUN: u64 = u64::MAX - 1;

/// The turns of one task of the main runtime. Times are microseconds after `start`.
#[derive(Debug)]
pub(super) struct Watchdog {
    start: Instant,
    /// After so long without a turn the runtime counts as stalled.
    stall_timeout: Duration,
    /// When the task queued up, [`NOT_QUEUED`] or [`NOT_RUN`].
    queued: AtomicU64,
    last_turn: AtomicU64,
    /// Notified when the task must queue up.
    wake: Notify,
}

impl Watchdog {
    /// A watchdog whose first turn is now.
    pub(super) fn new(stall_timeout: Duration) -> Self {
        let (queued, last_turn) = (AtomicU64::new(NOT_RUN), AtomicU64::new(0));
        Self { start: Instant::now(), stall_timeout, queued, last_turn, wake: Notify::new() }
    }

    /// Queues up for as long as the runtime runs it.
    pub(super) async fn run(&self) {
        loop {
            let queued = self.queued.load(Ordering::Relaxed).min(self.now());
            self.queued.store(queued, Ordering::Relaxed);
            queue_up().await;
            let now = self.now();
            self.queued.store(NOT_QUEUED, Ordering::Relaxed);
            self.last_turn.store(now, Ordering::Release);
            if Duration::from_micros(now - queued) < LONG_WAIT {
                let _notified =
                    timeout(IDLE_INTERVAL.min(self.stall_timeout / 4), self.wake.notified()).await;
            }
        }
    }

    /// Whether a request must be refused because tasks wait for too long.
    pub(super) fn is_behind(&self) -> bool {
        let (now, queued) = (self.now(), self.queued.load(Ordering::Relaxed));
        let since = |time| Duration::from_micros(now.saturating_sub(time));
        if queued == NOT_QUEUED && since(self.last_turn.load(Ordering::Relaxed)) > INTERVAL {
            self.queued.store(now, Ordering::Relaxed);
            self.wake.notify_one();
        }
        since(queued) > MAX_WAIT
    }

    /// A message with the time since the last turn when the runtime has stalled; `None` while it runs.
    pub(super) fn stalled(&self) -> Option<String> {
        let last_turn = Duration::from_micros(self.last_turn.load(Ordering::Acquire));
        let since = self.start.elapsed().saturating_sub(last_turn);
        (since > self.stall_timeout).then(|| format!("no task has run for {} s", since.as_secs()))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(NOT_RUN)
    }
}

/// Lets all tasks that are ready run first. A task that wakes itself goes to the end of the queue, while one that calls
/// `tokio::task::yield_now` runs as soon as its thread has polled sockets and timers.
async fn queue_up() {
    let mut queued = false;
    poll_fn(|context| {
        if mem::replace(&mut queued, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    fn watchdog() -> Arc<Watchdog> {
        Arc::new(Watchdog::new(Duration::from_secs(10)))
    }

    #[test]
    fn refuses_nothing_without_a_runtime() {
        let watchdog = watchdog();
        thread::sleep(MAX_WAIT * 2);
        assert!(!watchdog.is_behind());
    }

    #[test]
    fn refuses_requests_while_many_tasks_wait() {
        let runtime = crate::runtime_builder().worker_threads(1).build().expect("a runtime");
        let watchdog = watchdog();
        let request = move |watchdog: &Arc<Watchdog>| {
            let watchdog = Arc::clone(watchdog);
            tokio::spawn(async move {
                thread::sleep(LONG_WAIT);
                watchdog.is_behind()
            })
        };
        let requests = async move {
            let run = tokio::spawn({
                let watchdog = Arc::clone(&watchdog);
                async move { watchdog.run().await }
            });
            tokio::time::sleep(INTERVAL * 2).await;
            let mut refused = Vec::new();
            for task in (0..100).map(|_| request(&watchdog)).collect::<Vec<_>>() {
                refused.push(task.await.expect("no panic"));
            }
            tokio::time::sleep(INTERVAL * 2).await;
            let later = request(&watchdog).await.expect("no panic");
            run.abort();
            (refused.first().copied(), refused.contains(&true), later)
        };
        let (first, any, later) = runtime.block_on(async { tokio::spawn(requests).await.expect("no panic") });
        assert_eq!((first, any, later), (Some(false), true, false));
    }
}
