//! What both say about an object.

use std::{collections::BTreeSet, iter, sync::Arc, thread};

use anyhow::{Context, Result, anyhow, ensure};
use axum::http::Method;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use memgate_core::decide::decide;
use memgate_manifest::document::parse;
use memgate_manifest::source::Source;
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_model::request::{Occasion, Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_platforms::common::SCHEMA;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::judge::{Decided, check};
use memgate_workbench::files::load::load;
use serde_json::{Value, json};

use crate::{
    fixture::Fixture,
    request::{self, send},
};

use super::{by_design::unequal_fields, mutation::Mutant, threads};

/// A namespace besides the one that objects are in which name none.
pub(super) const OTHER_NAMESPACE: &str = "parity-other";

/// How many requests are on their way at a time. The apiserver answers them with as many threads as it
/// has processors, and is to have something to do while this reads answers.
const AT_ONCE: usize = 8;

/// How often a request is sent again that got no answer at all: of so many, one can meet a connection that
/// is just being closed, and a dry run can be repeated.
const RETRIES: usize = 2;

/// An object and both verdicts.
#[derive(Debug)]
pub(super) struct Verdicts {
    pub(super) mutant: Mutant,
    pub(super) check: Verdict,
    pub(super) apiserver: Verdict,
}

/// What one of the two says.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    /// The codes of the findings, refusing or not; none of the apiserver.
    pub(super) codes: Vec<&'static str>,
    /// What it is refused for: of a check the codes and pointers, of the apiserver the fields and its texts.
    pub(super) causes: Vec<String>,
    /// Whether a check refuses it for its form, which an apiserver would do before it calls memgate; not known of an
    /// apiserver.
    pub(super) denied_by_form: bool,
    /// The fields that it calls unknown, as an apiserver writes them.
    pub(super) unknown: BTreeSet<String>,
    /// The fields about which it says anything; none of an apiserver.
    pub(super) told: BTreeSet<String>,
    /// The places of values of the wrong type; none of an apiserver.
    pub(super) wrong_types: BTreeSet<String>,
    /// Whether the object could be read at all.
    pub(super) is_decoded: bool,
    /// Why, in its own words.
    pub(super) words: String,
}

impl Verdicts {
    pub(super) fn in_words(&self) -> String {
        let object: String = self.mutant.json.chars().take(600).collect();
        let done =
            if self.mutant.done.is_empty() { "as it is".to_owned() } else { self.mutant.done.join("; ") };
        format!(
            "{} with {done}{}\n  check: {}\n  apiserver: {}\n  object: {object}",
            self.mutant.kind,
            unequal_fields(self).into_iter().flat_map(|line| ["\n  ".to_owned(), line]).collect::<String>(),
            self.check.in_words(),
            self.apiserver.in_words(),
        )
    }
}

impl Verdicts {
    /// The reason of the one that refuses, without values: differences with the same reason are reported together.
    pub(super) fn refused_for(&self) -> String {
        if self.check.allowed == self.apiserver.allowed {
            return unequal_fields(self).join(" ").chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
        }
        let refusal = if self.check.allowed { &self.apiserver } else { &self.check };
        let after =
            refusal.words.split_once("is invalid: ").map_or(refusal.words.as_str(), |(_, words)| words);
        after.chars().filter(|c| c.is_ascii_alphabetic() || c.is_ascii_punctuation()).take(40).collect()
    }
}

impl Verdict {
    fn in_words(&self) -> String {
        let verdict = if self.allowed { "allowed" } else { "refused" };
        let words: String = self.words.chars().take(600).collect();
        format!("{verdict} {words}")
    }
}

/// The verdicts about objects, in the same order.
pub(super) fn of_all(fixture: &Fixture, mutants: Vec<Mutant>) -> Result<Vec<Verdicts>> {
    let home = fixture.namespace("parity", &[])?;
    let cluster = fixture.cluster()?;
    crate::installed::guarded_namespace(cluster, OTHER_NAMESPACE)?;
    crate::installed::wait_until_asked(cluster, OTHER_NAMESPACE)?;
    let client = cluster.client();
    thread::scope(|scope| {
        let checks = scope.spawn(|| checks(&mutants));
        let asked = stream::iter(&mutants).map(|mutant| ask(&client, &home, mutant)).buffered(AT_ONCE);
        let asked: Vec<Verdict> = cluster.block_on(asked.try_collect())?;
        let checks = checks.join().map_err(|_| anyhow!("check panicked"))??;
        Ok(iter::zip(checks, asked).collect::<Vec<_>>())
    })
    .map(|pairs| {
        let verdicts = iter::zip(mutants, pairs);
        verdicts.map(|(mutant, (check, apiserver))| Verdicts { mutant, check, apiserver }).collect()
    })
}

/// What `memgate check` says about each object when it is the only one in a file.
fn checks(mutants: &[Mutant]) -> Result<Vec<Verdict>> {
    let share = mutants.len().div_ceil(threads()).max(1);
    thread::scope(|scope| {
        let start = |share| scope.spawn(move || -> Result<Vec<Verdict>> { share_of_checks(share) });
        let started: Vec<_> = mutants.chunks(share).map(start).collect();
        let mut all = Vec::with_capacity(mutants.len());
        for thread in started {
            all.extend(thread.join().map_err(|_| anyhow!("check panicked"))??);
        }
        Ok(all)
    })
}

fn share_of_checks(mutants: &[Mutant]) -> Result<Vec<Verdict>> {
    let snapshot = memgate_core::state::empty(memgate_platforms::default_settings());
    let verdict = |mutant: &Mutant| match &mutant.old {
        Some(old) => update(&mutant.json, old, &snapshot),
        None => check_one(&mutant.json),
    };
    mutants.iter().map(verdict).collect()
}

/// What a case file or a review of an update says that names no other object.
fn update(json: &str, old: &str, snapshot: &Snapshot) -> Result<Verdict> {
    let object: Value = serde_json::from_str(json)?;
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").split_once('/').context("an object without a group")?;
    let request = Request {
        operation: Operation::Update,
        group: group.into(),
        version: version.into(),
        kind: text("/kind").into(),
        old_object: Some(old),
        ..Request::to_create_pod(text("/metadata/namespace"), text("/metadata/name"), json)
    };
    let findings = decide(&request, snapshot).findings;
    let denied = findings.iter().any(|finding| finding.severity == Severity::Deny);
    Ok(verdict(&object, !denied, &findings.iter().collect::<Vec<_>>(), false, String::new()))
}

fn check_one(json: &str) -> Result<Verdict> {
    let inputs = load(&Plan::of_text(json))?;
    let checked = check(inputs, Occasion::default());
    let findings: Vec<_> = checked.decided.iter().flat_map(Decided::findings).collect();
    let errors = checked.inputs.errors.iter().map(|error| format!("\n    error {error}"));
    let passed_over = checked.inputs.passed_over.iter().map(|it| format!("\n    passed over: {:?}", it.why));
    let allowed = checked.inputs.errors.is_empty()
        && checked.inputs.passed_over.is_empty()
        && checked.decided.iter().all(Decided::allowed);
    let denied_by_form = findings.iter().any(|it| it.severity == Severity::Deny && *it.code == SCHEMA);
    let object = serde_json::from_str(json).unwrap_or_default();
    Ok(verdict(&object, allowed, &findings, denied_by_form, errors.chain(passed_over).collect()))
}

/// The verdict of these findings, with what else there is to say.
fn verdict(
    object: &Value,
    allowed: bool,
    findings: &[&Finding],
    denied_by_form: bool,
    more: String,
) -> Verdict {
    let words = findings.iter().map(|finding| {
        let severity = if finding.severity == Severity::Deny { "deny" } else { "warn" };
        format!("\n    {severity} {}: {}", finding.code.name, finding.message())
    });
    let denied = findings.iter().filter(|finding| finding.severity == Severity::Deny);
    let denied = denied.map(|finding| format!("{} {}", finding.code.name, finding.pointer.as_str()));
    let field = |finding: &&Finding| field(object, &finding.pointer);
    let unknown = findings.iter().filter(|finding| finding.code.name.ends_with("/unknown-field"));
    let is_type = |finding: &&&Finding| {
        finding.code.cause == Cause::TypeInvalid || finding.message().contains(": must be of type ")
    };
    Verdict {
        allowed,
        unknown: unknown.map(field).collect(),
        told: findings.iter().map(field).collect(),
        wrong_types: findings.iter().filter(is_type).map(field).collect(),
        is_decoded: true,
        codes: findings.iter().map(|finding| finding.code.name).collect(),
        causes: denied.collect(),
        denied_by_form,
        words: words.chain([more]).collect(),
    }
}

/// The apiserver's answer to a dry run of writing the object, as kubectl would send it (3.0 is 3 to it)
/// with a warning for each field that no schema knows, where kubectl itself has the object refused. An object of a version that is not served is sent as one of the version that is, as a check
/// judges it.
async fn ask(client: &Client, home: &str, mutant: &Mutant) -> Result<Verdict> {
    let read = parse(&Arc::new(Source::new("a mutated object", mutant.json.as_str())));
    let mut object = read.documents.first().context("an object")?.value().clone();
    object["apiVersion"] = json!(mutant.served);
    let given = object["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    let namespace = given.unwrap_or(home);
    let name = object["metadata"]["name"].as_str().filter(|_| mutant.old.is_some());
    let path = request::path(&object, &encoded(namespace), name)?;
    let path = format!("{path}?dryRun=All&fieldValidation=Warn");
    let method = || if name.is_some() { Method::PUT } else { Method::POST };
    let mut answer = send(client, method(), &path, Some(&object)).await;
    for _ in 0..RETRIES {
        if answer.is_err() {
            answer = send(client, method(), &path, Some(&object)).await;
        }
    }
    let answer = answer?;
    ensure!(answer.status < 500, "{} {}: {}", answer.status, answer.message(), mutant.json);
    let words =
        if answer.granted() { String::new() } else { format!("{} {}", answer.status, answer.message()) };
    let causes = answer.body["details"]["causes"].as_array().into_iter().flatten();
    let text = |cause: &Value| Some(format!("{} {}", cause["field"].as_str()?, cause["message"].as_str()?));
    let causes = causes.filter_map(text).collect();
    let unknown =
        |warning: &String| Some(warning.strip_prefix("unknown field \"")?.strip_suffix('"')?.to_owned());
    Ok(Verdict {
        // What exists already was valid before it was stored.
        allowed: answer.granted() || answer.status == 409,
        codes: Vec::new(),
        causes,
        denied_by_form: false,
        unknown: answer.warnings.iter().filter_map(unknown).collect(),
        told: BTreeSet::new(),
        wrong_types: BTreeSet::new(),
        is_decoded: answer.granted() || answer.status == 422,
        words,
    })
}

/// A place as an apiserver writes it in the names of unknown fields.
fn field(object: &Value, pointer: &Pointer) -> String {
    let (mut path, mut here) = (String::new(), Some(object));
    for token in pointer.tokens() {
        if let Some(Value::Array(items)) = here {
            path.extend(["[", &*token, "]"]);
            here = token.parse().ok().and_then(|index: usize| items.get(index));
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(&token);
            here = here.and_then(|value| value.get(&*token));
        }
    }
    path
}

/// A namespace as a part of a path.
fn encoded(namespace: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    namespace.bytes().map(byte).collect()
}
