//! Reads the body of a request within its limits, and keeps the bytes of its answer within the same budget.
//!
//! It limits bytes only; the caller has the timeout.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;

use crate::concurrency_limiter::{BytesClaim, ConcurrencyLimiter, SMALL_BODY_BYTES};
use crate::options::PAGE_BYTES;
use crate::rejection::Rejection;
use memgate_core::admission::MAX_HEAD_BYTES;

/// The bytes of a body or an answer with the claim on them. The claim ends with the last reference to the bytes.
struct Claimed {
    bytes: Bytes,
    _claim: BytesClaim,
}

impl AsRef<[u8]> for Claimed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The `Content-Length`; `None` when the body is chunked.
fn content_length(body: &Body) -> Option<usize> {
    body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
}

/// Reads the body to its end; of one that is beyond the limit, or large and finds no room, only the head. Also returns why
/// only the head was read. The returned bytes hold their claim, also while a decision still reads them after its caller has
/// gone.
///
/// # Errors
/// When the body is broken, or there is no room for a small one.
pub(super) async fn read(
    body: &mut Body,
    limit: usize,
    limiter: &Arc<ConcurrencyLimiter>,
) -> Result<(Bytes, Option<Rejection>), Rejection> {
    let length = content_length(body);
    let too_large = |length| (length > limit).then_some(Rejection::TooLarge { limit });
    let mut cut = length.and_then(too_large);
    let mut claim = limiter.claim_now(0).map_err(Rejection::Overloaded)?;
    let mut whole = Vec::new();
    if let (Some(length), None) = (length.filter(|length| *length > SMALL_BODY_BYTES), &cut) {
        match limiter.claim_large(length).await {
            Ok(of_large) => {
                claim = of_large;
                whole.reserve_exact(length);
            }
            Err(cause) => cut = Some(Rejection::Crowded(cause)),
        }
    }
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Rejection::BodyBroken)?.into_data() else { continue };
        let total = whole.len() + data.len();
        cut = cut.or_else(|| too_large(total));
        let grown = claim.grow_to(total).await.map_err(Rejection::Overloaded);
        // Of what is refused the start alone matters.
        let has_head = grown.is_err() || total >= MAX_HEAD_BYTES;
        if cut.is_none() {
            grown?;
        }
        if whole.is_empty() && length == Some(data.len()) {
            return Ok((Bytes::from_owner(Claimed { bytes: data, _claim: claim }), cut));
        }
        if whole.capacity() < total && total > SMALL_BODY_BYTES {
            // Once, since each growth would be in memory beside what it replaces. Pages count when they are written.
            whole.reserve_exact(limit.saturating_sub(whole.len()));
        }
        if cut.is_none() || whole.len() < MAX_HEAD_BYTES {
            whole.extend_from_slice(&data);
        }
        if cut.is_some() && has_head {
            break;
        }
    }
    if cut.is_none() {
        // A chunked body does not say that it has ended.
        *body = Body::empty();
    } else {
        whole.truncate(MAX_HEAD_BYTES);
        whole.shrink_to_fit();
    }
    Ok((Bytes::from_owner(Claimed { bytes: whole.into(), _claim: claim }), cut))
}

/// The same answer with a claim on its bytes, which ends when the connection has encrypted the last of them. The rest
/// is in the buffers of TLS and of the socket, which are bounded for each connection.
///
/// An answer of one page claims nothing: there are at most as many as connections. A longer one does not wait for room,
/// since it would be in memory without a claim.
///
/// # Errors
/// When the answer finds no room.
pub(super) fn claim_answer(answer: Bytes, limiter: &Arc<ConcurrencyLimiter>) -> Result<Bytes, Rejection> {
    if answer.len() <= PAGE_BYTES {
        return Ok(answer);
    }
    let claim = limiter.claim_now(answer.len()).map_err(Rejection::Overloaded)?;
    Ok(Bytes::from_owner(Claimed { bytes: answer, _claim: claim }))
}

/// Reads a small body to its end without keeping it, so that the connection can be used again; whether it reached the
/// end.
pub(super) async fn discard(body: &mut Body) -> bool {
    if content_length(body).is_some_and(|length| length <= SMALL_BODY_BYTES) {
        while let Some(Ok(_)) = body.frame().await {}
    }
    body.is_end_stream()
}
