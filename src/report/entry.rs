//! What the JSON of a report is made of: the same values in one object and line by line.
//!
//! `memgate schema output` describes them. Fields are only ever added; whoever changes or removes one raises
//! [`SCHEMA_VERSION`].

use std::borrow::Cow;

use serde::Serialize;

use crate::model::decision::NotShown;
use crate::model::finding::Severity;
use crate::model::policy_rule::{AtAdmission, PolicyFinding};
use crate::report::changes::{Change, Verdict};
use crate::report::input_error::InputError;
use crate::report::{FileLocation, LocatedFinding, ObjectRef, PassedOver, Related, Report, page};

/// The version of the form: it changes only when a field is no more what it was.
pub(super) const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    files: usize,
    objects: usize,
    denied: usize,
    passed_over: usize,
    deny: usize,
    warn: usize,
    note: usize,
    errors: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FindingEntry<'r> {
    code: &'r str,
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
    message: Cow<'r, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<Cow<'r, str>>,
    object: ObjectEntry<'r>,
    /// The second place that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<RelatedEntry<'r>>,
    /// The places besides that one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_related: Vec<RelatedEntry<'r>>,
    url: String,
    /// Of a finding of a policy's rule: which rule, and how it came out.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PolicyEntry<'r>>,
    fingerprint: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyEntry<'r> {
    name: &'r str,
    rule: &'r str,
    status: &'static str,
    severity: &'static str,
    /// Of an audit: what admission would make of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_admission: Option<&'static str>,
    /// Of an audit: from when on admission denies, where it only warns now.
    #[serde(skip_serializing_if = "Option::is_none")]
    denied_from: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorEntry<'r> {
    code: &'static str,
    message: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<RelatedEntry<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RelatedEntry<'r> {
    file: &'r str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    label: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PassedOverEntry<'r> {
    file: &'r str,
    line: usize,
    column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ObjectEntry<'r>>,
    why: &'static str,
    message: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UntoldEntry<'r> {
    object: ObjectEntry<'r>,
    deny: usize,
    warn: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectEntry<'r> {
    api_version: &'r str,
    kind: &'r str,
    namespace: &'r str,
    name: &'r str,
}

#[derive(Serialize)]
pub(super) struct ChangeEntry<'r> {
    object: ObjectEntry<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'r str>,
    file: &'r str,
    line: usize,
    from: Verdict,
    to: Verdict,
}

pub(super) fn change<'r>(change: &Change<'r>) -> ChangeEntry<'r> {
    let Change { object_ref, owner, file, line, from, to } = *change;
    ChangeEntry { object: object(object_ref), owner, file, line, from, to }
}

pub(super) fn summary(report: &Report<'_>) -> Summary {
    Summary {
        files: report.files,
        objects: report.objects.len(),
        denied: report.denied,
        passed_over: report.passed_over.len(),
        deny: report.count(Severity::Deny),
        warn: report.count(Severity::Warn),
        note: report.count(Severity::Note),
        errors: report.errors.len(),
    }
}

pub(super) fn finding<'r>(located: &'r LocatedFinding<'_>) -> FindingEntry<'r> {
    let (finding, location, object_ref) = (located.finding, &located.location, located.object_ref);
    let (end_line, end_column) = location.end_position();
    FindingEntry {
        code: finding.code_name(),
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
        message: finding.message(),
        help: finding.help_text(),
        object: object(object_ref),
        related: located.related.first().map(related),
        also_related: located.related.iter().skip(1).map(related).collect(),
        url: page::url(finding),
        policy: finding.policy.as_ref().map(policy),
        fingerprint: &located.fingerprint,
    }
}

pub(super) fn error<'r>(error: &'r InputError<'_>) -> ErrorEntry<'r> {
    ErrorEntry {
        code: error.code(),
        message: &error.message,
        help: error.help.as_deref(),
        file: error.file,
        line: error.position.map(|(line, _)| line),
        column: error.position.map(|(_, column)| column),
        related: error.related.as_ref().map(related),
    }
}

pub(super) fn passed_over<'r>(passed_over: &'r PassedOver<'_>) -> PassedOverEntry<'r> {
    PassedOverEntry {
        file: passed_over.file,
        line: passed_over.line,
        column: passed_over.column,
        object: passed_over.object_ref.map(object),
        why: passed_over.why,
        message: format!("it {}", passed_over.words),
    }
}

pub(super) fn untold<'r>((object_ref, untold): &(&'r ObjectRef, NotShown)) -> UntoldEntry<'r> {
    UntoldEntry { object: object(object_ref), deny: untold.denials, warn: untold.warnings }
}

fn policy(finding: &PolicyFinding) -> PolicyEntry<'_> {
    let PolicyFinding { rule, status, at_admission, .. } = finding;
    let denied_from = at_admission.and_then(|it| match it {
        AtAdmission::DeniesFrom { at, .. } => Some(at.to_string()),
        AtAdmission::Denies | AtAdmission::Warns | AtAdmission::Allows => None,
    });
    PolicyEntry {
        name: &rule.policy,
        rule: &rule.id,
        status: status.name(),
        severity: rule.severity,
        at_admission: at_admission.map(AtAdmission::name),
        denied_from,
    }
}

fn related<'r>(related: &'r Related<'_>) -> RelatedEntry<'r> {
    let (end_line, end_column) = related.location.end_position();
    let FileLocation { file, line, column, .. } = related.location;
    RelatedEntry { file, line, column, end_line, end_column, label: &related.label }
}

fn object(object_ref: &ObjectRef) -> ObjectEntry<'_> {
    ObjectEntry {
        api_version: &object_ref.api_version,
        kind: &object_ref.kind,
        namespace: &object_ref.namespace,
        name: &object_ref.name,
    }
}
