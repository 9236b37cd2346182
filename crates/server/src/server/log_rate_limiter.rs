//! A token bucket for log lines: lines that callers can cause must not fill a disk.
//!
//! Each subject has a bucket of its own, so that a flood of one does not hide another. Suppressed lines are
//! counted, and the next line that is logged says how many there were.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// How much of a value out of a request is logged: the longest name that Kubernetes allows.
const MAX_VALUE_CHARS: usize = 253;

/// How many lines may be logged.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogRate {
    /// At once, from a full bucket.
    pub(super) burst: u32,
    /// How fast the bucket fills again.
    pub(super) per_second: u32,
}

/// The buckets, by subject.
#[derive(Debug)]
pub(super) struct LogRateLimiter {
    rate: LogRate,
    buckets: Mutex<BTreeMap<&'static str, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    refilled: Instant,
    suppressed: u64,
}

impl LogRateLimiter {
    /// A full bucket for every subject.
    pub(super) const fn new(rate: LogRate) -> Self {
        Self { rate, buckets: Mutex::new(BTreeMap::new()) }
    }

    /// Takes one token: how many lines were suppressed before this one. `None` when the bucket is empty and the
    /// line must not be logged.
    pub(super) fn take(&self, subject: &'static str) -> Option<u64> {
        self.take_at(subject, Instant::now())
    }

    fn take_at(&self, subject: &'static str, now: Instant) -> Option<u64> {
        let burst = f64::from(self.rate.burst);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(subject).or_insert(Bucket { tokens: burst, refilled: now, suppressed: 0 });
        let more =
            now.saturating_duration_since(bucket.refilled).as_secs_f64() * f64::from(self.rate.per_second);
        (bucket.tokens, bucket.refilled) = ((bucket.tokens + more).min(burst), now);
        if bucket.tokens < 1.0 {
            bucket.suppressed += 1;
            return None;
        }
        bucket.tokens -= 1.0;
        Some(std::mem::take(&mut bucket.suppressed))
    }
}

/// The beginning of a value out of a request, at most [`MAX_VALUE_CHARS`] long.
pub(super) fn truncate(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_VALUE_CHARS).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn suppresses_what_is_too_much_and_counts_it() {
        let limiter = LogRateLimiter::new(LogRate { burst: 2, per_second: 1 });
        let start = Instant::now();
        let take = |subject, seconds| limiter.take_at(subject, start + Duration::from_secs(seconds));
        assert_eq!([0; 5].map(|second| take("late", second)), [Some(0), Some(0), None, None, None]);
        assert_eq!(take("fault", 0), Some(0), "another subject has lines of its own");
        assert_eq!([1; 2].map(|second| take("late", second)), [Some(3), None]);
        assert_eq!([60; 3].map(|second| take("late", second)), [Some(1), Some(0), None]);
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(truncate("name"), "name");
        assert_eq!(truncate(&"é".repeat(300)).chars().count(), MAX_VALUE_CHARS);
    }
}
