//! The routes of the webhook: checks a request, has the review answered, and makes the response.
//!
//! The order of the checks is path, method, content type, encoding, body, permit, so that most bad requests are
//! rejected before they cost anything. An error never repeats a part of the body.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tokio::time::{Instant, timeout, timeout_at};

use crate::body;
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::connection::Service;
use crate::connection_limiter::Caller;
use crate::deadline::{self, Deadline};
use crate::logs::LogRateLimiter;
use crate::metrics::Metrics;
use crate::metrics::labels::{RequestLabels, ShedCause};
use crate::rejection::Rejection;
use crate::review::{Arrival, HandledReview, ReviewHandler};
use crate::watchdog::Watchdog;
use memgate_certs::library_error::explained;
use memgate_primitives::review_path::{Phase, call};

/// How long to wait for the rest of a small body, so that its connection can be used again.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(4);

/// The state that all requests share.
pub(super) struct AppState {
    pub(super) handler: Arc<ReviewHandler>,
    pub(super) concurrency: Arc<ConcurrencyLimiter>,
    pub(super) watchdog: Watchdog,
    pub(super) metrics: Arc<Metrics>,
    /// The largest body, in bytes.
    pub(super) body_limit: usize,
    /// The longest that a body may take to arrive.
    pub(super) body_time: Duration,
    /// The timeout of a request without `?timeout=`.
    pub(super) request_time: Duration,
    /// Limits the log lines about rejections.
    pub(super) rejection_log: LogRateLimiter,
}

/// Answers reviews. What axum's router does for a request takes a tenth of the instructions of a review of 4 KB.
pub(super) fn service(app: Arc<AppState>) -> Service {
    Arc::new(move |request, caller| {
        let app = Arc::clone(&app);
        Box::pin(async move { respond(&app, request, Some(&caller)).await })
    })
}

/// The same as routes, for callers without a socket.
pub(super) fn router(app: Arc<AppState>) -> Router {
    Router::new()
        .fallback(|State(app): State<Arc<AppState>>, request: Request| async move {
            respond(&app, request, None).await
        })
        .with_state(app)
}

async fn respond(app: &AppState, request: Request, caller: Option<&Caller>) -> Response {
    let start = Instant::now();
    let (head, mut body) = request.into_parts();
    let began = caller.map_or(start, |caller| caller.first_byte);
    let phase = call(head.uri.path());
    let mut in_flight = InFlight::new(&app.metrics, phase.map(Phase::name));
    let webhook = phase.map_or("none", Phase::name);
    let answered =
        AssertUnwindSafe(answer(app, phase, (&head, caller), &mut body, start)).catch_unwind().await;
    // The panic hook has logged where and why.
    let answered = answered.unwrap_or(Err(Rejection::Panicked));
    let (labels, mut response) = match answered {
        Ok(answer) => (answer.labels, review_response(answer)),
        Err(rejection) => {
            log(&app.rejection_log, &rejection, webhook);
            match rejection {
                Rejection::Overloaded(cause) | Rejection::Crowded(cause) => {
                    app.metrics.admission.count_shed(cause);
                }
                Rejection::Panicked => drop(app.metrics.admission.panics.inc()),
                _ => {}
            }
            let labels =
                RequestLabels { webhook, operation: "none", verdict: "error", reason: rejection.reason() };
            (labels, reject(&rejection))
        }
    };
    // The rest of a small body is read, so that the connection can be used again.
    if !body.is_end_stream() && !timeout(DISCARD_TIMEOUT, body::discard(&mut body)).await.unwrap_or(false) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    in_flight.unanswered = None;
    app.metrics.admission.count_request(labels, began.elapsed());
    response
}

/// Checks the head, reads the body and answers the review, all before the deadline.
async fn answer(
    app: &AppState,
    phase: Option<Phase>,
    (head, caller): (&Parts, Option<&Caller>),
    body: &mut Body,
    start: Instant,
) -> Result<HandledReview, Rejection> {
    let phase = check(phase, head)?;
    let allowed = deadline::timeout(head.uri.query()).map_err(|_| Rejection::Timeout)?;
    let deadline = Deadline::new(start, allowed.unwrap_or(app.request_time));
    if app.watchdog.is_behind() {
        return Err(Rejection::Overloaded(ShedCause::Queue));
    }
    let work = async {
        let reading = body::read(body, app.body_limit, &app.concurrency);
        let (body, cut) = timeout(app.body_time, reading).await.unwrap_or(Err(Rejection::BodyLate))?;
        caller.inspect(|caller| caller.activity.body_received());
        // After the body, so that callers that send slowly do not take the permits of others.
        let permit = app.concurrency.acquire_request().await.map_err(Rejection::Overloaded);
        let arrival = Arrival { phase, body, start, peer: caller.map(|caller| caller.peer) };
        let answered = match (cut, permit) {
            (None, Ok(_permit)) => app.handler.answer(&arrival, deadline).await,
            (Some(rejection), _) | (None, Err(rejection)) => Err(rejection),
        };
        let claimed = answered.and_then(|mut answer| {
            answer.body = body::claim_answer(answer.body, &app.concurrency)?;
            Ok(answer)
        });
        claimed.or_else(|rejection| app.handler.refuse(&arrival, rejection))
    };
    timeout_at(deadline.answer, work).await.unwrap_or(Err(Rejection::Late))
}

fn check(phase: Option<Phase>, head: &Parts) -> Result<Phase, Rejection> {
    if head.method != Method::POST {
        return Err(Rejection::Method);
    }
    let phase = phase.ok_or(Rejection::Path)?;
    if !is_json(&head.headers) {
        return Err(Rejection::ContentType);
    }
    if !is_uncompressed(&head.headers) {
        return Err(Rejection::ContentEncoding);
    }
    Ok(phase)
}

/// Whether the content type is `application/json`, in UTF-8 if it names a charset.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    let mut charsets = parts
        .filter_map(|part| part.split_once('='))
        .filter(|(key, _)| key.trim().eq_ignore_ascii_case("charset"));
    is_json && charsets.all(|(_, charset)| charset.trim().trim_matches('"').eq_ignore_ascii_case("utf-8"))
}

/// Whether the body has no content encoding.
fn is_uncompressed(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn review_response(answer: HandledReview) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], answer.body).into_response()
}

/// The response for a rejection.
fn reject(rejection: &Rejection) -> Response {
    let mut response = (rejection.status(), format!("{rejection}\n")).into_response();
    let headers = response.headers_mut();
    if let Rejection::Method = rejection {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if let Some(seconds) = rejection.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Logs a rejection: as a warning when it is memgate's own fault, only at level debug when it is the caller's.
fn log(limiter: &LogRateLimiter, rejection: &Rejection, webhook: &'static str) {
    let status = rejection.status();
    let (reason, status_code) = (rejection.reason(), status.as_u16());
    let cause = std::error::Error::source(rejection).map(explained);
    if !status.is_server_error() {
        tracing::debug!(webhook, reason, status = status_code, cause, "{rejection}");
    } else if let Ok(suppressed) = limiter.take(reason) {
        tracing::warn!(webhook, reason, status = status_code, cause, suppressed, "{rejection}");
    }
}

/// Counts a request as in flight until it is dropped, also when the caller disconnects.
struct InFlight<'m> {
    metrics: &'m Metrics,
    /// The call without an answer yet.
    unanswered: Option<&'static str>,
}

impl<'m> InFlight<'m> {
    fn new(metrics: &'m Metrics, unanswered: Option<&'static str>) -> Self {
        metrics.admission.in_flight.inc();
        Self { metrics, unanswered }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.metrics.admission.in_flight.dec();
        if let Some(webhook) = self.unanswered {
            self.metrics.admission.count_abandoned(webhook);
        }
    }
}
