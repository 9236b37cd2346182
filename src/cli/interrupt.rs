//! Ctrl-C, where something has to be put away first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context as _;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Whether the user wants the command to end. From the moment that one is made, the process does not end by itself on
/// Ctrl-C or SIGTERM: whoever has it asks it often.
#[derive(Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to listen for both signals.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn listen() -> anyhow::Result<Self> {
        let failed = "failed to listen for Ctrl-C";
        let runtime = Builder::new_current_thread().enable_all().build().context(failed)?;
        let streams = {
            let _guard = runtime.enter();
            let stream = |kind| signal(kind).context(failed);
            (stream(SignalKind::interrupt())?, stream(SignalKind::terminate())?)
        };
        let flag = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&flag);
        thread::spawn(move || runtime.block_on(wait(streams, &set)));
        Ok(Self(flag))
    }

    /// Whether one of them came.
    #[must_use]
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

async fn wait((mut interrupts, mut terminations): (Signal, Signal), flag: &AtomicBool) {
    tokio::select! {
        _ = interrupts.recv() => {}
        _ = terminations.recv() => {}
    }
    flag.store(true, Ordering::Relaxed);
}
