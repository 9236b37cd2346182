//! Runs case files: each case through the same bytes that an apiserver would send and get.

use std::io::Read;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::admission;
use crate::casefile::compare::{CaseOutcome, failures};
use crate::casefile::read::read;
use crate::casefile::{Case, request};
use crate::manifest;
use crate::manifest::document::{Document, values};
use crate::model::pointer::Pointer;
use crate::model::request::Occasion;
use crate::offline::classify::{Class, classify};
use crate::offline::collect::{Unread, collect};
use crate::offline::errors::error_at;
use crate::state::AddError;

/// What came of the cases.
#[derive(Debug, Default)]
pub struct CaseRun {
    /// What was run, in the order of the files.
    pub results: Vec<CaseResult>,
    /// How many cases the filter left out.
    pub filtered: usize,
    /// Files that cannot be read or are not case files.
    pub errors: Vec<manifest::error::Error>,
    /// Cases about objects at which memgate never looks, which pass whatever it decides: `file:line: …`.
    pub blind: Vec<String>,
    /// What was passed by in directories and globs.
    pub unread: Unread,
}

/// What came of one case.
#[derive(Debug)]
pub struct CaseResult {
    /// The name of the case.
    pub name: String,
    /// The file.
    pub file: String,
    /// The line in the file, from 1.
    pub line: usize,
    /// What differs from what was expected; empty when the case passed.
    pub failures: Vec<String>,
}

impl CaseRun {
    /// How many cases failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.results.iter().filter(|result| !result.failures.is_empty()).count()
    }
}

/// Why a case has no outcome.
#[derive(Debug, Error)]
enum CaseError {
    #[error(transparent)]
    State(#[from] AddError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Malformed(#[from] admission::Malformed),
    #[error(transparent)]
    Admission(#[from] admission::Error),
    #[error("{0}")]
    Answer(String),
}

/// Runs the cases whose name contains `filter`. A case that memgate cannot answer is among the errors.
#[must_use]
pub fn run(paths: &[String], filter: Option<&str>, stdin: &mut dyn Read) -> CaseRun {
    let collected = collect(paths, stdin);
    let mut run = CaseRun { errors: collected.errors, unread: collected.unread, ..CaseRun::default() };
    for source in collected.sources {
        for document in values(&Arc::new(source), &mut run.errors) {
            run_document(&document, filter, &mut run);
        }
    }
    run
}

fn run_document(document: &Document, filter: Option<&str>, run: &mut CaseRun) {
    let cases = match read(document.value()) {
        Ok(cases) => cases,
        Err(_) if is_manifest(document.value()) => {
            let file = document.source().name();
            let message = format!("this is a manifest, no case file; to check it, run: memgate check {file}");
            return run.errors.push(error_at(document.place(), &Pointer::root(), message));
        }
        Err(faults) => {
            let errors =
                faults.into_iter().map(|fault| error_at(document.place(), &fault.pointer, fault.message));
            run.errors.extend(errors);
            return;
        }
    };
    for case in cases {
        if filter.is_some_and(|filter| !case.name.contains(filter)) {
            run.filtered += 1;
            continue;
        }
        let outcome = match answer(&case) {
            Ok(outcome) => outcome,
            Err(error) => {
                let message = format!("failed to run the case {}: {error}", case.name);
                run.errors.push(error_at(document.place(), &case.pointer, message));
                continue;
            }
        };
        let (file, line) = (document.source().name().to_owned(), document.locate(&case.pointer).caret.line);
        if let Some(kind) = unjudged_kind(&case) {
            let name = &case.name;
            run.blind
                .push(format!("{file}:{line}: case {name} is about a {kind}, at which memgate never looks"));
        }
        run.results.push(CaseResult {
            failures: failures(&case.expect, &outcome),
            file,
            line,
            name: case.name,
        });
    }
}

/// Whether a document is a Kubernetes object.
fn is_manifest(value: &Value) -> bool {
    ["apiVersion", "kind"].iter().all(|field| value.get(field).is_some_and(Value::is_string))
}

/// The kind of the object of a case with its `apiVersion`, if nobody judges it.
fn unjudged_kind(case: &Case) -> Option<String> {
    let object = case.object.as_ref().or(case.old_object.as_ref())?;
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    (classify(group, kind) == Class::PassedOver).then(|| format!("{api_version} {kind}"))
}

fn answer(case: &Case) -> Result<CaseOutcome, CaseError> {
    let snapshot = request::state(case)?;
    let body = serde_json::to_string(&request::review(case))?;
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    let answer: Value = serde_json::from_slice(&admission::review(&review, &snapshot)?)?;
    CaseOutcome::from_review(&answer, case.object.as_ref()).map_err(CaseError::Answer)
}
