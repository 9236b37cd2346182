//! SARIF 2.1.0, for code scanning: one run, with a rule for each code in it.
//!
//! See <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>, and the part that GitHub reads:
//! <https://docs.github.com/code-security/reference/code-scanning/sarif-files/sarif-support>.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::built;
use crate::report::fingerprint::{self, Counter, Fingerprint};
use crate::report::json::without_nulls;
use crate::report::{
    FileLocation, InputError, LocatedFinding, Report, counted, page, percent_encoded, relative,
};
use memgate_model::finding::{Finding, Relation, Severity};
use memgate_model::policy_rule::PolicyRule;

/// The most results in a run: GitHub keeps no more.
const MAX_RESULTS: usize = 5_000;

/// The name of our fingerprint. GitHub computes its own from the text of the line, and would complain about
/// another value under that name.
const FINGERPRINT: &str = "memgate/v1";

/// The root of the repository, to which paths are relative.
const ROOT: &str = "%SRCROOT%";

/// Writes the report as one run.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let rules = Rules::of(report);
    let mut counter = Counter::default();
    let errors = report.errors.iter().map(|error| of_error(error, &mut counter));
    let mut results: Vec<Value> = errors.take(MAX_RESULTS).collect();
    let room = MAX_RESULTS - results.len();
    results.extend(report.denials_first().into_iter().take(room).map(of_finding));
    let counts = [Severity::Deny, Severity::Warn, Severity::Note].map(|severity| report.count(severity));
    let cut = counts.iter().sum::<usize>() + report.errors.len() - results.len();
    let output = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": without_nulls(json!({
                "name": "memgate",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": built::PAGES,
                "rules": rules.descriptors(),
            }))},
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

/// The rules of a run by name: the first finding of each code, and the codes of errors.
struct Rules<'r>(BTreeMap<&'r str, Option<&'r Finding>>);

impl<'r> Rules<'r> {
    fn of(report: &'r Report<'_>) -> Self {
        let errors = report.errors.iter().map(|error| (error.code(), None));
        let findings = report.causes().rev().map(|located| located.finding);
        Self(errors.chain(findings.map(|finding| (finding.code_name(), Some(finding)))).collect())
    }

    fn descriptors(&self) -> Vec<Value> {
        let descriptor = |name: &str, finding: Option<&Finding>| {
            let Some(finding) = finding else {
                let text = "An input cannot be read or parsed";
                return json!({
                    "id": name,
                    "shortDescription": {"text": text},
                    "fullDescription": {"text": text},
                    "help": {"text": format!("{text}, so nothing in it was checked.")},
                });
            };
            let page = page::text(finding);
            without_nulls(json!({
                "id": name,
                "shortDescription": {"text": page::title(&page)},
                "fullDescription": {"text": page::summary(&page)},
                "helpUri": page::url(finding),
                "help": {"text": page, "markdown": page},
                "properties": finding.policy.as_ref().map(|policy| properties(&policy.rule)),
            }))
        };
        self.0.iter().map(|(name, finding)| descriptor(name, *finding)).collect()
    }
}

/// The properties of a policy's rule. GitHub sorts rules that are tagged with security by `security-severity`: from 9 on
/// a rule is critical, from 7 on high, from 4 on medium.
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

fn of_finding(located: &LocatedFinding<'_>) -> Value {
    let finding = located.finding;
    let others = [located.in_namespaces(), finding.help_text().map(Cow::into_owned)];
    let text =
        others.into_iter().flatten().fold(finding.message().into_owned(), |text, it| text + "\n" + &it);
    let level = match finding.severity {
        Severity::Deny => "error",
        Severity::Warn => "warning",
        Severity::Note => "note",
    };
    let location = json!({"physicalLocation": physical(&located.location)});
    let rule = finding.code_name();
    let mut result = result(rule, level, &text, &[location], located.fingerprint);
    if let Value::Object(members) = &mut result {
        let is_known = finding.relation == Relation::Known;
        members.extend(is_known.then(|| ("baselineState".to_owned(), json!("unchanged"))));
    }
    result
}

fn of_error(error: &InputError<'_>, counter: &mut Counter) -> Value {
    let place = match (&error.location, error.file, error.position) {
        (Some(location), _, _) => Some(physical(location)),
        (None, Some(file), Some((line, column))) => Some(json!({
            "artifactLocation": artifact(file),
            "region": {"startLine": line, "startColumn": column},
        })),
        (None, Some(file), None) => Some(json!({"artifactLocation": artifact(file)})),
        (None, None, _) => None,
    };
    let locations: Vec<_> = place.into_iter().map(|place| json!({"physicalLocation": place})).collect();
    let fingerprint = counter.number(fingerprint::of_error(error));
    let text = error.advice();
    result(error.code(), "error", &text, &locations, fingerprint)
}

fn result(rule: &str, level: &str, text: &str, locations: &[Value], fingerprint: Fingerprint) -> Value {
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": locations,
        "partialFingerprints": {FINGERPRINT: fingerprint.to_string()},
    })
}

fn physical(location: &FileLocation<'_>) -> Value {
    json!({"artifactLocation": artifact(location.file), "region": region(location)})
}

fn region(location: &FileLocation<'_>) -> Value {
    let (end_line, end_column) = location.end_position();
    json!({
        "startLine": location.line,
        "startColumn": location.column,
        "endLine": end_line,
        "endColumn": end_column,
    })
}

fn artifact(file: &str) -> Value {
    let path = relative(file);
    if path.starts_with('/') {
        json!({"uri": uri(&path)})
    } else {
        json!({"uri": uri(&path), "uriBaseId": ROOT})
    }
}

/// The path as a reference by RFC 3986; an absolute one as a `file` URI.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    scheme.to_owned() + &percent_encoded(path, "-._~/@!$&'()*+,;=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_references() {
        for (file, expected) in [
            ("deploy/a.yaml", "deploy/a.yaml"),
            ("../a b.yaml", "../a%20b.yaml"),
            ("/tmp/a#1.yaml", "file:///tmp/a%231.yaml"),
            ("c:ü\n%.yaml", "c%3A%C3%BC%0A%25.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
        ] {
            assert_eq!(uri(file), expected);
        }
    }
}
