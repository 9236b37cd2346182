//! That a decision has one reason in the audit annotation, the metric and the log line, and that the codes
//! behind warnings are those of the audit annotation. For every case of `tests/cases` and of the library of policies, and
//! both calls.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use memgate_core::casefile::{Case, request};
use memgate_model::reason::Reason;
use memgate_server::server::options::Options;
use memgate_server::server::tls::CertSource;
use memgate_server::server::{State, counted_router};
use serde_json::Value;
use tower::ServiceExt;
use tracing_subscriber::fmt::MakeWriter;

use super::cases::{cases, library_cases};
use super::clock::clock_of;

pub(crate) fn agree() -> anyhow::Result<()> {
    let cases = [cases()?, library_cases()?].concat();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(check_all(&cases));
    Ok(())
}

async fn check_all(cases: &[(String, Case)]) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(log.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let mut seen = BTreeSet::new();
    for (file, case) in cases {
        for webhook in ["mutate", "validate"] {
            let recorded = call_webhook(case, webhook, &log).await;
            let name = format!("{file}: {}, {webhook}", case.name);
            assert_eq!(recorded.metric, recorded.audit, "{name}: the metric");
            assert_eq!(recorded.log, recorded.audit, "{name}: the log");
            assert_eq!(recorded.log_codes, recorded.audit_codes.join(","), "{name}: the codes of the log");
            check_codes(&name, &recorded);
            seen.insert(recorded.audit);
        }
    }
    let all: BTreeSet<String> = Reason::all().map(|reason| reason.name().to_owned()).collect();
    assert!(seen.is_subset(&all), "{seen:?}");
    let never: Vec<&String> = all.difference(&seen).collect();
    // What cannot be read is a 400, which has no annotation, and what is cancelled is never answered; only in a
    // cluster does a pod wait; and what is over a limit fills pages.
    assert_eq!(never, NEVER_IN_A_CASE, "reasons that no case has");
}

/// What an apiserver shows of a warning.
const MAX_WARNING_CHARS: usize = 120;

/// The reasons that no case comes to.
const NEVER_IN_A_CASE: [&str; 4] = ["cancelled", "over-limit", "reference-pending", "unreadable"];

/// Each warning ends with its code, unless that makes it too long; then it is still in the annotation. A warning of a
/// policy ends with the rule, which is its code.
fn check_codes(name: &str, recorded: &Recorded) {
    let longest = recorded.audit_codes.iter().map(|code| code.len() + " []".len()).max().unwrap_or_default();
    for warning in &recorded.warnings {
        let is_code = |code: &String| {
            let rule = format!(" (memgate {}", code.replacen('/', " ", 1));
            let told = warning.rsplit_once(&rule).map(|(_, rest)| rest);
            warning.ends_with(&format!(" [{code}]"))
                || told.is_some_and(|rest| rest == ")" || rest.starts_with(", denied from "))
        };
        let coded = recorded.audit_codes.iter().any(is_code);
        let too_long = warning.chars().count() + longest > MAX_WARNING_CHARS;
        let count = warning.starts_with("and ") && warning.ends_with(" more warnings");
        assert!(coded || too_long || count, "{name}: {warning}");
    }
}

/// What one call left behind.
struct Recorded {
    audit: String,
    audit_codes: Vec<String>,
    warnings: Vec<String>,
    metric: String,
    log: String,
    log_codes: String,
}

async fn call_webhook(case: &Case, webhook: &str, log: &Log) -> Recorded {
    let ca = std::env::temp_dir().join("unused");
    let tls = CertSource::SelfSigned { names: Vec::new(), ca };
    let options = Options { clock: clock_of(case), ..Options::new(tls) };
    let state = State::Fixed(request::state(case).expect("a state"));
    let (router, metrics) = counted_router(&options, state);
    log.0.lock().expect("no panic").clear();
    let answer = call(&router, &format!("/{webhook}?timeout=30s"), &request::review(case)).await;
    let line = decided(log);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let response = &answer["response"];
    let codes = text(&response["auditAnnotations"]["codes"]);
    Recorded {
        audit: text(&response["auditAnnotations"]["reason"]),
        audit_codes: codes.split(',').filter(|code| !code.is_empty()).map(str::to_owned).collect(),
        warnings: response["warnings"].as_array().into_iter().flatten().map(text).collect(),
        metric: counted(&metrics(), webhook),
        log: text(&line["reason"]),
        log_codes: text(&line["codes"]),
    }
}

async fn call(router: &Router, path: &str, review: &Value) -> Value {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(review.to_string())).expect("a request");
    let response = router.clone().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), 200, "{review}");
    let body = to_bytes(response.into_body(), 1 << 24).await.expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

/// The reason of the only request that was counted.
fn counted(metrics: &str, webhook: &str) -> String {
    let counted =
        |line: &&str| line.starts_with("memgate_admission_requests_total{") && !line.ends_with(" 0");
    let series = metrics.lines().filter(counted);
    let series: Vec<&str> = series.collect();
    assert_eq!(series.len(), 1, "one request has one series: {metrics}");
    let series = series[0];
    assert!(series.contains(&format!("webhook=\"{webhook}\"")) && series.ends_with(" 1"), "{series}");
    let (_, reason) = series.split_once("reason=\"").expect("a reason");
    reason.split('"').next().unwrap_or_default().to_owned()
}

/// The only line about a decision.
fn decided(log: &Log) -> Value {
    let text = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    let mut decided = lines.filter(|line| line["message"] == "decided");
    let line = decided.next().expect("a line about the decision");
    assert_eq!(decided.count(), 0, "{text}");
    line
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
