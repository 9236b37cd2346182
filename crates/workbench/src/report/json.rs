//! JSON for programs: one object with everything. Findings are in the order of the inputs, also those that only follow from
//! a denial.
//!
//! `memgate schema output` describes it. Members are only ever added; a change that breaks readers raises
//! `SCHEMA_VERSION`. A member that does not apply is left out.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::report::changes::Change;
use crate::report::{InputError, LocatedFinding, ObjectRef, PassedOver, Related, Report, page, rule_counts};
use memgate_model::decision::NotShown;
use memgate_model::finding::{Relation, Severity};
use memgate_model::policy_rule::{AtAdmission, PolicyFinding};
use memgate_primitives::plain_text::shown_key;

/// The version of the form. It is raised when a member changes its meaning or goes.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// Writes the whole report as one object.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let list = |values: Vec<Value>| (!values.is_empty()).then_some(values);
    let table = report.table.as_ref();
    let output = without_nulls(json!({
        "schemaVersion": SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "summary": summary(report),
        "table": table.map(|table| &table.rows),
        "total": table.map(|table| table.total),
        "rules": report.rules.and_then(rule_counts::values),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "notShown": list(report.not_shown.iter().map(not_shown).collect()),
        "errors": report.errors.iter().map(|error| error.line.as_str()).collect::<Vec<_>>(),
        "inputErrors": report.errors.iter().map(error).collect::<Vec<_>>(),
        "passedOver": report.passed_over.iter().map(passed_over).collect::<Vec<_>>(),
        "assumed": report.unknown,
        "changes": report.changes.as_ref().map(|changes| changes.iter().map(change).collect::<Vec<_>>()),
    }));
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}

/// An object without the members that are null.
pub fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, value| !value.is_null());
    }
    object
}

fn summary(report: &Report<'_>) -> Value {
    let count = |severity| report.count_of(report.findings.iter(), severity);
    without_nulls(json!({
        "files": report.files,
        "objects": report.objects.len(),
        "denied": report.denied,
        "passedOver": report.passed_over.len(),
        "deny": count(Severity::Deny),
        "warn": count(Severity::Warn),
        "note": count(Severity::Note),
        "assumed": report.assumed,
        "errors": report.errors.len(),
        "leftOut": (report.left_out > 0).then_some(report.left_out),
    }))
}

fn finding(located: &LocatedFinding<'_>) -> Value {
    let (finding, location) = (located.finding, &located.location);
    let (end_line, end_column) = location.end_position();
    let others: Vec<Value> = located.related.iter().skip(1).map(related).collect();
    without_nulls(json!({
        "code": finding.code_name(),
        "severity": finding.severity.name(),
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "endLine": end_line,
        "endColumn": end_column,
        "pointer": located.pointer.shown(),
        "field": located.pointer.field(),
        "reason": finding.cause.reason(),
        "message": finding.message(),
        "help": finding.help_text(),
        "object": object(located.object_ref),
        "units": (!located.units.is_empty()).then_some(&located.units),
        "namespaces": (!located.namespaces.is_empty()).then_some(&located.namespaces),
        "related": located.related.first().map(related),
        "alsoRelated": (!others.is_empty()).then_some(others),
        "url": page::url(finding),
        "policy": finding.policy.as_deref().map(policy),
        "known": (finding.relation == Relation::Known).then_some(true),
        "follows": (finding.relation == Relation::Follows).then_some(true),
        "fingerprint": located.fingerprint.to_string(),
    }))
}

/// An error of an input.
pub(super) fn error(error: &InputError<'_>) -> Value {
    without_nulls(json!({
        "code": error.code(),
        "message": error.message,
        "help": error.help,
        "file": error.file,
        "line": error.position.map(|(line, _)| line),
        "column": error.position.map(|(_, column)| column),
        "related": error.related.as_ref().map(related),
    }))
}

fn passed_over(passed_over: &PassedOver<'_>) -> Value {
    without_nulls(json!({
        "file": passed_over.file,
        "line": passed_over.line,
        "column": passed_over.column,
        "object": passed_over.object_ref.map(object),
        "why": passed_over.why,
        "message": format!("it {}", passed_over.reason),
    }))
}

fn not_shown((object_ref, counts): &(&ObjectRef, NotShown)) -> Value {
    json!({"object": object(object_ref), "deny": counts.denials, "warn": counts.warnings})
}

fn change(change: &Change<'_>) -> Value {
    without_nulls(json!({
        "object": object(change.object_ref),
        "owner": change.owner,
        "file": change.file,
        "line": change.line,
        "from": change.from,
        "to": change.to,
    }))
}

/// The rule of a policy behind a finding. `atAdmission` and `deniedFrom` are members in an audit only.
fn policy(finding: &PolicyFinding) -> Value {
    let PolicyFinding { rule, status, at_admission, is_assumed, .. } = finding;
    let denied_from = at_admission.and_then(|it| match it {
        AtAdmission::DeniesFrom { at, .. } => Some(at.to_string()),
        AtAdmission::Denies | AtAdmission::Warns | AtAdmission::Allows => None,
    });
    without_nulls(json!({
        "name": rule.policy,
        "rule": rule.id,
        "status": status.name(),
        "severity": rule.severity,
        "atAdmission": at_admission.map(AtAdmission::name),
        "deniedFrom": denied_from,
        "assumed": is_assumed.then_some(true),
    }))
}

fn related(related: &Related<'_>) -> Value {
    let location = related.location;
    let (end_line, end_column) = location.end_position();
    json!({
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "endLine": end_line,
        "endColumn": end_column,
        "label": related.label,
    })
}

fn object(object_ref: &ObjectRef) -> Value {
    let [kind, namespace, name] = object_ref.shown();
    let api_version = shown_key(&object_ref.api_version);
    json!({"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name})
}
