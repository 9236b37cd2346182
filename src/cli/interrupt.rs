//! Ctrl-C, where something has to be put away first.

use std::thread;

use anyhow::Context as _;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::offline::stop::Stop;

/// A flag that Ctrl-C and SIGTERM set. From then on the process does not end by itself on either: whoever has the flag
/// asks it often.
///
/// # Errors
/// When the system does not let it listen.
pub fn listen() -> anyhow::Result<Stop> {
    let failed = "failed to listen for Ctrl-C";
    let runtime = Builder::new_current_thread().enable_all().build().context(failed)?;
    let streams = {
        let _guard = runtime.enter();
        let stream = |kind| signal(kind).context(failed);
        (stream(SignalKind::interrupt())?, stream(SignalKind::terminate())?)
    };
    let stop = Stop::default();
    let set = stop.clone();
    thread::spawn(move || runtime.block_on(wait(streams, &set)));
    Ok(stop)
}

async fn wait((mut interrupts, mut terminations): (Signal, Signal), stop: &Stop) {
    tokio::select! {
        _ = interrupts.recv() => {}
        _ = terminations.recv() => {}
    }
    stop.set();
}
