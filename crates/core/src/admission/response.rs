//! The response half of an AdmissionReview, written straight into its bytes. What the answer is was
//! decided before.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::model::decision::Untold;
use crate::model::edit::Edit;
use crate::model::finding::{Finding, Severity, codes, without_controls};
use crate::model::members::Members;
use crate::model::reason::Reason;
use crate::model::request::Request;
use crate::patch::Patch;

use super::bounds::{cut, json_bytes, takes};

/// How many bytes of warnings one response may hold: what the apiserver passes on to a client.
/// Source: k8s.io/apiserver, endpoints/request/warnings, the total limit of 4 KiB.
const MAX_WARNINGS_BYTES: usize = 4096;

/// How many characters a warning may have: what the API asks for.
/// Source: Kubernetes documentation, Dynamic Admission Control, Response.
const MAX_WARNING_CHARS: usize = 120;

/// How many bytes the message of a denial may have, as JSON. A response has 64 KiB at most beside its patch:
/// this, the causes, the warnings, which escapes can double, and some names.
const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// How many bytes the causes of a denial may have.
const MAX_CAUSES_BYTES: usize = 24 << 10;

/// How many bytes of JSON stand around the texts of a cause.
const CAUSE_BYTES: usize = 80;

/// How many characters one complaint may have. What is longer lists what somebody has to look up anyway.
const MAX_COMPLAINT_CHARS: usize = 1024;

/// How many characters of a name are repeated: as many as one in Kubernetes has at most.
const MAX_NAME_CHARS: usize = 253;

/// What the `response` of an AdmissionReview is made of.
pub(super) struct ReviewResponse<'a> {
    pub(super) uid: &'a str,
    pub(super) request: &'a Request<'a>,
    pub(super) findings: &'a [&'a Finding],
    /// How many more there are.
    pub(super) untold: Untold,
    pub(super) edits: &'a [Edit],
    pub(super) reason: Reason,
    /// Why the object is refused for now, whatever the findings say; they are told when it is admitted.
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
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(
            br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"#,
        );
        json(&mut out, self.uid);
        match self.status() {
            None => out.extend_from_slice(br#","allowed":true"#),
            Some(status) => {
                out.extend_from_slice(br#","allowed":false,"status":"#);
                json(&mut out, &status);
            }
        }
        self.patch(&mut out);
        let warnings = if self.waits.is_some() { Vec::new() } else { self.warnings() };
        if !warnings.is_empty() {
            out.extend_from_slice(br#","warnings":"#);
            json(&mut out, &warnings);
        }
        self.audit(&mut out);
        out.extend_from_slice(b"}}");
        out
    }

    /// What refuses the object, each complaint once.
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
        let message = status_message(&details, &complaints, self.untold.denials);
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

    fn patch(&self, out: &mut Vec<u8>) {
        if self.edits.is_empty() {
            return;
        }
        out.extend_from_slice(br#","patchType":"JSONPatch","patch":""#);
        let mut patch = Vec::with_capacity(128 * self.edits.len());
        json(&mut patch, &Patch(self.edits));
        let start = out.len();
        out.resize(start + patch.len().div_ceil(3) * 4, 0);
        let written = out.get_mut(start..).map_or(Ok(0), |room| STANDARD.encode_slice(&patch, room));
        out.truncate(start + written.unwrap_or_default());
        out.push(b'"');
    }

    /// The texts of all warnings, as many as fit; the last one counts those that do not.
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
        let more = texts.len() - shown.len() + self.untold.warnings;
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
            json(out, &codes);
        }
        out.push(b'}');
    }
}

/// A reason why the object is refused.
struct Complaint<'f> {
    finding: &'f Finding,
    text: String,
}

impl Complaint<'_> {
    /// The message without the field in front: clients write it there themselves.
    fn cause(&self) -> StatusCause {
        let field = self.finding.pointer.field();
        let bare = self.text.strip_prefix(&field).and_then(|text| text.strip_prefix(": "));
        let message = cut(bare.unwrap_or(&self.text), MAX_COMPLAINT_CHARS).into_owned();
        let field = cut(&field, MAX_COMPLAINT_CHARS).into_owned();
        StatusCause { reason: self.finding.cause.reason(), message, field }
    }
}

impl StatusCause {
    /// Whether there is room for it in so many bytes, which it then takes.
    fn fits(&self, left: &mut usize) -> bool {
        takes(left, json_bytes(&self.message) + json_bytes(&self.field) + CAUSE_BYTES)
    }
}

/// What is wrong, what to do and the code, as far as there is room: the advice is left out first, since
/// `memgate explain CODE` has it, and then the code, which is in the audit annotations too.
fn warning(finding: &Finding) -> String {
    let coded = |text: &str| format!("{text} [{}]", finding.code.name);
    let bare = without_controls(finding.message.clone());
    let fits = |text: &String| text.chars().count() <= MAX_WARNING_CHARS;
    [coded(&message_with_help(finding)), coded(&bare)].into_iter().find(fits).unwrap_or(bare)
}

/// What is wrong and, where the message does not say it already, what to do.
fn message_with_help(finding: &Finding) -> String {
    match &finding.help {
        Some(help) => without_controls(format!("{}; {help}", finding.message)),
        None => without_controls(finding.message.clone()),
    }
}

/// The message as the apiserver words it for built-in types: `Kind.group "name" is invalid: …`, with
/// brackets around several messages; then how many more there are.
fn status_message(details: &StatusDetails<'_>, complaints: &[Complaint<'_>], untold: usize) -> String {
    let dot = if details.group.is_empty() { "" } else { "." };
    let name = if details.name.is_empty() { String::new() } else { format!(" \"{}\"", details.name) };
    let mut left = MAX_MESSAGE_BYTES;
    let texts = complaints.iter().map(|complaint| cut(&complaint.text, MAX_COMPLAINT_CHARS));
    let texts: Vec<_> = texts.take_while(|text| takes(&mut left, json_bytes(text) + ", ".len())).collect();
    let (open, close) = if texts.len() > 1 { ("[", "]") } else { ("", "") };
    let more = match complaints.len() - texts.len() + untold {
        0 => String::new(),
        more => format!(" … and {more} more"),
    };
    let texts = texts.join(", ");
    format!("{}{dot}{}{name} is invalid: {open}{texts}{close}{more}", details.kind, details.group)
}

/// Writes a value as JSON. Neither writing to memory nor serializing these types can fail.
fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "plain data serializes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::{Cause, Code};
    use crate::model::pointer::Pointer;

    static CODE: Code = Code { name: "family/code", cause: Cause::Invalid, page: "" };

    #[test]
    fn leaves_out_of_a_warning_what_makes_it_too_long() {
        let finding = |help: String| Finding::warn(&CODE, Pointer::root(), "is odd").help(help);
        let advice = |length| "x".repeat(length - "is odd;  [family/code]".len());
        let longest = warning(&finding(advice(MAX_WARNING_CHARS)));
        assert_eq!(longest.len(), MAX_WARNING_CHARS);
        assert!(longest.ends_with("x [family/code]"), "{longest}");
        assert_eq!(warning(&finding(advice(MAX_WARNING_CHARS + 1))), "is odd [family/code]");
        let long = "x".repeat(MAX_WARNING_CHARS - " [family/code]".len());
        let coded = |message: String| warning(&Finding::warn(&CODE, Pointer::root(), message));
        assert_eq!(coded(long.clone()), format!("{long} [family/code]"));
        assert_eq!(coded(format!("{long}x")), format!("{long}x"));
    }
}
