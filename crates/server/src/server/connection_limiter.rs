//! Bounds the open connections of a listener, and closes the least useful one when there is one too many.
//!
//! A connection whose request is being answered stays: there are never more of those than the concurrency
//! limit admits. So does one whose answer is being written, for a moment. Of the others, the first of this
//! order is closed:
//!
//! 1. one that has been open for a while without a single review: an apiserver sends one within
//!    milliseconds, so this peer only occupies the connection, or sends a byte a second; or one whose peer has
//!    not read its answer for a while;
//! 2. one of an address that has more than half of all connections;
//! 3. one without a review so far, the oldest first;
//! 4. one that is idle, the longest idle first;
//! 5. one in the middle of the head of a request.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection that is older than this without having had a review answered, or has not been able to write an
/// answer for so long, is the first to be closed.
const USELESS_AFTER: Duration = Duration::from_secs(1);

/// All connections of one listener.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    capacity: usize,
    next_number: AtomicU64,
    open: Mutex<OpenConnections>,
}

/// The connections that are open, and how many each peer has.
#[derive(Debug, Default)]
struct OpenConnections {
    /// By number; a later connection has a higher one.
    connections: BTreeMap<u64, (IpAddr, Arc<Activity>)>,
    /// How many connections each address has.
    per_peer: BTreeMap<IpAddr, usize>,
}

/// One of the connections that may be open; free again when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    number: u64,
    limiter: Arc<ConnectionLimiter>,
    /// Where it comes from.
    pub(super) peer: IpAddr,
    /// What its connection is doing.
    pub(super) activity: Arc<Activity>,
}

/// What a connection is doing.
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
    /// When the connection was accepted.
    opened: Instant,
    /// Whether a review of its was answered yet.
    reviewed: bool,
    /// Whether bytes have arrived while the last answer was being written.
    next_has_begun: bool,
}

/// The phases of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// Shaking hands, or waiting for the first byte of a request.
    Idle,
    /// Receiving the head of a request.
    Head,
    /// Answering a request; its body belongs to this.
    Busy,
    /// Writing the answer.
    Writing,
}

impl ConnectionLimiter {
    /// A limiter for `capacity` connections.
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity: capacity.max(1), next_number: AtomicU64::new(0), open: Mutex::default() })
    }

    /// A slot for a connection from `peer`, and whether another connection is closed for it. `None` when the
    /// requests of all of them are being answered.
    pub(super) fn acquire(self: &Arc<Self>, peer: IpAddr) -> Option<(ConnectionSlot, bool)> {
        let mut open = self.lock();
        let full = open.connections.len() >= self.capacity;
        if full && !open.evict(self.capacity) {
            return None;
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let activity = Arc::new(Activity::new());
        open.insert(number, peer.to_canonical(), Arc::clone(&activity));
        drop(open);
        Some((ConnectionSlot { number, limiter: Arc::clone(self), peer, activity }, full))
    }

    /// Closes the least useful connection; whether there was one that may be closed.
    pub(super) fn evict_one(&self) -> bool {
        self.lock().evict(self.capacity)
    }

    /// How many connections are open.
    pub(super) fn open(&self) -> usize {
        self.lock().connections.len()
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn insert(&mut self, number: u64, peer: IpAddr, activity: Arc<Activity>) {
        self.connections.insert(number, (peer, activity));
        *self.per_peer.entry(peer).or_default() += 1;
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Activity>> {
        let (peer, activity) = self.connections.remove(&number)?;
        if let Some(count) = self.per_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.per_peer.remove(&peer);
            }
        }
        Some(activity)
    }

    /// Tells the least useful connection to close, and forgets it at once: its task may take a moment.
    fn evict(&mut self, capacity: usize) -> bool {
        let least = self.least_useful(capacity).and_then(|number| self.remove(number));
        least.inspect(|activity| activity.evict()).is_some()
    }

    fn least_useful(&self, capacity: usize) -> Option<u64> {
        // The key is the order of the module documentation; the lowest one is closed. `Reverse` puts what is
        // true first.
        let is_crowding = |peer: &IpAddr| self.per_peer.get(peer).is_some_and(|count| *count > capacity / 2);
        let now = Instant::now();
        let rank = |(number, (peer, activity)): (&u64, &(IpAddr, Arc<Activity>))| {
            let state = *activity.state();
            let (class, since) = state.rank(now)?;
            Some((Reverse(state.is_useless(now)), Reverse(is_crowding(peer)), class, since, *number))
        };
        self.connections.iter().filter_map(rank).min().map(|(.., number)| number)
    }
}

impl ActivityState {
    /// Whether it has been open for long without a review, or without its answer being read.
    fn is_useless(self, now: Instant) -> bool {
        let is_old = |instant| now.saturating_duration_since(instant) > USELESS_AFTER;
        (!self.reviewed && is_old(self.opened))
            || (self.phase == ConnectionPhase::Writing && is_old(self.since))
    }

    /// Its class among those that may be closed, and since when it has been in it; the lowest is closed first.
    /// `None` for one that must stay.
    fn rank(self, now: Instant) -> Option<(u8, Option<Instant>)> {
        match (self.phase, self.reviewed) {
            (ConnectionPhase::Busy, _) => None,
            (ConnectionPhase::Writing, _) if !self.is_useless(now) => None,
            (ConnectionPhase::Writing, _) => Some((0, Some(self.since))),
            // No time: the number decides, so dripping bytes does not help.
            (_, false) => Some((0, None)),
            (ConnectionPhase::Idle, true) => Some((1, Some(self.since))),
            (ConnectionPhase::Head, true) => Some((2, Some(self.since))),
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limiter.lock().remove(self.number);
    }
}

impl Activity {
    fn new() -> Self {
        let now = Instant::now();
        let state = ActivityState {
            phase: ConnectionPhase::Idle,
            since: now,
            opened: now,
            reviewed: false,
            next_has_begun: false,
        };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// The phase, and when it began.
    pub(super) fn phase(&self) -> (ConnectionPhase, Instant) {
        let state = self.state();
        (state.phase, state.since)
    }

    /// Bytes have arrived: on an idle connection they start a request.
    pub(super) fn bytes_received(&self) {
        let mut state = self.state();
        match state.phase {
            ConnectionPhase::Idle => (state.phase, state.since) = (ConnectionPhase::Head, Instant::now()),
            ConnectionPhase::Writing => state.next_has_begun = true,
            ConnectionPhase::Head | ConnectionPhase::Busy => {}
        }
    }

    /// The head of a request is complete.
    pub(super) fn request_received(&self) {
        let mut state = self.state();
        (state.phase, state.since) = (ConnectionPhase::Busy, Instant::now());
    }

    /// There is an answer to a request, which is to be written; `is_review` unless it was rejected as a bad
    /// request.
    pub(super) fn answered(&self, is_review: bool) {
        let mut state = self.state();
        state.reviewed |= is_review;
        (state.phase, state.since, state.next_has_begun) = (ConnectionPhase::Writing, Instant::now(), false);
    }

    /// All that was to be written has been.
    pub(super) fn flushed(&self) {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Writing {
            let next = if state.next_has_begun { ConnectionPhase::Head } else { ConnectionPhase::Idle };
            (state.phase, state.since) = (next, Instant::now());
        }
    }

    /// Closes this connection for another one.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Waits until this connection is to be closed for another one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn acquire(limiter: &Arc<ConnectionLimiter>, host: u8) -> (ConnectionSlot, bool) {
        limiter.acquire(IpAddr::from([127, 0, 0, host])).expect("a slot")
    }

    /// A request of this connection is answered, and the answer written.
    fn respond(slot: &ConnectionSlot, is_review: bool) {
        slot.activity.answered(is_review);
        slot.activity.flushed();
    }

    fn is_closed(slot: &ConnectionSlot) -> bool {
        !slot.limiter.lock().connections.contains_key(&slot.number)
    }

    #[tokio::test]
    async fn the_oldest_that_got_no_answer_goes_first() {
        let limiter = ConnectionLimiter::new(3);
        let (reviewed, _) = acquire(&limiter, 1);
        respond(&reviewed, true);
        let (silent, _) = acquire(&limiter, 1);
        let (_newer, evicted) = acquire(&limiter, 1);
        assert!(!evicted);
        let (_newest, evicted) = acquire(&limiter, 1);
        assert!(evicted);
        silent.activity.evicted().await;
        drop(silent);
        assert_eq!(limiter.open(), 3);
    }

    #[tokio::test]
    async fn then_the_one_that_has_been_idle_longest() {
        let limiter = ConnectionLimiter::new(2);
        let (first, _) = acquire(&limiter, 1);
        let (second, _) = acquire(&limiter, 1);
        respond(&second, true);
        tokio::time::sleep(Duration::from_millis(2)).await;
        respond(&first, true);
        acquire(&limiter, 1);
        second.activity.evicted().await;
    }

    #[test]
    fn an_answer_to_no_review_earns_nothing() {
        let limiter = ConnectionLimiter::new(2);
        let (reviewed, _) = acquire(&limiter, 1);
        respond(&reviewed, true);
        respond(&reviewed, false);
        let (noisy, _) = acquire(&limiter, 1);
        respond(&noisy, false);
        acquire(&limiter, 1);
        assert!(is_closed(&noisy) && !is_closed(&reviewed));
    }

    #[test]
    fn a_slow_second_head_is_closed_last() {
        let limiter = ConnectionLimiter::new(1);
        let (dripping, _) = acquire(&limiter, 1);
        respond(&dripping, true);
        dripping.activity.bytes_received();
        acquire(&limiter, 2);
        assert!(is_closed(&dripping));
    }

    #[test]
    fn a_peer_with_more_than_half_is_closed_before_others() {
        let limiter = ConnectionLimiter::new(4);
        let apiserver = [acquire(&limiter, 1).0, acquire(&limiter, 1).0];
        respond(&apiserver[0], true);
        let crowd = [acquire(&limiter, 2).0, acquire(&limiter, 2).0];
        for slot in &crowd {
            respond(slot, true);
        }
        let (third, _) = acquire(&limiter, 2);
        assert!(is_closed(&apiserver[1]), "half of the connections is no crowd");
        respond(&third, true);
        let (_newcomer, _) = acquire(&limiter, 3);
        assert!(is_closed(&crowd[0]) && !is_closed(&apiserver[0]));
        let (_other, _) = acquire(&limiter, 3);
        assert!(!is_closed(&crowd[1]) && !is_closed(&apiserver[0]), "its crowd has gone");
    }

    #[test]
    fn a_useless_connection_is_closed_before_an_apiserver_with_more_than_half() {
        let limiter = ConnectionLimiter::new(4);
        let (holding, _) = acquire(&limiter, 2);
        let apiserver = [acquire(&limiter, 1).0, acquire(&limiter, 1).0, acquire(&limiter, 1).0];
        for slot in &apiserver {
            respond(slot, true);
        }
        let long_ago = Instant::now().checked_sub(USELESS_AFTER * 2).expect("a past");
        holding.activity.state().opened = long_ago;
        acquire(&limiter, 3);
        assert!(is_closed(&holding) && !apiserver.iter().any(is_closed));
    }

    #[test]
    fn none_is_closed_while_it_is_answered() {
        let limiter = ConnectionLimiter::new(1);
        let (only, _) = acquire(&limiter, 1);
        only.activity.request_received();
        assert!(limiter.acquire(IpAddr::from([127, 0, 0, 1])).is_none());
        drop(only);
        acquire(&limiter, 1);
        assert_eq!(limiter.open(), 0);
    }
    #[test]
    fn one_that_does_not_read_its_answer_stays_only_for_a_moment() {
        let limiter = ConnectionLimiter::new(1);
        let (unread, _) = acquire(&limiter, 1);
        unread.activity.answered(true);
        assert!(limiter.acquire(IpAddr::from([127, 0, 0, 1])).is_none(), "its answer is being written");
        unread.activity.state().since = Instant::now().checked_sub(USELESS_AFTER * 2).expect("a past");
        acquire(&limiter, 1);
        assert!(is_closed(&unread));
    }

    #[test]
    fn a_request_that_begins_during_an_answer_has_begun_after_it() {
        let activity = Activity::new();
        for (received, next) in [(false, ConnectionPhase::Idle), (true, ConnectionPhase::Head)] {
            activity.answered(true);
            if received {
                activity.bytes_received();
            }
            assert_eq!(activity.phase().0, ConnectionPhase::Writing);
            activity.flushed();
            assert_eq!(activity.phase().0, next);
        }
    }
}
