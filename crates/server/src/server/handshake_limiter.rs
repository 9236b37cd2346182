//! Rations TLS handshakes. Each costs the processor as much as several reviews, and a caller needs no more than
//! the bytes of somebody else's first message to cause it: what it replays it never completes.
//!
//! ```text
//! accepted ─▶ is_crowded ─▶ begin ─▶ [queue of its source] ─▶ a token ─▶ handshake ─▶ review answered
//!              (refused)                (dropped when old)                                (token given back)
//! ```
//!
//! There are two budgets of tokens: one for addresses that have had a review answered, and a smaller one for all
//! others. A handshake takes a token, and the first good answer on its connection gives it back, so that an
//! apiserver may connect as often as it has something to ask. An address alone says little: a managed control plane
//! may share its own with anybody. So the first budget is limited too, and in both the addresses take turns: a
//! flood from some does not keep the first handshake of another one waiting.
//!
//! Of one address the newest goes first, since its caller will wait the longest. Those who find no token in a
//! moment are closed before any cryptography. Handshakes that have begun and do not end are closed, the oldest
//! first, when there are too many of them.
//!
//! While the runtime lags behind, both budgets are an eighth: those who are connected are answered then, if only
//! with a 429, and do not give up and connect again, which would cost more than the answer.

mod tier;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use crate::server::connection_limiter::Activity;
use crate::server::handshake_limiter::tier::{Pace, Tier};
use crate::server::options::Limits;
use crate::server::runtime_lag::LagMonitor;

/// How long a handshake waits for a token: a caller whose own timeout is 2 s still gets its answer after that.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Above this lag of the runtime both budgets are an eighth.
const MAX_FULL_PACE_LAG: Duration = Duration::from_millis(2);

/// How many addresses are known to have had a review answered. A cluster has a handful of apiservers; the one that
/// was noted first is forgotten first.
const MAX_KNOWN: usize = 1_024;

/// How many handshakes may have begun and not ended. Each takes its peer one round trip, for which there is a second
/// when all 500 that strangers get by default are bad, and a third of one when those of known addresses are bad
/// besides. There is less for as long as a burst lasts.
const MAX_UNFINISHED: usize = 512;

/// How many more handshakes addresses may have that are known.
const KNOWN_FACTOR: u32 = 2;

/// The budgets, and who waits for them.
#[derive(Debug)]
pub(super) struct HandshakeLimiter {
    state: Mutex<State>,
    lag: Arc<LagMonitor>,
    /// The most handshakes that have begun and not ended.
    max_unfinished: usize,
    /// Notified when one more waits.
    waiting: Notify,
}

#[derive(Debug)]
struct State {
    /// Addresses that had a review answered, the one noted first in front.
    known: VecDeque<Source>,
    strangers: Tier,
    acquaintances: Tier,
    next_number: u64,
    /// Those that have begun and not ended; a later one has a higher number.
    unfinished: BTreeMap<u64, Arc<Activity>>,
}

/// Where callers come from: an IPv4 address, or the network of an IPv6 address, of which anybody has 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Source(IpAddr);

/// A handshake that may begin. When dropped before it [ends](HandshakePermit::end) it counts as given up.
#[derive(Debug)]
pub(super) struct HandshakePermit {
    limiter: Arc<HandshakeLimiter>,
    source: Source,
    /// Whether the token is from the budget of known addresses.
    known: bool,
    number: u64,
    /// Whether another one was closed for it.
    pub(super) displaces: bool,
    earned: AtomicBool,
}

impl HandshakeLimiter {
    /// A limiter with full budgets, for handshakes on the runtime that `lag` watches.
    pub(super) fn new(limits: &Limits, lag: Arc<LagMonitor>) -> Arc<Self> {
        let now = Instant::now();
        let state = State {
            known: VecDeque::new(),
            strangers: Tier::new(limits.handshakes, now),
            acquaintances: Tier::new(limits.handshakes.saturating_mul(KNOWN_FACTOR), now),
            next_number: 0,
            unfinished: BTreeMap::new(),
        };
        let max_unfinished = MAX_UNFINISHED.min(limits.connections.div_ceil(2));
        Arc::new(Self { state: Mutex::new(state), lag, max_unfinished, waiting: Notify::new() })
    }

    /// Whether more wait from this address than will get a token in time; then one more is not worth a task.
    pub(super) fn is_crowded(&self, peer: IpAddr) -> bool {
        let source = Source::of(peer);
        let mut state = self.state();
        let known = state.is_known(source);
        state.tier(known).is_crowded(source)
    }

    /// A permit for a handshake with `peer`, at once or in a moment; `None` when others come first for longer.
    pub(super) async fn begin(
        self: &Arc<Self>,
        peer: IpAddr,
        activity: &Arc<Activity>,
    ) -> Option<HandshakePermit> {
        let source = Source::of(peer);
        let (known, turn) = {
            let mut state = self.state();
            let known = state.is_known(source);
            (known, state.tier(known).enqueue(source)?)
        };
        self.waiting.notify_one();
        timeout(MAX_WAIT, turn).await.ok()?.ok()?;
        let (number, displaces) = self.register(activity);
        let limiter = Arc::clone(self);
        Some(HandshakePermit { limiter, source, known, number, displaces, earned: AtomicBool::new(false) })
    }

    /// Gives tokens to those that wait, for as long as it is polled. Between two of them all tasks run that can, so
    /// that a crowd that connects keeps those waiting who are connected for the time of one handshake and not of all.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            let pause = self.state().serve(Instant::now(), self.pace());
            match pause {
                Some(Duration::ZERO) => yield_now().await,
                // Another one may have a token at once, from the other budget.
                Some(pause) => drop(timeout(pause, self.waiting.notified()).await),
                None => self.waiting.notified().await,
            }
        }
    }

    /// Notes that a handshake begins, and has the oldest closed if there are too many. Its number, and whether one
    /// was closed.
    fn register(&self, activity: &Arc<Activity>) -> (u64, bool) {
        let mut state = self.state();
        let number = state.next_number;
        state.next_number += 1;
        state.unfinished.insert(number, Arc::clone(activity));
        let full = state.unfinished.len() > self.max_unfinished;
        let oldest = if full { state.unfinished.pop_first() } else { None };
        (number, oldest.inspect(|(_, oldest)| oldest.evict()).is_some())
    }

    fn pace(&self) -> Pace {
        if self.lag.is_above(MAX_FULL_PACE_LAG) { Pace::Reduced } else { Pace::Full }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandshakePermit {
    /// The handshake has ended, well or not.
    pub(super) fn end(&self) {
        self.limiter.state().unfinished.remove(&self.number);
    }

    /// The token was not needed: there was nobody to shake hands with.
    pub(super) fn give_back(&self) {
        self.earn_with(|_| {});
    }

    /// A review was answered on the connection.
    pub(super) fn reviewed(&self) {
        self.earn_with(|state| state.note_known(self.source));
    }

    /// Gives the token back, once.
    fn earn_with(&self, and: impl FnOnce(&mut State)) {
        if !self.earned.swap(true, Ordering::Relaxed) {
            let mut state = self.limiter.state();
            state.tier(self.known).give_back();
            and(&mut state);
        }
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    fn is_known(&self, source: Source) -> bool {
        self.known.contains(&source)
    }

    fn note_known(&mut self, source: Source) {
        if !self.is_known(source) {
            self.known.push_back(source);
            if self.known.len() > MAX_KNOWN {
                self.known.pop_front();
            }
        }
    }

    fn tier(&mut self, known: bool) -> &mut Tier {
        if known { &mut self.acquaintances } else { &mut self.strangers }
    }

    /// Gives a token of each budget to one that waits; how long until there is another one for somebody.
    fn serve(&mut self, now: Instant, pace: Pace) -> Option<Duration> {
        let tiers = [&mut self.strangers, &mut self.acquaintances];
        tiers.into_iter().filter_map(|tier| tier.serve(now, pace)).min()
    }
}

impl Source {
    fn of(peer: IpAddr) -> Self {
        match peer.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

#[cfg(test)]
mod tests;
