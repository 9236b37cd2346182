//! What came of case files, in the formats that `memgate test` writes.

use std::io::{self, Write};

use serde::Serialize;

use crate::report::github::{self, AnnotationPlace, Command};
use crate::report::json::{self, SCHEMA_VERSION};
use crate::report::junit::{Suite, Test, TestResult, write_suites};
use crate::report::{InputError, ReportFormat, plain, relative};
use memgate_model::finding::Severity;

/// What came of one run.
#[derive(Debug)]
pub struct CaseReport<'a> {
    /// What was run, in the order of the files.
    pub cases: Vec<CaseEntry<'a>>,
    /// Files that cannot be read or are not case files.
    pub errors: Vec<InputError<'a>>,
    /// Cases about objects at which memgate never looks, which pass whatever it decides: `file:line: …`.
    pub blind: &'a [String],
    /// How often each rule of the policies fired.
    pub rules: Vec<RuleEntry<'a>>,
}

/// How often a rule of a policy fired.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RuleEntry<'a> {
    /// The name of the policy.
    pub policy: &'a str,
    /// The id of the rule.
    pub rule: &'a str,
    /// How many cases are about an object that the policy judges.
    pub judged: usize,
    /// In how many of them the rule fired.
    pub fired: usize,
}

/// What came of one case.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CaseEntry<'a> {
    /// Its name.
    pub name: &'a str,
    /// The file as the user named it.
    pub file: &'a str,
    /// The line at which it starts, from 1.
    pub line: usize,
    /// Whether it came out as expected.
    pub passed: bool,
    /// The differences from the expected decision; empty when it passed.
    pub failures: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonCases<'r> {
    schema_version: u32,
    /// The version of memgate that wrote this.
    version: &'static str,
    summary: JsonSummary,
    cases: &'r [CaseEntry<'r>],
    /// Cases that pass whatever memgate decides.
    warnings: &'r [String],
    input_errors: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    rules: &'r [RuleEntry<'r>],
}

#[derive(Serialize)]
struct JsonSummary {
    passed: usize,
    failed: usize,
    errors: usize,
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
    for CaseEntry { name, file, line, passed, failures } in &report.cases {
        let (name, file) = (plain(name), plain(file));
        if !passed {
            writeln!(out, "FAIL  {name} ({file}:{line})")?;
        } else if verbose {
            writeln!(out, "ok    {name} ({file}:{line})")?;
        }
        for failure in *failures {
            writeln!(out, "      {}", plain(failure))?;
        }
    }
    if verbose {
        rules(&report.rules, out)?;
    }
    Ok(())
}

/// A line for each rule, with what the cases leave untried.
fn rules(rules: &[RuleEntry<'_>], out: &mut impl Write) -> io::Result<()> {
    for RuleEntry { policy, rule, judged, fired } in rules {
        let name = format!("policy/{policy}/{rule}");
        let remark = match (fired, judged) {
            (0, _) => ", never",
            (fired, judged) if fired == judged => ", always",
            _ => "",
        };
        writeln!(out, "rule  {} fired in {fired} of {judged}{remark}", plain(&name))?;
    }
    Ok(())
}

fn write_json(report: &CaseReport<'_>, out: &mut impl Write) -> io::Result<()> {
    let passed = report.cases.iter().filter(|case| case.passed).count();
    let output = JsonCases {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        summary: JsonSummary { passed, failed: report.cases.len() - passed, errors: report.errors.len() },
        cases: &report.cases,
        warnings: report.blind,
        input_errors: report.errors.iter().map(json::error).collect(),
        rules: &report.rules,
    };
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}

fn junit(report: &CaseReport<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut suites: Vec<Suite> = Vec::new();
    let mut add = |file: &str, test: Test| match suites.last_mut() {
        Some(last) if last.name == file => last.tests.push(test),
        _ => suites.push(Suite { name: file.to_owned(), tests: vec![test] }),
    };
    for error in &report.errors {
        let file = error.file.map_or("memgate", relative);
        let result = TestResult::Error { kind: error.code().to_owned(), message: error.line.clone() };
        add(file, Test { name: format!("{file} can be read"), result });
    }
    for case in &report.cases {
        let result = match case.failures {
            [] => TestResult::Passed,
            [first, ..] => TestResult::Failed {
                kind: "case".to_owned(),
                message: first.clone(),
                text: format!("{}:{}:\n{}\n", plain(case.file), case.line, case.failures.join("\n")),
            },
        };
        add(relative(case.file), Test { name: case.name.to_owned(), result });
    }
    write_suites(&suites, out)
}

fn github(report: &CaseReport<'_>, out: &mut impl Write) -> io::Result<()> {
    let errors = report.errors.iter().map(github::of_error);
    let failed = report.cases.iter().filter(|case| !case.passed).map(|case| {
        let place = AnnotationPlace { file: Some(case.file), start: Some((case.line, 1)), end: None };
        let failures: Vec<_> = case.failures.iter().map(|failure| plain(failure)).collect();
        Command::new(place, case.name, &failures.join("\n"))
    });
    github::write_kind(Severity::Deny, errors.chain(failed), 0, out)?;
    let blind =
        report.blind.iter().map(|line| Command::new(AnnotationPlace::default(), "memgate", &plain(line)));
    github::write_kind(Severity::Warn, blind, 0, out)
}
