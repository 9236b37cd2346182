//! The answers, logs and metrics of the server, and its Events.

use std::io;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use libtest_mimic::Failed;
use memgate_certs::tls::CertSource;
use memgate_core::decide::decide;
use memgate_core::{admission, state};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::credential::masked_keys;
use memgate_server::logs::Masked;
use memgate_server::options::Options;
use memgate_server::{State, counted_router};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use tracing_subscriber::fmt::MakeWriter;

use crate::expect_no_marker;
use crate::fields::Field;
use crate::outputs::{admission_review, expect_clean_answer};
use crate::policy::policy;
use crate::styles::objects;

/// Sends the review of each object of a field to both paths, with the other objects as state and without.
pub(crate) fn check(field: &Field) -> Result<(), Failed> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(check_all(field))
}

async fn check_all(field: &Field) -> Result<(), Failed> {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let objects = objects(&field.text());
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    for object in &objects {
        state::add(&mut snapshot, object)?;
    }
    let mut judged = snapshot.clone();
    state::add(&mut judged, &policy())?;
    for snapshot in [snapshot, judged, state::empty(memgate_platforms::default_settings())] {
        for object in &objects {
            let review = admission_review(object).to_string();
            expect_clean_event(field, &review, &snapshot)?;
            // A body that is not an AdmissionReview is quoted in the answer.
            for body in [
                review.clone(),
                update(object).to_string(),
                object.to_string(),
                review.replacen("CREATE", "ZAP", 1),
                review.replace("}}", ""),
            ] {
                ask(field, &snapshot, &body).await?;
            }
        }
    }
    let log = String::from_utf8_lossy(&log.0.lock().expect("no panic")).into_owned();
    if !log.contains("decided") {
        return Err("nothing was logged".into());
    }
    expect_no_marker("the log", &log)
}

/// An update of the object from one with other texts, so that both versions differ.
fn update(object: &Value) -> Value {
    let mut review = admission_review(object);
    let old = object.to_string().replace("http", "grpc").replace("notes", "older");
    review["request"]["operation"] = json!("UPDATE");
    review["request"]["oldObject"] = serde_json::from_str(&old).unwrap_or_default();
    review
}

async fn ask(field: &Field, snapshot: &Snapshot, body: &str) -> Result<(), Failed> {
    let ca = std::env::temp_dir().join("unused");
    let options = Options::new(CertSource::SelfSigned { names: Vec::new(), ca });
    let (router, metrics) = counted_router(&options, State::Fixed(snapshot.clone()));
    for path in ["/mutate?timeout=10s", "/validate?timeout=10s"] {
        let request = Request::post(path).header("content-type", "application/json");
        let response = router.clone().oneshot(request.body(Body::from(body.to_owned()))?).await?;
        let good = response.status() == 200;
        let answer = String::from_utf8(to_bytes(response.into_body(), 1 << 24).await?.to_vec())?;
        if good {
            expect_clean_answer(field, &answer)?;
        } else {
            expect_no_marker(path, &answer)?;
        }
    }
    expect_no_marker("the metrics", &metrics())
}

/// The Event and all texts of a finding.
fn expect_clean_event(field: &Field, review: &str, snapshot: &Snapshot) -> Result<(), Failed> {
    let review = admission::parse(review)?;
    let decision = decide(&review.request, snapshot);
    for event in &decision.events {
        expect_no_marker("the Event", &event.finding.message())?;
        // An Event names its pod.
        if field.first_form.is_none() {
            expect_no_marker("the Event", &format!("{:?}", event.regarding))?;
        }
    }
    for finding in &decision.findings {
        let told = (finding.message(), finding.help_text(), finding.pointer.as_str());
        // What writes a pointer masks the keys in it.
        expect_no_marker("a finding", &masked_keys(&format!("{told:?}")))?;
    }
    Ok(())
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
    type Writer = Masked<Self>;

    fn make_writer(&self) -> Self::Writer {
        Masked(self.clone())
    }
}
