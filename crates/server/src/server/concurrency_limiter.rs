//! Bounds how many requests, and how many bytes of their bodies and answers, are in memory at any moment.
//!
//! Small and large bodies have budgets of their own, so that a few large ones, or callers that only
//! announce them, cannot keep the small ones out. A large body acquires all its bytes before it is read:
//! then those that got them finish, instead of all getting stuck half-way. A small one acquires what has
//! arrived: announcing bytes and not sending them gains nothing.
//!
//! A slow body may take its time as long as no other request waits for a permit. As soon as one waits,
//! bodies that have arrived at less than [`MIN_BYTES_PER_MILLISECOND`] for longer than [`Limits::slow`] are
//! rejected, so that their bytes are free before the waiting request times out. The same holds for answers
//! that are read slowly: a permit is for the bytes of a body, and then for those of its answer until they have
//! been written.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::server::metrics::labels::ShedCause;
use crate::server::options::{Limits, PAGE_BYTES};

/// The largest body that counts as small, if the budget of small ones holds it. Most pods are below 64 KiB.
pub(super) const SMALL_BODY_BYTES: usize = 256 << 10;

/// A body that arrives at less than this counts as slow: a thousandth of what a network carries, and a tenth
/// of what 8 MiB need to arrive in time.
const MIN_BYTES_PER_MILLISECOND: usize = 64;

/// Semaphores for requests and for the bytes of their bodies.
#[derive(Debug)]
pub(super) struct ConcurrencyLimiter {
    requests: Arc<Semaphore>,
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// The largest body that counts as small.
    max_small_bytes: usize,
    /// The pages of both budgets.
    pages: usize,
    /// How long a request waits for a permit.
    wait: Duration,
    /// Notified when a request has to wait.
    contended: Notify,
    slow: Duration,
}

impl ConcurrencyLimiter {
    /// A limiter with all permits free.
    pub(super) fn new(limits: &Limits) -> Self {
        let small = limits.kept_for_small() / PAGE_BYTES;
        let large = (limits.kept_for_large() / PAGE_BYTES).min(Semaphore::MAX_PERMITS - small);
        Self {
            requests: Arc::new(Semaphore::new(limits.requests.clamp(1, Semaphore::MAX_PERMITS))),
            small: Arc::new(Semaphore::new(small)),
            large: Arc::new(Semaphore::new(large)),
            max_small_bytes: SMALL_BODY_BYTES.min(small * PAGE_BYTES),
            pages: small + large,
            wait: limits.wait,
            contended: Notify::new(),
            slow: limits.slow,
        }
    }

    /// A permit for one more request.
    pub(super) async fn acquire_request(&self) -> Result<OwnedSemaphorePermit, ShedCause> {
        self.acquire(&self.requests, 1).await.ok_or(ShedCause::Requests)
    }

    /// A permit for a body of this `Content-Length`; `None` for a chunked one.
    pub(super) async fn acquire_body(
        self: &Arc<Self>,
        length: Option<usize>,
    ) -> Result<BodyPermit, ShedCause> {
        let large = length.is_some_and(|length| length > self.max_small_bytes);
        let mut permit = BodyPermit { limiter: Arc::clone(self), large, pages: 0, permits: None };
        permit.grow_to(if large { length.unwrap_or_default() } else { 1 }).await?;
        Ok(permit)
    }

    /// The bytes that bodies and answers occupy.
    pub(super) fn bytes_in_use(&self) -> usize {
        (self.pages - self.small.available_permits() - self.large.available_permits()) * PAGE_BYTES
    }

    /// Waits until another request waits for a permit, and the body that began to arrive at `start` has had
    /// the time after which it may count as slow.
    pub(super) async fn reclaim_requested(&self, start: Instant) {
        sleep_until(start + self.slow).await;
        self.contended.notified().await;
    }

    /// Whether a body of which so many bytes have arrived since `start` is slow.
    pub(super) fn is_slow(&self, bytes: usize, start: Instant) -> bool {
        let took = start.elapsed();
        let paced =
            u64::try_from(bytes / MIN_BYTES_PER_MILLISECOND).map_or(Duration::MAX, Duration::from_millis);
        took > self.slow && took > paced
    }

    /// `count` permits, at once or after waiting for as long as the caller may be kept waiting.
    async fn acquire(&self, semaphore: &Arc<Semaphore>, count: usize) -> Option<OwnedSemaphorePermit> {
        let count = u32::try_from(count).ok()?;
        if let Ok(permit) = Arc::clone(semaphore).try_acquire_many_owned(count) {
            return Some(permit);
        }
        // Slow bodies learn of it before this request waits, so that it may still get what they give back.
        self.contended.notify_waiters();
        let waiting = Arc::clone(semaphore).acquire_many_owned(count);
        tokio::time::timeout(self.wait, waiting).await.ok()?.ok()
    }
}

/// The bytes of one body, or of its answer; given back when dropped.
#[derive(Debug)]
pub(super) struct BodyPermit {
    limiter: Arc<ConcurrencyLimiter>,
    large: bool,
    pages: usize,
    permits: Option<OwnedSemaphorePermit>,
}

impl BodyPermit {
    /// A permit from the same budgets for nothing yet.
    pub(super) fn another(&self) -> Self {
        Self { limiter: Arc::clone(&self.limiter), large: true, pages: 0, permits: None }
    }

    /// Makes the permit cover an answer of so many bytes and no more. It is always one of the budget of large
    /// bodies: callers who read nothing must not keep small bodies out.
    pub(super) async fn cover_answer(&mut self, bytes: usize) -> Result<(), ShedCause> {
        let pages = bytes.div_ceil(PAGE_BYTES);
        if !self.large {
            return self.move_to_large(pages).await;
        }
        if let (Some(permits), 1..) = (&mut self.permits, self.pages.saturating_sub(pages)) {
            drop(permits.split(self.pages - pages));
            self.pages = pages;
        }
        self.grow_to(bytes).await
    }

    /// Takes so many pages of the budget of large bodies, and gives back those of the other one.
    async fn move_to_large(&mut self, pages: usize) -> Result<(), ShedCause> {
        let permits = self.limiter.acquire(&self.limiter.large, pages).await.ok_or(ShedCause::Bytes)?;
        (self.large, self.pages, self.permits) = (true, pages, Some(permits));
        Ok(())
    }

    /// Makes sure that the permit covers so many bytes in all.
    pub(super) async fn grow_to(&mut self, bytes: usize) -> Result<(), ShedCause> {
        let pages = bytes.div_ceil(PAGE_BYTES);
        if !self.large && bytes > self.limiter.max_small_bytes {
            // A chunked body that turned out large.
            self.move_to_large(pages).await?;
        } else if pages > self.pages {
            let budget = if self.large { &self.limiter.large } else { &self.limiter.small };
            let more = self.limiter.acquire(budget, pages - self.pages).await.ok_or(ShedCause::Bytes)?;
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

    fn limiter(body_bytes: usize, requests: usize) -> Arc<ConcurrencyLimiter> {
        let wait = Duration::from_millis(1);
        Arc::new(ConcurrencyLimiter::new(&Limits { body_bytes, requests, wait, ..Limits::default() }))
    }

    #[tokio::test]
    async fn refuses_the_request_that_is_too_many() {
        let limiter = limiter(1 << 20, 2);
        let first = limiter.acquire_request().await;
        let second = limiter.acquire_request().await;
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(limiter.acquire_request().await.err(), Some(ShedCause::Requests));
        drop(first);
        assert!(limiter.acquire_request().await.is_ok());
    }

    #[tokio::test]
    async fn large_bodies_leave_permits_for_small_ones() {
        let limiter = limiter(16 << 20, 8);
        let large = limiter.acquire_body(Some(14 << 20)).await;
        assert!(large.is_ok());
        assert_eq!(limiter.acquire_body(Some(1 << 20)).await.err(), Some(ShedCause::Bytes));
        assert!(limiter.acquire_body(Some(SMALL_BODY_BYTES)).await.is_ok());
        drop(large);
        assert_eq!(limiter.bytes_in_use(), 0);
    }

    #[tokio::test]
    async fn every_size_gets_a_permit_from_small_budgets() {
        for body_bytes in [8 << 10, 40_959, 64 << 10, 1 << 20, 2 << 20] {
            let limits = Limits { body_bytes, wait: Duration::from_millis(1), ..Limits::default() };
            let limiter = Arc::new(ConcurrencyLimiter::new(&limits));
            for length in (0..=limits.kept_for_large()).step_by(1_000).chain([limits.kept_for_large()]) {
                let mut permit = limiter.acquire_body(Some(length)).await.expect("a permit");
                assert_eq!(permit.grow_to(length).await, Ok(()), "{length} of {body_bytes}");
                drop(permit);
                let mut permit = limiter.acquire_body(None).await.expect("a permit");
                assert_eq!(permit.grow_to(length).await, Ok(()), "{length} of {body_bytes}, chunked");
            }
        }
    }

    #[tokio::test]
    async fn small_bodies_claim_what_has_arrived() {
        let limiter = limiter(16 << 20, 8);
        let mut permit = limiter.acquire_body(Some(SMALL_BODY_BYTES)).await.expect("a permit");
        assert_eq!(limiter.bytes_in_use(), PAGE_BYTES);
        permit.grow_to(PAGE_BYTES + 1).await.expect("a permit");
        assert_eq!(limiter.bytes_in_use(), 2 * PAGE_BYTES);
    }

    #[tokio::test]
    async fn slow_bodies_are_rejected_only_for_other_requests() {
        let slow = Duration::from_millis(20);
        let wait = Duration::from_millis(1);
        let limiter = ConcurrencyLimiter::new(&Limits { requests: 1, wait, slow, ..Limits::default() });
        let _held = limiter.acquire_request().await;
        let mut back = std::pin::pin!(limiter.reclaim_requested(Instant::now()));
        assert!(tokio::time::timeout(slow * 3, &mut back).await.is_err(), "no other request waits");
        let (refused, ()) = tokio::join!(limiter.acquire_request(), back);
        assert_eq!(refused.err(), Some(ShedCause::Requests));
    }

    #[test]
    fn slow_is_less_than_the_minimum_rate_for_a_while() {
        let limiter = limiter(1 << 20, 1);
        let ago = |millis| Instant::now().checked_sub(Duration::from_millis(millis)).expect("a past");
        assert!(!limiter.is_slow(0, ago(500)), "it has only begun");
        assert!(limiter.is_slow(10_000, ago(2_000)));
        assert!(!limiter.is_slow(1_000_000, ago(2_000)), "a large one may take longer");
    }

    #[tokio::test]
    async fn a_chunked_body_that_grows_large_changes_the_budget() {
        let limiter = limiter(16 << 20, 8);
        let mut permit = limiter.acquire_body(None).await.expect("a permit");
        permit.grow_to(SMALL_BODY_BYTES).await.expect("a permit");
        permit.grow_to(SMALL_BODY_BYTES + 1).await.expect("a permit");
        assert_eq!(limiter.bytes_in_use(), SMALL_BODY_BYTES + PAGE_BYTES);
        assert_eq!(permit.grow_to(15 << 20).await, Err(ShedCause::Bytes));
        drop(permit);
        assert_eq!(limiter.bytes_in_use(), 0);
    }
    #[tokio::test]
    async fn an_answer_claims_its_own_size() {
        let limiter = limiter(16 << 20, 8);
        let mut permit = limiter.acquire_body(Some(3 << 20)).await.expect("a permit");
        permit.cover_answer(PAGE_BYTES + 1).await.expect("less");
        assert_eq!(limiter.bytes_in_use(), 2 * PAGE_BYTES);
        permit.cover_answer(1 << 20).await.expect("more");
        assert_eq!(limiter.bytes_in_use(), 1 << 20);
        let mut small = limiter.acquire_body(Some(100)).await.expect("a permit");
        assert_eq!(small.cover_answer(14 << 20).await, Err(ShedCause::Bytes), "there is no room for it");
        small.cover_answer(2 << 20).await.expect("a small body with a large answer");
        assert_eq!(limiter.bytes_in_use(), 3 << 20);
        drop((permit, small));
        assert_eq!(limiter.bytes_in_use(), 0);
    }
}
