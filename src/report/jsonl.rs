//! One JSON object a line: each error, each finding, everything that was not checked, and last the summary. For
//! programs that want the first finding before the last, and for `grep` and `jq`.

use std::io::{self, Write};

use serde::Serialize;

use crate::report::Report;
use crate::report::entry::{self, SCHEMA_VERSION, Summary};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<T> {
    #[serde(rename = "type")]
    what: &'static str,
    #[serde(flatten)]
    entry: T,
}

#[derive(Serialize)]
struct Assumed<'r> {
    object: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct End {
    schema_version: u32,
    /// The version of memgate that wrote this.
    version: &'static str,
    #[serde(flatten)]
    summary: Summary,
}

/// Writes the report, a line for each thing in it.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    for error in &report.errors {
        line("error", entry::error(error), out)?;
    }
    for located in &report.findings {
        line("finding", entry::finding(located), out)?;
    }
    for untold in &report.untold {
        line("untold", entry::untold(untold), out)?;
    }
    for passed_over in &report.passed_over {
        line("passedOver", entry::passed_over(passed_over), out)?;
    }
    for object in &report.unknown {
        line("assumed", Assumed { object }, out)?;
    }
    for change in report.changes.iter().flatten() {
        line("change", entry::change(change), out)?;
    }
    let (version, summary) = (env!("CARGO_PKG_VERSION"), entry::summary(report));
    line("summary", End { schema_version: SCHEMA_VERSION, version, summary }, out)
}

fn line(what: &'static str, entry: impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Line { what, entry })?;
    writeln!(out)
}
