//! The YAML parser's errors in words that help.

use granit_parser::{ErrorKind, ScanError};

use crate::manifest::error::Fault;
use crate::manifest::yaml::{Builder, MAX_DEPTH};

impl Builder<'_> {
    /// The parser's error in words that help.
    pub(super) fn explain(&self, error: &ScanError) -> Fault {
        let text = self.source.text();
        let at = (error.marker().byte_offset().unwrap_or_default()).min(text.len());
        let fault = self.fault(at, at + 1, &error.info());
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => Fault::too_deep(self.source, fault.span, MAX_DEPTH),
            ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar => {
                let line = self.source.line_start(at);
                let tab = text.get(line..).and_then(|rest| rest.find('\t')).map_or(at, |tab| line + tab);
                with_tab_help(Fault { span: self.source.span(tab, tab + 1), ..fault })
            }
            ErrorKind::UnclosedQuotedScalar
            | ErrorKind::InvalidQuotedScalarIndent
            | ErrorKind::DocumentIndicatorInQuotedScalar => self.unclosed_quote(fault),
            ErrorKind::UnknownAnchor => fault.say("this alias has no anchor before it in its document"),
            ErrorKind::UnexpectedCharacter { character } => fault
                .say(format!("a value cannot start with {character:?} without quotes"))
                .help("put it in quotes"),
            ErrorKind::MappingValueNotAllowed => fault
                .say("a \":\" is not expected here")
                .help("check the indentation of this line, or put a value with \": \" in quotes"),
            ErrorKind::ExpectedDocumentStart
            | ErrorKind::ExpectedBlockMappingKey
            | ErrorKind::SimpleKeyExpected => fault
                .say("this line fits nothing above it")
                .help("check its indentation, and that its key ends in \":\""),
            _ => fault,
        }
    }

    fn unclosed_quote(&self, fault: Fault) -> Fault {
        let from = self.source.text().get(self.cursor..).unwrap_or_default();
        let fault = fault.say("a quote is not closed");
        match from.find(['"', '\'']) {
            None => fault,
            Some(at) => {
                let quote = self.source.span(self.cursor + at, self.cursor + at + 1);
                Fault { span: quote, ..fault }.help("close it, and indent each of its lines")
            }
        }
    }
}

pub(super) fn with_tab_help(fault: Fault) -> Fault {
    fault.say("a tab cannot indent").help("use spaces")
}
