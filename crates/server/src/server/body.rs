//! Reads the body of a request within its limits.
//!
//! Time is the caller's business; this module looks after bytes only.

use std::pin::pin;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::server::limits::{Claim, Gate, SMALL, Shed};
use crate::server::refusal::Refusal;

/// A whole body, with the room that it takes.
#[derive(Debug)]
pub(super) struct Received<'g> {
    /// The bytes.
    pub(super) bytes: Bytes,
    _claim: Claim<'g>,
}

/// How many bytes the head announces; `None` when the body is chunked.
pub(super) fn announced(body: &Body) -> Option<usize> {
    body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
}

/// Reads the body to its end.
pub(super) async fn read<'g>(body: &mut Body, limit: usize, gate: &'g Gate) -> Result<Received<'g>, Refusal> {
    let length = announced(body);
    let mut claim = gate.claim(length).await.map_err(Refusal::Overloaded)?;
    // Room for a large body was claimed as a whole; a small one gets memory as it arrives.
    let mut whole = Vec::with_capacity(length.filter(|length| *length > SMALL).unwrap_or_default());
    let start = Instant::now();
    let mut wanted = pin!(gate.wanted_back(start));
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = &mut wanted => {
                if gate.is_slow(whole.len(), start) {
                    return Err(Refusal::Overloaded(Shed::Slow));
                }
                wanted.set(gate.wanted_back(start));
                continue;
            }
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(Refusal::BodyBroken)?.into_data() else { continue };
        let total = whole.len() + data.len();
        if total > limit {
            return Err(Refusal::TooLarge { limit });
        }
        claim.cover(total).await.map_err(Refusal::Overloaded)?;
        if whole.is_empty() && length == Some(data.len()) {
            return Ok(Received { bytes: data, _claim: claim });
        }
        whole.extend_from_slice(&data);
    }
    Ok(Received { bytes: whole.into(), _claim: claim })
}

/// Reads a small body that nobody wants to its end, so that the connection can be used again.
/// Whether it got there.
pub(super) async fn skip(body: &mut Body) -> bool {
    if announced(body).is_none_or(|length| length > SMALL) {
        return body.is_end_stream();
    }
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}
