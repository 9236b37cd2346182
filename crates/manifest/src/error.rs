//! Errors of inputs: of reading one, of its text, and of writing edits into it.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::source::{Source, Span};

/// What the paths of a file that comes with a change may be.
const FROM_A_FILE: &str = "a path in .memgate.yaml must be a file or directory below the directory of .memgate.yaml, links resolved";

/// Why an input, or one document in it, cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The file or directory does not exist.
    #[error("{path}: no such file or directory")]
    Missing {
        /// The path as the user gave it.
        path: String,
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
    /// The file is too large to be a manifest.
    #[error("{path}: larger than {}; is this a manifest?", size(*limit))]
    TooLarge {
        /// The path, or `<stdin>`.
        path: String,
        /// The most that is read, in bytes.
        limit: usize,
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
    /// The bytes are not text.
    #[error("{path}: this is a binary file; only YAML and JSON are read")]
    Binary {
        /// The path, or `<stdin>`.
        path: String,
    },
    /// A path of a file that comes with a change, such as `.memgate.yaml`, which leads elsewhere.
    #[error("{path}: {FROM_A_FILE}; to read it, name it on the command line")]
    Outside {
        /// The path.
        path: String,
    },
    /// Such a path of a file without a Kubernetes object in it. Its text is not shown.
    #[error(
        "{path}: this file cannot be read as YAML or JSON, and nothing in it looks like a Kubernetes object; to see why, name it on the command line"
    )]
    NotManifest {
        /// The path.
        path: String,
    },
    /// A set of `.memgate.yaml` names no file.
    #[error(
        "the set {set} has no files: there is no manifest in {paths}; correct its paths, or remove it from sets"
    )]
    EmptySet {
        /// The name of the set.
        set: String,
        /// Its paths.
        paths: String,
    },
    /// The program that renders manifests failed.
    #[error("{command}: {message}")]
    Render {
        /// The program with its arguments.
        command: String,
        /// Why; the program's own message where it wrote one.
        message: String,
    },
    /// The pattern is malformed.
    #[error("{glob}: {message}")]
    Glob {
        /// The pattern as the user gave it.
        glob: String,
        /// What is wrong with it.
        message: String,
    },
    /// The text is neither YAML nor JSON.
    #[error(transparent)]
    Syntax(Box<SyntaxError>),
    /// An edit does not fit the document: a bug in memgate.
    #[error("{path}: the edit at {pointer} does not apply")]
    Edit {
        /// The name of the source.
        path: String,
        /// The pointer of the edit, in its document.
        pointer: String,
    },
    /// The text with the edits does not have the expected value: a bug in memgate.
    #[error("{path}: the edits cannot be written into this file; write the document in another form")]
    Rewrite {
        /// The name of the source.
        path: String,
    },
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
        Self { source_text: Arc::clone(source), span, message: message.into(), help: None, related: None }
    }

    /// The error that collections are nested too deep.
    pub(super) fn too_deep(source: &Arc<Source>, span: Span, limit: usize) -> Self {
        let message = format!("nested deeper than {limit} levels");
        Self::new(source, span, message).help("no Kubernetes object is")
    }

    /// The same error with another message.
    pub(super) fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// The same error with help.
    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

fn size(bytes: usize) -> String {
    const MIB: usize = 1 << 20;
    if bytes >= MIB && bytes.is_multiple_of(MIB) {
        format!("{} MiB", bytes / MIB)
    } else {
        format!("{bytes} bytes")
    }
}

fn semicolon(help: Option<&String>) -> String {
    help.map(|help| format!("; {help}")).unwrap_or_default()
}

impl Error {
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
        let place: (&str, _) = match self {
            Self::Missing { path }
            | Self::Read { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Binary { path }
            | Self::Outside { path }
            | Self::NotManifest { path }
            | Self::Edit { path, .. }
            | Self::Rewrite { path } => (path, None),
            Self::Encoding { path, line, .. } => (path, Some(*line)),
            Self::Glob { glob: what, .. } | Self::Render { command: what, .. } => (what, None),
            Self::Syntax(error) => (error.source_text.name(), Some(error.span.line)),
            Self::EmptySet { .. } => return None,
        };
        Some(place)
    }
}
