//! How a server ends without losing a review, and the signals that ask for it.
//!
//! An apiserver never repeats a review whose connection breaks, and it goes on using its connections for a while after a
//! pod is removed from the Service. So after the first signal the server is no longer ready but serves as before. It
//! answers with `Connection: close`, so that callers connect to another replica next time, and does not close idle
//! connections itself. It ends when no connection has been open for a moment, or when the grace time is over.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};
use tokio::time::{Instant, sleep};

use crate::connection_limiter::ConnectionLimiter;

/// How often open connections are counted.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Whether the server is shutting down.
#[derive(Debug, Clone, Default)]
pub(super) struct Drain(Arc<AtomicBool>);

impl Drain {
    /// Starts shutting down.
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the server is shutting down.
    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Waits until no connection has been open for `quiet`, at most for `grace`; whether all connections are closed.
pub(super) async fn wait_drained(connections: &ConnectionLimiter, quiet: Duration, grace: Duration) -> bool {
    let end = Instant::now() + grace;
    let mut empty_since = None;
    loop {
        let now = Instant::now();
        // A caller may open one more connection before it learns of the other replicas. Only a pause without any
        // connection shows that all callers have left.
        if connections.open() > 0 {
            empty_since = None;
        } else if now - *empty_since.get_or_insert(now) >= quiet {
            return true;
        }
        if now >= end {
            return connections.open() == 0;
        }
        sleep(POLL_INTERVAL.min(end - now)).await;
    }
}

/// SIGTERM and SIGINT; Ctrl-Break and Ctrl-C on Windows.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(windows)]
    terminate: CtrlBreak,
    #[cfg(windows)]
    interrupt: CtrlC,
}

impl Signals {
    /// Listens to them from now on, within a runtime.
    ///
    /// # Errors
    /// When the system does not let it listen.
    #[cfg(unix)]
    pub fn listen() -> io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    /// Listens to them from now on, within a runtime.
    ///
    /// # Errors
    /// When the system does not let it listen.
    #[cfg(windows)]
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminate: ctrl_break()?, interrupt: ctrl_c()? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
