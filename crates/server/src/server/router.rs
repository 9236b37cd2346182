//! The webhook's HTTP face: checks a request from the outside in, and turns what came of it into a
//! response.
//!
//! The order is method, path, content type, encoding, length, room, body: what is cheap to refuse
//! is refused before it costs anything. Nothing of a body is ever sent back in an error.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tokio::time::{Instant, timeout, timeout_at};

use crate::model::finding::Phase;
use crate::server::body;
use crate::server::deadline::{self, Deadline};
use crate::server::lag::Lag;
use crate::server::limits::{Gate, Shed};
use crate::server::metrics::{Metrics, Outcome};
use crate::server::ration::Ration;
use crate::server::refusal::Refusal;
use crate::server::review::{Answer, Desk};
use crate::server::traces::{Trace, Tracer};

/// How long the rest of a small body is waited for, so that its connection can be used again.
const SKIP: Duration = Duration::from_millis(4);

/// Everything that answering takes.
#[derive(Debug)]
pub(super) struct App {
    pub(super) desk: Desk,
    pub(super) gate: Gate,
    pub(super) lag: Lag,
    pub(super) metrics: Arc<Metrics>,
    /// Makes traces, when somebody wants them.
    pub(super) tracer: Option<Tracer>,
    /// The largest body, in bytes.
    pub(super) body_limit: usize,
    /// The longest that a body may take to arrive.
    pub(super) body_time: Duration,
    /// The time that a caller allows who does not say.
    pub(super) request_time: Duration,
    /// The lines that refusals may log.
    pub(super) refusals: Ration,
}

/// The routes of the webhook.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new().fallback(respond).with_state(app)
}

async fn respond(State(app): State<Arc<App>>, request: Request) -> Response {
    let start = Instant::now();
    let _counted = InFlight::new(&app.metrics);
    let (head, mut body) = request.into_parts();
    let webhook = phase(&head.uri).map_or("none", webhook);
    let trace = app.tracer.as_ref().map_or(Trace::off(), |tracer| tracer.begin(webhook, &head.headers));
    let answered = AssertUnwindSafe(answer(&app, &head, &mut body, start, &trace)).catch_unwind().await;
    let answered = answered.unwrap_or_else(|_| Err(panicked(&app.metrics)));
    let (outcome, response) = match answered {
        Ok(answer) => (answer.outcome(webhook), accepted(answer)),
        Err(refusal) => {
            log(&app.refusals, &refusal, webhook);
            if let Refusal::Overloaded(shed) = refusal {
                app.metrics.shed(shed);
            }
            let outcome = Outcome { webhook, operation: "none", verdict: "error", reason: refusal.reason() };
            (outcome, refused(&refusal, body).await)
        }
    };
    app.metrics.answered(outcome, start.elapsed());
    trace.end(&outcome);
    response
}

/// Checks the head, takes the body in, and has it answered, all in the time there is.
async fn answer(
    app: &App,
    head: &Parts,
    body: &mut Body,
    start: Instant,
    trace: &Trace,
) -> Result<Answer, Refusal> {
    let phase = check(head, body, app.body_limit)?;
    let allowed = deadline::timeout(head.uri.query()).map_err(|_| Refusal::Timeout)?;
    let deadline = Deadline::new(start, allowed.unwrap_or(app.request_time));
    if app.lag.is_too_much(deadline.answer) {
        return Err(Refusal::Overloaded(Shed::Lag));
    }
    let work = async {
        let _place = app.gate.enter().await.map_err(Refusal::Overloaded)?;
        let step = trace.step("read");
        let reading = body::read(body, app.body_limit, &app.gate);
        let received = timeout(app.body_time, reading).await.unwrap_or(Err(Refusal::BodyLate))?;
        drop(step);
        app.desk.answer(phase, &received.bytes, start, deadline, trace).await
    };
    timeout_at(deadline.answer, work).await.unwrap_or(Err(Refusal::Late))
}

fn check(head: &Parts, body: &Body, limit: usize) -> Result<Phase, Refusal> {
    if head.method != Method::POST {
        return Err(Refusal::Method);
    }
    let phase = phase(&head.uri).ok_or(Refusal::Path)?;
    if !is_json(&head.headers) {
        return Err(Refusal::ContentType);
    }
    if !is_plain(&head.headers) {
        return Err(Refusal::ContentEncoding);
    }
    if body::announced(body).is_some_and(|length| length > limit) {
        return Err(Refusal::TooLarge { limit });
    }
    Ok(phase)
}

fn phase(uri: &Uri) -> Option<Phase> {
    match uri.path() {
        "/mutate" => Some(Phase::Mutate),
        "/validate" => Some(Phase::Validate),
        _ => None,
    }
}

const fn webhook(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutate => "mutate",
        Phase::Validate => "validate",
    }
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

/// Whether the body is as it is, not compressed.
fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn accepted(answer: Answer) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], answer.body).into_response()
}

/// The response for a refusal. A small body is read to its end first; where that is not possible
/// the connection cannot go on, and the caller is told.
async fn refused(refusal: &Refusal, mut body: Body) -> Response {
    let mut response = (refusal.status(), format!("{refusal}\n")).into_response();
    let headers = response.headers_mut();
    if let Refusal::Method = refusal {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if let Some(seconds) = refusal.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    let skipped = timeout(SKIP, body::skip(&mut body)).await.unwrap_or(false);
    if !skipped {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The hook of panics has told where and why.
fn panicked(metrics: &Metrics) -> Refusal {
    metrics.panics.inc();
    Refusal::Panicked
}

/// One line for a refusal that is our own doing; what callers do wrong is for who looks for it.
fn log(lines: &Ration, refusal: &Refusal, webhook: &'static str) {
    let status = refusal.status();
    let (reason, status_code) = (refusal.reason(), status.as_u16());
    let cause = std::error::Error::source(refusal).map(ToString::to_string);
    if !status.is_server_error() {
        tracing::debug!(webhook, reason, status = status_code, cause, "{refusal}");
    } else if let Some(withheld) = lines.take(reason) {
        let withheld = (withheld > 0).then_some(withheld);
        tracing::warn!(webhook, reason, status = status_code, cause, withheld, "{refusal}");
    }
}

/// Counts a request as being in flight for as long as it lives, also when its caller goes away.
struct InFlight<'m>(&'m Metrics);

impl<'m> InFlight<'m> {
    fn new(metrics: &'m Metrics) -> Self {
        metrics.in_flight.inc();
        Self(metrics)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}
