//! The code quality report of GitLab, which shows findings in merge requests.
//!
//! GitLab drops a finding whose fingerprint another one has, and takes one with a new fingerprint for a new finding.
//! See <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use std::io::{self, Write};

use serde::Serialize;

use crate::model::finding::Severity;
use crate::report::fingerprint::{self, Counter};
use crate::report::input_error::InputError;
use crate::report::path::relative;
use crate::report::{LocatedFinding, Report};

#[derive(Serialize)]
struct Issue<'r> {
    description: String,
    check_name: &'r str,
    fingerprint: String,
    severity: &'static str,
    location: Location<'r>,
}

#[derive(Serialize)]
struct Location<'r> {
    path: &'r str,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: usize,
    end: usize,
}

/// Writes one list of all errors and findings.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut counter = Counter::default();
    let mut issues: Vec<_> = report.errors.iter().map(|error| of_error(error, &mut counter)).collect();
    issues.extend(report.findings.iter().map(of_finding));
    serde_json::to_writer_pretty(&mut *out, &issues)?;
    writeln!(out)
}

fn of_error<'r>(error: &'r InputError<'_>, counter: &mut Counter) -> Issue<'r> {
    let begin = error.position.map_or(1, |(line, _)| line);
    let end = error.location.as_ref().map_or(begin, |location| location.end_position().0);
    Issue {
        description: error.advice().into_owned(),
        check_name: error.code(),
        fingerprint: counter.number(fingerprint::of_error(error)),
        severity: "blocker",
        location: Location { path: relative(error.file.unwrap_or("memgate")), lines: Lines { begin, end } },
    }
}

fn of_finding<'r>(located: &'r LocatedFinding<'_>) -> Issue<'r> {
    let (location, finding) = (&located.location, located.finding);
    let description = match finding.help_text() {
        Some(help) => format!("{}; {help}", finding.message()),
        None => finding.message().into_owned(),
    };
    Issue {
        description,
        check_name: finding.code_name(),
        fingerprint: located.fingerprint.clone(),
        severity: match finding.severity {
            Severity::Deny => "critical",
            Severity::Warn => "minor",
            Severity::Note => "info",
        },
        location: Location {
            path: relative(location.file),
            lines: Lines { begin: location.line, end: location.end_position().0 },
        },
    }
}
