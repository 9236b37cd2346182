//! The log: its setup, to standard error as text or JSON, and a token bucket for lines, so that callers cannot fill a disk.
//!
//! Each subject has its own bucket, so that a flood of one subject does not hide another. Suppressed lines are counted,
//! and the next line that is logged reports how many there were.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use thiserror::Error as ThisError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use memgate_primitives::credential::masked_keys;
use memgate_primitives::plain_text::plain_except;

/// How many panics are logged: a review that causes one is sent again and again.
const PANIC_LOG_RATE: LogRate = LogRate { burst: 20, refill: Duration::from_secs(1) };

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Why logging cannot start.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The filter cannot be read.
    #[error("the log filter cannot be read")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The process already has a log.
    #[error("there is a log already")]
    AlreadySet(#[from] TryInitError),
}

/// Writes lines in which keys of known forms are masked, since an object may have one as its name, and without characters that
/// mislead readers; those of ASCII the log itself writes or escapes.
#[derive(Debug)]
pub struct Masked<W>(pub W);

impl<W: Write> Write for Masked<W> {
    /// Writes whole lines, as the log gives them.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let masked = str::from_utf8(lines).map(masked_keys);
        let shown = masked.as_deref().map(|masked| plain_except(masked, |c| c.is_ascii()));
        self.0.write_all(shown.as_ref().map_or(lines, |shown| shown.as_bytes()))?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Sends the log to standard error, and panics into the log. `filter` is a level or directives as in `RUST_LOG`.
///
/// The libraries around the Kubernetes client do not log, because their warnings can contain objects. Their callers log
/// their errors.
///
/// # Errors
/// When `filter` cannot be read, or there is a log already.
pub fn init(format: LineFormat, filter: &str) -> Result<(), Error> {
    let mut levels = EnvFilter::try_new(filter)?;
    for library in ["kube_client=off", "kube_runtime=off", "kube_lease_manager=off"] {
        levels = levels.add_directive(library.parse()?);
    }
    let log = tracing_subscriber::fmt()
        .with_env_filter(levels)
        .with_writer(|| Masked(io::stderr()))
        // If a line cannot be written, an error about it cannot be written either, and trying panics.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    match format {
        LineFormat::Text => log.finish().try_init()?,
        LineFormat::Json => log.json().flatten_event(true).finish().try_init()?,
    }
    let limiter = LogRateLimiter::new(PANIC_LOG_RATE);
    std::panic::set_hook(Box::new(move |panic| {
        let Ok(suppressed) = limiter.take("panic") else { return };
        let place = panic.location().map(ToString::to_string);
        let text = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, panic = text, suppressed, "panicked");
    }));
    Ok(())
}

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

/// Token buckets by subject, full at first, and how many lines of each were suppressed since its last one.
#[derive(Debug)]
pub(super) struct LogRateLimiter {
    buckets: DefaultKeyedRateLimiter<&'static str>,
    suppressed: Mutex<BTreeMap<&'static str, u64>>,
}

impl LogRateLimiter {
    /// A full bucket for every subject.
    pub(super) fn new(rate: LogRate) -> Self {
        let burst = NonZeroU32::MIN.saturating_add(rate.burst - 1);
        let quota = Quota::with_period(rate.refill).unwrap_or_else(|| Quota::per_second(burst));
        Self { buckets: RateLimiter::keyed(quota.allow_burst(burst)), suppressed: Mutex::default() }
    }

    /// Takes one token and returns how many lines were suppressed before this one, if any.
    ///
    /// # Errors
    /// When the bucket is empty and the line must not be logged.
    pub(super) fn take(&self, subject: &'static str) -> Result<Option<u64>, Suppressed> {
        let mut suppressed = self.suppressed.lock().unwrap_or_else(PoisonError::into_inner);
        if self.buckets.check_key(&subject).is_err() {
            *suppressed.entry(subject).or_default() += 1;
            return Err(Suppressed);
        }
        Ok(suppressed.remove(subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_mislead() {
        let mut out = Masked(Vec::new());
        let line = "\u{1b}[2mINFO\u{1b}[0m Käse \u{202e}gnp\u{2028}x\u{9b}y\n";
        out.write_all(line.as_bytes()).expect("written");
        assert_eq!(out.0, "\u{1b}[2mINFO\u{1b}[0m Käse  gnp x y\n".as_bytes());
    }

    #[test]
    fn suppresses_lines_beyond_the_rate_and_counts_them() {
        let limiter = LogRateLimiter::new(LogRate { burst: 2, refill: Duration::from_mins(1) });
        assert_eq!(
            [0; 5].map(|_| limiter.take("late")),
            [Ok(None), Ok(None), Err(Suppressed), Err(Suppressed), Err(Suppressed)]
        );
        assert_eq!(limiter.take("fault"), Ok(None), "another subject has its own bucket");
        let limiter = LogRateLimiter::new(LogRate { burst: 1, refill: Duration::from_millis(5) });
        assert_eq!(limiter.take("late"), Ok(None));
        let mut suppressed = 0;
        let reported = loop {
            match limiter.take("late") {
                Ok(reported) => break reported,
                Err(Suppressed) => suppressed += 1,
            }
        };
        assert_eq!(reported.unwrap_or_default(), suppressed);
    }
}
