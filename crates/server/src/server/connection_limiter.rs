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
//! 3. one whose handshake has not begun, the oldest first;
//! 4. one without a review so far, the oldest first: when more connect than there is time for, those go whose
//!    handshake has cost nothing yet, or none would come to its end;
//! 5. one that is idle, the longest idle first;
//! 6. one in the middle of the head of a request.

mod rank;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::server::connection_limiter::rank::{IDLE, IN_HEAD, Rank};

/// A connection that is older than this without having had a review answered, or has not been able to write an
/// answer for so long, is the first to be closed.
const USELESS_AFTER: Duration = Duration::from_secs(1);

/// To rank all connections takes as long as a handshake, and a crowd makes it necessary to close one thousands of
/// times a second. So one ranking serves for several times: for as many as one in so many of all that may be open.
const RANKING_SHARE: usize = 32;

/// For how long a ranking serves.
const RANKING_LIFE: Duration = Duration::from_millis(50);

/// All connections of one listener.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    capacity: usize,
    next_number: AtomicU64,
    open: Mutex<OpenConnections>,
}

/// The address at the other end of the connection that a request came on; the request carries it as an extension.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// The connections that are open, and how many each peer has.
#[derive(Debug, Default)]
struct OpenConnections {
    /// By number; a later connection has a higher one.
    connections: BTreeMap<u64, (IpAddr, Arc<Activity>)>,
    /// How many connections each address has.
    per_peer: BTreeMap<IpAddr, usize>,
    /// Those that are to be closed first, unless they have become more useful since; the first one last.
    ranking: Vec<Rank>,
    /// When they were ranked.
    ranked_at: Option<Instant>,
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
    /// Whether its handshake has begun: work was done for it.
    handshake_begun: bool,
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

    /// The connection that is to be closed first.
    fn least_useful(&mut self, capacity: usize) -> Option<u64> {
        let now = Instant::now();
        if self.ranked_at.is_none_or(|then| now.saturating_duration_since(then) > RANKING_LIFE) {
            self.ranking.clear();
        }
        while let Some(rank) = self.ranking.pop() {
            if self.is_still(rank, now) {
                return Some(rank.number);
            }
        }
        let count = (capacity / RANKING_SHARE).max(1);
        let mut ranks: Vec<_> = self.ranks(capacity, now).collect();
        if ranks.len() > count {
            ranks.select_nth_unstable(count);
            ranks.truncate(count);
        }
        ranks.sort_unstable_by(|one, other| other.cmp(one));
        let least = ranks.pop();
        // Whoever comes from now on goes before one that had a review answered.
        ranks.retain(|rank| !rank.is_useful());
        (self.ranking, self.ranked_at) = (ranks, Some(now));
        least.map(|rank| rank.number)
    }

    /// Whether a connection is no more useful than when it was ranked.
    fn is_still(&self, rank: Rank, now: Instant) -> bool {
        let Some((_, activity)) = self.connections.get(&rank.number) else { return false };
        let state = *activity.state();
        let Rank { useless, class, since, .. } = rank;
        state.rank(now).is_some_and(|(now_class, now_since)| {
            (Reverse(state.is_useless(now)), now_class, now_since) <= (useless, class, since)
        })
    }

    /// The connections that may be closed.
    fn ranks(&self, capacity: usize, now: Instant) -> impl Iterator<Item = Rank> {
        let crowd = self.per_peer.iter().find(|(_, count)| **count > capacity / 2).map(|(peer, _)| *peer);
        self.connections.iter().filter_map(move |(number, (peer, activity))| {
            let state = *activity.state();
            let (class, since) = state.rank(now)?;
            let (useless, crowd) = (Reverse(state.is_useless(now)), Reverse(Some(*peer) == crowd));
            Some(Rank { useless, crowd, class, since, number: *number })
        })
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
            (_, false) => Some((u8::from(self.handshake_begun), None)),
            (ConnectionPhase::Idle, true) => Some((IDLE, Some(self.since))),
            (ConnectionPhase::Head, true) => Some((IN_HEAD, Some(self.since))),
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
            handshake_begun: false,
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

    /// Its handshake begins.
    pub(super) fn handshake_begins(&self) {
        self.state().handshake_begun = true;
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

    /// The head of a request is complete; when its first byte was read.
    pub(super) fn request_received(&self) -> Instant {
        let (mut state, now) = (self.state(), Instant::now());
        let began = if state.phase == ConnectionPhase::Head { state.since } else { now };
        (state.phase, state.since) = (ConnectionPhase::Busy, now);
        began
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
mod tests;
