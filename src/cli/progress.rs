//! A line on a terminal that says how far a long run is.

use std::io::{self, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use memgate_workbench::progress::Progress;

/// After so long a run counts as long.
const LONG: Duration = Duration::from_secs(2);
/// How often the line is written again.
const OFTEN: Duration = Duration::from_millis(200);

/// A thread that writes the line, which is wiped when this is dropped.
#[derive(Debug)]
pub struct Following {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    /// Begins to follow.
    pub fn new(progress: Progress) -> Self {
        let (end, ended) = channel::<()>();
        let write = move || {
            let goes_on = |wait| ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
            let mut wait = LONG;
            while goes_on(wait) {
                wait = OFTEN;
                // Without standard error there is nothing to follow.
                let _ = write!(io::stderr(), "\r{}\x1b[K", progress.words());
            }
            if wait == OFTEN {
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        };
        Self { end: Some(end), thread: Some(thread::spawn(write)) }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
