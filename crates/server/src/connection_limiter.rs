//! Bounds the open connections of a listener. One connection too many closes one of the address that has the most.
//!
//! An address gives first its connections without a complete request head, then those that have been idle the longest
//! between two requests, then those whose body or answer does not arrive. A connection whose review is being answered
//! stays open, and so does each connection of an address with fewer connections than another one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a caller that keeps up takes at most for the head or the body of a request, or for reading an answer.
const STALLED: Duration = Duration::from_secs(1);

/// The part of an IPv6 address that a provider gives to one customer: the first 64 bits.
const NETWORK_BITS: u128 = u128::MAX << 64;

/// All connections of one listener.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    capacity: usize,
    next_number: AtomicU64,
    open: Mutex<OpenConnections>,
}

/// The open connections of each address, by their numbers.
#[derive(Debug, Default)]
struct OpenConnections {
    count: usize,
    by_address: BTreeMap<IpAddr, BTreeMap<u64, Arc<Activity>>>,
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
    address: IpAddr,
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
    /// Whether the head of a request has been complete.
    has_sent_head: bool,
}

/// The order in which the connections of an address are closed for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EvictionRank {
    /// Has never sent a whole head, or takes too long for its next one.
    WithoutHead,
    /// Waits for its next request.
    Idle,
    /// Sends a body, or reads an answer, too slowly.
    Stalled,
}

/// The phases of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// A slot for a connection from this address, and whether another connection is closed for it. `None` when none may
    /// be closed for it.
    pub(super) fn acquire(self: &Arc<Self>, peer: IpAddr) -> Option<(ConnectionSlot, bool)> {
        let address = counted_address(peer);
        let mut open = self.lock();
        let full = open.count >= self.capacity;
        if full && !open.evict(Some(address)) {
            return None;
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let activity = Arc::new(Activity::new());
        open.by_address.entry(address).or_default().insert(number, Arc::clone(&activity));
        open.count += 1;
        drop(open);
        Some((ConnectionSlot { address, number, limiter: Arc::clone(self), activity }, full))
    }

    /// Closes a connection of an address that has the most; whether one was closed.
    pub(super) fn evict_one(&self) -> bool {
        self.lock().evict(None)
    }

    /// How many connections are open.
    pub(super) fn open(&self) -> usize {
        self.lock().count
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address under which a connection is counted: an IPv4-mapped address is its IPv4 address, and all addresses of an
/// IPv6 network of 64 bits are one.
fn counted_address(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK_BITS).into(),
        address @ IpAddr::V4(_) => address,
    }
}

impl OpenConnections {
    /// Closes a connection for one from `newcomer`, which counts as open already; whether one was closed.
    fn evict(&mut self, newcomer: Option<IpAddr>) -> bool {
        let share =
            |address: &IpAddr, own: &BTreeMap<_, _>| own.len() + usize::from(newcomer == Some(*address));
        let most = self.by_address.iter().map(|(address, own)| share(address, own)).max();
        let now = Instant::now();
        let candidates = || {
            let with_most = self.by_address.iter().filter(|(address, own)| Some(share(address, own)) == most);
            with_most.flat_map(|(address, own)| {
                let ranked = |(number, activity): (&u64, &Arc<Activity>)| {
                    Some((activity.eviction(now)?, *address, *number))
                };
                own.iter().filter_map(ranked)
            })
        };
        // In a flood of connections that send nothing the search ends with the first one, which is the oldest.
        let silent = candidates().find(|((rank, _), ..)| *rank == EvictionRank::WithoutHead);
        let first = silent.or_else(|| candidates().min());
        let evicted = first.and_then(|(_, address, number)| self.remove(address, number));
        // Its task may take a moment to end.
        evicted.inspect(|activity| activity.evicted.notify_one()).is_some()
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<Arc<Activity>> {
        let Entry::Occupied(mut own) = self.by_address.entry(address) else { return None };
        let removed = own.get_mut().remove(&number)?;
        self.count -= 1;
        if own.get().is_empty() {
            own.remove();
        }
        Some(removed)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limiter.lock().remove(self.address, self.number);
    }
}

impl Activity {
    fn new() -> Self {
        let state =
            ActivityState { phase: ConnectionPhase::Idle, since: Instant::now(), has_sent_head: false };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// The phase, and when it began.
    pub(super) fn phase(&self) -> (ConnectionPhase, Instant) {
        let state = self.state();
        (state.phase, state.since)
    }

    /// Its rank among the connections of its address, and since when; `None` in the middle of a review.
    fn eviction(&self, now: Instant) -> Option<(EvictionRank, Instant)> {
        let ActivityState { phase, since, has_sent_head } = *self.state();
        let is_recent = now.duration_since(since) <= STALLED;
        let rank = match phase {
            ConnectionPhase::Idle | ConnectionPhase::Head if !has_sent_head => EvictionRank::WithoutHead,
            ConnectionPhase::Idle => EvictionRank::Idle,
            // The next review of a caller that keeps its connection.
            ConnectionPhase::Head if is_recent => EvictionRank::Idle,
            ConnectionPhase::Head => EvictionRank::WithoutHead,
            ConnectionPhase::Body | ConnectionPhase::Writing if !is_recent => EvictionRank::Stalled,
            ConnectionPhase::Body | ConnectionPhase::Writing | ConnectionPhase::Answering => return None,
        };
        Some((rank, since))
    }

    /// Notes that there is no TLS handshake, or that it is complete.
    pub(super) fn http_begins(&self) {
        self.state().begin(ConnectionPhase::Idle);
    }

    /// Notes that bytes have arrived: on an idle connection they start a request.
    pub(super) fn bytes_received(&self) {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Idle {
            state.begin(ConnectionPhase::Head);
        }
    }

    /// Notes that the head of a request is complete; returns when its first byte was read.
    pub(super) fn head_received(&self) -> Instant {
        let mut state = self.state();
        let before = *state;
        state.begin(ConnectionPhase::Body);
        state.has_sent_head = true;
        if before.phase == ConnectionPhase::Head { before.since } else { state.since }
    }

    /// Notes that the body of a request is complete.
    pub(super) fn body_received(&self) {
        self.state().begin(ConnectionPhase::Answering);
    }

    /// Notes that an answer is about to be written.
    pub(super) fn answered(&self) {
        self.state().begin(ConnectionPhase::Writing);
    }

    /// Notes that everything was written.
    pub(super) fn flushed(&self) {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Writing {
            state.begin(ConnectionPhase::Idle);
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
