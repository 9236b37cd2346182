//! SARIF 2.1.0, for code scanning: one run, with a rule for each code in it.
//!
//! See <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>, and what GitHub takes of it:
//! <https://docs.github.com/code-security/reference/code-scanning/sarif-files/sarif-support>.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::finding::{Finding, Severity};
use crate::model::policy_rule::PolicyRule;
use crate::report::fingerprint::{self, Counter};
use crate::report::input_error::InputError;
use crate::report::path::{relative, uri};
use crate::report::{FileLocation, LocatedFinding, ObjectRef, Related, Report, counted, page};

/// The most results in a run: GitHub keeps no more.
const MAX_RESULTS: usize = 5_000;

/// The name of our fingerprint. GitHub computes one of its own from the text of the line, and would complain about
/// another value under its name.
const FINGERPRINT: &str = "memgate/v1";

/// The root of the repository, to which paths are relative.
const ROOT: &str = "%SRCROOT%";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'r> {
    rule_id: &'r str,
    rule_index: usize,
    level: &'static str,
    message: Value,
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Value>,
    partial_fingerprints: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_locations: Option<[Value; 1]>,
}

/// Writes the report as one run.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let rules = Rules::of(report);
    let mut counter = Counter::default();
    let errors = report.errors.iter().map(|error| of_error(error, &rules, &mut counter));
    let mut results: Vec<SarifResult<'_>> = errors.take(MAX_RESULTS).collect();
    let (kept, cut) = most_severe(&report.findings, MAX_RESULTS - results.len());
    results.extend(kept.into_iter().map(|located| of_finding(located, &rules)));
    let untold = report.count(Severity::Deny) + report.count(Severity::Warn) + report.count(Severity::Note)
        - report.findings.len();
    let cut = cut + untold + report.errors.len().saturating_sub(MAX_RESULTS);
    let output = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "memgate",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.descriptors(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": report.errors.is_empty(),
                "toolExecutionNotifications": notifications(cut),
            }],
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}

/// At most so many findings, in the order of the report, and how many are left out: those that matter least.
fn most_severe<'r, 'f>(
    findings: &'r [LocatedFinding<'f>],
    most: usize,
) -> (Vec<&'r LocatedFinding<'f>>, usize) {
    let mut numbered: Vec<_> = findings.iter().enumerate().collect();
    if numbered.len() > most {
        numbered.sort_by_key(|(_, located)| match located.finding.severity {
            Severity::Deny => 0,
            Severity::Warn => 1,
            Severity::Note => 2,
        });
        numbered.truncate(most);
        numbered.sort_by_key(|(number, _)| *number);
    }
    let cut = findings.len() - numbered.len();
    (numbered.into_iter().map(|(_, located)| located).collect(), cut)
}

fn notifications(cut: usize) -> Vec<Value> {
    if cut == 0 {
        return Vec::new();
    }
    let text = format!(
        "{} more, not in this file: it holds at most {MAX_RESULTS} results, and 50 of one object",
        counted(cut, "finding")
    );
    vec![json!({"level": "warning", "message": {"text": text}})]
}

/// The rules of a run: what errors are, then the codes of the findings.
struct Rules<'r> {
    errors: Vec<&'static str>,
    /// The first finding of each code.
    codes: Vec<&'r Finding>,
    /// Where each of them stands in the list of rules.
    numbers: BTreeMap<&'r str, usize>,
}

impl<'r> Rules<'r> {
    fn of(report: &'r Report<'_>) -> Self {
        let errors: BTreeSet<&'static str> = report.errors.iter().map(InputError::code).collect();
        let findings = report.findings.iter().rev().map(|located| located.finding);
        let codes: BTreeMap<&str, &Finding> =
            findings.map(|finding| (finding.code_name(), finding)).collect();
        let names = errors.iter().chain(codes.keys()).copied();
        let numbers = names.enumerate().map(|(number, name)| (name, number)).collect();
        Self { errors: errors.into_iter().collect(), codes: codes.into_values().collect(), numbers }
    }

    fn descriptors(&self) -> Vec<Value> {
        let errors = self.errors.iter().map(|name| {
            let text = "An input cannot be read or parsed";
            json!({
                "id": name,
                "shortDescription": {"text": text},
                "fullDescription": {"text": text},
                "helpUri": page::ERRORS,
                "help": {"text": format!("{text}, so nothing in it was checked.")},
            })
        });
        let codes = self.codes.iter().map(|finding| {
            let page = page::text(finding);
            let mut rule = json!({
                "id": finding.code_name(),
                "shortDescription": {"text": page::title(page)},
                "fullDescription": {"text": page::summary(page)},
                "helpUri": page::url(finding),
                "help": {"text": page, "markdown": page},
            });
            if let Some((rule, policy)) = rule.as_object_mut().zip(finding.policy.as_ref()) {
                rule.insert("properties".to_owned(), properties(&policy.rule));
            }
            rule
        });
        errors.chain(codes).collect()
    }

    /// The number of a rule; there is one for everything in the report.
    fn number(&self, name: &str) -> usize {
        self.numbers.get(name).copied().unwrap_or_default()
    }
}

/// What SARIF has no field for, of a rule of a policy. By `security-severity` GitHub sorts, among rules that are tagged
/// with security: at least 9 is critical, 7 high, 4 medium.
fn properties(rule: &PolicyRule) -> Value {
    let score = match rule.severity {
        "critical" => "9.5",
        "high" => "8.0",
        "medium" => "5.5",
        "low" => "2.0",
        _ => "0.0",
    };
    json!({
        "tags": ["security", "policy"],
        "policy": rule.policy,
        "severity": rule.severity,
        "security-severity": score,
    })
}

fn of_finding<'r>(located: &'r LocatedFinding<'_>, rules: &Rules<'_>) -> SarifResult<'r> {
    let (finding, object_ref) = (located.finding, located.object_ref);
    let text = match finding.help_text() {
        Some(help) => format!("{}\n{help}", finding.message()),
        None => finding.message().into_owned(),
    };
    let is_object = !object_ref.kind.is_empty();
    SarifResult {
        rule_id: finding.code_name(),
        rule_index: rules.number(finding.code_name()),
        level: match finding.severity {
            Severity::Deny => "error",
            Severity::Warn => "warning",
            Severity::Note => "note",
        },
        message: json!({"text": text}),
        locations: vec![Location {
            physical_location: physical(&located.location),
            logical_locations: is_object.then(|| [logical(object_ref, located.pointer.as_str())]),
        }],
        related_locations: numbered(&located.related),
        partial_fingerprints: json!({FINGERPRINT: located.fingerprint}),
    }
}

fn of_error<'r>(error: &'r InputError<'_>, rules: &Rules<'_>, counter: &mut Counter) -> SarifResult<'r> {
    let place = match (&error.location, error.file, error.position) {
        (Some(location), _, _) => Some(physical(location)),
        (None, Some(file), Some((line, column))) => Some(json!({
            "artifactLocation": artifact(file),
            "region": {"startLine": line, "startColumn": column},
        })),
        (None, Some(file), None) => Some(json!({"artifactLocation": artifact(file)})),
        (None, None, _) => None,
    };
    let location = |physical_location| Location { physical_location, logical_locations: None };
    SarifResult {
        rule_id: error.code(),
        rule_index: rules.number(error.code()),
        level: "error",
        message: json!({"text": error.advice()}),
        locations: place.into_iter().map(location).collect(),
        related_locations: numbered(error.related.as_slice()),
        partial_fingerprints: json!({FINGERPRINT: counter.number(fingerprint::of_error(error))}),
    }
}

fn numbered(related: &[Related<'_>]) -> Vec<Value> {
    let numbered = related.iter().zip(1..);
    let value = |(related, id): (&Related<'_>, u32)| json!({"id": id, "message": {"text": related.label}, "physicalLocation": physical(&related.location)});
    numbered.map(value).collect()
}

fn physical(location: &FileLocation<'_>) -> Value {
    let (end_line, end_column) = location.end_position();
    json!({
        "artifactLocation": artifact(location.file),
        "region": {
            "startLine": location.line,
            "startColumn": location.column,
            "endLine": end_line,
            "endColumn": end_column,
        },
    })
}

fn artifact(file: &str) -> Value {
    if relative(file).starts_with('/') {
        json!({"uri": uri(file)})
    } else {
        json!({"uri": uri(file), "uriBaseId": ROOT})
    }
}

/// The object, and where in it.
fn logical(object_ref: &ObjectRef, pointer: &str) -> Value {
    json!({
        "name": object_ref.name,
        "fullyQualifiedName": format!("{} {}{pointer}", object_ref.api_version, object_ref.title()),
        "kind": "resource",
    })
}
