//! How a server ends without losing a review.
//!
//! An apiserver never repeats a review whose connection breaks, and it goes on using the
//! connections it has for a while after a pod is taken from the Service. So from the first signal
//! on the server is not ready but serves as before, tells each caller with `Connection: close` to
//! go elsewhere next time, and leaves idle connections to be closed by the other side. It ends
//! when none has been left for a moment, or when the grace time is over.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::server::connection::seats::Seats;

/// How often it is looked whether connections are left.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the server is about to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Drain(Arc<AtomicBool>);

impl Drain {
    /// From now on it is.
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it is.
    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Waits until there has been no connection for `quiet`, at most for `grace`. Whether there is
/// none.
pub(super) async fn drained(seats: &Seats, quiet: Duration, grace: Duration) -> bool {
    let end = Instant::now() + grace;
    let mut empty_since = None;
    loop {
        let now = Instant::now();
        if seats.taken() > 0 {
            empty_since = None;
        } else if now - *empty_since.get_or_insert(now) >= quiet {
            return true;
        }
        if now >= end {
            return seats.taken() == 0;
        }
        sleep(LOOK.min(end - now)).await;
    }
}

/// The signals that ask the process to end.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Listens to them from now on.
    pub(super) fn listen() -> io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
