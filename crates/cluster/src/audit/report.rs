//! The report of one stored object, in the form of OpenReports. No I/O here.
//! Source: openreports.io/v1alpha1, the fields of Report and ClusterReport.

use serde_json::{Value, json};

use memgate_model::digest;
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::policy_rule::{AtAdmission, Counts, PolicyFinding, PolicyStatus};
use memgate_policy::judge::Judgement;

use super::state::Stored;
use super::{given, truncate, without_nulls};

/// The group and version of reports.
pub(super) const REPORT_API: (&str, &str) = ("openreports.io", "v1alpha1");

/// The most results of one report.
const MAX_RESULTS: usize = 100;

/// The most bytes of all results: ten thousand reports of this size are a third of a gigabyte in etcd.
const MAX_RESULTS_BYTES: usize = 32 << 10;

/// The most bytes of a message and of a place.
const MAX_MESSAGE_BYTES: usize = 1024;
const MAX_POINTER_BYTES: usize = 512;

/// The labels of memgate's reports; the second has the installation.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "memgate");
pub(super) const AUDITED_BY: &str = "memgate.dev/audited-by";

/// The report of an object that violates policies.
#[derive(Debug)]
pub(super) struct Report {
    /// Empty for a ClusterReport.
    pub(super) namespace: String,
    pub(super) name: String,
    /// The whole report.
    pub(super) object: Value,
    /// Equal for two reports with equal content.
    pub(super) digest: u64,
}

impl Report {
    /// The report of an object; `None` without findings of policies. `installation` is the namespace of the installation
    /// that writes it.
    pub(super) fn new(stored: &Stored, judgement: &Judgement, installation: &str) -> Option<Self> {
        let of_policy = |finding: &'_ Finding| Some(result(finding, finding.policy.as_ref()?));
        let mut bytes = 0;
        let has_room = |result: &Value| {
            bytes += result.to_string().len();
            bytes <= MAX_RESULTS_BYTES
        };
        let results = judgement.findings.iter().filter_map(of_policy).take(MAX_RESULTS);
        let results: Vec<_> = results.take_while(has_room).collect();
        if results.is_empty() {
            return None;
        }
        let Stored { kind, namespace, name, uid, .. } = stored;
        let (api_version, report_name) = (kind.api_version(), report_name(kind, uid));
        let metadata = without_nulls(json!({
            "name": report_name,
            "namespace": given(namespace),
            "labels": {MANAGED_BY.0: MANAGED_BY.1, AUDITED_BY: installation},
            "ownerReferences": [{"apiVersion": api_version, "kind": kind.kind, "name": name, "uid": uid}],
        }));
        let scope = without_nulls(json!({
            "apiVersion": api_version, "kind": kind.kind, "namespace": given(namespace), "name": name, "uid": uid,
        }));
        let object = json!({
            "apiVersion": format!("{}/{}", REPORT_API.0, REPORT_API.1),
            "kind": if namespace.is_empty() { "ClusterReport" } else { "Report" },
            "metadata": metadata,
            "source": "memgate",
            "scope": scope,
            "summary": summary(judgement),
            "results": results,
        });
        let digest = content_digest(&object).unwrap_or_default();
        Some(Self { namespace: namespace.clone(), name: report_name, object, digest })
    }
}

/// `memgate-<kind>-<uid>`.
pub(super) fn report_name(kind: &Kind, uid: &str) -> String {
    format!("{}{uid}", report_name_start(kind))
}

/// How the names of all reports of a kind begin.
pub(super) fn report_name_start(kind: &Kind) -> String {
    format!("memgate-{}-", kind.kind.to_lowercase())
}

/// The digest of the fields of a report that memgate writes, in any order.
pub(super) fn content_digest(report: &Value) -> Option<u64> {
    let labels = report.pointer("/metadata/labels");
    let labels = [MANAGED_BY.0, AUDITED_BY].map(|key| labels.and_then(|labels| labels.get(key)));
    let owners = report.pointer("/metadata/ownerReferences");
    let content = ["source", "scope", "summary", "results"].map(|field| report.get(field));
    digest::of(&json!([labels, owners, content]).to_string())
}

/// The number of results of each kind, including those that the report leaves out.
fn summary(judgement: &Judgement) -> Value {
    let mut all = Counts::default();
    judgement.counts.values().for_each(|counts| all.add(*counts));
    let fail = all.denied + all.denied_later;
    let (warn, skip) = (all.violations.saturating_sub(fail), all.exempted + all.unknown);
    json!({"pass": 0, "fail": fail, "warn": warn, "error": 0, "skip": skip})
}

fn result(finding: &Finding, policy: &PolicyFinding) -> Value {
    let outcome = match (policy.status, policy.at_admission) {
        (PolicyStatus::Exempt | PolicyStatus::Unknown, _) => "skip",
        (PolicyStatus::Violated, Some(AtAdmission::Denies | AtAdmission::DeniesFrom { .. })) => "fail",
        (PolicyStatus::Violated, _) => "warn",
    };
    let pointer = finding.pointer.shown();
    let pointer = truncate(&pointer, MAX_POINTER_BYTES);
    let properties = without_nulls(json!({
        "code": finding.code_name(),
        "pointer": pointer,
        "exemption": policy.exemption.as_ref().map(|exemption| &exemption.name),
        "expiresAt": policy.exemption.as_ref().map(|exemption| exemption.until.to_string()),
    }));
    json!({
        "policy": policy.rule.policy,
        "rule": policy.rule.id,
        "category": "memory",
        "severity": policy.rule.severity,
        "result": outcome,
        "message": truncate(&finding.message(), MAX_MESSAGE_BYTES),
        "properties": properties,
    })
}
