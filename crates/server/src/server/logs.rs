//! Where the log goes and what it looks like.

use std::io::IsTerminal;

use thiserror::Error as ThisError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::TryInitError;

use tracing_subscriber::util::SubscriberInitExt;

use crate::server::ration::{Rate, Ration};

/// How many panics a second are told: a review that causes one is sent again and again.
const PANICS: Rate = Rate { burst: 20, per_second: 1 };

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Why there is no log.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The filter cannot be read.
    #[error("the log filter cannot be read")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Somebody else was faster.
    #[error("there is a log already")]
    Twice(#[from] TryInitError),
}

/// Sends the log to standard error, and panics into the log. `filter` is a level or directives as
/// in `RUST_LOG`.
///
/// The Kubernetes client is not heard: in its warnings it prints answers that it cannot read, and
/// those are objects. What fails there is told by whoever asked.
///
/// # Errors
/// When `filter` cannot be read, or there is a log already.
pub fn init(format: Format, filter: &str) -> Result<(), Error> {
    let mut levels = EnvFilter::try_new(filter)?;
    for library in ["kube_client=off", "kube_runtime=off"] {
        levels = levels.add_directive(library.parse()?);
    }
    let log = tracing_subscriber::fmt()
        .with_env_filter(levels)
        .with_writer(std::io::stderr)
        // Where no line can be written, neither can a complaint about it, and trying ends the thread.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        Format::Text => log.finish().try_init()?,
        Format::Json => log.json().flatten_event(true).finish().try_init()?,
    }
    let lines = Ration::new(PANICS);
    std::panic::set_hook(Box::new(move |panic| {
        let Some(withheld) = lines.take("panic").map(|withheld| (withheld > 0).then_some(withheld)) else {
            return;
        };
        let place = panic.location().map(ToString::to_string);
        let text = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, panic = text, withheld, "panicked");
    }));
    Ok(())
}
