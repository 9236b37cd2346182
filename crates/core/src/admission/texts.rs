//! The texts of a response, and how long they may be: warnings, and the message of a denial.

use memgate_model::finding::{Cause, Finding};
use memgate_primitives::members::Members;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::{cut, plain, quoted};

/// How many characters a warning may have before its code, by the recommendation of the API.
/// Source: Kubernetes documentation, Dynamic Admission Control, Response.
const MAX_WARNING_CHARS: usize = 120;

/// How many bytes the message of a denial may have, as JSON. A response without its patch has at most 64 KiB: this
/// message, the causes, the warnings, which escapes can double, and some names.
const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// How many characters a warning of a policy may have, with the name of its rule.
const MAX_POLICY_WARNING_CHARS: usize = 256;

/// How the reason of a refusal begins, if the pod is refused because it would not get the memory that it requires.
const REQUIRES_MEMORY: &str = "the pod requires its memory";

/// How many characters one complaint may have. A longer one is a long list, which its reader has to look up anyway.
const MAX_COMPLAINT_CHARS: usize = 1024;

/// A reason why the object is refused.
pub(super) struct Complaint<'f> {
    pub(super) finding: &'f Finding,
    /// The field that clients write in front of the message.
    pub(super) field: String,
    text: String,
}

impl<'f> Complaint<'f> {
    /// A finding about an object. That a pod requires its memory comes first, and the label that leads to the memory
    /// second: a reader would take a field in front for the fault. What could not be looked up is said as it is.
    pub(super) fn of(finding: &'f Finding, is_required_pod: bool) -> Self {
        let (field, text) = (finding.pointer.field(), message_with_help(finding));
        let is_unavailable = finding.code.cause == Cause::Unavailable;
        if !is_required_pod || is_unavailable || finding.policy.is_some() {
            return Self { finding, field, text };
        }
        let text = match without_field(&text, &field) {
            Some(bare) => format!("{bare}; see {field}"),
            None => text,
        };
        let says_so = text.starts_with(REQUIRES_MEMORY);
        let text = if says_so {
            text
        } else {
            format!("{REQUIRES_MEMORY} (memgate.dev/inject: required), but {text}")
        };
        Self { finding, field: "spec".to_owned(), text }
    }

    /// The message without the field, and with the number of findings that are not shown.
    pub(super) fn cause(&self, not_shown: &str) -> String {
        let bare = without_field(&self.text, &self.field).unwrap_or(&self.text);
        signed(self.finding, bare, not_shown, MAX_COMPLAINT_CHARS)
    }

    fn whole(&self) -> String {
        signed(self.finding, &self.text, "", MAX_COMPLAINT_CHARS)
    }
}

fn without_field<'t>(text: &'t str, field: &str) -> Option<&'t str> {
    text.strip_prefix(field)?.strip_prefix(": ")
}

/// A text about a finding, which ends with the finding's code: its reader sees that it comes from memgate, and what to
/// give to `memgate explain`. A text that is too long is cut, and the code stays.
pub(super) fn signed(finding: &Finding, text: &str, more: &str, most: usize) -> String {
    let of_policy = finding.policy.as_ref().and_then(|policy| text.rfind(&policy.rule.opening()));
    let (text, code) = match of_policy {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default().to_owned()),
        None => (text, finding.code.in_text()),
    };
    let room = most.saturating_sub(code.chars().count() + 1);
    format!("{}{more}{code}", cut(text, room))
}

/// The message of a finding with its advice and code. Without room the advice is left out, because
/// `memgate explain CODE` has it.
pub(super) fn warning(finding: &Finding) -> String {
    if finding.policy.is_some() {
        return signed(finding, &finding.message(), "", MAX_POLICY_WARNING_CHARS);
    }
    let whole = message_with_help(finding);
    let fits = whole.chars().count() <= MAX_WARNING_CHARS;
    let text = if fits { whole } else { finding.message().into_owned() };
    signed(finding, &text, "", MAX_COMPLAINT_CHARS)
}

/// The message of a finding, with its advice if the message does not contain it. The advice of policies comes at the end
/// of the whole message.
pub(super) fn message_with_help(finding: &Finding) -> String {
    match finding.help_text() {
        Some(help) if finding.policy.is_none() => {
            plain(&format!("{}; {help}", finding.message())).into_owned()
        }
        _ => plain(&finding.message()).into_owned(),
    }
}

/// The message that refuses a pod for now, or what cannot be judged: `message`, and the code of what the pod would be
/// admitted without.
pub(super) fn waiting(message: &str, findings: &[&Finding]) -> String {
    let is_missing = |finding: &&&Finding| finding.cause == Cause::NotFound;
    // An address that is missing is a finding about the memory that has it.
    match findings.iter().find(is_missing).or_else(|| findings.first()) {
        Some(finding) => signed(finding, message, "", MAX_COMPLAINT_CHARS),
        None => format!("{} (memgate)", cut(message, MAX_COMPLAINT_CHARS)),
    }
}

/// The message in the form of the apiserver for built-in types: `Kind.group "name" is invalid: …`, with brackets around
/// several messages; then the number of other findings, and each advice of policies once.
pub(super) fn status_message(of_what: [&str; 3], complaints: &[Complaint<'_>], not_shown: usize) -> String {
    let [kind, group, name] = of_what;
    let dot = if group.is_empty() { "" } else { "." };
    let name = if name.is_empty() { String::new() } else { format!(" {}", quoted(name)) };
    let mut left = MAX_MESSAGE_BYTES;
    let mut fits = |text: &str| takes(&mut left, json_bytes(text) + ", ".len());
    let texts: Vec<_> = complaints.iter().map(Complaint::whole).take_while(|text| fits(text)).collect();
    let (open, close) = if texts.len() > 1 { ("[", "]") } else { ("", "") };
    let more = match more(complaints.len() - texts.len() + not_shown) {
        more if more.is_empty() => more,
        more => format!(" …{more}"),
    };
    let texts = texts.join(", ");
    let hints = hints(complaints).take_while(|hint| fits(hint)).map(|hint| format!("; {hint}"));
    let hints: String = hints.collect();
    format!("{kind}{dot}{group}{name} is invalid: {open}{texts}{close}{more}{hints}")
}

/// The advice of policies, each once.
fn hints<'c>(complaints: &'c [Complaint<'_>]) -> impl Iterator<Item = String> + use<'c> {
    let mut told = Members::default();
    let of_policies = complaints.iter().map(|complaint| complaint.finding).filter(|it| it.policy.is_some());
    let rules = of_policies.filter_map(|finding| finding.policy.as_ref().map(|policy| &policy.rule));
    let parts = rules.flat_map(|rule| {
        let docs = rule.docs.as_ref().map(|docs| format!("see {docs}"));
        rule.hint.clone().into_iter().chain(docs)
    });
    parts.map(|part| plain(&part).into_owned()).filter(move |part| told.insert(part.clone()))
}

/// Takes so many bytes if they are left, and returns whether it did. If not, it takes all that is left, so that later
/// texts do not fit either.
pub(super) fn takes(left: &mut usize, bytes: usize) -> bool {
    let room = left.checked_sub(bytes);
    *left = room.unwrap_or_default();
    room.is_some()
}

/// How many bytes a text without control characters has in JSON.
pub(super) fn json_bytes(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::finding::Code;
    use memgate_model::page::Page;
    use memgate_primitives::pointer::Pointer;

    static CODE: Code = Code { name: "family/code", cause: Cause::Invalid, page: Page(|| "") };

    #[test]
    fn leaves_out_of_a_warning_what_makes_it_too_long() {
        let finding = |help: String| Finding::warn(&CODE, Pointer::root(), "is odd").help(help);
        let advice = |length| "x".repeat(length - "is odd; ".len());
        let longest = warning(&finding(advice(MAX_WARNING_CHARS)));
        let code = " (memgate family/code)";
        assert!(longest.ends_with(&format!("x{code}")), "{longest}");
        assert_eq!(longest.len(), MAX_WARNING_CHARS + code.len());
        assert_eq!(warning(&finding(advice(MAX_WARNING_CHARS + 1))), format!("is odd{code}"));
    }

    #[test]
    fn nothing_is_left_behind_what_does_not_fit() {
        let mut left = 5;
        assert!(takes(&mut left, 3) && !takes(&mut left, 3) && !takes(&mut left, 1));
        assert_eq!(json_bytes("a\"\\"), 5);
    }
}
