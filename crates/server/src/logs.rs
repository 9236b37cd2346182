//! Sets up logging to standard error, as text or JSON.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use thiserror::Error as ThisError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::TryInitError;

use tracing_subscriber::util::SubscriberInitExt;

use memgate_primitives::credential::masked_keys;

use crate::log_rate_limiter::{LogRate, LogRateLimiter};

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
