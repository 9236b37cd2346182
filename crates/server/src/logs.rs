//! The log: its setup, to standard error as text or JSON, and a token bucket for lines, so that callers cannot fill a disk.
//!
//! Each subject has its own bucket, so that a flood of one subject does not hide another. Suppressed lines are counted,
//! and the next line that is logged reports how many there were.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error as ThisError;
use tokio::time::Instant;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use memgate_primitives::credential::masked_keys;

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

/// Writes lines in which keys of known forms are masked, since an object may have one as its name.
#[derive(Debug)]
pub struct Masked<W>(pub W);

impl<W: Write> Write for Masked<W> {
    /// Writes whole lines, as the log gives them.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let masked = str::from_utf8(lines).map(masked_keys);
        self.0.write_all(masked.as_ref().map_or(lines, |masked| masked.as_bytes()))?;
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

/// The buckets, by subject.
#[derive(Debug)]
pub(super) struct LogRateLimiter {
    rate: LogRate,
    lines: Mutex<BTreeMap<&'static str, Lines>>,
}

/// A token bucket, full at first.
#[derive(Debug, Default)]
struct Bucket {
    /// When it is full again.
    full_at: Option<Instant>,
}

impl Bucket {
    /// Takes one token; whether there was one.
    fn take(&mut self, rate: LogRate, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |full_at| full_at.max(now)) + rate.refill;
        let has_token = full_at.duration_since(now) <= rate.refill * rate.burst;
        if has_token {
            self.full_at = Some(full_at);
        }
        has_token
    }
}

/// The lines of one subject.
#[derive(Debug, Default)]
struct Lines {
    bucket: Bucket,
    suppressed: u64,
}

impl LogRateLimiter {
    /// A full bucket for every subject.
    pub(super) const fn new(rate: LogRate) -> Self {
        Self { rate, lines: Mutex::new(BTreeMap::new()) }
    }

    /// Takes one token and returns how many lines were suppressed before this one, if any.
    ///
    /// # Errors
    /// When the bucket is empty and the line must not be logged.
    pub(super) fn take(&self, subject: &'static str) -> Result<Option<u64>, Suppressed> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = lines.entry(subject).or_default();
        if !lines.bucket.take(self.rate, Instant::now()) {
            lines.suppressed += 1;
            return Err(Suppressed);
        }
        Ok(Some(std::mem::take(&mut lines.suppressed)).filter(|suppressed| *suppressed > 0))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn suppresses_lines_beyond_the_rate_and_counts_them() {
        let limiter = LogRateLimiter::new(LogRate { burst: 2, refill: Duration::from_secs(1) });
        assert_eq!(
            [0; 5].map(|_| limiter.take("late")),
            [Ok(None), Ok(None), Err(Suppressed), Err(Suppressed), Err(Suppressed)]
        );
        assert_eq!(limiter.take("fault"), Ok(None), "another subject has its own bucket");
        advance(Duration::from_secs(1)).await;
        assert_eq!(limiter.take("late"), Ok(Some(3)));
    }
}
