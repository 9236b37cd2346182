//! The clock that counts: the apiserver's. The only module of the crate that reads the machine's.
//!
//! Only comparisons with dates in certificates and policies need it: deadlines and ages are monotonic
//! (`Instant`), and the time of a decision is an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::header::DATE;
use axum::http::{HeaderMap, Request};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use kube::Client;
use kube::client::Body;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// A difference of so many seconds between two clocks is not one: the header has whole seconds, and answers travel.
const TOLERANCE: u64 = 5;

/// Beyond so many seconds the machine's clock is wrong, not only imprecise.
const WRONG: u64 = 300;

/// The machine's clock, put right by the dates of an apiserver's answers.
///
/// All clones are the same clock. A machine that was suspended looks like one whose clock jumped,
/// since monotonic time stands still in between.
#[derive(Debug, Clone, Default)]
pub struct Clock(Arc<Shifts>);

/// Seconds that are added to the machine's time.
#[derive(Debug, Default)]
struct Shifts {
    apiserver: AtomicI64,
    given: AtomicI64,
}

impl Clock {
    /// Moves the clock by so many seconds from where it is now; negative ones are back in time.
    pub fn shift(&self, seconds: i64) {
        self.0.given.fetch_add(seconds, Ordering::Relaxed);
    }

    /// A client whose answers set this clock.
    #[must_use]
    pub fn set_by(&self, client: &Client) -> Client {
        let (clock, inner) = (self.clone(), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (clock, inner) = (clock.clone(), inner.clone());
            async move {
                let answer = inner.send(request).await?;
                clock.hear(answer.headers());
                Ok::<_, kube::Error>(answer)
            }
        });
        Client::new(service, client.default_namespace())
    }

    /// By how many seconds the machine's clock is ahead of the apiserver's.
    pub fn ahead(&self) -> i64 {
        -self.0.apiserver.load(Ordering::Relaxed)
    }

    /// By how many seconds the machine's clock is wrong; `None` while it is good enough.
    pub fn wrong_by(&self) -> Option<i64> {
        Some(self.ahead()).filter(|seconds| seconds.unsigned_abs() > WRONG)
    }

    /// The time now.
    pub fn now(&self) -> SystemTime {
        let shifts = [&self.0.apiserver, &self.0.given].map(|shift| shift.load(Ordering::Relaxed));
        let (now, seconds) = (machine(), shifts.iter().sum::<i64>());
        let shift = Duration::from_secs(seconds.unsigned_abs());
        let shifted = if seconds < 0 { now.checked_sub(shift) } else { now.checked_add(shift) };
        shifted.unwrap_or(now)
    }

    /// The time now in seconds since 1970, as certificates and metrics count it.
    pub fn unix_now(&self) -> i64 {
        seconds(self.now())
    }

    /// The time now, as policies count it; the last representable time beyond that.
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::try_from(self.now()).unwrap_or(Timestamp::MAX)
    }

    fn hear(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        let Some(date) = date else { return };
        // Of the machine's clock alone: two answers at once say the same twice.
        let behind = date.as_second().saturating_sub(seconds(machine()));
        if behind.abs_diff(self.0.apiserver.load(Ordering::Relaxed)) > TOLERANCE {
            self.0.apiserver.store(behind, Ordering::Relaxed);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock module that the lint names")]
fn machine() -> SystemTime {
    SystemTime::now()
}

/// A time in seconds since 1970; zero before.
fn seconds(time: SystemTime) -> i64 {
    i64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
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

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use jiff::SignedDuration;
    use jiff::fmt::rfc2822::DateTimePrinter;

    use super::*;

    fn hears(clock: &Clock, machine: Timestamp, seconds: i64) {
        let date = machine + SignedDuration::from_secs(seconds);
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&date).expect("a date");
        clock.hear(&HeaderMap::from_iter([(DATE, HeaderValue::from_str(&date).expect("text"))]));
    }

    #[test]
    fn follows_the_apiserver_and_knows_how_wrong_the_machine_is() {
        let clock = Clock::default();
        let machine = clock.timestamp();
        let runs = |clock: &Clock, ahead: i64| (clock.unix_now() - machine.as_second() - ahead).abs() < 60;
        clock.hear(&HeaderMap::from_iter([(DATE, HeaderValue::from_static("tomorrow"))]));
        for (seconds, wrong) in [(3 * 86400, true), (-3 * 86400, true), (120, false), (0, false)] {
            hears(&clock, machine, seconds);
            assert!(runs(&clock, seconds), "{seconds}");
            assert_eq!(clock.wrong_by().is_some(), wrong, "{seconds}");
        }
        clock.shift(7 * 86400);
        hears(&clock, machine, 86400);
        assert!(runs(&clock, 8 * 86400), "what was given is kept");
        assert!(clock.wrong_by().is_some_and(|wrong| wrong < -86000));
    }
}
