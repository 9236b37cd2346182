//! Errors of inputs with their places in the files, for reports.

use std::sync::Arc;

use crate::files::objects::CheckedObject;
use crate::report::{FileLocation, InputError, Related, plain};
use memgate_manifest::error::{Error, SyntaxError};
use memgate_manifest::mask;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::Finding;
use memgate_primitives::causes::with_causes;
use memgate_primitives::credential::masked;
use memgate_primitives::pointer::Pointer;

/// An error at one place of a document.
pub fn error_at(place: &DocumentPlace, pointer: &Pointer, message: String) -> Error {
    let caret = place.locate(pointer).caret;
    Error::Syntax(Box::new(SyntaxError::new(place.source(), caret, message)))
}

/// A finding as an error.
pub fn error_of(source: &Arc<Source>, span: Span, finding: &Finding) -> Error {
    let error = SyntaxError::new(source, span, finding.message());
    Error::Syntax(Box::new(match finding.help_text() {
        Some(help) => error.help(help),
        None => error,
    }))
}

/// An error about a whole text.
pub fn error_in(source: &Arc<Source>, message: String) -> Error {
    Error::Syntax(Box::new(SyntaxError::new(source, source.span(0, 0), message)))
}

/// An error of an input, with its source if its place is known.
pub fn input_error(error: &Error) -> InputError<'_> {
    let text = masked(&with_causes(error)).into_owned();
    // The name of a file may contain any character.
    let line = plain(&text).into_owned();
    let Some(syntax) = error.syntax_error() else {
        let Some((path, number)) = error.place() else {
            return InputError { message: text, line, ..InputError::default() };
        };
        let message = [number.map(|number| format!("{path}:{number}: ")), Some(format!("{path}: "))];
        let message = message.into_iter().flatten().find_map(|place| text.strip_prefix(&place));
        return InputError {
            message: message.unwrap_or(&text).to_owned(),
            line,
            file: Some(path),
            position: number.map(|number| (number, 1)),
            ..InputError::default()
        };
    };
    InputError {
        line,
        file: Some(syntax.source_text.name()),
        position: Some((syntax.span.line, syntax.span.column)),
        message: masked(&syntax.message).into_owned(),
        help: syntax.help.as_deref().map(|help| masked(help).into_owned()),
        location: Some(location(&syntax.source_text, syntax.span)),
        related: syntax.related.map(|(span, label)| Related {
            location: location(&syntax.source_text, span),
            label: label.to_owned(),
        }),
    }
}

/// A stretch of a document's source for a report, with credentials masked.
pub(crate) fn location_in(place: &DocumentPlace, span: Span) -> FileLocation<'_> {
    file_location(place.source(), mask::shown_around(place), span)
}

/// A stretch of a source for a report, with credentials masked.
pub(crate) fn location(source: &Arc<Source>, span: Span) -> FileLocation<'_> {
    file_location(source, mask::shown(source), span)
}

fn file_location<'s>(source: &'s Source, text: &'s str, span: Span) -> FileLocation<'s> {
    FileLocation {
        file: source.name(),
        text: if source.is_shown() { text } else { "" },
        measured: text,
        start: span.start,
        end: span.end,
        line: span.line,
        column: span.column,
    }
}

/// The error for an object without a decision.
pub(crate) fn fault_of(object: &CheckedObject, fault: &dyn std::error::Error) -> Error {
    let message = format!("{}: {fault}", object.object_ref.title());
    error_at(&object.place, &object.template(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_name_of_a_file_on_one_line() {
        let error = Error::of_input("a\nb:1\u{1b}[31m.yaml", "this is a binary file");
        assert_eq!(input_error(&error).line, "a b:1 [31m.yaml: this is a binary file");
    }
}
