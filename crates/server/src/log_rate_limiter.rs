//! A token bucket for log lines, so that callers cannot fill a disk.
//!
//! Each subject has its own bucket, so that a flood of one subject does not hide another. Suppressed lines are counted,
//! and the next line that is logged reports how many there were.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// How many lines may be logged.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogRate {
    /// At once, from a full bucket.
    pub(super) burst: u32,
    /// How long one line takes to become available again.
    pub(super) refill: Duration,
}

/// A line must not be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suppressed;

/// The buckets, by subject.
#[derive(Debug)]
pub(super) struct LogRateLimiter {
    rate: LogRate,
    buckets: Mutex<BTreeMap<&'static str, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    tokens: DefaultDirectRateLimiter,
    suppressed: u64,
}

impl LogRateLimiter {
    /// A full bucket for every subject.
    pub(super) const fn new(rate: LogRate) -> Self {
        Self { rate, buckets: Mutex::new(BTreeMap::new()) }
    }

    /// Takes one token and returns how many lines were suppressed before this one, if any.
    ///
    /// # Errors
    /// When the bucket is empty and the line must not be logged.
    pub(super) fn take(&self, subject: &'static str) -> Result<Option<u64>, Suppressed> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let LogRate { burst, refill } = self.rate;
        let quota = Quota::with_period(refill).unwrap_or(Quota::per_second(NonZeroU32::MIN));
        let quota = quota.allow_burst(NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN));
        let full = || Bucket { tokens: RateLimiter::direct(quota), suppressed: 0 };
        let bucket = buckets.entry(subject).or_insert_with(full);
        if bucket.tokens.check().is_err() {
            bucket.suppressed += 1;
            return Err(Suppressed);
        }
        Ok(Some(std::mem::take(&mut bucket.suppressed)).filter(|suppressed| *suppressed > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppresses_lines_beyond_the_rate_and_counts_them() {
        let limiter = LogRateLimiter::new(LogRate { burst: 2, refill: Duration::from_secs(1) });
        assert_eq!(
            [0; 5].map(|_| limiter.take("late")),
            [Ok(None), Ok(None), Err(Suppressed), Err(Suppressed), Err(Suppressed)]
        );
        assert_eq!(limiter.take("fault"), Ok(None), "another subject has its own bucket");
        std::thread::sleep(Duration::from_millis(1_100));
        assert_eq!(limiter.take("late"), Ok(Some(3)));
    }
}
