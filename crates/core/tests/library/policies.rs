//! What tenants and authors of policies may write, and what no policy may do.
//!
//! ```text
//! budget    what policies cost counts, and hides nothing
//! clocks    times at both ends, before, at and after what they are compared with
//! every     each type of rule on the objects of each family, in each role
//! generic   the rules `fields` and `anyOf`: which conditions fit, and what they cost
//! hosts     which hosts are allowed, compared with the clients that connect to them
//! large     very many elements, very long values, and policies as large as they may be
//! own       what a pod may use behind a second variable, in `envFrom` or in another container
//! pods      what a pod sets itself, and pods that are too large
//! repeated  the second time, and updates that change nothing
//! steps     how many steps rules take, counted
//! texts     odd texts in values, which must not reach a terminal
//! wrong     wrong values in each field of a policy, an exemption and an object; kinds that policies do not judge
//! ```
//!
//! What a case can say is in `tests/cases/policy` of the project. `tests/policies` has data that these tests combine.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

mod budget;
mod clocks;
mod every;
mod generic;
mod hosts;
mod large;
mod own;
mod pods;
mod repeated;
mod steps;
mod texts;
mod written;
mod wrong;

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use memgate_core::admission::{self, Admitted};
use memgate_core::state::{self, empty};
use memgate_model::finding::{Finding, Severity};
use memgate_model::request::Occasion;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::files::casefile::{Case, read::read, request};
use serde_json::{Value, json};

use super::views::documents;

/// A file of `tests/policies`.
fn data(name: &str) -> Value {
    documents(&format!("policies/{name}.yaml")).expect("a file of data").remove(0)
}

/// A policy of this name and spec.
fn policy(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// A policy `org` that denies by these rules.
fn denying(rules: &Value) -> Value {
    policy("org", &json!({"actions": {"admission": "deny"}, "rules": rules}))
}

/// An object in the namespace `team`.
fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
    let metadata = json!({"name": "notes", "namespace": "team"});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

/// An `ArkMemory` with this backend.
fn memory(backend: &str) -> Value {
    object("arkonis.dev/v1alpha1", "ArkMemory", &json!({"backend": backend}))
}

/// A case that creates an object, or does what `also` says.
fn case(state: &[Value], object: &Value, also: &Value) -> Case {
    let mut case = json!({
        "name": "it", "at": "2027-02-01T00:00:00Z", "state": state, "object": object, "expect": {"allowed": true},
    });
    for (key, value) in also.as_object().into_iter().flatten() {
        case[key] = value.clone();
    }
    read(&case).expect("a case").remove(0)
}

/// What both webhook calls say; `None` of an object that cannot be read.
fn admitted(case: &Case) -> Option<Admitted> {
    let (body, snapshot) = asked(case)?;
    answer(case, &body, &snapshot, None)
}

/// The review and the state of a case.
fn asked(case: &Case) -> Option<(String, Snapshot)> {
    Some((request::review(case).to_string(), request::state(case).ok()?))
}

fn answer(case: &Case, body: &str, snapshot: &Snapshot, cancelled: Option<&AtomicBool>) -> Option<Admitted> {
    let mut review = admission::parse(body).ok()?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    review.request.cancelled = cancelled;
    admission::admit(&review.request, snapshot).ok()
}

/// The findings of policies about an object that is created.
fn reported(state: &[Value], object: &Value) -> Vec<Finding> {
    let admitted = admitted(&case(state, object, &json!({}))).expect("can be read");
    of_policies(admitted.decision.findings)
}

fn of_policies(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.retain(|finding| finding.policy.is_some());
    findings
}

fn messages(findings: &[Finding]) -> Vec<Cow<'_, str>> {
    findings.iter().map(Finding::message).collect()
}

/// What must be true of whatever a policy says of an object, however odd that is.
fn check_findings(findings: &[Finding], object: &Value) {
    for finding in findings {
        let (message, help, pointer) = (finding.message(), finding.help_text(), &finding.pointer);
        assert!(!message.contains(char::is_control), "{message:?}");
        assert!(!help.as_ref().is_some_and(|help| help.contains(char::is_control)), "{help:?}");
        assert!(message.len() <= 2048 + "…".len(), "{} bytes: {message}", message.len());
        let Some(policy) = &finding.policy else { continue };
        let (name, id) = (&policy.rule.policy, &policy.rule.id);
        assert!(message.ends_with(&format!(" (memgate policy {name}/{id})")), "{message}");
        assert!(object.pointer(pointer.as_str()).is_some(), "{pointer} is not in {object}");
    }
}

/// What is wrong with a policy: the places, and what is said.
fn faults(manifest: &Value) -> Vec<Finding> {
    let mut snapshot = empty(memgate_platforms::default_settings());
    state::add(&mut snapshot, manifest).expect("numbers").faults
}

/// Whether a finding refuses.
fn denies(finding: &Finding) -> bool {
    finding.severity == Severity::Deny
}

/// The places of all values below one, the value itself left out.
fn places(value: &Value) -> Vec<Pointer> {
    let (mut left, mut found) = (vec![(Pointer::root(), value)], Vec::new());
    while let Some((here, value)) = left.pop() {
        match value {
            Value::Object(fields) => left.extend(fields.iter().map(|(key, value)| (here.key(key), value))),
            Value::Array(all) => left.extend(all.iter().zip(0..).map(|(value, at)| (here.index(at), value))),
            _ => {}
        }
        found.push(here);
    }
    found.retain(|pointer| !pointer.as_str().is_empty());
    found
}
