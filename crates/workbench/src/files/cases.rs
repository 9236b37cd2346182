//! Runs case files: each case through the same bytes that an apiserver would send and get.

use std::error::Error;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::build::exclude::Exclude;
use crate::build::plan::Plan;
use crate::files::casefile::compare::{CaseOutcome, failures};
use crate::files::casefile::read::read_over;
use crate::files::casefile::{Case, request};
use crate::files::errors::{error_at, input_error};
use crate::files::inputs::Inputs;
use crate::files::load::{self, load};
use crate::files::notices::unreadable_errors;
use crate::files::places::DocumentValue;
use crate::files::read::collect;
use crate::report::cases::{CaseReport, CaseResult};
use memgate_core::admission;
use memgate_manifest::document::{Document, values};
use memgate_model::decision::Decision;
use memgate_model::policy::Policies;
use memgate_model::request::Occasion;
use memgate_model::snapshot::Snapshot;
use memgate_policy::counts::RuleCounts;
use memgate_primitives::pointer::Pointer;

/// What came of the cases.
#[derive(Debug)]
pub struct CaseRun {
    /// What was run, in the order of the files.
    pub results: Vec<CaseResult>,
    /// What was read. Files that are not case files are among its errors.
    pub inputs: Inputs,
    /// How many cases each rule of the policies judged.
    pub rules: RuleCounts,
}

/// Where case files are, which of their cases run, and with which policies.
#[derive(Debug)]
pub struct CasePlan<'f> {
    /// Files, directories, globs, or `-` for standard input.
    pub paths: &'f [String],
    /// Whether other files are passed over, since the user named no case file.
    pub are_searched: bool,
    /// The directory below which the paths must lead, when a file that comes with a change names them.
    pub within: Option<PathBuf>,
    /// What directories and globs leave out.
    pub exclude: Arc<Exclude>,
    /// Policies and exemptions that are in the state of every case; one of a case's own takes the place of the one of
    /// its name.
    pub policies: &'f [String],
}

impl CaseRun {
    /// How many cases failed.
    pub fn failed(&self) -> usize {
        self.results.iter().filter(|result| !result.passed()).count()
    }

    /// The results, for a report.
    pub fn report(&self) -> CaseReport<'_> {
        CaseReport {
            cases: &self.results,
            errors: self.inputs.errors.iter().map(input_error).collect(),
            rules: Some(&self.rules),
        }
    }

    /// The number of cases that passed and failed, or why none was run.
    pub fn summary(&self) -> String {
        if !self.results.is_empty() || !self.inputs.errors.is_empty() {
            return format!("{} passed, {} failed", self.results.len() - self.failed(), self.failed());
        }
        "error: no case was found\n  a case file holds a list of cases; see memgate test --help".to_owned()
    }
}

/// Runs the cases. A case that memgate cannot answer is among the errors. Where a policy that is given is not in force,
/// none is run.
///
/// # Errors
/// When a number of a policy is out of bounds.
pub fn run(plan: &CasePlan<'_>, stdin: &mut dyn Read) -> Result<CaseRun, load::Error> {
    let CasePlan { paths, are_searched, within, exclude, policies } = plan;
    let of_files = Plan { within: within.clone(), exclude: Arc::clone(exclude), ..Plan::default() };
    let mut inputs = collect(paths, &of_files, stdin);
    let sources = std::mem::take(&mut inputs.sources);
    let mut run = CaseRun { results: Vec::new(), inputs, rules: RuleCounts::default() };
    let given = load(&Plan { policies: policies.to_vec(), ..Plan::default() })?;
    if !given.errors.is_empty() {
        run.inputs.errors.extend(given.errors);
        return Ok(run);
    }
    run.rules.add_rules(&given.snapshot.policies);
    for source in sources {
        source.holds_cases();
        if *are_searched && !source.text().contains("expect") {
            continue;
        }
        for document in values(&source, &mut run.inputs.errors) {
            if *are_searched && !has_cases(document.value()) {
                continue;
            }
            run_document(&document, &given.snapshot, &mut run);
        }
    }
    Ok(run)
}

fn run_document(document: &Document, base: &Snapshot, run: &mut CaseRun) {
    let cases = match read_over(document.value(), base.policies.hold_dates()) {
        Ok(cases) => cases,
        Err(_) if is_manifest(document.value()) => {
            let file = document.source().name();
            let message = format!("this is a manifest, no case file; to check it, run: memgate check {file}");
            return run.inputs.errors.push(error_at(document.place(), &Pointer::root(), message));
        }
        Err(faults) => {
            let errors =
                faults.into_iter().map(|fault| error_at(document.place(), &fault.pointer, fault.message));
            run.inputs.errors.extend(errors);
            return;
        }
    };
    for case in cases {
        let list = case.pointer.key("state");
        let errors = case.state.iter().enumerate().flat_map(|(index, value)| {
            unreadable_errors(DocumentValue { document, within: &list.index(index), value }, &base.settings)
        });
        let known = run.inputs.errors.len();
        run.inputs.errors.extend(errors);
        if run.inputs.errors.len() > known {
            continue;
        }
        let (outcome, decision, policies) = match answer(&case, base) {
            Ok(answer) => answer,
            Err(error) => {
                let message = format!("failed to run the case {}: {error}", case.name);
                run.inputs.errors.push(error_at(document.place(), &case.pointer, message));
                continue;
            }
        };
        let (file, line) = (document.source().name().to_owned(), document.locate(&case.pointer).caret.line);
        let failures = failures(&case.expect, &outcome);
        run.rules.add_rules(&policies);
        run.rules.add(&decision.rules);
        run.results.push(CaseResult { name: case.name, file, line, failures });
    }
}

/// Whether a document looks like a list of cases, perhaps with faults.
fn has_cases(value: &Value) -> bool {
    let is_case = |case: &Value| {
        let keys = ["name", "operation", "state", "object", "oldObject", "expect"];
        keys.iter().filter(|key| case.get(key).is_some()).count() > 1
    };
    value.as_array().is_some_and(|cases| cases.iter().any(is_case))
}

/// Whether a document is a Kubernetes object.
fn is_manifest(value: &Value) -> bool {
    ["apiVersion", "kind"].iter().all(|field| value.get(field).is_some_and(Value::is_string))
}

/// Decides about a case, with `base` below its own state. Also returns the decision, and the policies in the state.
fn answer(case: &Case, base: &Snapshot) -> Result<(CaseOutcome, Decision, Arc<Policies>), Box<dyn Error>> {
    let snapshot = request::state_over(base, case)?;
    let body = serde_json::to_string(&request::review(case))?;
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, counts_rules: true, ..case.occasion };
    let admitted = admission::admit(&review.request, &snapshot)?;
    let answer: Value = serde_json::from_slice(&admission::review_of(&review, &admitted))?;
    let outcome = CaseOutcome::from_review(&answer, case.object.as_ref())?;
    Ok((outcome, admitted.decision, snapshot.policies))
}
