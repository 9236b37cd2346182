//! Requests to decisions, and decisions to a report.

use anyhow::Context as _;

use crate::admission::{Admitted, admit};
use crate::cli::input::{Input, Task};
use crate::manifest;
use crate::manifest::source::{Source, Span};
use crate::model::snapshot::Reference;
use crate::report::{Fault, Located, Mark, Place, Report, Shown};

/// A task and what was decided about it.
#[derive(Debug)]
pub struct Judged<'i> {
    /// What was asked.
    pub task: &'i Task,
    /// What was decided.
    pub admitted: Admitted,
}

/// Decides about every task.
///
/// # Errors
/// When an edit of memgate's own does not apply.
pub fn judge(input: &Input) -> anyhow::Result<Vec<Judged<'_>>> {
    let judge = |task| {
        let admitted = admit(&Task::request(task), &input.snapshot)
            .with_context(|| format!("failed to judge {}", task.subject.title()))?;
        Ok(Judged { task, admitted })
    };
    input.tasks.iter().map(judge).collect()
}

/// Everything that was found, with its place.
#[must_use]
pub fn report<'r>(input: &'r Input, judged: &'r [Judged<'r>]) -> Report<'r> {
    let mut assumed: Vec<String> =
        judged.iter().flat_map(|judged| &judged.admitted.decision.unknown).map(named).collect();
    assumed.sort();
    assumed.dedup();
    Report {
        files: input.sources.len(),
        objects: judged.len(),
        denied: judged.iter().filter(|judged| !judged.admitted.allowed()).count(),
        passed_over: input.passed_over.values().sum(),
        faults: input.errors.iter().map(fault).collect(),
        findings: judged.iter().flat_map(located).collect(),
        assumed,
    }
}

/// The findings of one object as they stand in the file, from top to bottom.
fn located<'r>(judged: &'r Judged<'r>) -> Vec<Located<'r>> {
    let task = judged.task;
    let located = judged.admitted.decision.findings.iter().map(|finding| {
        let pointer = task.template.join(&finding.pointer);
        let caret = task.document.locate(&pointer).caret;
        let place = place(task.document.source(), caret);
        Located { finding, pointer, subject: &task.subject, place, other: None }
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

/// An error of an input, with its source where the place is known.
#[must_use]
pub fn fault(error: &manifest::error::Error) -> Fault<'_> {
    let shown = error.fault().map(|fault| Shown {
        message: fault.message.clone(),
        help: fault.help.clone(),
        place: place(&fault.source_text, fault.span),
        other: fault
            .second
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
