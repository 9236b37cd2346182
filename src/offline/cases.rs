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
use crate::model::policy::{Policies, Policy};
use crate::model::request::Occasion;
use crate::offline::classify::{Class, classify};
use crate::offline::collect::{Unread, collect};
use crate::offline::errors::error_at;
use crate::offline::policies::is_policy;
use crate::policy;
use crate::state::{self, AddError};

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

/// Runs the cases. A case that memgate cannot answer is among the errors.
#[must_use]
pub fn run(paths: &[String], options: CaseOptions<'_>, stdin: &mut dyn Read) -> CaseRun {
    let collected = collect(paths, stdin);
    let mut run = CaseRun { errors: collected.errors, unread: collected.unread, ..CaseRun::default() };
    let given = given_policies(options.policies, &mut run.errors);
    if !run.errors.is_empty() && !options.policies.is_empty() {
        return run;
    }
    let mut coverage = Coverage::new(given);
    for source in collected.sources {
        for document in values(&Arc::new(source), &mut run.errors) {
            run_document(&document, options.filter, &mut coverage, &mut run);
        }
    }
    run.survivors = options.mutants.then(|| coverage.survivors());
    run.coverage = coverage.into_rules();
    run
}

/// The policies and exemptions in files; what keeps one from being in force is an error.
fn given_policies(paths: &[String], errors: &mut Vec<manifest::error::Error>) -> Vec<Value> {
    let collected = collect(paths, &mut std::io::empty());
    errors.extend(collected.errors);
    let mut given = Vec::new();
    for source in collected.sources {
        for document in parse(&Arc::new(source)).documents.iter().filter(|it| is_policy(it.value())) {
            let mut alone = Policies::default();
            let (group, kind) = state::group_and_kind(document.value());
            let Some(kind) = policy::resource::kind(group, kind) else { continue };
            let faults = policy::put(&mut alone, kind, document.value());
            let faults = faults.into_iter().map(|it| error_at(document.place(), &it.pointer, it.message));
            errors.extend(faults);
            given.push(document.value().clone());
        }
    }
    given
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
        let CaseAnswer { outcome, decision } = match answer(&case, coverage.given(), None) {
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
        coverage.add(case, decision.as_ref(), failures.is_empty());
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
    /// The decision, where policies are in the state.
    decision: Option<Decision>,
}

/// Asks about a case. `given` are policies besides its own, and `mutant` takes the place of the policy of its name.
fn answer(case: &Case, given: &[Value], mutant: Option<Policy>) -> Result<CaseAnswer, CaseError> {
    let mut snapshot = request::state_with(case, given)?;
    if let Some(mutant) = mutant {
        Arc::make_mut(&mut snapshot.policies).insert(mutant);
    }
    let body = serde_json::to_string(&request::review(case))?;
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    let answer: Value = serde_json::from_slice(&admission::review(&review, &snapshot)?)?;
    let outcome = CaseOutcome::from_review(&answer, case.object.as_ref()).map_err(CaseError::Answer)?;
    let has_policies = !snapshot.policies.is_empty();
    let admitted = has_policies.then(|| admission::admit(&review.request, &snapshot)).transpose()?;
    Ok(CaseAnswer { outcome, decision: admitted.map(|admitted| admitted.decision) })
}
