//! What must be true of the answer to any review.

use base64::{Engine, prelude::BASE64_STANDARD};
use memgate_core::admission::{self, Malformed};
use memgate_core::decide::decide;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::review_path::Phase;
use serde_json::Value;

/// How many bytes all warnings of an answer may have together.
const MAX_WARNINGS_BYTES: usize = 4096;

/// Answers a review in every way that there is.
///
/// # Errors
/// What is wrong with an answer.
pub(crate) fn check_invariants(body: &str, snapshot: &Snapshot) -> Result<(), String> {
    let review = match admission::parse(body) {
        Ok(review) => review,
        Err(malformed) => return check_malformed(&malformed, body),
    };
    let decision = decide(&review.request, snapshot);
    if decide(&review.request, snapshot) != decision {
        return Err("two decisions on the same request differ".to_owned());
    }
    for phase in [Phase::Mutate, Phase::Validate] {
        check_response(admission::respond(phase, &review, &decision), body)?;
    }
    check_response(admission::review(&review, snapshot), body)?;
    match admission::admit(&review.request, snapshot) {
        Ok(admitted) if admitted.allowed() && !admitted.edits.is_empty() => {
            let request = memgate_model::request::Request {
                object: admitted.object.as_deref(),
                ..review.request.clone()
            };
            let again = decide(&request, snapshot);
            if again.edits.is_empty() {
                Ok(())
            } else {
                Err(format!("a second pass edits: {:?}", again.edits))
            }
        }
        Ok(_) | Err(admission::Error::Unreadable) => Ok(()),
        Err(fault) => Err(fault.to_string()),
    }
}

fn check_malformed(malformed: &Malformed, body: &str) -> Result<(), String> {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok();
    match malformed {
        Malformed::NotJson { line, .. } if *line > body.lines().count().max(1) + 1 => {
            Err(format!("line {line} is behind the end"))
        }
        Malformed::Empty if is_json => Err("a body is called empty".to_owned()),
        _ => Ok(()),
    }
}

fn check_response(answer: Result<Vec<u8>, admission::Error>, body: &str) -> Result<(), String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(admission::Error::Unreadable) => return Ok(()),
        Err(fault) => return Err(fault.to_string()),
    };
    let answer: Value = serde_json::from_slice(&answer).map_err(|error| format!("the answer: {error}"))?;
    let response = &answer["response"];
    let warnings = response["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = warnings.iter().filter_map(Value::as_str).collect();
    if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_WARNINGS_BYTES {
        return Err("the warnings are too long".to_owned());
    }
    if let Some(text) = texts.iter().find(|text| text.contains(char::is_control)) {
        return Err(format!("a control character in a warning: {text:?}"));
    }
    let causes = response["status"]["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let causes = causes.iter().filter_map(|cause| cause["message"].as_str());
    let is_signed = |text: &str| text.ends_with(')') && text.contains("(memgate");
    if let Some(text) = texts.iter().copied().chain(causes).find(|text| !is_signed(text)) {
        return Err(format!("a text without its code: {text:?}"));
    }
    if response.get("patch").is_some() != response.get("patchType").is_some() {
        return Err("patch and patchType do not come together".to_owned());
    }
    // This reader has a limit of depth, which the answer may exceed.
    let Ok(review) = serde_json::from_str::<Value>(body) else { return Ok(()) };
    let Some(patch) = response["patch"].as_str() else { return Ok(()) };
    check_patch(patch, &review["request"]["object"])
}

fn check_patch(patch: &str, object: &Value) -> Result<(), String> {
    let patch = BASE64_STANDARD.decode(patch).map_err(|error| error.to_string())?;
    let patch: json_patch::Patch = serde_json::from_slice(&patch).map_err(|error| error.to_string())?;
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).map_err(|error| format!("the patch does not apply: {error}"))
}
