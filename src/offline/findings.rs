//! Decisions and errors as a report has them: with their place in the files.

use std::sync::Arc;

use crate::admission::Admitted;
use crate::manifest::document::Document;
use crate::manifest::error::{Error, SyntaxError};
use crate::manifest::source::{Source, Span};
use crate::model::decision::Reason;
use crate::model::finding::Finding;
use crate::model::pointer::Pointer;
use crate::model::snapshot::Reference;
use crate::offline::check::Checked;
use crate::offline::load::CheckedObject;
use crate::report::{Diagnostic, InputError, LocatedFinding, Location, Related, Report};

/// Everything that was found, in the order of the inputs.
#[must_use]
pub fn report(checked: &Checked) -> Report<'_> {
    let decided = &checked.decided;
    let malformed = decided.iter().filter(|(_, admitted)| admitted.decision.reason == Reason::Malformed);
    let mut unknown: Vec<String> =
        decided.iter().flat_map(|(_, admitted)| &admitted.decision.unknown).map(reference_title).collect();
    unknown.sort();
    unknown.dedup();
    Report {
        files: checked.sources.len(),
        objects: decided.len(),
        denied: decided.iter().filter(|(_, admitted)| !admitted.allowed()).count(),
        passed_over: checked.passed_over.values().sum(),
        errors: checked.errors.iter().map(input_error).collect(),
        malformed: malformed.map(|(object, _)| object.object_ref.title()).collect(),
        findings: decided.iter().flat_map(|(object, admitted)| findings(object, admitted)).collect(),
        unknown,
    }
}

/// The findings of one object, in the order in which they stand in the file.
fn findings<'r>(object: &'r CheckedObject, admitted: &'r Admitted) -> Vec<LocatedFinding<'r>> {
    let findings = admitted.decision.findings.iter();
    let mut located: Vec<_> = findings.map(|finding| locate(object, finding)).collect();
    located.sort_by_key(|located| located.location.start);
    located
}

fn locate<'r>(object: &'r CheckedObject, finding: &'r Finding) -> LocatedFinding<'r> {
    let document = &object.document;
    let pointer = object.template.join(&finding.pointer);
    let place = document.locate(&pointer);
    let key = place.key.filter(|_| finding.at_key && place.exact);
    let location = location(document.source(), key.unwrap_or(place.caret));
    let related = finding.related.as_ref().and_then(|(pointer, label)| {
        let place = document.locate(&object.template.join(pointer));
        let location = self::location(document.source(), place.caret);
        place.exact.then(|| Related { location, label: (*label).to_owned() })
    });
    LocatedFinding { finding, pointer, object_ref: &object.object_ref, location, related }
}

/// The object that a reference names: `Secret team-a/redis`.
fn reference_title(reference: &Reference) -> String {
    let path = [reference.namespace.as_str(), reference.name.as_str()];
    let path = path.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    format!("{} {path}", reference.kind.kind)
}

/// An error at one place of a document.
#[must_use]
pub fn error_at(document: &Document, pointer: &Pointer, message: String) -> Error {
    Error::Syntax(Box::new(SyntaxError {
        source_text: Arc::clone(document.source()),
        span: document.locate(pointer).caret,
        message,
        help: None,
        related: None,
    }))
}

/// An error of an input, with its source where the place is known.
#[must_use]
pub fn input_error(error: &Error) -> InputError<'_> {
    let diagnostic = error.syntax_error().map(|syntax| Diagnostic {
        message: syntax.message.clone(),
        help: syntax.help.clone(),
        location: location(&syntax.source_text, syntax.span),
        related: syntax.related.map(|(span, label)| Related {
            location: location(&syntax.source_text, span),
            label: label.to_owned(),
        }),
    });
    InputError { line: with_causes(error), diagnostic }
}

/// An error with its causes, in one line.
fn with_causes(error: &Error) -> String {
    let mut line = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}

fn location(source: &Source, span: Span) -> Location<'_> {
    Location {
        file: source.name(),
        text: source.text(),
        start: span.start,
        end: span.end,
        line: span.line,
        column: span.column,
    }
}
