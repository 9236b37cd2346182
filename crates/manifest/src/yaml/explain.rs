//! Messages and help for the errors of the YAML parser.

use std::sync::Arc;

use granit_parser::{ErrorKind, ScanError};

use crate::error::SyntaxError;
use crate::outline::{MAX_DEPTH, Part};
use crate::source::Source;

/// The error of the parser about a part, with a message of our own. `cursor` is the byte behind the last event.
pub(super) fn explain(
    source: &Arc<Source>,
    part: Part,
    cursor: usize,
    scan_error: &ScanError,
) -> SyntaxError {
    let text = source.text();
    let at = (part.start + scan_error.marker().byte_offset().unwrap_or_default()).min(text.len());
    let error = SyntaxError::new(source, source.span(at, at + 1), scan_error.info());
    match scan_error.kind() {
        ErrorKind::RecursionLimitExceeded => SyntaxError::too_deep(source, error.span, MAX_DEPTH),
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => {
            let line = source.line_start(at);
            let tab = text.get(line..).and_then(|rest| rest.find('\t')).map_or(at, |tab| line + tab);
            with_tab_help(SyntaxError { span: source.span(tab, tab + 1), ..error })
        }
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::DocumentIndicatorInQuotedScalar => unclosed_quote(source, cursor, error),
        ErrorKind::UnknownAnchor => error.with_message("this alias has no anchor before it in its document"),
        ErrorKind::UnexpectedCharacter { character } => error
            .with_message(format!("a value cannot start with {character:?} without quotes"))
            .help("put it in quotes"),
        ErrorKind::MappingValueNotAllowed => error
            .with_message("a \":\" is not expected here")
            .help("check the indentation of this line, or put a value with \": \" in quotes"),
        ErrorKind::ExpectedDocumentStart
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::SimpleKeyExpected => error
            .with_message("this line fits nothing above it")
            .help("check its indentation, and that its key ends in \":\""),
        _ => error,
    }
}

/// Points at the quote that was opened first: it is the likely mistake, not the line where the parser gave up.
fn unclosed_quote(source: &Arc<Source>, cursor: usize, error: SyntaxError) -> SyntaxError {
    let from = source.text().get(cursor..).unwrap_or_default();
    let error = error.with_message("a quote is not closed");
    match from.find(['"', '\'']) {
        None => error,
        Some(at) => {
            let quote = source.span(cursor + at, cursor + at + 1);
            SyntaxError { span: quote, ..error }.help("close it, and indent each of its lines")
        }
    }
}

pub(super) fn with_tab_help(error: SyntaxError) -> SyntaxError {
    error.with_message("a tab cannot indent").help("use spaces")
}
