//! Notices when the runtime no longer runs its tasks.
//!
//! A task of the main runtime stores the time every second. The health port, on a thread of its own, reads
//! how long ago that was: a runtime whose threads are all blocked stores nothing any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the task stores the time.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// When the main runtime last ran a task.
#[derive(Debug)]
pub(super) struct Watchdog {
    start: Instant,
    /// After so long without a tick the runtime counts as stalled.
    stall_timeout: Duration,
    /// The last tick, in milliseconds after `start`.
    last_tick: AtomicU64,
}

impl Watchdog {
    /// A watchdog whose first tick is now.
    pub(super) fn new(stall_timeout: Duration) -> Self {
        Self { start: Instant::now(), stall_timeout, last_tick: AtomicU64::new(0) }
    }

    /// After so long without any progress a part of the server counts as stalled.
    pub(super) const fn stall_timeout(&self) -> Duration {
        self.stall_timeout
    }

    /// Ticks for as long as the runtime runs it.
    pub(super) async fn run(&self) {
        loop {
            let millis = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.last_tick.store(millis, Ordering::Release);
            tokio::time::sleep(TICK_INTERVAL.min(self.stall_timeout / 4)).await;
        }
    }

    /// For how long the runtime has stalled, in words; `None` while it runs.
    pub(super) fn stalled(&self) -> Option<String> {
        let last_tick = Duration::from_millis(self.last_tick.load(Ordering::Acquire));
        let since = self.start.elapsed().saturating_sub(last_tick);
        (since > self.stall_timeout).then(|| format!("no task has run for {} s", since.as_secs()))
    }
}
