//! That a decision has one reason in the audit annotation, the metric and the log line; that it has one line and one id,
//! from the call that gives the verdict; and that each warning and each cause ends with its code. For both calls.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use memgate_certs::tls::CertSource;
use memgate_model::reason::Reason;
use memgate_server::options::Options;
use memgate_server::{State, counted_router};
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};
use tower::ServiceExt;
use tracing_subscriber::fmt::MakeWriter;

use super::clock::clock_of;
use super::share::Share;

pub(crate) fn agree(cases: &[(String, Case)]) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(check_all(cases));
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
            check_codes(&name, &recorded);
            check_line(&name, &recorded);
            seen.insert(recorded.audit);
        }
    }
    let known: BTreeSet<&str> = Reason::ALL.into_iter().map(Reason::name).collect();
    assert!(seen.iter().all(|reason| known.contains(reason.as_str())), "{seen:?}");
    if Share::Tenth.or_all() == Share::All {
        let never: Vec<&str> = known.into_iter().filter(|reason| !seen.contains(*reason)).collect();
        assert_eq!(never, NEVER_IN_A_CASE, "reasons that no case has");
    }
}

/// The reasons that no case comes to: what cannot be read is a 400, which has no annotation; what is cancelled is never
/// answered; what is over a limit fills pages; and only in a cluster does a pod wait.
const NEVER_IN_A_CASE: [&str; 4] = ["cancelled", "over-limit", "reference-pending", "unreadable"];

/// Each text ends with its code, or with the rule of a policy, which is one.
fn check_codes(name: &str, recorded: &Recorded) {
    for text in &recorded.texts {
        let is_code = |code: &String| {
            let rule = format!(" (memgate {}", code.replacen('/', " ", 1));
            let rest = text.rsplit_once(&rule).map(|(_, rest)| rest);
            text.ends_with(&format!(" (memgate {code})"))
                || rest.is_some_and(|rest| rest == ")" || rest.starts_with(", denied from "))
        };
        let count = text.starts_with("and ") && text.ends_with(" more warnings (memgate)");
        assert!(count || recorded.audit_codes.iter().any(is_code), "{name}: {text}");
    }
}

/// The call that gives the verdict leaves a line with the id of the audit annotation, and the other call leaves neither.
fn check_line(name: &str, recorded: &Recorded) {
    let Some(line) = &recorded.line else {
        assert!(!recorded.gives_verdict && recorded.uid.is_null(), "{name}");
        return;
    };
    assert!(recorded.gives_verdict, "{name}: {line}");
    assert_eq!(line["uid"], recorded.uid, "{name}: the id");
    assert_eq!(line["reason"], *recorded.audit, "{name}: the log");
    let codes = recorded.audit_codes.join(",");
    assert_eq!(line["codes"].as_str().unwrap_or_default(), codes, "{name}: the codes of the log");
    assert_eq!(line["denial"].is_string(), line["verdict"] == "denied", "{name}: {line}");
    assert!(line["field"].is_null() || line["denial"].is_string(), "{name}: {line}");
    let mut values = line.as_object().into_iter().flatten();
    assert!(values.all(|(_, value)| value != ""), "{name}: {line}");
    let is_without = line["level"] == "WARN";
    assert_eq!(line["missing"].is_string(), is_without, "{name}: {line}");
    assert!(!is_without || line["verdict"] == "allowed" && line["webhook"] == "mutate", "{name}: {line}");
}

/// What one call left behind.
struct Recorded {
    gives_verdict: bool,
    audit: String,
    audit_codes: Vec<String>,
    uid: Value,
    /// Warnings and causes.
    texts: Vec<String>,
    metric: String,
    line: Option<Value>,
}

async fn call_webhook(case: &Case, webhook: &str, log: &Log) -> Recorded {
    let ca = std::env::temp_dir().join("unused");
    let tls = CertSource::SelfSigned { names: Vec::new(), ca };
    let options = Options { clock: clock_of(case), ..Options::new(tls) };
    let state = State::Fixed(request::state(case).expect("a state"));
    let (router, metrics) = counted_router(&options, state);
    log.0.lock().expect("no panic").clear();
    let review = request::review(case);
    let answer = call(&router, &format!("/{webhook}?timeout=30s"), &review).await;
    let is_pod = review["request"]["kind"] == json!({"group": "", "version": "v1", "kind": "Pod"});
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let response = &answer["response"];
    let codes = text(&response["auditAnnotations"]["codes"]);
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let causes = response["status"]["details"]["causes"].as_array().into_iter().flatten();
    Recorded {
        gives_verdict: webhook == if is_pod { "mutate" } else { "validate" },
        audit: text(&response["auditAnnotations"]["reason"]),
        audit_codes: codes.split(',').filter(|code| !code.is_empty()).map(str::to_owned).collect(),
        uid: response["auditAnnotations"]["uid"].clone(),
        texts: warnings.chain(causes.map(|cause| &cause["message"])).map(text).collect(),
        metric: counted(&metrics(), webhook),
        line: decided(log),
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

/// The line about the decision, of which there is at most one.
fn decided(log: &Log) -> Option<Value> {
    let text = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    let mut decided = lines.filter(|line| line["message"] == "decided");
    let line = decided.next();
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
