//! The code quality report of GitLab, which shows findings in merge requests.
//!
//! GitLab drops a finding with the fingerprint of another one, and reports one with a new fingerprint as new.
//! See <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::report::fingerprint::{self, Counter};
use crate::report::{InputError, LocatedFinding, Report, relative};
use memgate_model::finding::Severity;

/// Writes one list of all errors and findings.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut counter = Counter::default();
    let mut issues: Vec<_> = report.errors.iter().map(|error| of_error(error, &mut counter)).collect();
    issues.extend(report.denials_first().into_iter().map(of_finding));
    serde_json::to_writer_pretty(&mut *out, &issues)?;
    writeln!(out)
}

fn of_error(error: &InputError<'_>, counter: &mut Counter) -> Value {
    let begin = error.position.map_or(1, |(line, _)| line);
    let end = error.location.as_ref().map_or(begin, |location| location.end_position().0);
    json!({
        "description": error.advice(),
        "check_name": error.code(),
        "fingerprint": counter.number(fingerprint::of_error(error)).to_string(),
        "severity": "blocker",
        "location": location(error.file.unwrap_or("memgate"), begin, end),
    })
}

fn of_finding(located: &LocatedFinding<'_>) -> Value {
    let finding = located.finding;
    let description = match finding.help_text() {
        Some(help) => format!("{}; {help}", located.told()),
        None => located.told(),
    };
    let severity = match finding.severity {
        Severity::Deny => "critical",
        Severity::Warn => "minor",
        Severity::Note => "info",
    };
    let (begin, (end, _)) = (located.location.line, located.location.end_position());
    json!({
        "description": description,
        "check_name": finding.code_name(),
        "fingerprint": located.fingerprint.to_string(),
        "severity": severity,
        "location": location(located.location.file, begin, end),
    })
}

fn location(file: &str, begin: usize, end: usize) -> Value {
    json!({"path": relative(file), "lines": {"begin": begin, "end": end}})
}
