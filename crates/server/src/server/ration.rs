//! How many lines may be logged: what callers can cause must not fill a disk.
//!
//! Each subject has a bucket of its own, so that a flood of one does not hide another. What is
//! withheld is counted, and the next line tells.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// The longest text out of a request that is logged: the longest name that Kubernetes has.
const LONGEST: usize = 253;

/// How many lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// At once, after a time without any.
    pub(super) burst: u32,
    /// In the long run.
    pub(super) per_second: u32,
}

/// The lines that are left, by subject.
#[derive(Debug)]
pub(super) struct Ration {
    rate: Rate,
    buckets: Mutex<BTreeMap<&'static str, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    filled: Instant,
    withheld: u64,
}

impl Ration {
    /// A full bucket for every subject.
    pub(super) const fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::new(BTreeMap::new()) }
    }

    /// Takes one line: how many were withheld before it. `None` when there is none left.
    pub(super) fn take(&self, subject: &'static str) -> Option<u64> {
        self.take_at(subject, Instant::now())
    }

    fn take_at(&self, subject: &'static str, now: Instant) -> Option<u64> {
        let burst = f64::from(self.rate.burst);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(subject).or_insert(Bucket { left: burst, filled: now, withheld: 0 });
        let more =
            now.saturating_duration_since(bucket.filled).as_secs_f64() * f64::from(self.rate.per_second);
        (bucket.left, bucket.filled) = ((bucket.left + more).min(burst), now);
        if bucket.left < 1.0 {
            bucket.withheld += 1;
            return None;
        }
        bucket.left -= 1.0;
        Some(std::mem::take(&mut bucket.withheld))
    }
}

/// A text out of a request, cut to what is worth a line.
pub(super) fn clip(text: &str) -> &str {
    let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn withholds_what_is_too_much_and_tells_how_much() {
        let ration = Ration::new(Rate { burst: 2, per_second: 1 });
        let start = Instant::now();
        let take = |subject, seconds| ration.take_at(subject, start + Duration::from_secs(seconds));
        assert_eq!([0; 5].map(|second| take("late", second)), [Some(0), Some(0), None, None, None]);
        assert_eq!(take("fault", 0), Some(0), "another subject has lines of its own");
        assert_eq!([1; 2].map(|second| take("late", second)), [Some(3), None]);
        assert_eq!([60; 3].map(|second| take("late", second)), [Some(1), Some(0), None]);
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(clip("name"), "name");
        assert_eq!(clip(&"é".repeat(300)).chars().count(), LONGEST);
    }
}
