//! One JSON object with all findings, for programs. Fields are only ever added.

use std::io::{self, Write};

use serde::Serialize;

use crate::model::finding::Severity;
use crate::report::{Located, Report};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'r> {
    /// The version of memgate that wrote this.
    version: &'static str,
    summary: Summary,
    findings: Vec<Entry<'r>>,
    /// What could not be read, as `file:line:column: message`.
    errors: Vec<&'r str>,
    /// What the inputs do not tell, and nothing was concluded from.
    assumed: &'r [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    files: usize,
    objects: usize,
    denied: usize,
    passed_over: usize,
    deny: usize,
    warn: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'r> {
    code: &'static str,
    severity: &'static str,
    file: &'r str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    pointer: &'r str,
    field: String,
    reason: &'static str,
    message: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'r str>,
    object: Object<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'r> {
    api_version: &'r str,
    kind: &'r str,
    namespace: &'r str,
    name: &'r str,
}

/// Writes the whole report as one object.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let output = Output {
        version: env!("CARGO_PKG_VERSION"),
        summary: summary(report),
        findings: report.findings.iter().map(entry).collect(),
        errors: report.faults.iter().map(|fault| fault.line.as_str()).collect(),
        assumed: &report.assumed,
    };
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}

fn summary(report: &Report<'_>) -> Summary {
    Summary {
        files: report.files,
        objects: report.objects,
        denied: report.denied,
        passed_over: report.passed_over,
        deny: report.count(Severity::Deny),
        warn: report.count(Severity::Warn),
    }
}

fn entry<'r>(located: &'r Located<'_>) -> Entry<'r> {
    let (finding, place, subject) = (located.finding, &located.place, located.subject);
    let (end_line, end_column) = place.end_position();
    Entry {
        code: finding.code.name,
        severity: finding.severity.name(),
        file: place.file,
        line: place.line,
        column: place.column,
        end_line,
        end_column,
        pointer: located.pointer.as_str(),
        field: located.pointer.field(),
        reason: finding.code.cause.reason(),
        message: &finding.message,
        help: finding.help.as_deref(),
        object: Object {
            api_version: &subject.api_version,
            kind: &subject.kind,
            namespace: &subject.namespace,
            name: &subject.name,
        },
    }
}
