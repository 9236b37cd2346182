//! What came out of a case, compared with what was expected: in go the two, out come the differences as
//! lines of text.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memgate_manifest::mask::shown_value;
use memgate_primitives::credential::{is_credential_name, masked};
use serde_json::Value;

use super::Expect;

/// The replacement for a value that is a credential as a whole.
const MASKED: &str = "\"***\"";

/// What came out of a case. What the answer does not show is `None`, and is not compared.
#[derive(Debug, Clone, Default)]
pub struct CaseOutcome {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The message of a refusal; empty otherwise.
    pub message: String,
    /// The warnings.
    pub warnings: Vec<String>,
    /// The codes of the findings.
    pub codes: Option<Vec<String>>,
    /// Whether the object was changed.
    pub changed: Option<bool>,
    /// The object as it would be stored.
    pub after: Option<Value>,
}

impl CaseOutcome {
    /// Reads the AdmissionReview that answers a request for `object`, and applies its patch.
    ///
    /// # Errors
    /// What is wrong with the answer, in one line.
    pub fn from_review(answer: &Value, object: Option<&Value>) -> Result<Self, String> {
        let response = answer.get("response").ok_or("the answer has no response")?;
        let allowed = response.get("allowed").and_then(Value::as_bool).ok_or("the answer has no allowed")?;
        let mut after = object.cloned();
        let patch = patch(response)?;
        if let (Some(after), Some(patch)) = (&mut after, &patch) {
            json_patch::patch(after, patch).map_err(|error| format!("the patch does not apply: {error}"))?;
        }
        let text = |pointer| response.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let warnings = response.get("warnings").and_then(Value::as_array);
        let warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
        Ok(Self {
            allowed,
            message: text("/status/message").to_owned(),
            warnings: warnings.map(str::to_owned).collect(),
            codes: Some(codes(text("/auditAnnotations/codes"))),
            changed: Some(patch.is_some()),
            after,
        })
    }
}

fn patch(response: &Value) -> Result<Option<json_patch::Patch>, String> {
    let Some(patch) = response.get("patch").and_then(Value::as_str) else { return Ok(None) };
    let bytes = STANDARD.decode(patch).map_err(|error| format!("the patch is not base64: {error}"))?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| format!("the patch is not a JSON Patch: {error}"))
}

fn codes(annotation: &str) -> Vec<String> {
    annotation.split([',', ' ']).filter(|code| !code.is_empty()).map(str::to_owned).collect()
}

/// Everything in which the outcome differs from what was expected, a line each, credentials masked; empty
/// when all is as it should be.
pub fn failures(expect: &Expect, outcome: &CaseOutcome) -> Vec<String> {
    let mut failures = Vec::new();
    compare_allowed(expect, outcome, &mut failures);
    compare_texts(expect, outcome, &mut failures);
    if let Some(changed) = outcome.changed {
        compare_changed(expect, changed, outcome, &mut failures);
    }
    if let Some(after) = &outcome.after {
        compare_object(expect, after, &mut failures);
        compare_containers(expect, after, &mut failures);
    }
    failures
}

fn compare_allowed(expect: &Expect, outcome: &CaseOutcome, failures: &mut Vec<String>) {
    match expect.allowed {
        Some(true) if !outcome.allowed => {
            failures.push(format!("expected allowed, got denied: {}", outcome.message));
        }
        Some(false) if outcome.allowed => failures.push("expected denied, got allowed".to_owned()),
        _ => {}
    }
}

fn compare_texts(expect: &Expect, outcome: &CaseOutcome, failures: &mut Vec<String>) {
    for text in expect.message_contains.iter().filter(|text| !outcome.message.contains(text.as_str())) {
        let text = masked(text);
        failures.push(format!("expected a message with \"{text}\", got \"{}\"", outcome.message));
    }
    for text in &expect.warnings_contain {
        if !outcome.warnings.iter().any(|warning| warning.contains(text)) {
            let got =
                if outcome.warnings.is_empty() { "none".to_owned() } else { outcome.warnings.join(" | ") };
            failures.push(format!("expected a warning with \"{}\", got {got}", masked(text)));
        }
    }
    if let (Some(expected), Some(got)) = (&expect.codes, &outcome.codes) {
        let set = |codes: &[String]| codes.iter().cloned().collect::<BTreeSet<_>>();
        if set(expected) != set(got) {
            failures.push(format!("expected codes {}, got {}", or_none(expected), or_none(got)));
        }
    }
}

fn or_none(codes: &[String]) -> String {
    if codes.is_empty() { "none".to_owned() } else { codes.join(", ") }
}

fn compare_changed(expect: &Expect, changed: bool, outcome: &CaseOutcome, failures: &mut Vec<String>) {
    match expect.unchanged {
        Some(true) if changed => {
            let after =
                outcome.after.as_ref().map(|after| shown_value(after).to_string()).unwrap_or_default();
            failures.push(format!("expected no patch, got {after}"));
        }
        Some(false) if !changed => failures.push("expected a patch, got none".to_owned()),
        _ => {}
    }
}

fn compare_object(expect: &Expect, after: &Value, failures: &mut Vec<String>) {
    let shown = LazyCell::new(|| shown_value(after));
    for (pointer, expected) in &expect.after {
        let got = after.pointer(pointer);
        if got == Some(expected) {
            continue;
        }
        // A value in the place of a credential counts as one too.
        let here = shown.pointer(pointer);
        let expected = if here != got || pointer.rsplit('/').next().is_some_and(is_credential_name) {
            MASKED.to_owned()
        } else {
            shown_value(expected).to_string()
        };
        let got = here.map_or_else(|| "nothing".to_owned(), Value::to_string);
        failures.push(format!("expected {pointer} to be {expected}, got {got}"));
    }
    for pointer in &expect.absent {
        if let Some(got) = shown.pointer(pointer) {
            failures.push(format!("expected nothing at {pointer}, got {got}"));
        }
    }
}

fn compare_containers(expect: &Expect, after: &Value, failures: &mut Vec<String>) {
    let names = expect.env.keys().chain(expect.env_absent.keys()).chain(&expect.containers_present);
    let missing = names.filter(|name| container(after, name).is_none());
    failures.extend(missing.map(|name| format!("expected a container {name}, got none")));
    for (name, variables) in &expect.env {
        let Some(container) = container(after, name) else { continue };
        let wrong = |(variable, expected): (&String, _)| wrong_variable(container, name, variable, expected);
        failures.extend(variables.iter().filter_map(wrong));
    }
    for (name, variables) in &expect.env_absent {
        let Some(container) = container(after, name) else { continue };
        let there = variables.iter().filter(|variable| effective(container, variable).is_some());
        failures.extend(there.map(|variable| format!("expected no {variable} in container {name}")));
    }
}

fn wrong_variable(container: &Value, name: &str, variable: &str, expected: &Value) -> Option<String> {
    let shown = |value: &Value| match value {
        Value::String(_) if is_credential_name(variable) => MASKED.to_owned(),
        _ => shown_value(value).to_string(),
    };
    let Some(entry) = effective(container, variable) else {
        return Some(format!("expected {variable}={} in container {name}, got nothing", shown(expected)));
    };
    let literal = Value::String(String::new());
    let got = entry.get("valueFrom").or_else(|| entry.get("value")).unwrap_or(&literal);
    let message =
        || format!("expected {variable}={} in container {name}, got {}", shown(expected), shown(got));
    (!is_value_of(got, expected)).then(message)
}

/// Whether a variable has the expected value. Whether a key of a Secret is optional counts only if the case says it.
fn is_value_of(got: &Value, expected: &Value) -> bool {
    let reference = |value: &Value| value.get("secretKeyRef").and_then(Value::as_object).cloned();
    let (Some(mut got_key), Some(key)) = (reference(got), reference(expected)) else {
        return got == expected;
    };
    if !key.contains_key("optional") {
        got_key.shift_remove("optional");
    }
    got_key == key
}

/// The container of this name, init containers included.
fn container<'p>(pod: &'p Value, name: &str) -> Option<&'p Value> {
    let lists = ["/spec/containers", "/spec/initContainers"];
    let containers = lists.iter().filter_map(|list| pod.pointer(list)?.as_array()).flatten();
    containers.into_iter().find(|container| container.get("name").and_then(Value::as_str) == Some(name))
}

/// The last entry of an environment variable: the one that a container sees.
fn effective<'c>(container: &'c Value, variable: &str) -> Option<&'c Value> {
    let env = container.get("env")?.as_array()?;
    env.iter().rev().find(|entry| entry.get("name").and_then(Value::as_str) == Some(variable))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn outcome() -> CaseOutcome {
        CaseOutcome {
            allowed: true,
            warnings: vec!["a is odd".to_owned()],
            codes: Some(vec!["x/a".to_owned()]),
            changed: Some(true),
            after: Some(json!({"spec": {"containers": [
                {"name": "agent", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B"}]}
            ]}})),
            ..CaseOutcome::default()
        }
    }

    #[test]
    fn says_what_differs() {
        let agent = |variable: &str, value: &str| {
            BTreeMap::from([("agent".to_owned(), BTreeMap::from([(variable.to_owned(), json!(value))]))])
        };
        for (expect, failure) in [
            (Expect { allowed: Some(false), ..Expect::default() }, "expected denied, got allowed"),
            (Expect { codes: Some(Vec::new()), ..Expect::default() }, "expected codes none, got x/a"),
            (
                Expect { warnings_contain: vec!["even".into()], ..Expect::default() },
                "expected a warning with \"even\", got a is odd",
            ),
            (
                Expect { after: BTreeMap::from([("/spec/x".into(), json!(1))]), ..Expect::default() },
                "expected /spec/x to be 1, got nothing",
            ),
            (
                Expect { env: agent("A", "1"), ..Expect::default() },
                "expected A=\"1\" in container agent, got \"2\"",
            ),
        ] {
            assert_eq!(failures(&expect, &outcome()), [failure]);
        }
    }

    #[test]
    fn is_content_when_all_holds() {
        let expect = Expect {
            allowed: Some(true),
            warnings_contain: vec!["odd".into()],
            codes: Some(vec!["x/a".into()]),
            unchanged: Some(false),
            absent: vec!["/spec/x".into()],
            env: BTreeMap::from([(
                "agent".into(),
                BTreeMap::from([("A".into(), json!("2")), ("B".into(), json!(""))]),
            )]),
            env_absent: BTreeMap::from([("agent".into(), vec!["C".into()])]),
            containers_present: vec!["agent".into()],
            ..Expect::default()
        };
        assert_eq!(failures(&expect, &outcome()), Vec::<String>::new());
    }

    #[test]
    fn ignores_whether_a_key_is_optional_unless_the_case_says_it() {
        let all = [None, Some(true), Some(false)];
        let source = |reference: &str, key: &str, optional: Option<bool>| {
            let mut fields = json!({"name": "notes", "key": key});
            if let Some(optional) = optional {
                fields["optional"] = json!(optional);
            }
            json!({reference: fields})
        };
        for (got, expected) in all.into_iter().flat_map(|got| all.map(|expected| (got, expected))) {
            let fails = |reference: &str, wanted: Value| {
                let env = json!([{"name": "A", "valueFrom": source(reference, "a", got)}]);
                let after = Some(json!({"spec": {"containers": [{"name": "agent", "env": env}]}}));
                let variables = BTreeMap::from([("A".to_owned(), wanted)]);
                let expect =
                    Expect { env: BTreeMap::from([("agent".to_owned(), variables)]), ..Expect::default() };
                !failures(&expect, &CaseOutcome { after, ..outcome() }).is_empty()
            };
            let wanted = source("secretKeyRef", "a", expected);
            assert_eq!(
                fails("secretKeyRef", wanted),
                expected.is_some() && expected != got,
                "{got:?} {expected:?}"
            );
            assert!(fails("secretKeyRef", source("secretKeyRef", "b", expected)));
            assert!(fails("secretKeyRef", source("configMapKeyRef", "a", expected)));
            assert_eq!(fails("configMapKeyRef", source("configMapKeyRef", "a", expected)), expected != got);
        }
    }

    #[test]
    fn applies_the_patch_of_an_answer() {
        let patch = STANDARD.encode(r#"[{"op":"add","path":"/a","value":1}]"#);
        let answer =
            json!({"response": {"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": patch}});
        let outcome = CaseOutcome::from_review(&answer, Some(&json!({}))).expect("is good");
        assert_eq!(outcome.after, Some(json!({"a": 1})));
    }
}
