//! The signals that ask the process to end.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

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
