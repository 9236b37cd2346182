//! The report of one stored object, in the words of OpenReports. No I/O here.
//! Source: openreports.io/v1alpha1, the fields of Report and ClusterReport.

use serde_json::{Value, json};

use crate::model::digest;
use crate::model::finding::Finding;
use crate::model::kind::Kind;
use crate::model::policy_rule::{AtAdmission, PolicyFinding, PolicyStatus};
use crate::policy::judge::{Counts, Judgement};

use super::subjects::Stored;
use super::{given, without_nulls};

/// The group and version of reports.
pub(super) const REPORT_API: &str = "openreports.io/v1alpha1";

/// The most results of one report.
const MAX_RESULTS: usize = 100;

/// The most bytes of a message and of a place: with them, no report comes near what etcd takes.
const MAX_MESSAGE_BYTES: usize = 1024;
const MAX_POINTER_BYTES: usize = 512;

/// What says that a report is memgate's, and of which installation.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "memgate");
pub(super) const AUDITED_BY: &str = "memgate.dev/audited-by";

/// The report of an object that violates policies.
#[derive(Debug)]
pub(super) struct Report {
    /// Empty for a ClusterReport.
    pub(super) namespace: String,
    pub(super) name: String,
    /// Labels, owner, source, scope, summary and results.
    pub(super) content: Value,
}

impl Report {
    /// The report of an object; `None` when policies have nothing to say of it. `installation` is the namespace of the
    /// memgate that writes it.
    pub(super) fn new(stored: &Stored, judgement: &Judgement, installation: &str) -> Option<Self> {
        let of_policy = |finding: &'_ Finding| Some(result(finding, finding.policy.as_ref()?));
        let results: Vec<_> = judgement.findings.iter().filter_map(of_policy).take(MAX_RESULTS).collect();
        if results.is_empty() {
            return None;
        }
        let Stored { kind, namespace, name, uid, .. } = stored;
        let api_version = kind.api_version();
        let owner = json!([{"apiVersion": api_version, "kind": kind.kind, "name": name, "uid": uid}]);
        let scope = without_nulls(json!({
            "apiVersion": api_version, "kind": kind.kind, "namespace": given(namespace), "name": name, "uid": uid,
        }));
        let content = json!({
            "labels": {MANAGED_BY.0: MANAGED_BY.1, AUDITED_BY: installation},
            "ownerReferences": owner,
            "source": "memgate",
            "scope": scope,
            "summary": summary(judgement),
            "results": results,
        });
        Some(Self { namespace: namespace.clone(), name: report_name(kind, uid), content })
    }

    /// The same for two reports that say the same.
    pub(super) fn digest(&self) -> u64 {
        content_digest(&self.content)
    }

    /// The whole object.
    pub(super) fn object(mut self) -> Value {
        let mut take = |field| self.content.get_mut(field).map(Value::take).unwrap_or_default();
        let metadata = without_nulls(json!({
            "name": self.name,
            "namespace": given(&self.namespace),
            "labels": take("labels"),
            "ownerReferences": take("ownerReferences"),
        }));
        json!({
            "apiVersion": REPORT_API,
            "kind": if self.namespace.is_empty() { "ClusterReport" } else { "Report" },
            "metadata": metadata,
            "source": take("source"),
            "scope": take("scope"),
            "summary": take("summary"),
            "results": take("results"),
        })
    }
}

/// `memgate-<kind>-<uid>`.
fn report_name(kind: &Kind, uid: &str) -> String {
    format!("memgate-{}-{uid}", kind.kind.to_lowercase())
}

/// The digest of what a report says, in whatever order its fields stand.
pub(super) fn content_digest(content: &Value) -> u64 {
    digest::of(&content.to_string()).unwrap_or_default()
}

/// How much there is of each result; also beyond those that are in the report.
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
    let pointer = cut(finding.pointer.as_str(), MAX_POINTER_BYTES);
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
        "message": cut(&finding.message, MAX_MESSAGE_BYTES),
        "properties": properties,
    })
}

/// The beginning of a text, at most so many bytes long.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
