//! The texts of a response: warnings, and the message of a denial.

use memgate_model::finding::Finding;
use memgate_model::policy_rule::PolicyRule;
use memgate_primitives::members::Members;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::{cut, plain};

use super::bounds::{json_bytes, takes};

/// How many characters a warning may have before its code, by the recommendation of the API.
/// Source: Kubernetes documentation, Dynamic Admission Control, Response.
const MAX_WARNING_CHARS: usize = 120;

/// How many bytes the message of a denial may have, as JSON. A response without its patch has at most 64 KiB: this
/// message, the causes, the warnings, which escapes can double, and some names.
const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// How many characters a warning of a policy may have.
const MAX_POLICY_WARNING_CHARS: usize = 256;

/// How many characters one complaint may have. A longer one is a long list, which its reader has to look up anyway.
pub(super) const MAX_COMPLAINT_CHARS: usize = 1024;

/// A reason why the object is refused.
pub(super) struct Complaint<'f> {
    pub(super) finding: &'f Finding,
    pub(super) text: String,
}

/// The message of a finding with its advice and code. Without room the advice is left out, because
/// `memgate explain CODE` has it.
pub(super) fn warning(finding: &Finding) -> String {
    if let Some(policy) = &finding.policy {
        return policy_warning(&finding.message(), &policy.rule);
    }
    let whole = message_with_help(finding);
    let fits = whole.chars().count() <= MAX_WARNING_CHARS;
    let text = if fits { whole } else { plain(&finding.message()).into_owned() };
    format!("{text} [{}]", finding.code_name())
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

/// The message in the form of the apiserver for built-in types: `Kind.group "name" is invalid: …`, with brackets around
/// several messages; then the number of other findings, and each advice of policies once.
pub(super) fn status_message(of_what: [&str; 3], complaints: &[Complaint<'_>], not_shown: usize) -> String {
    let [kind, group, name] = of_what;
    let dot = if group.is_empty() { "" } else { "." };
    let name = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
    let mut left = MAX_MESSAGE_BYTES;
    let mut fits = |text: &str| takes(&mut left, json_bytes(text) + ", ".len());
    let texts = complaints.iter().map(|complaint| cut(&complaint.text, MAX_COMPLAINT_CHARS));
    let texts: Vec<_> = texts.take_while(|text| fits(text)).collect();
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

/// The warning of a policy. If it is too long the message is cut, and the name of the rule stays.
fn policy_warning(message: &str, rule: &PolicyRule) -> String {
    let message = plain(message).into_owned();
    if message.chars().nth(MAX_POLICY_WARNING_CHARS).is_none() {
        return message;
    }
    let (text, suffix) = message.split_at(message.rfind(&rule.opening()).unwrap_or(message.len()));
    let room = MAX_POLICY_WARNING_CHARS.saturating_sub(suffix.chars().count() + 1);
    let kept: String = text.chars().take(room).collect();
    format!("{kept}…{suffix}")
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

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::finding::{Cause, Code};
    use memgate_primitives::pointer::Pointer;

    static CODE: Code = Code { name: "family/code", cause: Cause::Invalid, page: "" };

    #[test]
    fn leaves_out_of_a_warning_what_makes_it_too_long() {
        let finding = |help: String| Finding::warn(&CODE, Pointer::root(), "is odd").help(help);
        let advice = |length| "x".repeat(length - "is odd; ".len());
        let longest = warning(&finding(advice(MAX_WARNING_CHARS)));
        assert!(longest.ends_with("x [family/code]"), "{longest}");
        assert_eq!(longest.len(), MAX_WARNING_CHARS + " [family/code]".len());
        assert_eq!(warning(&finding(advice(MAX_WARNING_CHARS + 1))), "is odd [family/code]");
    }
}
