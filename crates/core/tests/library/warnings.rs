//! That warnings have the length of a warning, however long the names in them are.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

use memgate_core::admission;
use memgate_core::decide::decide;
use memgate_model::finding::{Finding, Severity};
use memgate_model::request::{Operation, Request};
use memgate_workbench::files::casefile::{Case, request};
use serde_json::Value;

use super::cases::cases;

/// What people see in one piece.
const MAX_CHARS: usize = 120;

/// Warnings in the words of upstream and of the apiserver, common to all platforms, or with two names that the user has to
/// compare.
const VERBATIM: [&str; 4] = [
    "sympozium/reserved-volume",
    "sympozium/inject-label-unknown",
    "sympozium/schema",
    "sympozium/env-near-miss",
];

/// The names in the cases of the platform.
const NAMES: [&str; 10] =
    ["newsroom", "news-room", "scout", "author", "editor", "triage", "media", "ops", "writers", "ghost"];

/// The same value with longer names in all its strings.
fn with_long_names(value: &Value, chars: usize) -> Value {
    let long = |text: &str| {
        NAMES.iter().fold(text.to_owned(), |text, name| text.replace(name, &name.repeat(chars / name.len())))
    };
    match value {
        Value::String(text) => Value::String(long(text)),
        Value::Array(elements) => elements.iter().map(|element| with_long_names(element, chars)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| (key.clone(), with_long_names(field, chars))).collect()
        }
        other => other.clone(),
    }
}

fn too_long(case: &Case) -> Vec<String> {
    let body = request::review(case).to_string();
    let review = admission::parse(&body).expect("a review");
    let state = request::state(case).expect("a state");
    let decision = decide(&review.request, &state);
    let warnings = decision.findings.into_iter().filter(|finding| finding.severity == Severity::Warn);
    // A denial that only warns, since the stored object had it, keeps its words.
    let created = Request { operation: Operation::Create, old_object: None, ..review.request };
    let denied = decide(&created, &state).findings.into_iter();
    let denied: Vec<_> = denied.filter(|finding| finding.severity == Severity::Deny).collect();
    let is_denial = |finding: &Finding| {
        denied.iter().any(|denied| (denied.code, &denied.pointer) == (finding.code, &finding.pointer))
    };
    let warnings = warnings.filter(|finding| !is_denial(finding));
    let ours = warnings.filter(|finding| {
        finding.code.name.starts_with("sympozium/") && !VERBATIM.contains(&finding.code.name)
    });
    let messages = ours.map(|finding| finding.message().into_owned());
    messages.filter(|message| message.chars().count() > MAX_CHARS).collect()
}

#[test]
fn fit_into_the_length_of_a_warning() {
    let mut failures = Vec::new();
    let files = cases().expect("the case files").into_iter();
    for (file, case) in files.filter(|(file, _)| file.starts_with("sympozium/")) {
        failures
            .extend(too_long(&case).into_iter().map(|message| format!("{file}: {}: {message}", case.name)));
        for chars in [40, 240] {
            let longer =
                |object: &Option<Value>| object.as_ref().map(|object| with_long_names(object, chars));
            let state = case.state.iter().map(|object| with_long_names(object, chars)).collect();
            let (object, old_object) = (longer(&case.object), longer(&case.old_object));
            let case = Case { state, object, old_object, ..case.clone() };
            let messages = too_long(&case).into_iter();
            failures.extend(messages.map(|message| format!("{file}: {}: {message}", case.name)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
