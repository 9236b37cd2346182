//! Answers one AdmissionReview from a file.

use serde_json::Value;
use thiserror::Error;

use memgate_core::admission::{self, Malformed};
use memgate_core::decide::decide;
use memgate_model::finding::Phase;
use memgate_model::request::Occasion;
use memgate_model::snapshot::Snapshot;

/// Why a review has no answer.
#[derive(Debug, Error)]
pub enum Error {
    /// The text is not an AdmissionReview.
    #[error("standard input holds no good AdmissionReview")]
    Malformed(#[source] Malformed),
    /// The object cannot be read, or memgate made a wrong patch.
    #[error("failed to answer the review")]
    Answer(#[source] admission::Error),
    /// memgate wrote an answer that is not JSON.
    #[error("the answer is not JSON")]
    NotJson(#[source] serde_json::Error),
}

/// The answer that an apiserver would get.
#[derive(Debug)]
pub struct ReviewAnswer {
    /// The AdmissionReview with its response.
    pub bytes: Vec<u8>,
    /// Whether the request is allowed.
    pub allowed: bool,
}

/// Answers the review in `body`: one call of the two, or both in one response.
///
/// # Errors
/// When the body is not an AdmissionReview or cannot be answered.
pub fn answer(
    body: &str,
    phase: Option<Phase>,
    snapshot: &Snapshot,
    occasion: Occasion<'static>,
) -> Result<ReviewAnswer, Error> {
    let mut review = admission::parse(body.trim_start_matches('\u{feff}')).map_err(Error::Malformed)?;
    // The user is named in the review.
    review.request.occasion = Occasion { user: review.request.occasion.user, ..occasion };
    let bytes = match phase {
        None => admission::review(&review, snapshot),
        Some(phase) => admission::respond(phase, &review, &decide(&review.request, snapshot)),
    };
    let bytes = bytes.map_err(Error::Answer)?;
    let answer: Value = serde_json::from_slice(&bytes).map_err(Error::NotJson)?;
    let allowed = answer.pointer("/response/allowed") == Some(&Value::Bool(true));
    Ok(ReviewAnswer { bytes, allowed })
}
