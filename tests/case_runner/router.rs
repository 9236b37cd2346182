//! The server without its socket: `/mutate`, then `/validate` on what it made.

use anyhow::{Context, Result, ensure};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use memgate_certs::tls::CertSource;
use memgate_model::request::Point;
use memgate_server::options::Options;
use memgate_server::{State, router};
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::compare::CaseOutcome;
use memgate_workbench::files::casefile::request;
use serde_json::Value;
use tower::ServiceExt;

use super::clock::clock_of;

/// Whether a server can be asked: it decides at admission only.
pub(crate) fn takes(case: &Case) -> bool {
    case.occasion.point == Point::Admission
}

pub(crate) fn answer(case: &Case) -> Result<CaseOutcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(both_calls(case))
}

/// As an apiserver does it: pods and the kinds with defaults are mutated, the family's kinds are
/// validated afterwards, and a rejection ends it.
async fn both_calls(case: &Case) -> Result<CaseOutcome> {
    let tls = CertSource::SelfSigned { names: Vec::new(), ca: std::env::temp_dir().join("unused") };
    let options = Options { clock: clock_of(case), ..Options::new(tls) };
    let router = router(&options, State::Fixed(request::state(case)?));
    let mut review = request::review(case);
    let mutated = call(&router, "/mutate", &review).await?;
    let first = CaseOutcome::from_review(&mutated, case.object.as_ref()).map_err(anyhow::Error::msg)?;
    if !first.allowed {
        return Ok(first);
    }
    if let (Some(after), Some(object @ Value::Object(_))) =
        (&first.after, review.pointer_mut("/request/object"))
    {
        *object = after.clone();
    }
    let validated = call(&router, "/validate", &review).await?;
    let second = CaseOutcome::from_review(&validated, first.after.as_ref()).map_err(anyhow::Error::msg)?;
    ensure!(second.changed == Some(false), "the validating call has a patch");
    Ok(together(first, second))
}

/// The two answers as one; a finding of both calls would stand there twice.
fn together(first: CaseOutcome, second: CaseOutcome) -> CaseOutcome {
    let both = |a: Vec<String>, b: Vec<String>| a.into_iter().chain(b).collect();
    CaseOutcome {
        warnings: both(first.warnings, second.warnings),
        codes: Some(both(first.codes.unwrap_or_default(), second.codes.unwrap_or_default())),
        changed: Some(first.changed == Some(true) && second.allowed),
        ..second
    }
}

async fn call(router: &axum::Router, path: &str, review: &Value) -> Result<Value> {
    let request = Request::post(format!("{path}?timeout=10s"))
        .header("content-type", "application/json")
        .body(Body::from(review.to_string()))?;
    let response = router.clone().oneshot(request).await?;
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 24).await?;
    ensure!(status == 200, "{path} answers {status}: {}", String::from_utf8_lossy(&body));
    let answer: Value = serde_json::from_slice(&body)?;
    let response = answer.get("response").context("no response")?;
    ensure!(response.get("uid") == review.pointer("/request/uid"), "the uid is another one");
    Ok(answer)
}
