//! What came of case files, in the formats that `memgate test` writes.

use std::io::{self, Write};

use serde_json::json;

use crate::report::github::{self, AnnotationPlace, WorkflowCommand};
use crate::report::json;
use crate::report::junit::{Suites, Test, TestResult};
use crate::report::{InputError, ReportFormat, at_line_start, plain, rule_counts};
use memgate_model::finding::Severity;
use memgate_policy::counts::RuleCounts;

/// What came of one run.
#[derive(Debug, Default)]
pub struct CaseReport<'a> {
    /// What was run, in the order of the files.
    pub cases: &'a [CaseResult],
    /// Files that cannot be read or are not case files.
    pub errors: Vec<InputError<'a>>,
    /// How many cases each rule of the policies judged.
    pub rules: Option<&'a RuleCounts>,
}

/// What came of one case.
#[derive(Debug)]
pub struct CaseResult {
    /// The name of the case.
    pub name: String,
    /// The file as the user named it.
    pub file: String,
    /// The line at which it starts, from 1.
    pub line: usize,
    /// The differences from the expected decision; empty when it passed.
    pub failures: Vec<String>,
}

impl CaseResult {
    /// Whether it came out as expected.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// The formats of the result, in the order in which help lists them.
pub const FORMATS: [ReportFormat; 4] =
    [ReportFormat::Text, ReportFormat::Json, ReportFormat::Junit, ReportFormat::Github];

/// Writes the result in one of [`FORMATS`]; text has a line for cases that passed only when `verbose`.
///
/// # Errors
/// Those of the writer.
pub fn write(
    report: &CaseReport<'_>,
    format: ReportFormat,
    verbose: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        ReportFormat::Json => write_json(report, out),
        ReportFormat::Junit => junit(report, out),
        ReportFormat::Github => github(report, out),
        _ => text(report, verbose, out),
    }
}

/// A line for each case, with what failed below it.
fn text(report: &CaseReport<'_>, verbose: bool, out: &mut impl Write) -> io::Result<()> {
    for case in report.cases {
        let (name, file, line) = (plain(&case.name), plain(&case.file), case.line);
        if !case.passed() {
            writeln!(out, "FAIL  {name} ({file}:{line})")?;
        } else if verbose {
            writeln!(out, "ok    {name} ({file}:{line})")?;
        }
        for failure in &case.failures {
            writeln!(out, "      {}", at_line_start(failure))?;
        }
    }
    Ok(())
}

fn write_json(report: &CaseReport<'_>, out: &mut impl Write) -> io::Result<()> {
    let passed = report.cases.iter().filter(|case| case.passed()).count();
    let case = |case: &CaseResult| {
        let CaseResult { name, file, line, failures } = case;
        json!({"name": name, "file": file, "line": line, "passed": case.passed(), "failures": failures})
    };
    let output = json::without_nulls(json!({
        "schemaVersion": json::SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "summary": {"passed": passed, "failed": report.cases.len() - passed, "errors": report.errors.len()},
        "cases": report.cases.iter().map(case).collect::<Vec<_>>(),
        "inputErrors": report.errors.iter().map(json::error).collect::<Vec<_>>(),
        "rules": report.rules.and_then(rule_counts::values),
    }));
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}

fn junit(report: &CaseReport<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut suites = Suites::default();
    for error in &report.errors {
        suites.add_error(error);
    }
    for case in report.cases {
        let start = format!("{}:{}:\n", at_line_start(&case.file), case.line);
        let result = case.failures.first().map(|first| TestResult {
            element: "failure",
            about: Some(["case".to_owned(), first.clone()]),
            text: case.failures.iter().fold(start, |text, it| format!("{text}- {}\n", plain(it))),
        });
        suites.add(&case.file, [Test { name: case.name.clone(), result }]);
    }
    suites.write(out)
}

fn github(report: &CaseReport<'_>, out: &mut impl Write) -> io::Result<()> {
    let errors = report.errors.iter().map(github::of_error);
    let failed = report.cases.iter().filter(|case| !case.passed()).map(|case| {
        let place = AnnotationPlace { file: Some(&case.file), start: Some((case.line, 1)), end: None };
        let failures: Vec<_> = case.failures.iter().map(|failure| plain(failure)).collect();
        WorkflowCommand::new(place, &case.name, &failures.join("\n"))
    });
    github::write_kind(Severity::Deny, errors.chain(failed), 0, out)
}
