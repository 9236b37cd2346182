//! One JSON object with all findings, for programs. Fields are only ever added.

use std::io::{self, Write};

use serde::Serialize;

use crate::report::Report;
use crate::report::entry::{
    self, ChangeEntry, ErrorEntry, FindingEntry, PassedOverEntry, SCHEMA_VERSION, Summary, UntoldEntry,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonReport<'r> {
    schema_version: u32,
    /// The version of memgate that wrote this.
    version: &'static str,
    summary: Summary,
    findings: Vec<FindingEntry<'r>>,
    /// How many more findings there are of objects with very many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untold: Vec<UntoldEntry<'r>>,
    /// What could not be read, as `file:line:column: message`.
    errors: Vec<&'r str>,
    /// The same with its parts.
    input_errors: Vec<ErrorEntry<'r>>,
    /// What was read and not checked.
    passed_over: Vec<PassedOverEntry<'r>>,
    /// Objects that the inputs do not hold, about which nothing was concluded.
    assumed: &'r [String],
    /// Of what-if: the objects whose verdict would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<ChangeEntry<'r>>>,
}

/// Writes the whole report as one object.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let output = JsonReport {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        summary: entry::summary(report),
        findings: report.findings.iter().map(entry::finding).collect(),
        untold: report.untold.iter().map(entry::untold).collect(),
        errors: report.errors.iter().map(|error| error.line.as_str()).collect(),
        input_errors: report.errors.iter().map(entry::error).collect(),
        passed_over: report.passed_over.iter().map(entry::passed_over).collect(),
        assumed: &report.unknown,
        changes: report.changes.as_ref().map(|changes| changes.iter().map(entry::change).collect()),
    };
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}
