//! Requests that get an HTTP error instead of an AdmissionReview: the cause and the status.
//!
//! A rejection has two texts: its own is for the caller and never repeats a part of the request; the log gets the chain of
//! causes. A rejection has `Retry-After` only when the same request may succeed a second later: the apiserver sends such
//! a review again, up to ten times.

use axum::http::StatusCode;
use thiserror::Error;

use crate::metrics::labels::ShedCause;
use memgate_core::admission;
use memgate_model::reason::Reason;

/// Why a request is rejected.
#[derive(Debug, Error)]
pub(super) enum Rejection {
    /// A method other than POST.
    #[error("reviews are sent with POST")]
    Method,
    /// A path that is not served.
    #[error("not found: reviews go to /mutate or /validate")]
    Path,
    /// A content type other than JSON.
    #[error("the content type must be application/json, in UTF-8")]
    ContentType,
    /// A compressed body.
    #[error("the body must not be compressed: send it without a content encoding")]
    ContentEncoding,
    /// A `timeout` that cannot be read.
    #[error("timeout must be a duration above zero, such as 10s")]
    Timeout,
    /// A body beyond the limit.
    #[error("too large to be judged: the body is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A limit is exceeded.
    #[error("too much to do at the moment: try again")]
    Overloaded(ShedCause),
    /// The same because of a large body.
    #[error("too many large reviews at once: try again")]
    Crowded(ShedCause),
    /// The body took too long to arrive.
    #[error("the body did not arrive in time")]
    BodyLate,
    /// The connection ended within the body, or the framing of the body is wrong.
    #[error("the body could not be read to its end")]
    BodyBroken(#[source] axum::Error),
    /// The body is not UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    /// The body is not an AdmissionReview.
    #[error("{0}")]
    Malformed(admission::Malformed),
    /// A kind that the decision depends on has not been listed yet.
    #[error("the state of the cluster is still being read: try again")]
    NotSynced,
    /// The memory of a pod that requires it could not be looked up.
    #[error("the memory that this pod requires could not be looked up: try again")]
    LookupFailed,
    /// The deadline has passed.
    #[error("the review could not be answered in time")]
    Late,
    /// The object under review cannot be read.
    #[error("{0}")]
    Unreadable(admission::Error),
    /// A decision that could not be turned into an answer.
    #[error("internal fault: the answer could not be made; the log has the cause")]
    Fault(#[source] admission::Error),
    /// A panic.
    #[error("internal fault; the log has the cause")]
    Panicked,
}

impl From<admission::Error> for Rejection {
    fn from(fault: admission::Error) -> Self {
        match fault {
            admission::Error::Unreadable => Self::Unreadable(fault),
            admission::Error::Patch(_) => Self::Fault(fault),
        }
    }
}

impl Rejection {
    /// The status: always one of an error.
    pub(super) const fn status(&self) -> StatusCode {
        self.status_and_reason().0
    }

    /// The reason in metrics and logs.
    pub(super) const fn reason(&self) -> &'static str {
        self.status_and_reason().1
    }

    /// The reason and the status of the answer that refuses the review instead, where its object may be why it is rejected:
    /// an error would let the object pass where the entry fails open.
    pub(super) const fn refusal(&self) -> Option<(Reason, &'static str)> {
        match self {
            Self::TooLarge { .. } => Some((Reason::OverLimit, "RequestEntityTooLarge")),
            Self::Crowded(_) => Some((Reason::OverLimit, "TooManyRequests")),
            Self::NotUtf8(_) | Self::Malformed(_) | Self::Unreadable(_) => {
                Some((Reason::Unreadable, "BadRequest"))
            }
            _ => None,
        }
    }

    /// `Retry-After` in seconds; `None` when the same request would be rejected again.
    pub(super) const fn retry_after(&self) -> Option<u32> {
        match self.status() {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Some(1),
            _ => None,
        }
    }

    const fn status_and_reason(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, "bad-method"),
            Self::Path => (StatusCode::NOT_FOUND, "bad-path"),
            Self::ContentType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad-content-type"),
            Self::ContentEncoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad-content-encoding"),
            Self::Timeout => (StatusCode::BAD_REQUEST, "bad-timeout"),
            Self::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "body-too-large"),
            Self::Overloaded(_) | Self::Crowded(_) => (StatusCode::TOO_MANY_REQUESTS, "overloaded"),
            Self::BodyLate => (StatusCode::REQUEST_TIMEOUT, "body-late"),
            Self::BodyBroken(_) => (StatusCode::BAD_REQUEST, "body-broken"),
            Self::NotUtf8(_) => (StatusCode::BAD_REQUEST, "body-not-utf8"),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "body-malformed"),
            Self::NotSynced => (StatusCode::SERVICE_UNAVAILABLE, "not-synced"),
            Self::LookupFailed => (StatusCode::SERVICE_UNAVAILABLE, "lookup-failed"),
            Self::Late => (StatusCode::GATEWAY_TIMEOUT, "late"),
            Self::Unreadable(_) => (StatusCode::BAD_REQUEST, "object-unreadable"),
            Self::Fault(_) => (StatusCode::INTERNAL_SERVER_ERROR, "fault"),
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "panic"),
        }
    }
}

/// Every reason of a rejection.
pub(super) const REASONS: [&str; 17] = [
    "bad-method", "bad-path", "bad-content-type", "bad-content-encoding", "bad-timeout", "body-too-large",
    "overloaded", "body-late", "body-broken", "body-not-utf8", "body-malformed", "not-synced",
    "lookup-failed", "late", "object-unreadable", "fault", "panic",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The list of reasons cannot be made from the enum, whose variants have contents. So it is compared with the source
    /// of `Rejection::status_and_reason`.
    #[test]
    fn the_list_of_reasons_is_complete() {
        let source = include_str!("rejection.rs");
        let arms = source.lines().filter_map(|line| line.trim().strip_prefix("Self::")?.split_once(", \""));
        let named: Vec<_> = arms.filter_map(|(_, name)| name.strip_suffix("\"),")).collect();
        assert_eq!(named, REASONS);
    }

    #[test]
    fn reasons_are_a_small_closed_set() {
        let names: Vec<&str> = Reason::ALL.into_iter().map(Reason::name).chain(REASONS).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        // A label of a metric: each value is a series for each webhook that has it.
        assert!(names.len() <= 45, "{}", names.len());
        let plain =
            |name: &&str| name.chars().all(|c| c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit());
        assert!(names.iter().all(plain), "{names:?}");
    }
}
