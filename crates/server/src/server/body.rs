//! Reads the body of a request within its limits, and keeps the bytes of its answer within them.
//!
//! It limits bytes only; the timeout is the caller's.

use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::server::concurrency_limiter::{BodyPermit, ConcurrencyLimiter, SMALL_BODY_BYTES};
use crate::server::metrics::labels::ShedCause;
use crate::server::options::PAGE_BYTES;
use crate::server::rejection::Rejection;

/// A whole body, with the permit for its bytes.
#[derive(Debug)]
pub(super) struct ReceivedBody {
    /// The bytes. Each copy holds the permit too: a step that goes on after its caller has gone still occupies them.
    pub(super) bytes: Bytes,
    permit: Arc<BodyPermit>,
}

impl ReceivedBody {
    fn new(bytes: Bytes, permit: BodyPermit) -> Self {
        let permit = Arc::new(permit);
        let claimed = Claimed { bytes, _permit: Arc::clone(&permit) };
        Self { bytes: Bytes::from_owner(claimed), permit }
    }

    /// The same answer, with a claim on its bytes in place of those of the body: it ends with the last
    /// reference to them, and that is when the connection has encrypted the last of them. What is left then
    /// fits into the buffers of TLS and of the socket, which are bounded for each connection.
    ///
    /// An answer of one page claims nothing: there are no more of them than connections.
    pub(super) async fn into_answer(self, answer: Bytes) -> Result<Bytes, Rejection> {
        let Self { bytes, permit } = self;
        drop(bytes);
        if answer.len() <= PAGE_BYTES {
            return Ok(answer);
        }
        // Its step is done, so that nobody else has the body any more; if somebody has, it stays claimed.
        let mut permit = Arc::try_unwrap(permit).unwrap_or_else(|shared| shared.another());
        permit.cover_answer(answer.len()).await.map_err(Rejection::Overloaded)?;
        Ok(Bytes::from_owner(Claimed { bytes: answer, _permit: permit }))
    }
}

/// The bytes of a body or of an answer, with the permit for them, which ends with the last reference to them.
struct Claimed<P> {
    bytes: Bytes,
    _permit: P,
}

impl<P> AsRef<[u8]> for Claimed<P> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The `Content-Length`; `None` when the body is chunked.
pub(super) fn content_length(body: &Body) -> Option<usize> {
    body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
}

/// Reads the body to its end.
pub(super) async fn read(
    body: &mut Body,
    limit: usize,
    limiter: &Arc<ConcurrencyLimiter>,
) -> Result<ReceivedBody, Rejection> {
    let length = content_length(body);
    let mut permit = limiter.acquire_body(length).await.map_err(Rejection::Overloaded)?;
    // A large body has its permit as a whole, so one allocation will do; a small one gets memory as it arrives.
    let mut whole =
        Vec::with_capacity(length.filter(|length| *length > SMALL_BODY_BYTES).unwrap_or_default());
    let start = Instant::now();
    let mut reclaim = pin!(limiter.reclaim_requested(start));
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = &mut reclaim => {
                if limiter.is_slow(whole.len(), start) {
                    return Err(Rejection::Overloaded(ShedCause::Slow));
                }
                reclaim.set(limiter.reclaim_requested(start));
                continue;
            }
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(Rejection::BodyBroken)?.into_data() else { continue };
        let total = whole.len() + data.len();
        if total > limit {
            return Err(Rejection::TooLarge { limit });
        }
        permit.grow_to(total).await.map_err(Rejection::Overloaded)?;
        if whole.is_empty() && length == Some(data.len()) {
            return Ok(ReceivedBody::new(data, permit));
        }
        whole.extend_from_slice(&data);
    }
    Ok(ReceivedBody::new(whole.into(), permit))
}

/// Reads a small body to its end without keeping it, so that the connection can be used again; whether it got
/// there.
pub(super) async fn discard(body: &mut Body) -> bool {
    if content_length(body).is_none_or(|length| length > SMALL_BODY_BYTES) {
        return body.is_end_stream();
    }
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}
