//! How large answers are, and that they say each thing once.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test that cannot go on must stop")]

use memgate_core::admission::{self, Malformed};
use memgate_core::decide::decide;
use memgate_model::decision::{Decision, NotShown};
use memgate_model::finding::{Cause, Code, Finding};
use memgate_model::page::Page;
use memgate_model::reason::Reason;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::review_path::Phase;
use serde_json::{Value, json};

/// How many bytes an answer has at most beside its patch.
const MAX_ANSWER_BYTES: usize = 64 << 10;

static CODE: Code = Code { name: "family/code", cause: Cause::Invalid, page: Page(|| "") };

fn body(uid: &str, name: &str, object: &Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "operation": "CREATE",
            "kind": {"group": "orloj.dev", "version": "v1", "kind": "Agent"},
            "name": name,
            "namespace": "team-a",
            "object": object,
        },
    })
    .to_string()
}

fn answer(decision: &Decision, name: &str) -> Value {
    let body = body("u", name, &json!({}));
    let review = admission::parse(&body).expect("a review");
    let bytes = admission::respond(Phase::Validate, &review, decision).expect("an answer");
    assert!(bytes.len() <= MAX_ANSWER_BYTES, "{} bytes", bytes.len());
    serde_json::from_slice(&bytes).expect("JSON")
}

fn refused(findings: Vec<Finding>, not_shown: NotShown) -> Decision {
    Decision { findings, not_shown, phase: Phase::Validate, ..Decision::pass(Reason::Invalid) }
}

fn deny(field: &str, message: impl Into<String>) -> Finding {
    Finding::deny(&CODE, Pointer::new(field), message)
}

#[test]
fn says_each_complaint_once() {
    let warning = Finding::warn(&CODE, Pointer::new("/spec/a"), "spec.a: is odd");
    let other = Finding::warn(&CODE, Pointer::new("/spec/b"), "spec.b: is large");
    let findings = vec![
        deny("/spec/a", "spec.a: is odd"),
        deny("/spec/a", "spec.a: is odd"),
        deny("/spec/b", "spec.b: is odd"),
        warning,
        other.clone(),
        other,
    ];
    let answer = answer(&refused(findings, NotShown::default()), "n");
    let response = &answer["response"];
    let message = "Agent.orloj.dev \"n\" is invalid: \
                   [spec.a: is odd (memgate family/code), spec.b: is odd (memgate family/code)]";
    assert_eq!(response["status"]["message"], message);
    let cause = |field| json!({"reason": "FieldValueInvalid", "message": "is odd (memgate family/code)", "field": field});
    assert_eq!(response["status"]["details"]["causes"], json!([cause("spec.a"), cause("spec.b")]));
    assert_eq!(response["warnings"], json!(["spec.b: is large (memgate family/code)"]));
}

#[test]
fn counts_what_is_not_told() {
    let warning = Finding::warn(&CODE, Pointer::new("/spec/b"), "is large");
    let findings = vec![deny("/spec/a", "is odd"), warning];
    let answer = answer(&refused(findings, NotShown { denials: 950, warnings: 12 }), "n");
    let message = answer["response"]["status"]["message"].as_str().expect("a message");
    assert_eq!(
        message,
        "Agent.orloj.dev \"n\" is invalid: spec.a: is odd (memgate family/code) … and 950 more"
    );
    let cause = &answer["response"]["status"]["details"]["causes"][0];
    assert_eq!(cause["message"], "is odd … and 950 more (memgate family/code)");
    let warnings = json!(["spec.b: is large (memgate family/code)", "and 12 more warnings (memgate)"]);
    assert_eq!(answer["response"]["warnings"], warnings);
}

/// Texts that double in JSON, and names of any length.
#[test]
fn bounds_every_text() {
    let long = "\"\\".repeat(4_000);
    let pointer = |number| format!("/spec/{}{number}", "k".repeat(9_000));
    let denials = (0..50).map(|number| deny(&pointer(number), format!("{number}{long}")).help(long.clone()));
    let warnings = (0..50).map(|number| {
        let message = "\"".repeat(60 + number);
        Finding::warn(&CODE, Pointer::new(pointer(number)), message).help(long.clone())
    });
    let findings = denials.chain(warnings).collect();
    let answer = answer(&refused(findings, NotShown::default()), &"\u{1}".repeat(100_000));
    let status = &answer["response"]["status"];
    assert!(status["message"].as_str().expect("a message").contains(" more"), "{status}");
    let causes = status["details"]["causes"].as_array().expect("causes");
    assert!(causes.len() > 3 && causes.len() < 50, "{}", causes.len());
    let name = status["details"]["name"].as_str().expect("a name");
    assert!(name.chars().count() <= 254, "{name}");
}

#[test]
fn an_object_that_is_all_wrong_gets_a_short_answer() {
    let allow: Vec<String> =
        (0..9_000).map(|number| format!("wrong-{number}-{}", "\"".repeat(200))).collect();
    let object = json!({
        "apiVersion": "orloj.dev/v1",
        "kind": "Agent",
        "metadata": {"name": "scout", "namespace": "team-a"},
        "spec": {"memory": {"ref": "notes", "allow": allow}},
    });
    let body = body("u", "scout", &object);
    let review = admission::parse(&body).expect("a review");
    let decision = decide(&review.request, &Snapshot::new(memgate_platforms::default_settings()));
    assert!(!decision.allowed());
    for phase in [Phase::Mutate, Phase::Validate] {
        let bytes = admission::respond(phase, &review, &decision).expect("an answer").len();
        assert!(bytes <= MAX_ANSWER_BYTES, "{bytes} bytes");
    }
    let both = admission::review(&review, &Snapshot::new(memgate_platforms::default_settings()))
        .expect("an answer")
        .len();
    assert!(both <= MAX_ANSWER_BYTES, "{both} bytes");
    let later = admission::hold(&review, &decision, &"wait ".repeat(100_000)).len();
    assert!(later <= MAX_ANSWER_BYTES, "{later} bytes");
}

#[test]
fn an_id_has_256_bytes_at_most() {
    let of = |length: usize| body(&"u".repeat(length), "n", &json!({}));
    assert!(admission::parse(&of(256)).is_ok());
    assert!(matches!(admission::parse(&of(257)), Err(Malformed::LongUid)));
}
