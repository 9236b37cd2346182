//! How far the runtime is behind: for how long a task that could run has waited.
//!
//! A few thousand connections of which each sends one review at a time are behind by milliseconds at
//! most. Where decisions are a hundred times dearer than usual, that grows to what callers wait for,
//! and then every answer would come too late. So beyond a share of the time that a request has left it
//! is refused at once, which costs next to nothing, and those that are taken are answered in time.
//!
//! A task that wants to run every few milliseconds leaves a mark when it does. Its turn comes after
//! everything that was there before it, so the age of the mark is the length of the queue. A machine
//! that was taken away for a moment leaves an old mark too, but few requests since.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often a mark is left.
const PERIOD: Duration = Duration::from_millis(20);

/// The share of the time left that waiting may take.
const SHARE: u32 = 4;

/// What is never too much: a busy machine lets anybody wait so long now and then.
const LEAST: Duration = Duration::from_millis(200);

/// So many requests since the last mark say nothing yet.
const FEW: u64 = 16;

/// No mark yet: nothing leaves any for a router without a server.
const NEVER: u64 = u64::MAX;

/// The last mark.
#[derive(Debug)]
pub(super) struct Lag {
    born: Instant,
    /// When it was left, in microseconds after `born`.
    marked: AtomicU64,
    /// How many requests came since.
    since: AtomicU64,
}

impl Lag {
    /// Without a mark.
    pub(super) fn new() -> Self {
        Self { born: Instant::now(), marked: AtomicU64::new(NEVER), since: AtomicU64::new(0) }
    }

    /// Leaves marks for as long as the runtime runs it.
    pub(super) async fn mark(&self) {
        loop {
            let now = u64::try_from(self.born.elapsed().as_micros()).unwrap_or(NEVER);
            self.marked.store(now, Ordering::Relaxed);
            self.since.store(0, Ordering::Relaxed);
            sleep(PERIOD).await;
        }
    }

    /// Whether it is too much for one more request, which must be answered by `deadline`.
    pub(super) fn is_too_much(&self, deadline: Instant) -> bool {
        let since = self.since.fetch_add(1, Ordering::Relaxed);
        let marked = match self.marked.load(Ordering::Relaxed) {
            NEVER => return false,
            micros => self.born + Duration::from_micros(micros),
        };
        let now = Instant::now();
        let behind = now.saturating_duration_since(marked).saturating_sub(PERIOD);
        since >= FEW && behind > LEAST && behind > deadline.saturating_duration_since(now) / SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_too_much_beyond_a_share_of_the_time_left() {
        let lag = |millis| {
            let born = Instant::now().checked_sub(Duration::from_millis(millis)).expect("a past");
            Lag { born, marked: AtomicU64::new(0), since: AtomicU64::new(FEW) }
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        assert!(!lag(2_000).is_too_much(deadline));
        assert!(lag(3_000).is_too_much(deadline));
        assert!(!lag(100).is_too_much(Instant::now()), "that is nothing, however little time is left");
    }

    #[test]
    fn without_a_mark_nothing_is_too_much() {
        let lag = Lag { since: AtomicU64::new(FEW), ..Lag::new() };
        assert!(!lag.is_too_much(Instant::now()));
    }

    #[test]
    fn a_stall_with_few_requests_is_no_queue() {
        let born = Instant::now().checked_sub(Duration::from_secs(5)).expect("a past");
        let lag = Lag { born, marked: AtomicU64::new(0), since: AtomicU64::new(0) };
        let refused = (0..20).filter(|_| lag.is_too_much(Instant::now())).count();
        assert_eq!(refused, 4, "what comes after the first sixteen");
    }
}
