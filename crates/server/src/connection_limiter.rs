//! Bounds the open connections of a listener. One connection too many closes the one that has been idle the longest.
//!
//! Between two requests a connection is idle. When none is idle, the one that has been sending a request for the
//! longest is closed, and then the one that has not read its answer for the longest. A connection whose review is being
//! answered stays open.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// All connections of one listener.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    capacity: usize,
    next_number: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Activity>>>,
}

/// The caller of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its address.
    pub(super) peer: IpAddr,
    /// When the first byte of the request was read; its head may take a while to arrive.
    pub(super) first_byte: Instant,
    /// Its connection.
    pub(super) activity: Arc<Activity>,
}

/// One of the connections that may be open; free again when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    number: u64,
    limiter: Arc<ConnectionLimiter>,
    /// The phase of its connection.
    pub(super) activity: Arc<Activity>,
}

/// The phase of a connection, and the signal that closes it.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<ActivityState>,
    evicted: Notify,
}

#[derive(Debug, Clone, Copy)]
struct ActivityState {
    phase: ConnectionPhase,
    /// When the phase began.
    since: Instant,
    /// Whether the bytes belong to requests, and not to a TLS handshake.
    is_http: bool,
    /// Whether bytes have arrived while the last answer was being written.
    next_has_begun: bool,
}

/// The phases of a connection, in the order in which connections are closed for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionPhase {
    /// In the TLS handshake, or waiting for the first byte of a request.
    Idle,
    /// Receiving the head of a request.
    Head,
    /// Receiving the body of a request.
    Body,
    /// Writing an answer.
    Writing,
    /// Answering a request whose body is there.
    Answering,
}

impl ConnectionLimiter {
    /// A limiter for `capacity` connections.
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity: capacity.max(1), next_number: AtomicU64::new(0), open: Mutex::default() })
    }

    /// A slot for a connection, and whether another connection is closed for it. `None` when all of them are
    /// answering.
    pub(super) fn acquire(self: &Arc<Self>) -> Option<(ConnectionSlot, bool)> {
        let mut open = self.lock();
        let full = open.len() >= self.capacity;
        if full && !evict_longest_idle(&mut open) {
            return None;
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let activity = Arc::new(Activity::new());
        open.insert(number, Arc::clone(&activity));
        drop(open);
        Some((ConnectionSlot { number, limiter: Arc::clone(self), activity }, full))
    }

    /// Closes the connection that has been idle the longest; whether one was closed.
    pub(super) fn evict_one(&self) -> bool {
        evict_longest_idle(&mut self.lock())
    }

    /// How many connections are open.
    pub(super) fn open(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Activity>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Signals the connection to close, and removes it at once because its task may take a moment.
fn evict_longest_idle(open: &mut BTreeMap<u64, Arc<Activity>>) -> bool {
    let phases = open.iter().map(|(number, activity)| (activity.phase(), *number));
    let evictable = phases.filter(|((phase, _), _)| *phase != ConnectionPhase::Answering);
    let longest_idle = evictable.min().and_then(|(_, number)| open.remove(&number));
    longest_idle.inspect(|activity| activity.evicted.notify_one()).is_some()
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limiter.lock().remove(&self.number);
    }
}

impl Activity {
    fn new() -> Self {
        let state = ActivityState {
            phase: ConnectionPhase::Idle,
            since: Instant::now(),
            is_http: false,
            next_has_begun: false,
        };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// The phase, and when it began.
    pub(super) fn phase(&self) -> (ConnectionPhase, Instant) {
        let state = self.state();
        (state.phase, state.since)
    }

    /// Notes that there is no TLS handshake, or that it is complete.
    pub(super) fn http_begins(&self) {
        let mut state = self.state();
        state.begin(ConnectionPhase::Idle);
        state.is_http = true;
    }

    /// Notes that bytes have arrived: on an idle connection they start a request.
    pub(super) fn bytes_received(&self) {
        let mut state = self.state();
        match state.phase {
            ConnectionPhase::Idle if state.is_http => state.begin(ConnectionPhase::Head),
            ConnectionPhase::Writing => state.next_has_begun = true,
            ConnectionPhase::Idle
            | ConnectionPhase::Head
            | ConnectionPhase::Body
            | ConnectionPhase::Answering => {}
        }
    }

    /// Notes that the head of a request is complete; returns when its first byte was read.
    pub(super) fn head_received(&self) -> Instant {
        let mut state = self.state();
        let before = *state;
        state.begin(ConnectionPhase::Body);
        if before.phase == ConnectionPhase::Head { before.since } else { state.since }
    }

    /// Notes that the body of a request is complete.
    pub(super) fn body_received(&self) {
        self.state().begin(ConnectionPhase::Answering);
    }

    /// Notes that an answer is about to be written.
    pub(super) fn answered(&self) {
        let mut state = self.state();
        state.begin(ConnectionPhase::Writing);
        state.next_has_begun = false;
    }

    /// Notes that everything was written.
    pub(super) fn flushed(&self) {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Writing {
            let next = if state.next_has_begun { ConnectionPhase::Head } else { ConnectionPhase::Idle };
            state.begin(next);
        }
    }

    /// Waits until this connection must close for another one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActivityState {
    fn begin(&mut self, phase: ConnectionPhase) {
        (self.phase, self.since) = (phase, Instant::now());
    }
}

#[cfg(test)]
mod tests;
