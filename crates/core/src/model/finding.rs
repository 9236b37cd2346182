//! Findings: what is wrong with an object, where, and what to do about it.

use std::borrow::Cow;

use crate::model::credential;
use crate::model::elsewhere::Elsewhere;
use crate::model::fix::Fix;
use crate::model::object::Object;
use crate::model::plain_text::plain;
use crate::model::pointer::Pointer;
use crate::model::policy_rule::PolicyFinding;
use crate::model::work::Work;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Only reports have it; no answer does.
    Note,
    /// The request is allowed with a warning.
    Warn,
    /// The request is refused.
    Deny,
}

impl Severity {
    /// The word that users read and machines match on.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

/// Why, in the words of the Kubernetes API (`metav1.CauseType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A required value is missing.
    Required,
    /// The value is not allowed.
    Invalid,
    /// The value is not one of a fixed set.
    NotSupported,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// What the value refers to does not exist.
    NotFound,
    /// The value contradicts another one.
    Conflict,
    /// The value occurred before.
    Duplicate,
}

impl Cause {
    /// The reason string as the Kubernetes API writes it.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::Conflict => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
        }
    }
}

/// One rule that can be broken; a row in the code table of a family.
#[derive(Debug)]
pub struct Code {
    /// The stable name, `family/kebab-case`.
    pub name: &'static str,
    /// Why, in the words of the Kubernetes API.
    pub cause: Cause,
    /// The documentation page, in Markdown, as `memgate explain` prints it.
    pub page: &'static str,
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Code {}

/// Which of the two webhook calls reports a finding: each finding is reported once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The mutating call: all that concerns pods, and findings about an edit.
    Mutate,
    /// The validating call: what concerns a family's own resources.
    Validate,
}

impl Phase {
    /// Both calls, in the order in which an apiserver makes them.
    pub const ALL: [Self; 2] = [Self::Mutate, Self::Validate];
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule that is broken; for a rule of a policy the one that stands for all of them.
    pub code: &'static Code,
    /// The rule of a policy that is broken.
    pub policy: Option<PolicyFinding>,
    /// Why, in the words of the Kubernetes API: that of the code, where the rule at hand says nothing else.
    pub cause: Cause,
    /// Whether the request is refused for it.
    pub severity: Severity,
    /// Where, in the object under review; may point at what is missing.
    pub pointer: Pointer,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do, when the message does not say it already.
    pub help: Option<String>,
    /// The values that the finding rests on, as one text: the part of its fingerprint that code and path
    /// do not hold. Never shown.
    pub fingerprint_value: String,
    /// The pointer with the names of list elements in place of their indexes, when the family tells its
    /// elements apart by name; stands for the pointer in the fingerprint. Never shown.
    pub fingerprint_path: Option<String>,
    /// The other place in the same object that the finding is about, and what it is.
    pub related: Option<(Pointer, &'static str)>,
    /// What is right instead, where there is only one answer. No answer of the webhook has it.
    pub fix: Option<Fix>,
    /// The places in other objects that the finding is about. No answer has them.
    pub elsewhere: Vec<Elsewhere>,
    /// Whether the key itself is wrong, rather than what stands behind it.
    pub at_key: bool,
    /// Whether this is about what the change does once it is allowed: left out where it is refused.
    pub when_allowed: bool,
    /// Whether this is about what an edit corrects. The mutating call reports it, since the validating one
    /// no longer sees it.
    pub on_rewrite: bool,
}

impl Finding {
    /// A finding that refuses the request.
    #[must_use]
    pub fn deny(code: &'static Code, pointer: Pointer, message: impl Into<String>) -> Self {
        let message = shown(message.into());
        Self {
            code,
            policy: None,
            cause: code.cause,
            severity: Severity::Deny,
            pointer,
            message,
            help: None,
            fingerprint_value: String::new(),
            fingerprint_path: None,
            related: None,
            fix: None,
            elsewhere: Vec::new(),
            at_key: false,
            when_allowed: false,
            on_rewrite: false,
        }
    }

    /// A finding that only warns.
    #[must_use]
    pub fn warn(code: &'static Code, pointer: Pointer, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warn, ..Self::deny(code, pointer, message) }
    }

    /// A finding that refuses the request, for rules about each element of a list: of very many, the later
    /// ones get no words, since nobody would read them; see [`Finding::is_wordless`].
    #[must_use]
    pub fn deny_within(
        work: &Work<'_>,
        code: &'static Code,
        pointer: Pointer,
        message: impl FnOnce(&Pointer) -> String,
    ) -> Self {
        let message = words(work, Severity::Deny, &pointer, message);
        Self::deny(code, pointer, message)
    }

    /// The same for a finding that only warns.
    #[must_use]
    pub fn warn_within(
        work: &Work<'_>,
        code: &'static Code,
        pointer: Pointer,
        message: impl FnOnce(&Pointer) -> String,
    ) -> Self {
        let message = words(work, Severity::Warn, &pointer, message);
        Self::warn(code, pointer, message)
    }

    /// The stable name of the rule that is broken: `family/kebab-case`, or `policy/POLICY/RULE`.
    #[must_use]
    pub fn code_name(&self) -> &str {
        self.policy.as_ref().map_or(self.code.name, |policy| policy.rule.code.as_str())
    }

    /// Whether this is only counted and compared with findings about the stored object. What refers to another
    /// place or gives advice need not be found out for it.
    #[must_use]
    pub const fn is_wordless(&self) -> bool {
        self.message.is_empty()
    }

    /// The message about the same place in a workload, where the pod's field is at `pointer`: messages that
    /// begin with the field name it from the workload's root.
    #[must_use]
    pub fn message_at(&self, pointer: &Pointer) -> String {
        let field = self.pointer.field();
        match self.message.strip_prefix(&field).filter(|_| !field.is_empty()) {
            Some(rest) if rest.starts_with(':') => format!("{}{rest}", pointer.field()),
            _ => self.message.clone(),
        }
    }

    /// The same finding with advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(shown(help.into())), ..self }
    }

    /// The same finding with a text behind its message, which stays whole where the message is cut or hides something
    /// to its end.
    #[must_use]
    pub fn ending(mut self, end: &str) -> Self {
        let room = MAX_MESSAGE_BYTES.saturating_sub(end.len());
        if self.message.len() > room {
            self.message.truncate(self.message.floor_char_boundary(room));
            self.message.push('…');
        }
        self.message.push_str(end);
        self
    }

    /// The same finding with the values it rests on.
    #[must_use]
    pub fn fingerprint_value(self, fingerprint_value: impl Into<String>) -> Self {
        Self { fingerprint_value: fingerprint_value.into(), ..self }
    }

    /// The same finding with its other place.
    #[must_use]
    pub fn related(self, pointer: Pointer, label: &'static str) -> Self {
        Self { related: Some((pointer, label)), ..self }
    }

    /// The same finding with the one right answer, if there is one; nobody reads that of a finding without words.
    #[must_use]
    pub fn fix(self, fix: Option<Fix>) -> Self {
        let fix = fix.filter(|_| !self.is_wordless());
        Self { fix, ..self }
    }

    /// The same finding with a place in another object; nobody reads that of a finding without words.
    #[must_use]
    pub fn elsewhere(self, object: &Object, pointer: Pointer, label: &'static str) -> Self {
        self.and_elsewhere(|| Some(Elsewhere::of(object, pointer, label)))
    }

    /// The same, where it is to be found out first whether there is one.
    #[must_use]
    pub fn and_elsewhere(mut self, place: impl FnOnce() -> Option<Elsewhere>) -> Self {
        if !self.is_wordless() {
            self.elsewhere.extend(place());
        }
        self
    }

    /// The same finding, pointing at the key.
    #[must_use]
    pub fn at_key(self) -> Self {
        Self { at_key: true, ..self }
    }

    /// The same finding, reported only when nothing else refuses the request.
    #[must_use]
    pub fn when_allowed(self) -> Self {
        Self { when_allowed: true, ..self }
    }

    /// The same finding, reported by the call that makes the edit.
    #[must_use]
    pub fn on_rewrite(self) -> Self {
        Self { on_rewrite: true, ..self }
    }

    /// The same finding, with a fingerprint that is the same wherever it stands.
    #[must_use]
    pub fn anywhere(self) -> Self {
        Self { fingerprint_path: Some(String::new()), ..self }
    }

    /// What makes two findings the same for ratcheting: code, path (where it matters) and the values they
    /// rest on.
    #[must_use]
    pub fn fingerprint(&self) -> (&str, &str, &str) {
        let path = self.fingerprint_path.as_deref().unwrap_or(self.pointer.as_str());
        (self.code_name(), path, &self.fingerprint_value)
    }
}

/// Counts a finding, and makes its message if it still gets one.
fn words(
    work: &Work<'_>,
    severity: Severity,
    pointer: &Pointer,
    message: impl FnOnce(&Pointer) -> String,
) -> String {
    work.finding();
    if work.has_words(severity == Severity::Deny, pointer) { message(pointer) } else { String::new() }
}

/// The names of the codes of findings, each once, with commas: as logs and audit annotations have them.
#[must_use]
pub fn codes(findings: &[&Finding]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for finding in findings {
        if !names.contains(&finding.code_name()) {
            names.push(finding.code_name());
        }
    }
    names.join(",")
}

/// A text with a space for each control character.
pub(crate) fn without_controls(text: String) -> String {
    match plain(&text) {
        Cow::Owned(plain) => plain,
        Cow::Borrowed(_) => text,
    }
}

/// How many bytes of a message are shown: more than any rule writes about names of the usual length.
const MAX_MESSAGE_BYTES: usize = 2048;

/// A message as people see it: without control characters and credentials, and cut where it is very long. It is
/// cut last, since what shows that something is a credential can stand behind it.
fn shown(message: String) -> String {
    if message.is_empty() {
        return message;
    }
    let message = without_controls(message);
    let mut shown = match credential::masked(&message) {
        Cow::Borrowed(_) => message,
        Cow::Owned(masked) => masked,
    };
    if shown.len() > MAX_MESSAGE_BYTES {
        shown.truncate(shown.floor_char_boundary(MAX_MESSAGE_BYTES));
        shown.push('…');
    }
    shown
}

/// A value from user input as messages show it: in double quotes, credentials masked, control characters
/// as spaces, cut after 256 characters.
#[must_use]
pub fn quoted(value: &str) -> String {
    /// Room for the longest name that Kubernetes accepts, 253 characters.
    const MAX_QUOTED_CHARS: usize = 256;
    let value = credential::masked_start(value);
    match value.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("\"{}…\"", plain(value.get(..end).unwrap_or_default())),
        None => format!("\"{}\"", plain(&value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_a_very_long_message_behind_its_credentials() {
        let long = format!("{}redis://u:{}@a", "ä".repeat(900), "s".repeat(4_000));
        let message = shown(long);
        assert!(message.len() <= MAX_MESSAGE_BYTES + '…'.len_utf8() && !message.contains("ss"), "{message}");
        assert_eq!(shown("x".repeat(MAX_MESSAGE_BYTES)).len(), MAX_MESSAGE_BYTES);
    }
}
