//! reviewdog's Diagnostic Format: one object, which reviewdog turns into comments and suggestions in pull requests.
//!
//! Columns count bytes of UTF-8 from 1, and an end is behind the last byte. See <https://github.com/reviewdog/reviewdog/tree/master/proto/rdf>.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::built;
use crate::report::json::without_nulls;
use crate::report::{FileLocation, FindingEdit, InputError, LocatedFinding, Related, Report, page, relative};
use memgate_model::finding::Severity;

/// Writes errors and findings as one result.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut lines = Lines::default();
    let errors = report.errors.iter().map(|error| of_error(error, &mut lines));
    let mut diagnostics: Vec<Value> = errors.collect();
    let findings = report.denials_first();
    let strictest = findings.first().map_or(Severity::Note, |located| located.finding.severity);
    let strictest = if diagnostics.is_empty() { strictest } else { Severity::Deny };
    diagnostics.extend(findings.into_iter().map(|located| of_finding(located, &mut lines)));
    let result = json!({
        "source": without_nulls(json!({"name": "memgate", "url": built::PAGES})),
        "severity": severity(strictest),
        "diagnostics": diagnostics,
    });
    serde_json::to_writer_pretty(&mut *out, &result)?;
    writeln!(out)
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Deny => "ERROR",
        Severity::Warn => "WARNING",
        Severity::Note => "INFO",
    }
}

fn of_error(error: &InputError<'_>, lines: &mut Lines) -> Value {
    let range = match (&error.location, error.position) {
        (Some(location), _) => lines.range(location),
        (None, Some((line, _))) => json!({"start": {"line": line}}),
        (None, None) => Value::Null,
    };
    without_nulls(json!({
        "message": error.advice(),
        "location": without_nulls(json!({"path": relative(error.file.unwrap_or("memgate")), "range": range})),
        "severity": severity(Severity::Deny),
        "code": {"value": error.code()},
        "related_locations": lines.related(error.related.as_slice()),
    }))
}

fn of_finding(located: &LocatedFinding<'_>, lines: &mut Lines) -> Value {
    let finding = located.finding;
    let message = match finding.help_text() {
        Some(help) => format!("{}; {help}", located.told()),
        None => located.told(),
    };
    let mut suggestion =
        |edit: &FindingEdit<'_>| json!({"range": lines.range(&edit.location), "text": edit.text});
    let suggestions: Vec<Value> = located.edits.iter().map(&mut suggestion).collect();
    without_nulls(json!({
        "message": message,
        "location": lines.location(&located.location),
        "severity": severity(finding.severity),
        "code": without_nulls(json!({"value": finding.code_name(), "url": page::url(finding)})),
        "suggestions": (!suggestions.is_empty()).then_some(suggestions),
        "related_locations": lines.related(&located.related),
    }))
}

/// The bytes at which lines start, by text and line: many findings may be on one line of megabytes.
#[derive(Debug, Default)]
struct Lines(BTreeMap<(*const u8, usize), usize>);

impl Lines {
    fn location(&mut self, location: &FileLocation<'_>) -> Value {
        json!({"path": relative(location.file), "range": self.range(location)})
    }

    fn related(&mut self, related: &[Related<'_>]) -> Option<Vec<Value>> {
        let mut value =
            |it: &Related<'_>| json!({"message": it.label, "location": self.location(&it.location)});
        (!related.is_empty()).then(|| related.iter().map(&mut value).collect())
    }

    fn range(&mut self, location: &FileLocation<'_>) -> Value {
        let FileLocation { measured: text, start, end, line, .. } = *location;
        let (Some(before), Some(stretch)) = (text.get(..start), text.get(start..end)) else {
            return json!({"start": {"line": line}});
        };
        let line_start = || before.rfind('\n').map_or(0, |at| at + 1);
        let column = start - *self.0.entry((text.as_ptr(), line)).or_insert_with(line_start) + 1;
        let breaks = stretch.bytes().filter(|byte| *byte == b'\n').count();
        let end_column = match stretch.rfind('\n') {
            Some(at) => stretch.len() - at,
            None => column + stretch.len(),
        };
        json!({
            "start": {"line": line, "column": column},
            "end": {"line": line + breaks, "column": end_column},
        })
    }
}
