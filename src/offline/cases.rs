//! Runs case files: each case through the same bytes that an apiserver would send and get.

mod coverage;

use std::io::Read;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::admission;
use crate::casefile::compare::{CaseOutcome, failures};
use crate::casefile::read::read;
use crate::casefile::{Case, request};
use crate::manifest;
use crate::manifest::document::{Document, parse, values};
use crate::model::decision::Decision;
use crate::model::pointer::Pointer;
use crate::model::policy::Policy;
use crate::model::request::Occasion;
use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;
use crate::offline::classify::{Class, classify};
use crate::offline::collect::{Reading, Unread, collect};
use crate::offline::errors::error_at;
use crate::offline::load::{self, Paths, load_as};
use crate::offline::policies::is_policy;
use crate::state::AddError;

use self::coverage::Coverage;
pub use self::coverage::{RuleCoverage, Survivor};

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
    /// How often each rule of each policy fired.
    pub coverage: Vec<RuleCoverage>,
    /// The changes of rules that no case noticed, if that was asked.
    pub survivors: Option<Vec<Survivor>>,
}

/// What is asked of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct CaseOptions<'o> {
    /// Only cases whose name contains this text.
    pub filter: Option<&'o str>,
    /// Policies and exemptions that are in the state of every case; one of a case's own takes the place of the one of
    /// its name.
    pub policies: &'o [String],
    /// Whether to change each rule, one at a time, and see whether a case fails.
    pub mutants: bool,
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

/// Runs the cases. A case that memgate cannot answer is among the errors. Where a policy that is given is not in force,
/// none is run.
///
/// # Errors
/// When a number of a policy is out of bounds.
pub fn run(paths: &[String], options: CaseOptions<'_>, stdin: &mut dyn Read) -> Result<CaseRun, load::Error> {
    let collected = collect(paths, &Reading::default(), stdin);
    let mut run = CaseRun { errors: collected.errors, unread: collected.unread, ..CaseRun::default() };
    let read = Paths { policies: options.policies, ..Paths::default() };
    let given = load_as(read, &Reading::default(), Settings::default(), &mut std::io::empty())?;
    if !given.errors.is_empty() {
        run.errors.extend(given.errors);
        return Ok(run);
    }
    let mut coverage = Coverage::new(manifests(options.policies), given.snapshot);
    for source in collected.sources {
        for document in values(&Arc::new(source), &mut run.errors) {
            run_document(&document, options.filter, &mut coverage, &mut run);
        }
    }
    run.survivors = options.mutants.then(|| coverage.survivors());
    run.coverage = coverage.into_rules();
    Ok(run)
}

/// The policies and exemptions in files that were read once, as they are written.
fn manifests(paths: &[String]) -> Vec<Value> {
    let sources = collect(paths, &Reading::default(), &mut std::io::empty()).sources.into_iter();
    let documents = sources.flat_map(|source| parse(&Arc::new(source)).documents);
    documents.map(|document| document.value().clone()).filter(is_policy).collect()
}

fn run_document(document: &Document, filter: Option<&str>, coverage: &mut Coverage, run: &mut CaseRun) {
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
        let CaseAnswer { outcome, decision } = match answer(&case, coverage.base(), None) {
            Ok(answer) => answer,
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
        let failures = failures(&case.expect, &outcome);
        let name = case.name.clone();
        coverage.add(case, &decision, failures.is_empty());
        run.results.push(CaseResult { name, file, line, failures });
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

/// What came of asking.
struct CaseAnswer {
    outcome: CaseOutcome,
    /// The decision behind it.
    decision: Decision,
}

/// Asks about a case. `base` has policies besides its own, and `mutant` takes the place of the policy of its name.
fn answer(case: &Case, base: &Snapshot, mutant: Option<Policy>) -> Result<CaseAnswer, CaseError> {
    let mut snapshot = request::state_over(base, case)?;
    if let Some(mutant) = mutant {
        Arc::make_mut(&mut snapshot.policies).insert(mutant);
    }
    let body = serde_json::to_string(&request::review(case))?;
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    let admitted = admission::admit(&review.request, &snapshot)?;
    let answer: Value = serde_json::from_slice(&admission::review_of(&review, &admitted))?;
    let outcome = CaseOutcome::from_review(&answer, case.object.as_ref()).map_err(CaseError::Answer)?;
    Ok(CaseAnswer { outcome, decision: admitted.decision })
}
