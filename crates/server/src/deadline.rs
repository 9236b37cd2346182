//! The time by which a request must be answered, from `?timeout=`, which the apiserver sends.

use std::time::Duration;

use tokio::time::Instant;

use memgate_primitives::duration;

/// The longest `timeoutSeconds` of a webhook in Kubernetes; longer ones are cut to it.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// The times by which parts of one request must be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    /// When the answer must be ready.
    pub(super) answer: Instant,
    /// When lookups must be done: early enough to answer without them.
    pub(super) lookups: Instant,
    /// When the lookups must be done without which the object is refused: its author learns the reason within a second,
    /// and its controller tries again.
    pub(super) required_lookups: Instant,
}

/// How long a review waits for lookups without which its object is refused.
const REQUIRED_LOOKUPS: Duration = Duration::from_millis(800);

impl Deadline {
    /// The deadline of a request that came in at `start` and may take `timeout`. One second of the timeout is
    /// left for the network, because the apiserver rounds the value up. Of a timeout of one second or less, two fifths
    /// are left.
    pub(super) fn new(start: Instant, timeout: Duration) -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        let timeout = timeout.min(MAX_TIMEOUT);
        let budget = timeout.checked_sub(SECOND).filter(|left| !left.is_zero()).unwrap_or(timeout * 3 / 5);
        let lookups = budget * 4 / 5;
        let required_lookups = start + lookups.min(REQUIRED_LOOKUPS);
        Self { answer: start + budget, lookups: start + lookups, required_lookups }
    }
}

/// The value of `timeout` in a query string; `None` without one. Durations never have percent-escapes, so none are
/// decoded.
///
/// # Errors
/// When the value is not a duration above zero.
pub(super) fn timeout(query: Option<&str>) -> Result<Option<Duration>, InvalidTimeout> {
    let mut pairs = query.unwrap_or_default().split('&');
    let Some(value) = pairs.find_map(|pair| pair.strip_prefix("timeout=")) else {
        return Ok(None);
    };
    let duration = duration::parse(value).filter(|duration| !duration.is_zero()).ok_or(InvalidTimeout)?;
    Ok(Some(duration))
}

/// A `timeout` that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidTimeout;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations_as_go_writes_them() {
        for (query, expected) in [
            ("timeout=10s", Some(Duration::from_secs(10))),
            ("a=b&timeout=1m30s", Some(Duration::from_secs(90))),
            ("timeout=1.5s&a=b", Some(Duration::from_millis(1500))),
            ("timeout=500ms", Some(Duration::from_millis(500))),
            ("a=b", None),
            ("", None),
        ] {
            assert_eq!(timeout(Some(query)), Ok(expected), "{query}");
        }
    }

    #[test]
    fn refuses_other_values() {
        for query in ["timeout=", "timeout=10", "timeout=s", "timeout=-1s", "timeout=0s", "timeout=1..2s"] {
            assert_eq!(timeout(Some(query)), Err(InvalidTimeout), "{query}");
        }
        assert_eq!(timeout(Some(&format!("timeout={}s", "9".repeat(30)))), Err(InvalidTimeout));
    }

    #[test]
    fn leaves_time_for_the_network() {
        let start = Instant::now();
        for (timeout, budget) in [(10_000, 9_000), (2_000, 1_000), (1_000, 600), (500, 300), (99_000, 29_000)]
        {
            let deadline = Deadline::new(start, Duration::from_millis(timeout));
            assert_eq!(deadline.answer - start, Duration::from_millis(budget));
            assert!(deadline.lookups < deadline.answer);
            assert_eq!(deadline.required_lookups, deadline.lookups.min(start + REQUIRED_LOOKUPS));
        }
    }
}
