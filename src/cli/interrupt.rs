//! Ctrl-C, where something has to be put away first.

use std::thread;

use anyhow::Context as _;
use tokio::runtime::Builder;

use crate::offline::stop::Stop;
use crate::server::signals::Signals;

/// The exit code of a command that a user has ended, as shells have it for SIGINT.
const ENDED: i32 = 130;

/// From the first Ctrl-C or SIGTERM on a flag is set, for as long as this is kept: whoever has the flag ends in order.
/// A second one ends the process, and so does the first one after this is dropped.
#[derive(Debug)]
pub struct Interrupt {
    /// The flag.
    pub stop: Stop,
    /// Set when nobody asks for the flag any more.
    unheard: Stop,
}

impl Interrupt {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the system does not let it listen.
    pub fn listen() -> anyhow::Result<Self> {
        let failed = "failed to listen for Ctrl-C";
        let runtime = Builder::new_current_thread().enable_all().build().context(failed)?;
        let signals = {
            let _guard = runtime.enter();
            Signals::listen().context(failed)?
        };
        let interrupt = Self { stop: Stop::default(), unheard: Stop::default() };
        let (stop, unheard) = (interrupt.stop.clone(), interrupt.unheard.clone());
        thread::spawn(move || runtime.block_on(wait(signals, &stop, &unheard)));
        Ok(interrupt)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.unheard.set();
    }
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "nobody hears it otherwise")]
async fn wait(mut signals: Signals, stop: &Stop, unheard: &Stop) {
    loop {
        signals.next().await;
        if stop.is_set() || unheard.is_set() {
            std::process::exit(ENDED);
        }
        stop.set();
    }
}
