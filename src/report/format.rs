//! The formats of a report.

use std::io::{self, Write};

use crate::report::{Report, changes, concise, github, gitlab, json, jsonl, junit, sarif, text};

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// For people: the source with a caret under what is wrong.
    Text,
    /// One line a finding.
    Concise,
    /// One JSON object.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// Workflow commands of GitHub Actions.
    Github,
    /// The code quality report of GitLab.
    Gitlab,
    /// SARIF 2.1.0.
    Sarif,
    /// JUnit's XML.
    Junit,
}

/// What a format may depend on besides the report.
#[derive(Debug, Clone, Copy)]
pub struct FormatOptions {
    /// The columns of the source that text shows.
    pub width: usize,
    /// Whether a warning fails the run, so that JUnit has it as a failure.
    pub warnings_fail: bool,
}

impl ReportFormat {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Self; 8] = [
        Self::Text,
        Self::Concise,
        Self::Json,
        Self::Jsonl,
        Self::Github,
        Self::Gitlab,
        Self::Sarif,
        Self::Junit,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Concise => "concise",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Sarif => "sarif",
            Self::Junit => "junit",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Writes the report in one format. Text has ANSI styles, which the stream removes where they are not wanted, and
/// leaves the errors of inputs to [`text::write_error`], since they may go elsewhere.
///
/// # Errors
/// Those of the writer.
pub fn write(
    report: &Report<'_>,
    format: ReportFormat,
    options: FormatOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        ReportFormat::Text if let Some(changes) = &report.changes => changes::write(report, changes, out),
        ReportFormat::Text => text::write(report, options.width, out),
        ReportFormat::Concise => concise::write(report, out),
        ReportFormat::Json => json::write(report, out),
        ReportFormat::Jsonl => jsonl::write(report, out),
        ReportFormat::Github => github::write(report, out),
        ReportFormat::Gitlab => gitlab::write(report, out),
        ReportFormat::Sarif => sarif::write(report, out),
        ReportFormat::Junit => junit::write(report, options.warnings_fail, out),
    }
}
