//! Ctrl-C in a command that has to clean up first.

use std::thread;

use anyhow::Context as _;
use tokio::runtime::Builder;

use memgate_server::shutdown::Signals;
use memgate_workbench::build::program::Stop;

/// The exit code of shells for a command that SIGINT ended.
const ENDED: i32 = 130;

/// Sets a flag at the first Ctrl-C or SIGTERM, so that the command can clean up and end. A second signal ends the
/// process, and so does the first one after this was dropped.
#[derive(Debug)]
pub struct Interrupt {
    /// The flag.
    pub stop: Stop,
    /// Set when this is dropped: the command does not read `stop` any more.
    dropped: Stop,
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
        let interrupt = Self { stop: Stop::default(), dropped: Stop::default() };
        let (stop, dropped) = (interrupt.stop.clone(), interrupt.dropped.clone());
        thread::spawn(move || runtime.block_on(wait(signals, &stop, &dropped)));
        Ok(interrupt)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.dropped.set();
    }
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "the command does not read the flag any more")]
async fn wait(mut signals: Signals, stop: &Stop, dropped: &Stop) {
    loop {
        signals.next().await;
        if stop.is_set() || dropped.is_set() {
            std::process::exit(ENDED);
        }
        stop.set();
    }
}
