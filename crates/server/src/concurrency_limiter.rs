//! Bounds the requests that are being answered, and the bytes of their bodies and answers in memory.
//!
//! Bodies and answers share one budget of bytes. A large body claims its whole `Content-Length` before it is read, so
//! that the bodies that fit are read to their end. A small one claims what has arrived. Large bodies together get seven
//! eighths of the budget, huge ones a half, and never wait for it in front of smaller ones: a few slow senders of large
//! bodies cannot stop the reviews of others. A large one that finds no room is refused, and its client tries again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::labels::ShedCause;
use crate::options::{Limits, PAGE_BYTES};

/// The largest body that claims its bytes as they arrive. Most pods are below 64 KiB.
pub(super) const SMALL_BODY_BYTES: usize = 256 << 10;

/// The largest body that is not huge: an object of more than 1.3 MiB of which an apiserver writes each byte as six.
const LARGE_BODY_BYTES: usize = 8 << 20;

/// Semaphores for requests, and for the pages of bodies and answers.
#[derive(Debug)]
pub(super) struct ConcurrencyLimiter {
    requests: Arc<Semaphore>,
    pages: Arc<Semaphore>,
    /// The pages that large bodies may claim.
    large_pages: Arc<Semaphore>,
    /// Those of them that huge bodies may claim.
    huge_pages: Arc<Semaphore>,
    all_pages: usize,
    /// How long a request waits for a permit.
    wait: Duration,
}

impl ConcurrencyLimiter {
    /// A limiter with all permits free.
    pub(super) fn new(limits: &Limits) -> Self {
        let all_pages = limits.body_bytes.div_ceil(PAGE_BYTES).min(Semaphore::MAX_PERMITS);
        let share = |pages: usize| {
            Arc::new(Semaphore::new(pages.max(limits.body.div_ceil(PAGE_BYTES)).min(all_pages)))
        };
        Self {
            requests: Arc::new(Semaphore::new(limits.requests.clamp(1, Semaphore::MAX_PERMITS))),
            pages: Arc::new(Semaphore::new(all_pages)),
            large_pages: share(all_pages * 7 / 8),
            huge_pages: share(all_pages / 2),
            all_pages,
            wait: limits.wait,
        }
    }

    /// A permit for one more request.
    pub(super) async fn acquire_request(&self) -> Result<OwnedSemaphorePermit, ShedCause> {
        self.acquire(&self.requests, 1).await.ok_or(ShedCause::Requests)
    }

    /// A claim on the whole length of a large body.
    pub(super) async fn claim_large(self: &Arc<Self>, bytes: usize) -> Result<BytesClaim, ShedCause> {
        let huge = (bytes > LARGE_BODY_BYTES).then_some(&self.huge_pages);
        let mut of_large = Vec::new();
        for pages in huge.into_iter().chain([&self.large_pages]) {
            let acquired = self.acquire(pages, bytes.div_ceil(PAGE_BYTES)).await;
            of_large.push(acquired.ok_or(ShedCause::Bytes)?);
        }
        Ok(BytesClaim { _of_large: of_large, ..self.claim_now(bytes)? })
    }

    /// A claim that does not wait, on bytes that are in memory already, rounded up to whole pages.
    pub(super) fn claim_now(self: &Arc<Self>, bytes: usize) -> Result<BytesClaim, ShedCause> {
        let count = u32::try_from(bytes.div_ceil(PAGE_BYTES)).map_err(|_| ShedCause::Bytes)?;
        let pages = Arc::clone(&self.pages).try_acquire_many_owned(count).map_err(|_| ShedCause::Bytes)?;
        Ok(BytesClaim { limiter: Arc::clone(self), pages, _of_large: Vec::new() })
    }

    /// The bytes that bodies and answers have claimed.
    pub(super) fn bytes_in_use(&self) -> usize {
        (self.all_pages - self.pages.available_permits()) * PAGE_BYTES
    }

    /// `count` permits, at once or after waiting for as long as a caller may be kept waiting.
    async fn acquire(&self, semaphore: &Arc<Semaphore>, count: usize) -> Option<OwnedSemaphorePermit> {
        let count = u32::try_from(count).ok()?;
        if let Ok(permit) = Arc::clone(semaphore).try_acquire_many_owned(count) {
            return Some(permit);
        }
        let waiting = Arc::clone(semaphore).acquire_many_owned(count);
        tokio::time::timeout(self.wait, waiting).await.ok()?.ok()
    }
}

/// The bytes of one body or answer; given back when dropped.
#[derive(Debug)]
pub(super) struct BytesClaim {
    limiter: Arc<ConcurrencyLimiter>,
    pages: OwnedSemaphorePermit,
    /// Its shares of what large and huge bodies may claim.
    _of_large: Vec<OwnedSemaphorePermit>,
}

impl BytesClaim {
    /// Claims more, so that the claim covers so many bytes in all.
    pub(super) async fn grow_to(&mut self, bytes: usize) -> Result<(), ShedCause> {
        let more = bytes.div_ceil(PAGE_BYTES).saturating_sub(self.pages.num_permits());
        if more > 0 {
            let acquired = self.limiter.acquire(&self.limiter.pages, more).await;
            self.pages.merge(acquired.ok_or(ShedCause::Bytes)?);
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
    async fn refuses_one_request_too_many() {
        let limiter = limiter(1 << 20, 2);
        let first = limiter.acquire_request().await;
        let second = limiter.acquire_request().await;
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(limiter.acquire_request().await.err(), Some(ShedCause::Requests));
        drop(first);
        assert!(limiter.acquire_request().await.is_ok());
    }

    #[tokio::test]
    async fn refuses_a_claim_beyond_the_budget() {
        let limiter = limiter(16 << 20, 8);
        let large = limiter.claim_now(15 << 20).expect("room");
        assert_eq!(limiter.claim_now(2 << 20).err(), Some(ShedCause::Bytes));
        let mut small = limiter.claim_now(1 << 20).expect("room");
        assert_eq!(small.grow_to(2 << 20).await, Err(ShedCause::Bytes));
        drop(large);
        assert_eq!(small.grow_to(2 << 20).await, Ok(()));
        assert_eq!(limiter.bytes_in_use(), 2 << 20);
        drop(small);
        assert_eq!(limiter.bytes_in_use(), 0);
    }

    #[tokio::test]
    async fn large_bodies_leave_room_for_small_ones() {
        let limiter = limiter(64 << 20, 8);
        let large: Vec<_> = futures::future::join_all((0..8).map(|_| limiter.claim_large(8 << 20))).await;
        assert_eq!(large.iter().filter(|claim| claim.is_ok()).count(), 7);
        assert!(limiter.claim_now(1 << 20).is_ok());
        drop(large);
        assert!(limiter.claim_large(8 << 20).await.is_ok());
        assert_eq!(limiter.bytes_in_use(), 0);
    }

    #[tokio::test]
    async fn huge_bodies_leave_room_for_large_ones() {
        let limiter = limiter(40 << 20, 8);
        let huge = limiter.claim_large(20 << 20).await.expect("room");
        assert_eq!(limiter.claim_large((8 << 20) + 1).await.err(), Some(ShedCause::Bytes));
        assert!(limiter.claim_large(8 << 20).await.is_ok());
        drop(huge);
        assert!(limiter.claim_large(20 << 20).await.is_ok());
        assert_eq!(limiter.bytes_in_use(), 0);
    }

    #[tokio::test]
    async fn claims_whole_pages() {
        let limiter = limiter(5_000, 8);
        let mut claim = limiter.claim_now(0).expect("nothing");
        for (bytes, claimed) in
            [(1, PAGE_BYTES), (PAGE_BYTES, PAGE_BYTES), (5_000, 2 * PAGE_BYTES), (1, 2 * PAGE_BYTES)]
        {
            assert_eq!(claim.grow_to(bytes).await, Ok(()), "{bytes}");
            assert_eq!(limiter.bytes_in_use(), claimed, "{bytes}");
        }
    }
}
