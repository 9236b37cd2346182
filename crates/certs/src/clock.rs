//! The only module of the crate that reads the wall clock.
//!
//! Only comparisons with dates in certificates and policies need it: deadlines and ages are monotonic
//! (`Instant`), and the time of a decision is an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// A wall clock: the machine's, or one that goes ahead of it or behind it by so many seconds.
///
/// All clones are the same clock. A machine that was suspended looks like one whose clock jumped,
/// since monotonic time stands still in between.
#[derive(Debug, Clone, Default)]
pub struct Clock(Arc<AtomicI64>);

impl Clock {
    /// Moves the clock by so many seconds from where it is now; negative ones are back in time.
    pub fn shift(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    /// The time now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock module that the lint names")]
    pub fn now(&self) -> SystemTime {
        let (now, seconds) = (SystemTime::now(), self.0.load(Ordering::Relaxed));
        let shift = Duration::from_secs(seconds.unsigned_abs());
        let shifted = if seconds < 0 { now.checked_sub(shift) } else { now.checked_add(shift) };
        shifted.unwrap_or(now)
    }

    /// The time now in seconds since 1970, as certificates and metrics count it.
    pub fn unix_now(&self) -> i64 {
        let since_epoch = self.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX)
    }

    /// The time now, as policies count it; the last representable time beyond that.
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::try_from(self.now()).unwrap_or(Timestamp::MAX)
    }
}

/// A time in seconds since 1970 as a date, for people: `2026-01-02T03:04:05Z`.
pub fn date(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| format!("second {seconds}"), |time| time.to_string())
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        self.now().duration_since(UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
    }
}
