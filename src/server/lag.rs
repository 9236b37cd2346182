//! How far the runtime is behind: how long a task that could run waits until it does.
//!
//! A few thousand connections of which each sends one review at a time are behind by milliseconds at
//! most. Where decisions are a hundred times dearer than usual, or the machine is taken away, that
//! grows to what callers wait for, and then every answer would come too late. So beyond a share of the
//! time that a request has left it is refused at once, which costs next to nothing, and those that are
//! taken are answered in time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often it is measured.
const PERIOD: Duration = Duration::from_millis(20);

/// The share of the time left that waiting may take.
const SHARE: u32 = 4;

/// What is never too much: a busy machine lets anybody wait so long now and then.
const LEAST: Duration = Duration::from_millis(200);

/// The lesser of the two lags that were measured last, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Lag(AtomicU64);

impl Lag {
    /// Measures for as long as the runtime runs it.
    pub(super) async fn measure(&self) {
        let mut before = Duration::ZERO;
        loop {
            let start = Instant::now();
            sleep(PERIOD).await;
            let lag = start.elapsed().saturating_sub(PERIOD);
            // A machine that was taken away for a moment is behind once, one with too much work twice.
            self.set(lag.min(before));
            before = lag;
        }
    }

    /// Whether it is too much for a request that must be answered by `deadline`.
    pub(super) fn is_too_much(&self, deadline: Instant) -> bool {
        let lag = Duration::from_micros(self.0.load(Ordering::Relaxed));
        lag > LEAST && lag > deadline.saturating_duration_since(Instant::now()) / SHARE
    }

    fn set(&self, lag: Duration) {
        self.0.store(u64::try_from(lag.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_too_much_beyond_a_share_of_the_time_left() {
        let lag = Lag::default();
        let deadline = Instant::now() + Duration::from_secs(10);
        assert!(!lag.is_too_much(deadline));
        lag.set(Duration::from_secs(2));
        assert!(!lag.is_too_much(deadline));
        lag.set(Duration::from_secs(3));
        assert!(lag.is_too_much(deadline));
        lag.set(Duration::from_millis(1));
        assert!(!lag.is_too_much(Instant::now()), "a millisecond is nothing");
    }
}
