//! The response of an AdmissionReview, written as bytes of JSON. It makes no decisions.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::patch::Patch;
use memgate_model::decision::{Decision, NotShown};
use memgate_model::edit::Edit;
use memgate_model::finding::{Cause, Finding, Severity, codes};
use memgate_model::reason::Reason;
use memgate_model::request::Request;
use memgate_primitives::credential::masked_keys;
use memgate_primitives::members::Members;
use memgate_primitives::plain_text::cut;

use super::bounds::{json_bytes, takes};
use super::texts::{Complaint, MAX_COMPLAINT_CHARS, message_with_help, status_message, warning};

/// The first capacity of a response without its patch, in bytes: most responses are shorter.
const ENVELOPE_BYTES: usize = 512;

/// The most bytes of warnings in one response: the apiserver passes no more on to a client.
/// Source: k8s.io/apiserver, endpoints/request/warnings, the total limit of 4 KiB.
const MAX_WARNINGS_BYTES: usize = 4096;

/// How many bytes the causes of a denial may have.
const MAX_CAUSES_BYTES: usize = 24 << 10;

/// The bytes of JSON around the texts of a cause.
const CAUSE_BYTES: usize = 80;

/// How many characters the names of policies, or of exemptions, may have in an audit annotation.
const MAX_NAMES_CHARS: usize = 2048;

/// How many characters of a name are repeated: the longest name in Kubernetes.
const MAX_NAME_CHARS: usize = 253;

/// The input for the `response` of an AdmissionReview.
pub(super) struct ReviewResponse<'a> {
    pub(super) uid: &'a str,
    pub(super) request: &'a Request<'a>,
    pub(super) findings: &'a [&'a Finding],
    /// How many findings are not shown.
    pub(super) not_shown: NotShown,
    pub(super) edits: &'a [Edit],
    pub(super) reason: Reason,
    /// The decision whose policies and exemptions this call reports.
    pub(super) judged_by: Option<&'a Decision>,
    /// The message that refuses a held pod; its findings are reported when it is admitted.
    pub(super) waits: Option<&'a str>,
}

/// A `metav1.Status`.
#[expect(clippy::struct_field_names, reason = "the names are the API's")]
#[derive(Serialize)]
struct Status<'a> {
    code: u16,
    status: &'static str,
    reason: &'static str,
    message: String,
    details: StatusDetails<'a>,
}

#[derive(Serialize)]
struct StatusDetails<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: Cow<'a, str>,
    kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<StatusCause>,
}

#[derive(Serialize)]
struct StatusCause {
    reason: &'static str,
    message: String,
    field: String,
}

impl ReviewResponse<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let patch = self.patch_json();
        let mut out = Vec::with_capacity(ENVELOPE_BYTES + patch.len().div_ceil(3) * 4);
        out.extend_from_slice(
            br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"#,
        );
        json(&mut out, self.uid);
        match self.status() {
            None => out.extend_from_slice(br#","allowed":true"#),
            Some(status) => {
                out.extend_from_slice(br#","allowed":false,"status":"#);
                texts(&mut out, &status);
            }
        }
        if !patch.is_empty() {
            write_patch(&mut out, &patch);
        }
        let warnings = if self.waits.is_some() { Vec::new() } else { self.warnings() };
        if !warnings.is_empty() {
            out.extend_from_slice(br#","warnings":"#);
            texts(&mut out, &warnings);
        }
        self.audit(&mut out);
        out.extend_from_slice(b"}}");
        out
    }

    /// The complaints that refuse the object, each once.
    fn complaints(&self) -> Vec<Complaint<'_>> {
        let mut told = Members::default();
        let denials = self.findings.iter().copied().filter(|finding| finding.severity == Severity::Deny);
        let complaints = denials.map(|finding| Complaint { finding, text: message_with_help(finding) });
        complaints
            .filter(|complaint| told.insert((&complaint.finding.pointer, complaint.text.clone())))
            .collect()
    }

    fn status(&self) -> Option<Status<'_>> {
        if let Some(message) = self.waits {
            let (code, reason, message) = (403, "Forbidden", cut(message, MAX_COMPLAINT_CHARS).into_owned());
            return Some(Status {
                code,
                status: "Failure",
                reason,
                message,
                details: self.details(Vec::new()),
            });
        }
        let complaints = self.complaints();
        if complaints.is_empty() {
            return None;
        }
        let mut left = MAX_CAUSES_BYTES;
        let causes = complaints.iter().map(Complaint::cause);
        let details = self.details(causes.take_while(|cause| cause.fits(&mut left)).collect());
        if complaints.iter().all(|complaint| complaint.finding.code.cause == Cause::Unavailable) {
            // The object may be valid, and the same request may be allowed later.
            let causes: Vec<&str> = details.causes.iter().map(|cause| &*cause.message).collect();
            let (reason, message) = ("ServiceUnavailable", causes.join(", "));
            return Some(Status { code: 503, status: "Failure", reason, message, details });
        }
        let of_what = [&*details.kind, &*details.group, &*details.name];
        let message = status_message(of_what, &complaints, self.not_shown.denials);
        Some(Status { code: 422, status: "Failure", reason: "Invalid", message, details })
    }

    fn details(&self, causes: Vec<StatusCause>) -> StatusDetails<'_> {
        let request = self.request;
        let name = |name| cut(name, MAX_NAME_CHARS);
        StatusDetails {
            name: name(&request.name),
            group: name(&request.group),
            kind: name(&request.kind),
            causes,
        }
    }

    /// The patch as JSON; empty without edits.
    fn patch_json(&self) -> Vec<u8> {
        if self.edits.is_empty() {
            return Vec::new();
        }
        let mut patch = Vec::with_capacity(ENVELOPE_BYTES * self.edits.len());
        json(&mut patch, &Patch(self.edits));
        patch
    }

    /// The texts of the warnings that fit; the last text counts the others.
    fn warnings(&self) -> Vec<String> {
        let mut told: Members<_> =
            self.complaints().into_iter().map(|denial| (&denial.finding.pointer, denial.text)).collect();
        let warnings = self.findings.iter().filter(|finding| finding.severity == Severity::Warn);
        let once = warnings.filter(|finding| told.insert((&finding.pointer, message_with_help(finding))));
        let texts: Vec<String> = once.map(|finding| warning(finding)).collect();
        let mut left = MAX_WARNINGS_BYTES - "and 1000000 more warnings".len();
        let fits = |text: &&String| {
            let room = left.checked_sub(text.len());
            left = room.unwrap_or_default();
            room.is_some()
        };
        let mut shown: Vec<String> = texts.iter().take_while(fits).cloned().collect();
        let more = texts.len() - shown.len() + self.not_shown.warnings;
        if more > 0 {
            shown.push(format!("and {more} more warnings"));
        }
        shown
    }

    fn audit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","auditAnnotations":{"reason":"#);
        json(out, self.reason.name());
        let codes = codes(self.findings);
        if !codes.is_empty() {
            out.extend_from_slice(br#","codes":"#);
            texts(out, &codes);
        }
        let Some(Decision { policies, exemptions, .. }) = self.judged_by else {
            return out.push(b'}');
        };
        let exemptions: Vec<&str> = exemptions.iter().map(String::as_str).collect();
        for (key, names) in [("policies", policies.join(",")), ("exemptions", exemptions.join(","))] {
            if !names.is_empty() {
                out.push(b',');
                json(out, key);
                out.push(b':');
                texts(out, &cut(&names, MAX_NAMES_CHARS));
            }
        }
        out.push(b'}');
    }
}

impl Complaint<'_> {
    /// The message without the field, which clients write in front of it.
    fn cause(&self) -> StatusCause {
        let field = self.finding.pointer.field();
        let bare = self.text.strip_prefix(&field).and_then(|text| text.strip_prefix(": "));
        let message = cut(bare.unwrap_or(&self.text), MAX_COMPLAINT_CHARS).into_owned();
        let field = cut(&field, MAX_COMPLAINT_CHARS).into_owned();
        StatusCause { reason: self.finding.cause.reason(), message, field }
    }
}

impl StatusCause {
    /// Takes its length from the bytes that are left; whether it fits.
    fn fits(&self, left: &mut usize) -> bool {
        takes(left, json_bytes(&self.message) + json_bytes(&self.field) + CAUSE_BYTES)
    }
}

fn write_patch(out: &mut Vec<u8>, patch: &[u8]) {
    out.extend_from_slice(br#","patchType":"JSONPatch","patch":""#);
    let start = out.len();
    out.resize(start + patch.len().div_ceil(3) * 4, 0);
    let written = out.get_mut(start..).map_or(Ok(0), |room| STANDARD.encode_slice(patch, room));
    out.truncate(start + written.unwrap_or_default());
    out.push(b'"');
}

/// Writes what people read, with keys of known forms masked: they may stand in any name.
fn texts<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_string(value);
    debug_assert!(written.is_ok(), "plain data serializes");
    out.extend_from_slice(masked_keys(&written.unwrap_or_default()).as_bytes());
}

/// Writes a value as JSON. Neither writing to memory nor serializing these types can fail.
fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "plain data serializes");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::admission::{parse, review};
    use memgate_model::kind::{MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};
    use memgate_model::policy::Policies;
    use memgate_model::request::{Occasion, Point};
    use memgate_model::snapshot::Snapshot;
    use memgate_policy::{put, timestamp};

    #[test]
    fn names_policies_and_exemptions_in_audit_annotations() {
        let mut policies = Policies::default();
        let policy = json!({"metadata": {"name": "org"}, "spec": {
            "exemptions": {"namespaces": ["ex"], "maxAge": "90d"},
            "rules": [{"id": "durable", "backends": {"durable": true}}],
        }});
        let exemption = json!({"metadata": {"name": "lab", "namespace": "ex"}, "spec": {
            "policy": "org", "rules": ["durable"], "target": {"namespaces": ["team-a"]}, "reason": "until it moves",
            "from": "2026-12-15T00:00:00Z", "expiresAt": "2027-01-15T00:00:00Z",
        }});
        assert!(put(&mut policies, &crate::family::ALL, &MEMORY_POLICY, &policy).is_empty());
        assert!(put(&mut policies, &crate::family::ALL, &MEMORY_POLICY_EXEMPTION, &exemption).is_empty());
        let mut snapshot = Snapshot::new(crate::family::default_settings());
        snapshot.policies = policies.into();
        let object = json!({
            "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "metadata": {"name": "a", "namespace": "team-a"},
            "spec": {"backend": "in-context"},
        });
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "kind": {"group": "arkonis.dev", "version": "v1alpha1", "kind": "ArkMemory"},
            "namespace": "team-a", "operation": "CREATE", "object": object,
        }});
        let body = body.to_string();
        let mut parsed = parse(&body).expect("a review");
        let annotations = |parsed: &crate::admission::Review<'_>| -> Value {
            let answer = review(parsed, &snapshot).expect("an answer");
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            answer.pointer("/response/auditAnnotations").cloned().unwrap_or_default()
        };
        let at = |text| Occasion::new(Point::Admission, timestamp(text).expect("a time"));
        parsed.request.occasion = at("2027-01-01T00:00:00Z");
        let expected = json!({"reason": "valid", "codes": "policy/org/durable", "policies": "org", "exemptions": "ex/lab"});
        assert_eq!(annotations(&parsed), expected);
        parsed.request.occasion = at("2027-02-01T00:00:00Z");
        assert_eq!(annotations(&parsed).get("exemptions"), None);
    }
}
