//! The one place of the crate that reads the wall clock.
//!
//! Only what compares with dates in certificates needs it: deadlines and ages are monotonic
//! (`Instant`), and decisions know no time at all.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time now.
#[expect(clippy::disallowed_methods, reason = "this is the clock module that the lint sends everybody to")]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

/// The time now in seconds since 1970, as certificates and metrics count it.
pub(super) fn unix_now() -> i64 {
    let since_epoch = now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX)
}
