//! Room: how many requests and how many bytes of bodies are taken in at once.
//!
//! Small and large bodies have budgets of their own, so that a few large ones, or somebody who
//! only announces them, cannot keep the small ones out. A large body claims all its bytes before
//! it is read: then those that got room finish, instead of all getting stuck half-way. A small one
//! claims what has arrived: announcing bytes and not sending them gains nothing.
//!
//! Who sends slowly may do so as long as nobody else wants the room. Once somebody does, bodies that
//! have come at less than [`PACE`] for longer than [`Limits::slow`] are given up at once, and theirs is
//! free before the other has waited its time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::server::options::{Limits, PAGE};

/// The largest body that counts as small, where their room holds it. Most pods are below 64 KiB.
pub(super) const SMALL: usize = 256 << 10;

/// What a body must have brought, in bytes a millisecond, not to count as slow: a thousandth of what a
/// network carries, and a tenth of what 8 MiB need to be in time.
const PACE: usize = 64;

/// Why a request was refused for want of room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shed {
    /// Too many requests.
    Requests,
    /// Too many bytes of bodies.
    Bytes,
    /// A body that came slowly, when others wanted its room.
    Slow,
    /// More work than can be done in time.
    Lag,
    /// Too many connections; one had to go for another.
    Connections,
}

impl Shed {
    /// Every cause.
    #[cfg(test)]
    pub(super) const ALL: [Self; 5] = [Self::Requests, Self::Bytes, Self::Slow, Self::Lag, Self::Connections];

    /// The name in metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
            Self::Slow => "slow",
            Self::Lag => "lag",
            Self::Connections => "connections",
        }
    }
}

/// Where requests get room.
#[derive(Debug)]
pub(super) struct Gate {
    requests: Arc<Semaphore>,
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// The largest body that counts as small.
    small_body: usize,
    pages: usize,
    wait: Duration,
    wanted: Notify,
    slow: Duration,
}

impl Gate {
    /// A gate with nobody in it.
    pub(super) fn new(limits: &Limits) -> Self {
        let small = limits.kept_for_small() / PAGE;
        let large = (limits.kept_for_large() / PAGE).min(Semaphore::MAX_PERMITS - small);
        Self {
            requests: Arc::new(Semaphore::new(limits.requests.clamp(1, Semaphore::MAX_PERMITS))),
            small: Arc::new(Semaphore::new(small)),
            large: Arc::new(Semaphore::new(large)),
            small_body: SMALL.min(small * PAGE),
            pages: small + large,
            wait: limits.wait,
            wanted: Notify::new(),
            slow: limits.slow,
        }
    }

    /// Room for one more request, until it is dropped.
    pub(super) async fn enter(&self) -> Result<OwnedSemaphorePermit, Shed> {
        self.acquire(&self.requests, 1).await.ok_or(Shed::Requests)
    }

    /// Room for a body of which so much is announced (`None`: nothing).
    pub(super) async fn claim(&self, announced: Option<usize>) -> Result<Claim<'_>, Shed> {
        let large = announced.is_some_and(|length| length > self.small_body);
        let mut claim = Claim { gate: self, large, pages: 0, permits: None };
        claim.cover(if large { announced.unwrap_or_default() } else { 1 }).await?;
        Ok(claim)
    }

    /// The bytes that bodies have claimed.
    pub(super) fn bytes(&self) -> usize {
        (self.pages - self.small.available_permits() - self.large.available_permits()) * PAGE
    }

    /// Waits until somebody wants the room of a body that began to arrive at `start`, which nobody can
    /// before it may be called slow.
    pub(super) async fn wanted_back(&self, start: Instant) {
        sleep_until(start + self.slow).await;
        self.wanted.notified().await;
    }

    /// Whether so many bytes since `start` are few.
    pub(super) fn is_slow(&self, bytes: usize, start: Instant) -> bool {
        let took = start.elapsed();
        let paced = u64::try_from(bytes / PACE).map_or(Duration::MAX, Duration::from_millis);
        took > self.slow && took > paced
    }

    async fn acquire(&self, semaphore: &Arc<Semaphore>, count: usize) -> Option<OwnedSemaphorePermit> {
        let count = u32::try_from(count).ok()?;
        if let Ok(permit) = Arc::clone(semaphore).try_acquire_many_owned(count) {
            return Some(permit);
        }
        self.wanted.notify_waiters();
        let waiting = Arc::clone(semaphore).acquire_many_owned(count);
        tokio::time::timeout(self.wait, waiting).await.ok()?.ok()
    }
}

/// The room of one body; given back when dropped.
#[derive(Debug)]
pub(super) struct Claim<'g> {
    gate: &'g Gate,
    large: bool,
    pages: usize,
    permits: Option<OwnedSemaphorePermit>,
}

impl Claim<'_> {
    /// Makes sure that the claim covers so many bytes in all.
    pub(super) async fn cover(&mut self, bytes: usize) -> Result<(), Shed> {
        let pages = bytes.div_ceil(PAGE);
        if !self.large && bytes > self.gate.small_body {
            let moved = self.gate.acquire(&self.gate.large, pages).await.ok_or(Shed::Bytes)?;
            (self.large, self.pages, self.permits) = (true, pages, Some(moved));
        } else if pages > self.pages {
            let lane = if self.large { &self.gate.large } else { &self.gate.small };
            let more = self.gate.acquire(lane, pages - self.pages).await.ok_or(Shed::Bytes)?;
            self.pages = pages;
            match &mut self.permits {
                Some(permits) => permits.merge(more),
                none => *none = Some(more),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(body_bytes: usize, requests: usize) -> Gate {
        let wait = Duration::from_millis(1);
        Gate::new(&Limits { body_bytes, requests, wait, ..Limits::default() })
    }

    #[tokio::test]
    async fn refuses_the_request_that_is_too_many() {
        let gate = gate(1 << 20, 2);
        let first = gate.enter().await;
        let second = gate.enter().await;
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(gate.enter().await.err(), Some(Shed::Requests));
        drop(first);
        assert!(gate.enter().await.is_ok());
    }

    #[tokio::test]
    async fn large_bodies_leave_room_for_small_ones() {
        let gate = gate(16 << 20, 8);
        let large = gate.claim(Some(14 << 20)).await;
        assert!(large.is_ok());
        assert_eq!(gate.claim(Some(1 << 20)).await.err(), Some(Shed::Bytes));
        assert!(gate.claim(Some(SMALL)).await.is_ok());
        drop(large);
        assert_eq!(gate.bytes(), 0);
    }

    #[tokio::test]
    async fn every_size_finds_room_where_there_is_little() {
        for body_bytes in [8 << 10, 40_959, 64 << 10, 1 << 20, 2 << 20] {
            let limits = Limits { body_bytes, wait: Duration::from_millis(1), ..Limits::default() };
            let gate = Gate::new(&limits);
            for length in (0..=limits.kept_for_large()).step_by(1_000).chain([limits.kept_for_large()]) {
                let mut claim = gate.claim(Some(length)).await.expect("room");
                assert_eq!(claim.cover(length).await, Ok(()), "{length} of {body_bytes}");
                drop(claim);
                let mut claim = gate.claim(None).await.expect("room");
                assert_eq!(claim.cover(length).await, Ok(()), "{length} of {body_bytes}, not announced");
            }
        }
    }

    #[tokio::test]
    async fn small_bodies_claim_what_has_arrived() {
        let gate = gate(16 << 20, 8);
        let mut claim = gate.claim(Some(SMALL)).await.expect("room");
        assert_eq!(gate.bytes(), PAGE);
        claim.cover(PAGE + 1).await.expect("room");
        assert_eq!(gate.bytes(), 2 * PAGE);
    }

    #[tokio::test]
    async fn room_of_slow_bodies_is_wanted_back_by_others_only() {
        let slow = Duration::from_millis(20);
        let wait = Duration::from_millis(1);
        let gate = Gate::new(&Limits { requests: 1, wait, slow, ..Limits::default() });
        let _held = gate.enter().await;
        let mut back = std::pin::pin!(gate.wanted_back(Instant::now()));
        assert!(tokio::time::timeout(slow * 3, &mut back).await.is_err(), "nobody wants it");
        let (refused, ()) = tokio::join!(gate.enter(), back);
        assert_eq!(refused.err(), Some(Shed::Requests));
    }

    #[test]
    fn slow_is_less_than_the_pace_for_a_while() {
        let gate = gate(1 << 20, 1);
        let ago = |millis| Instant::now().checked_sub(Duration::from_millis(millis)).expect("a past");
        assert!(!gate.is_slow(0, ago(500)), "it has only begun");
        assert!(gate.is_slow(10_000, ago(2_000)));
        assert!(!gate.is_slow(1_000_000, ago(2_000)), "a large one may take longer");
    }

    #[tokio::test]
    async fn an_unannounced_body_that_grows_large_moves_over() {
        let gate = gate(16 << 20, 8);
        let mut claim = gate.claim(None).await.expect("room");
        claim.cover(SMALL).await.expect("room");
        claim.cover(SMALL + 1).await.expect("room");
        assert_eq!(gate.bytes(), SMALL + PAGE);
        assert_eq!(claim.cover(15 << 20).await, Err(Shed::Bytes));
        drop(claim);
        assert_eq!(gate.bytes(), 0);
    }
}
