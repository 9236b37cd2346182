//! Requests to decisions, and decisions to a report.

use crate::admission::{self, Admitted, admit};
use crate::cli::input::{Input, Task};
use crate::manifest;
use crate::manifest::source::{Source, Span};
use crate::model::decision::Reason;
use crate::model::snapshot::Reference;
use crate::report::{Fault, Located, Mark, Place, Report, Shown};

/// What was decided about everything that was asked.
#[derive(Debug, Default)]
pub struct Verdicts<'i> {
    /// The decisions, in the order of the input.
    pub judged: Vec<Judged<'i>>,
    /// Objects that cannot be decided about, and why.
    pub unread: Vec<(&'i Task, admission::Error)>,
}

/// A task and what was decided about it.
#[derive(Debug)]
pub struct Judged<'i> {
    /// What was asked.
    pub task: &'i Task,
    /// What was decided.
    pub admitted: Admitted,
}

/// Decides about every task. One that cannot be decided hides no other.
#[must_use]
pub fn judge(input: &Input) -> Verdicts<'_> {
    let mut verdicts = Verdicts::default();
    for task in &input.tasks {
        match admit(&task.request(), &input.snapshot) {
            Ok(admitted) => verdicts.judged.push(Judged { task, admitted }),
            Err(error) => verdicts.unread.push((task, error)),
        }
    }
    verdicts
}

/// Everything that was found, with its place.
#[must_use]
pub fn report<'r>(input: &'r Input, verdicts: &'r Verdicts<'r>) -> Report<'r> {
    let judged = &verdicts.judged;
    let malformed = judged.iter().filter(|judged| judged.admitted.decision.reason == Reason::Malformed);
    let mut assumed: Vec<String> =
        judged.iter().flat_map(|judged| &judged.admitted.decision.unknown).map(named).collect();
    assumed.sort();
    assumed.dedup();
    Report {
        files: input.sources.len(),
        objects: judged.len(),
        denied: judged.iter().filter(|judged| !judged.admitted.allowed()).count(),
        passed_over: input.passed_over.values().sum(),
        faults: input.errors.iter().map(fault).chain(verdicts.unread.iter().map(unread)).collect(),
        malformed: malformed.map(|judged| judged.task.subject.title()).collect(),
        findings: judged.iter().flat_map(located).collect(),
        assumed,
    }
}

/// The findings of one object as they stand in the file, from top to bottom.
fn located<'r>(judged: &'r Judged<'r>) -> Vec<Located<'r>> {
    let task = judged.task;
    let located = judged.admitted.decision.findings.iter().map(|finding| {
        let pointer = task.template.join(&finding.pointer);
        let found = task.document.locate(&pointer);
        let key = found.key.filter(|_| finding.at_key && found.exact);
        let place = place(task.document.source(), key.unwrap_or(found.caret));
        let other = finding.related.as_ref().and_then(|(pointer, label)| {
            let found = task.document.locate(&task.template.join(pointer));
            let place = self::place(task.document.source(), found.caret);
            found.exact.then(|| Mark { place, label: (*label).to_owned() })
        });
        Located { finding, pointer, subject: &task.subject, place, other }
    });
    let mut located: Vec<_> = located.collect();
    located.sort_by_key(|located| located.place.start);
    located
}

fn named(reference: &Reference) -> String {
    let place = [reference.namespace.as_str(), reference.name.as_str()];
    let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    format!("{} {place}", reference.kind.kind)
}

fn unread<'r>((task, error): &'r (&'r Task, admission::Error)) -> Fault<'r> {
    let place = place(task.document.source(), task.document.locate(&task.template).caret);
    let message = format!("{}: {error}", task.subject.title());
    let line = format!("{}:{}:{}: {message}", place.file, place.line, place.column);
    Fault { line, shown: Some(Shown { message, help: None, place, other: None }) }
}

/// An error of an input, with its source where the place is known.
#[must_use]
pub fn fault(error: &manifest::error::Error) -> Fault<'_> {
    let shown = error.syntax_error().map(|fault| Shown {
        message: fault.message.clone(),
        help: fault.help.clone(),
        place: place(&fault.source_text, fault.span),
        other: fault
            .related
            .map(|(span, label)| Mark { place: place(&fault.source_text, span), label: label.to_owned() }),
    });
    Fault { line: chain(error), shown }
}

/// An error with its causes, in one line.
fn chain(error: &manifest::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}

/// A stretch of a source as reports have it.
#[must_use]
pub fn place(source: &Source, span: Span) -> Place<'_> {
    Place {
        file: source.name(),
        text: source.text(),
        start: span.start,
        end: span.end,
        line: span.line,
        column: span.column,
    }
}
