//! Errors of inputs: of reading one, of its text, and of writing edits into it.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::source::{Source, Span};

/// Why an input, or one document in it, cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The input cannot be used as a whole, or the edits cannot be written into it.
    #[error("{name}: {message}")]
    Input {
        /// The path as the user gave it, the pattern, or the program that renders.
        name: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The file or directory cannot be read.
    #[error("failed to read {path}")]
    Read {
        /// The path, or `<stdin>`.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The bytes are not UTF-8 text.
    #[error("{path}:{line}: {message}")]
    Encoding {
        /// The path, or `<stdin>`.
        path: String,
        /// The line of the first bad byte.
        line: usize,
        /// What is wrong and what to do.
        message: String,
    },
    /// Several inputs cannot be used, and why.
    #[error("{0}")]
    Several(String),
    /// The text is neither YAML nor JSON.
    #[error(transparent)]
    Syntax(Box<SyntaxError>),
}

/// An error at one place of a text. Shown as `file:line:column: message; help`.
#[derive(Debug, Clone, Error)]
#[error("{}:{}:{}: {message}{}", source_text.name(), span.line, span.column, semicolon(help.as_ref()))]
pub struct SyntaxError {
    /// The text.
    pub source_text: Arc<Source>,
    /// The place in it.
    pub span: Span,
    /// What is wrong, without a full stop.
    pub message: String,
    /// What to do, unless the message tells.
    pub help: Option<String>,
    /// The other place of a contradiction, with a label for it.
    pub related: Option<(Span, &'static str)>,
}

impl SyntaxError {
    /// An error without help.
    pub fn new(source: &Arc<Source>, span: Span, message: impl Into<String>) -> Self {
        let message = source.message(message.into(), span);
        Self { source_text: Arc::clone(source), span, message, help: None, related: None }
    }

    /// The error that collections are nested too deep.
    pub(super) fn too_deep(source: &Arc<Source>, span: Span, limit: usize) -> Self {
        let message = format!("nested deeper than {limit} levels");
        Self::new(source, span, message).help("no Kubernetes object is")
    }

    /// The same error with another message.
    pub(super) fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: self.source_text.message(message.into(), self.span), ..self }
    }

    /// The same error with help.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(self.source_text.message(help.into(), self.span)), ..self }
    }
}

fn semicolon(help: Option<&String>) -> String {
    help.map(|help| format!("; {help}")).unwrap_or_default()
}

impl Error {
    /// An error about an input as a whole.
    pub fn of_input(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Input { name: name.into(), message: message.into() }
    }

    /// The error with its place in the text, for a report with the source line and a caret; `None` for an error without
    /// a place.
    pub fn syntax_error(&self) -> Option<&SyntaxError> {
        match self {
            Self::Syntax(error) => Some(error),
            _ => None,
        }
    }

    /// The input as the user named it, and the line where it is known; `None` for an error about several inputs.
    pub fn place(&self) -> Option<(&str, Option<usize>)> {
        match self {
            Self::Input { name, .. } | Self::Read { path: name, .. } => Some((name, None)),
            Self::Encoding { path, line, .. } => Some((path, Some(*line))),
            Self::Syntax(error) => Some((error.source_text.name(), Some(error.span.line))),
            Self::Several(_) => None,
        }
    }
}
