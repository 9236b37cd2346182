//! One JSON object with all findings, for programs. Fields are only ever added.

use std::io::{self, Write};

use serde::Serialize;

use crate::model::decision::Untold;
use crate::model::finding::Severity;
use crate::report::{LocatedFinding, ObjectRef, Report};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonReport<'r> {
    /// The version of memgate that wrote this.
    version: &'static str,
    summary: JsonSummary,
    findings: Vec<JsonFinding<'r>>,
    /// How many more findings there are of objects with very many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untold: Vec<JsonUntold<'r>>,
    /// What could not be read, as `file:line:column: message`.
    errors: Vec<&'r str>,
    /// Objects that the inputs do not hold, about which nothing was concluded.
    assumed: &'r [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSummary {
    files: usize,
    objects: usize,
    denied: usize,
    passed_over: usize,
    deny: usize,
    warn: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonFinding<'r> {
    code: &'static str,
    severity: &'static str,
    file: &'r str,
    /// The template or other file that the text was rendered from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'r str>,
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
    object: JsonObject<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonUntold<'r> {
    object: JsonObject<'r>,
    deny: usize,
    warn: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonObject<'r> {
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
    let output = JsonReport {
        version: env!("CARGO_PKG_VERSION"),
        summary: summary(report),
        findings: report.findings.iter().map(json_finding).collect(),
        untold: report.untold.iter().map(json_untold).collect(),
        errors: report.errors.iter().map(|error| error.line.as_str()).collect(),
        assumed: &report.unknown,
    };
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}

fn summary(report: &Report<'_>) -> JsonSummary {
    JsonSummary {
        files: report.files,
        objects: report.objects,
        denied: report.denied,
        passed_over: report.passed_over.len(),
        deny: report.count(Severity::Deny),
        warn: report.count(Severity::Warn),
    }
}

fn json_untold<'r>((object_ref, untold): &(&'r ObjectRef, Untold)) -> JsonUntold<'r> {
    JsonUntold { object: json_object(object_ref), deny: untold.denials, warn: untold.warnings }
}

fn json_object(object_ref: &ObjectRef) -> JsonObject<'_> {
    JsonObject {
        api_version: &object_ref.api_version,
        kind: &object_ref.kind,
        namespace: &object_ref.namespace,
        name: &object_ref.name,
    }
}

fn json_finding<'r>(located: &'r LocatedFinding<'_>) -> JsonFinding<'r> {
    let (finding, location, object_ref) = (located.finding, &located.location, located.object_ref);
    let (end_line, end_column) = location.end_position();
    JsonFinding {
        code: finding.code.name,
        severity: finding.severity.name(),
        file: location.file,
        source: located.source_file,
        line: location.line,
        column: location.column,
        end_line,
        end_column,
        pointer: located.pointer.as_str(),
        field: located.pointer.field(),
        reason: finding.cause.reason(),
        message: &finding.message,
        help: finding.help.as_deref(),
        object: json_object(object_ref),
    }
}
