//! The response of an AdmissionReview, written as bytes of JSON. It makes no decisions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::patch::Patch;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memgate_model::decision::{Decision, NotShown};
use memgate_model::edit::Edit;
use memgate_model::finding::{Cause, Finding, Severity, codes};
use memgate_model::reason::Reason;
use memgate_platforms::common::STATE_AGE;
use memgate_primitives::credential::masked_keys;
use memgate_primitives::members::Members;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::{cut, plain, shown_name};
use serde::Serialize;

use super::Review;
use super::texts::{Complaint, json_bytes, message_with_help, status_message, takes, waiting, warning};

/// The first capacity of a response without its patch, in bytes: most responses are shorter.
const ENVELOPE_BYTES: usize = 512;

/// The most bytes of warnings in one response: the apiserver passes no more on to a client.
/// Source: k8s.io/apiserver, endpoints/request/warnings, the total limit of 4 KiB.
const MAX_WARNINGS_BYTES: usize = 4096;

/// How many bytes the causes of a denial may have.
const MAX_CAUSES_BYTES: usize = 24 << 10;

/// How many characters the field of a cause may have.
const MAX_FIELD_CHARS: usize = 1024;

/// The bytes of JSON around the texts of a cause.
const CAUSE_BYTES: usize = 80;

/// How many characters the names of policies, or of exemptions, may have in an audit annotation.
const MAX_NAMES_CHARS: usize = 2048;

/// How many characters of a name are repeated: the longest name in Kubernetes.
const MAX_NAME_CHARS: usize = 253;

/// The input for the `response` of an AdmissionReview.
pub(super) struct ReviewResponse<'a> {
    pub(super) review: &'a Review<'a>,
    pub(super) findings: &'a [&'a Finding],
    pub(super) edits: &'a [Edit],
    pub(super) reason: Reason,
    /// The decision, if this call gives the verdict. Only then there are findings that are not shown, and the audit
    /// annotations have the policies, the exemptions, and the id under which the log has the verdict.
    pub(super) judged_by: Option<&'a Decision>,
    /// The code, reason and message of the status that refuses a held pod, or what cannot be judged; no finding is
    /// reported.
    pub(super) refused: Option<(u16, &'static str, &'a str)>,
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
    /// An apiserver makes a `Retry-After` of it, and clients try again by themselves.
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
}

#[derive(Serialize)]
struct StatusCause {
    reason: &'static str,
    message: String,
    field: String,
}

impl<'a> ReviewResponse<'a> {
    /// An answer to what was judged.
    pub(super) const fn new(
        review: &'a Review<'a>,
        findings: &'a [&'a Finding],
        edits: &'a [Edit],
        reason: Reason,
        judged_by: Option<&'a Decision>,
    ) -> Self {
        Self { review, findings, edits, reason, judged_by, refused: None }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let patch = self.patch_json();
        let mut out = Vec::with_capacity(ENVELOPE_BYTES + patch.len().div_ceil(3) * 4);
        out.extend_from_slice(
            br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"#,
        );
        json(&mut out, &self.review.uid);
        let [denials, warnings] = self.denials_and_warnings();
        match self.status(&denials) {
            None => out.extend_from_slice(br#","allowed":true"#),
            Some(status) => {
                out.extend_from_slice(br#","allowed":false,"status":"#);
                texts(&mut out, &status);
            }
        }
        if !patch.is_empty() {
            write_patch(&mut out, &patch);
        }
        let warnings = self.warnings(if self.refused.is_some() { &[] } else { &warnings });
        if !warnings.is_empty() {
            out.extend_from_slice(br#","warnings":"#);
            texts(&mut out, &warnings);
        }
        self.audit(&mut out);
        out.extend_from_slice(b"}}");
        out
    }

    /// The denials and the warnings, each text about a place once.
    fn denials_and_warnings(&self) -> [Vec<&Finding>; 2] {
        let mut reported = Members::default();
        [Severity::Deny, Severity::Warn].map(|severity| {
            let of_severity = self.findings.iter().copied().filter(|finding| finding.severity == severity);
            let once =
                of_severity.filter(|finding| reported.insert((&finding.pointer, message_with_help(finding))));
            once.collect()
        })
    }

    fn not_shown(&self) -> NotShown {
        self.judged_by.map(|decision| decision.not_shown).unwrap_or_default()
    }

    fn status(&self, denials: &[&Finding]) -> Option<Status<'_>> {
        let failure = |code, reason, message, details| {
            Some(Status { code, status: "Failure", reason, message, details })
        };
        if let Some((code, reason, message)) = self.refused {
            return failure(code, reason, waiting(message, self.findings), self.details(Vec::new()));
        }
        if denials.is_empty() {
            return None;
        }
        let is_required_pod = self.judged_by.is_some_and(|decision| decision.required);
        let complaints: Vec<_> =
            denials.iter().map(|finding| Complaint::of(finding, is_required_pod)).collect();
        let not_shown = self.not_shown().denials;
        let details = self.details(causes(&complaints, not_shown));
        if complaints.iter().all(|complaint| complaint.finding.code.cause == Cause::Unavailable) {
            // The object may be valid, and the same request may be allowed later.
            let causes: Vec<&str> = details.causes.iter().map(|cause| &*cause.message).collect();
            let message = causes.join(", ");
            return failure(503, "ServiceUnavailable", message, details);
        }
        let of_what = [&*details.kind, &*details.group, &*details.name];
        let message = status_message(of_what, &complaints, not_shown);
        failure(422, "Invalid", message, details)
    }

    fn details(&self, causes: Vec<StatusCause>) -> StatusDetails<'_> {
        let request = &self.review.request;
        let name = |name| cut(name, MAX_NAME_CHARS);
        StatusDetails {
            name: shown_name(&request.name),
            group: name(&request.group),
            kind: name(&request.kind),
            causes,
            retry_after: self.refused.and_then(|(code, ..)| (code == 429).then_some(1)),
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
    fn warnings(&self, warnings: &[&Finding]) -> Vec<String> {
        let age = self.judged_by.and(self.review.state_age).map(state_age);
        let texts: Vec<String> =
            age.into_iter().chain(warnings.iter().map(|finding| warning(finding))).collect();
        let mut left = MAX_WARNINGS_BYTES - "and 1000000 more warnings (memgate)".len();
        let mut shown: Vec<String> =
            texts.iter().take_while(|text| takes(&mut left, text.len())).cloned().collect();
        let not_shown = if self.refused.is_some() { 0 } else { self.not_shown().warnings };
        let more = texts.len() - shown.len() + not_shown;
        if more > 0 {
            shown.push(format!("and {more} more warnings (memgate)"));
        }
        shown
    }

    /// What the audit log of the apiserver has about the decision.
    fn audit(&self, out: &mut Vec<u8>) {
        let mut annotations = BTreeMap::from([("codes", Cow::from(codes(self.findings)))]);
        if let Some(decision) = self.judged_by {
            let exemptions: Vec<&str> = decision.exemptions.iter().map(String::as_str).collect();
            let names = |names: String| Cow::Owned(cut(&names, MAX_NAMES_CHARS).into_owned());
            annotations.insert("exemptions", names(exemptions.join(",")));
            annotations.insert("policies", names(decision.policies.join(",")));
        }
        annotations.insert("reason", self.reason.name().into());
        annotations.extend(self.review.state_age.map(|seconds| ("state-age", seconds.to_string().into())));
        annotations.extend(self.judged_by.map(|_| ("uid", plain(&self.review.uid))));
        annotations.retain(|_, text| !text.is_empty());
        out.extend_from_slice(br#","auditAnnotations":"#);
        texts(out, &annotations);
    }
}

/// The warning that an answer may be as old as the state.
fn state_age(seconds: u64) -> String {
    format!(
        "memgate has heard nothing from the apiserver for {seconds} s and answers from what it knew{}",
        STATE_AGE.in_text()
    )
}

/// The causes that fit. kubectl prints the causes and not the message, so the last one counts those that are missing.
fn causes(complaints: &[Complaint<'_>], not_shown: usize) -> Vec<StatusCause> {
    let cause = |complaint: &Complaint<'_>, end: &str| StatusCause {
        reason: complaint.finding.cause.reason(),
        message: complaint.cause(end),
        field: cut(&complaint.field, MAX_FIELD_CHARS).into_owned(),
    };
    let mut left = MAX_CAUSES_BYTES;
    let all = complaints.iter().map(|complaint| cause(complaint, ""));
    let mut causes: Vec<_> = all.take_while(|cause| cause.fits(&mut left)).collect();
    let missing = complaints.len() - causes.len() + not_shown;
    if missing > 0
        && let Some((last, complaint)) = causes.iter_mut().zip(complaints).next_back()
    {
        *last = cause(complaint, &format!(" …{}", more(missing)));
    }
    causes
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
    use crate::admission::{hold, parse, respond, review};
    use memgate_model::kind::{MEMORY_POLICY, MEMORY_POLICY_EXEMPTION};
    use memgate_model::policy::Policies;
    use memgate_model::request::{Occasion, Point};
    use memgate_model::snapshot::Snapshot;
    use memgate_policy::{put, timestamp};
    use memgate_primitives::review_path::Phase;
    use serde_json::{Value, json};

    #[test]
    fn says_how_old_the_state_is() {
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "kind": {"group": "arkonis.dev", "version": "v1alpha1", "kind": "ArkMemory"},
            "namespace": "team-a", "operation": "CREATE",
            "object": {"metadata": {"name": "a"}, "spec": {"backend": "in-context"}},
        }});
        let body = body.to_string();
        let mut parsed = parse(&body).expect("a review");
        parsed.state_age = Some(351);
        let snapshot = Snapshot::new(memgate_platforms::default_settings());
        let decision = crate::decide::decide(&parsed.request, &snapshot);
        let answer = |bytes: Vec<u8>| -> Value { serde_json::from_slice(&bytes).expect("JSON") };
        let judged = answer(respond(Phase::Validate, &parsed, &decision).expect("an answer"));
        let text = "memgate has heard nothing from the apiserver for 351 s and answers from what it knew (memgate memgate/state-age)";
        assert_eq!(judged.pointer("/response/warnings"), Some(&json!([text])));
        assert_eq!(judged.pointer("/response/auditAnnotations/state-age"), Some(&json!("351")));
        let held = answer(hold(&parsed, &decision, "it waits"));
        assert_eq!(held.pointer("/response/warnings"), Some(&json!([text])));
        let other_call = answer(respond(Phase::Mutate, &parsed, &decision).expect("an answer"));
        assert_eq!(other_call.pointer("/response/warnings"), None, "once is enough");
        assert_eq!(other_call.pointer("/response/auditAnnotations/state-age"), Some(&json!("351")));
    }

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
        assert!(put(&mut policies, &memgate_platforms::ALL, &MEMORY_POLICY, &policy).is_empty());
        assert!(put(&mut policies, &memgate_platforms::ALL, &MEMORY_POLICY_EXEMPTION, &exemption).is_empty());
        let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
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
        let expected = json!({"uid": "1", "reason": "valid", "codes": "policy/org/durable", "policies": "org", "exemptions": "ex/lab"});
        assert_eq!(annotations(&parsed), expected);
        parsed.request.occasion = at("2027-02-01T00:00:00Z");
        assert_eq!(annotations(&parsed).get("exemptions"), None);
    }
}
