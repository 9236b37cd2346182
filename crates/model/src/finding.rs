//! Findings: what is wrong with an object, where, and what to do about it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::elsewhere::Elsewhere;
use crate::object::{Object, Reference};
use crate::page::Page;
use crate::policy_rule::PolicyFinding;
use memgate_primitives::budget::Budget;
use memgate_primitives::credential;
use memgate_primitives::fix::Fix;
use memgate_primitives::name::meant_name;
use memgate_primitives::plain_text::{plain, quoted};
use memgate_primitives::pointer::Pointer;

pub use crate::severity::Severity;

/// The cause, as the Kubernetes API names it (`metav1.CauseType`).
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
    /// The object that the value refers to does not exist.
    NotFound,
    /// The value contradicts another one.
    Conflict,
    /// The value occurred before.
    Duplicate,
    /// The object that the value refers to could not be looked up, or a rule about it not be evaluated: the value may be
    /// good.
    Unavailable,
}

impl Cause {
    /// The reason string as the Kubernetes API writes it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::Conflict => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Unavailable => "InternalError",
        }
    }
}

/// One rule that can be broken; a row in the code table of a family.
#[derive(Debug)]
pub struct Code {
    /// The stable name, `family/kebab-case`.
    pub name: &'static str,
    /// The cause, as the Kubernetes API names it.
    pub cause: Cause,
    /// The documentation page, in Markdown, as `memgate explain` prints it.
    pub page: Page,
}

impl Code {
    /// The code as messages in a cluster end with it: ` (memgate CODE)`.
    #[must_use]
    pub fn in_text(&self) -> String {
        format!(" (memgate {})", self.name)
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Code {}

/// The texts of a finding, and its fix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do, unless the message already says it.
    pub help: Option<Cow<'static, str>>,
    /// The correct value, if there is only one. Never part of a webhook's answer.
    pub fix: Option<Fix>,
    /// The value that may be meant. Editors offer it; `check --fix` does not write it.
    pub meant: Option<String>,
}

impl Details {
    /// The same with advice, if there is any.
    #[must_use]
    pub fn help(self, help: Option<String>) -> Self {
        Self { help: help.map(Cow::Owned), ..self }
    }

    /// The same with the only correct value, if there is one.
    #[must_use]
    pub fn fix(self, fix: Option<Fix>) -> Self {
        Self { fix, ..self }
    }

    /// The same without control characters and credentials, and cut to a maximum length.
    fn presentable(self) -> Self {
        Self { message: presentable(&self.message), help: self.help.map(presentable_help), ..self }
    }
}

impl<T: Into<String>> From<T> for Details {
    fn from(message: T) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// Makes details from the pointer of a finding, and from values that the function owns.
type MakeDetails = Arc<dyn Fn(&Pointer) -> Details + Send + Sync>;

/// Details that exist already, and a function that makes the rest when they are read.
#[derive(Clone, Default)]
pub struct LazyDetails {
    made: Option<Box<Details>>,
    make: Option<MakeDetails>,
}

impl fmt::Debug for LazyDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.made.fmt(f)
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule that is broken; for all rules of policies, one common code.
    pub code: &'static Code,
    /// The rule of a policy that is broken.
    pub policy: Option<Box<PolicyFinding>>,
    /// The cause, as the Kubernetes API names it; usually that of the code.
    pub cause: Cause,
    /// Whether the finding refuses the request, warns, or only appears in reports.
    pub severity: Severity,
    /// The place in the object under review; may point at a missing value.
    pub pointer: Pointer,
    /// Message, help and fix; [`Finding::details`] reads them.
    pub lazy: LazyDetails,
    /// The values that the finding depends on, as one text: the part of its fingerprint that is not in code and path.
    /// Never shown.
    pub fingerprint_value: String,
    /// The pointer with the names of list elements in place of their indexes, if the family identifies elements by
    /// name. It replaces the pointer in the fingerprint. Never shown.
    pub fingerprint_path: Option<String>,
    /// The other place in the same object that the finding is about, and a label for it.
    pub related: Option<(Pointer, &'static str)>,
    /// The places in other objects that the finding is about. Never part of a webhook's answer.
    pub elsewhere: Vec<Elsewhere>,
    /// The object that is missing, under each kind that it may have, where the finding is that one is.
    pub missing: Vec<Reference>,
    /// Whether the key itself is wrong, rather than its value.
    pub at_key: bool,
    /// Whether this is about the effects of an allowed change. It is left out if the change is refused.
    pub when_allowed: bool,
    /// Whether this is about a value that an edit corrects. The mutating call reports it, since the validating
    /// one no longer sees that value.
    pub on_rewrite: bool,
    /// What denies it, if it is a denial.
    pub denied_by: DeniedBy,
    /// What makes it less than news in a report of files.
    pub relation: Relation,
}

/// Which judge denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeniedBy {
    /// A cluster too.
    Cluster,
    /// Only the report of files.
    Report,
}

/// Whether a report has the fact behind a finding already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// It is new.
    #[default]
    New,
    /// It was there before, at the base of a branch.
    Known,
    /// It only follows from another denial, which names the object or field.
    Follows,
}

impl Finding {
    /// A finding that refuses the request.
    pub fn deny(code: &'static Code, pointer: impl Into<Pointer>, message: impl Into<String>) -> Self {
        let made = Some(Box::new(Details::from(message).presentable()));
        Self::with_details(code, pointer.into(), LazyDetails { made, make: None })
    }

    fn with_details(code: &'static Code, pointer: Pointer, lazy: LazyDetails) -> Self {
        Self {
            code,
            policy: None,
            cause: code.cause,
            severity: Severity::Deny,
            pointer,
            lazy,
            fingerprint_value: String::new(),
            fingerprint_path: None,
            related: None,
            elsewhere: Vec::new(),
            missing: Vec::new(),
            at_key: false,
            when_allowed: false,
            on_rewrite: false,
            denied_by: DeniedBy::Cluster,
            relation: Relation::New,
        }
    }

    /// A finding that only warns.
    pub fn warn(code: &'static Code, pointer: impl Into<Pointer>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warn, ..Self::deny(code, pointer, message) }
    }

    /// A finding that refuses the request, for rules about each element of a list. It counts in the budget. Its
    /// details are made when they are read: an object may have ten thousand such findings, of which 50 are reported.
    /// `details` owns the values that it shows; see [`excerpt`].
    pub fn deny_within<T: Into<Details>>(
        budget: &Budget<'_>,
        code: &'static Code,
        pointer: Pointer,
        details: impl Fn(&Pointer) -> T + Send + Sync + 'static,
    ) -> Self {
        budget.finding();
        let lazy =
            LazyDetails { make: Some(Arc::new(move |at| details(at).into())), ..LazyDetails::default() };
        Self::with_details(code, pointer, lazy)
    }

    /// The same for a finding that only warns.
    pub fn warn_within<T: Into<Details>>(
        budget: &Budget<'_>,
        code: &'static Code,
        pointer: Pointer,
        details: impl Fn(&Pointer) -> T + Send + Sync + 'static,
    ) -> Self {
        Self { severity: Severity::Warn, ..Self::deny_within(budget, code, pointer, details) }
    }

    /// The stable name of the rule that is broken: `family/kebab-case`, or `policy/POLICY/RULE`.
    pub fn code_name(&self) -> &str {
        self.policy.as_ref().map_or(self.code.name, |policy| policy.rule.code.as_str())
    }

    /// Message, help and fix, without control characters and credentials. The message names its field.
    pub fn details(&self) -> Cow<'_, Details> {
        let details = self.details_as_made();
        let Some(field) = self.field_to_name(&details.message) else { return details };
        let message = format!("{field}: {}", details.message);
        Cow::Owned(Details { message, ..details.into_owned() })
    }

    /// The field, if the message does not name it. It is left out where a warning would become too long, but for what
    /// surrounds a pod, and where it is only `metadata` or `spec`. A label or annotation is known by its key.
    fn field_to_name(&self, message: &str) -> Option<String> {
        /// Source: Kubernetes documentation, dynamic admission control, response.
        const MAX_WARNING_CHARS: usize = 120;
        let key = self.pointer.tokens().skip(1).last()?;
        let field = self.pointer.field();
        let list = field.rsplit_once('[').filter(|_| field.ends_with(']')).map_or(&*field, |(list, _)| list);
        let is_named = message.contains(list) || key.contains('/') && message.contains(&*key);
        let chars = field.chars().count() + message.chars().count() + ": ".len();
        let needs_it = self.is_denial() || self.code.name.starts_with("memgate/pod-");
        let fits = if needs_it { field.len() <= MAX_WARNING_CHARS } else { chars <= MAX_WARNING_CHARS };
        (fits && !is_named && self.policy.is_none()).then_some(field)
    }

    fn details_as_made(&self) -> Cow<'_, Details> {
        let LazyDetails { made, make } = &self.lazy;
        let details = make.as_ref().map(|make| make(&self.pointer).presentable());
        match (made.as_deref(), details) {
            (Some(made), None) => Cow::Borrowed(made),
            (None, details) => Cow::Owned(details.unwrap_or_default()),
            (Some(Details { help, fix, .. }), Some(details)) => Cow::Owned(Details {
                help: help.clone().or(details.help),
                fix: fix.clone().or(details.fix),
                ..details
            }),
        }
    }

    /// What is wrong, in one sentence without a full stop.
    pub fn message(&self) -> Cow<'_, str> {
        match self.details() {
            Cow::Borrowed(details) => Cow::Borrowed(&details.message),
            Cow::Owned(details) => Cow::Owned(details.message),
        }
    }

    /// What to do, unless the message already says it.
    pub fn help_text(&self) -> Option<Cow<'_, str>> {
        match self.details() {
            Cow::Borrowed(details) => details.help.as_deref().map(Cow::Borrowed),
            Cow::Owned(details) => details.help,
        }
    }

    /// The message about the same place in a workload, where the pod's field is at `pointer`. If the message begins
    /// with the field, the field is written as a path from the workload's root.
    pub fn message_at(&self, pointer: &Pointer) -> String {
        let (field, message) = (self.pointer.field(), self.message());
        match message.strip_prefix(&field).filter(|_| !field.is_empty()) {
            Some(rest) if rest.starts_with(':') => format!("{}{rest}", pointer.field()),
            _ => message.into_owned(),
        }
    }

    /// Makes the details now, with [`Finding::message_at`] as the message.
    pub fn settle_at(&mut self, pointer: &Pointer) {
        let details = Details { message: self.message_at(pointer), ..self.details().into_owned() };
        self.lazy = LazyDetails { made: Some(Box::new(details)), make: None };
    }

    /// The same finding with a message that is derived from its own, in which credentials are already masked.
    #[must_use]
    pub fn with_message(self, message: impl Into<String>) -> Self {
        let made = Details { message: message.into(), ..self.details().into_owned() };
        Self { lazy: LazyDetails { made: Some(Box::new(made)), make: None }, ..self }
    }

    /// The same finding with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.lazy.made.get_or_insert_default().help = Some(presentable_help(help.into()));
        self
    }

    /// The same finding with the name that was meant by this text as advice and fix, if it is a slip.
    #[must_use]
    pub fn proposing_name(self, text: &str) -> Self {
        let Some(name) = meant_name(text) else { return self };
        self.help(format!("did you mean {}?", quoted(&name))).fix(Some(Fix::Text(name)))
    }

    /// The same finding with a suffix that is never cut or masked.
    #[must_use]
    pub fn ending(self, end: &str) -> Self {
        let mut message = self.message().into_owned();
        let room = MAX_MESSAGE_BYTES.saturating_sub(end.len());
        if message.len() > room {
            message.truncate(message.floor_char_boundary(room));
            message.push('…');
        }
        message.push_str(end);
        self.with_message(message)
    }

    /// The same finding with the values it depends on.
    #[must_use]
    pub fn fingerprint_value(self, fingerprint_value: impl Into<String>) -> Self {
        Self { fingerprint_value: fingerprint_value.into(), ..self }
    }

    /// The same finding with its other place.
    #[must_use]
    pub fn related(self, pointer: Pointer, label: &'static str) -> Self {
        Self { related: Some((pointer, label)), ..self }
    }

    /// The same finding with the only correct value, if there is one.
    #[must_use]
    pub fn fix(mut self, fix: Option<Fix>) -> Self {
        if fix.is_some() || self.lazy.made.is_some() {
            self.lazy.made.get_or_insert_default().fix = fix;
        }
        self
    }

    /// The same finding with a place in another object.
    #[must_use]
    pub fn elsewhere(self, object: &Object, pointer: Pointer, label: &'static str) -> Self {
        self.and_elsewhere(|| Some(Elsewhere::of(object, pointer, label)))
    }

    /// The same finding with a place in another object, if there is one.
    #[must_use]
    pub fn and_elsewhere(mut self, place: impl FnOnce() -> Option<Elsewhere>) -> Self {
        self.elsewhere.extend(place());
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

    /// The same finding, with a fingerprint that does not depend on its place.
    #[must_use]
    pub fn anywhere(self) -> Self {
        Self { fingerprint_path: Some(String::new()), ..self }
    }

    /// The key by which the ratchet compares findings: code, path (where it matters) and the values they depend on.
    pub fn fingerprint(&self) -> (&str, &str, &str) {
        let path = self.fingerprint_path.as_deref().unwrap_or(self.pointer.as_str());
        (self.code_name(), path, &self.fingerprint_value)
    }

    /// Whether the finding refuses the request.
    pub const fn is_denial(&self) -> bool {
        matches!(self.severity, Severity::Deny)
    }
}

/// Compares the details as a reader gets them, not how they are stored.
impl PartialEq for Finding {
    fn eq(&self, other: &Self) -> bool {
        let flags = |it: &Self| (it.severity, it.cause, it.at_key, it.when_allowed, it.on_rewrite);
        self.fingerprint() == other.fingerprint()
            && flags(self) == flags(other)
            && (&self.pointer, &self.policy, &self.related, &self.elsewhere)
                == (&other.pointer, &other.policy, &other.related, &other.elsewhere)
            && self.details() == other.details()
    }
}

impl Eq for Finding {}

/// A value for a message that is made later: only as much of it as [`quoted`]
/// reads, so that ten thousand findings about long values stay small.
pub fn excerpt(value: &str) -> Box<str> {
    const MAX_BYTES: usize = credential::MAX_READ_BYTES + 4;
    value.get(..value.floor_char_boundary(MAX_BYTES)).unwrap_or(value).into()
}

/// The names of the codes of findings, each once, separated by commas: the form in logs and audit annotations.
pub fn codes(findings: &[&Finding]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for finding in findings {
        if !names.contains(&finding.code_name()) {
            names.push(finding.code_name());
        }
    }
    names.join(",")
}

/// The longest message, in bytes: more than any rule writes about names of the usual length.
const MAX_MESSAGE_BYTES: usize = 2048;

/// A message without control characters and credentials, cut at a maximum length. Credentials are masked before the
/// cut, since a credential may be recognised only by the text after it.
pub fn presentable(message: &str) -> String {
    let mut shown = credential::masked(&plain(message)).into_owned();
    if shown.len() > MAX_MESSAGE_BYTES {
        shown.truncate(shown.floor_char_boundary(MAX_MESSAGE_BYTES));
        shown.push('…');
    }
    shown
}

/// The same for help. Static text of the program stays unchanged.
fn presentable_help(help: Cow<'static, str>) -> Cow<'static, str> {
    match help {
        Cow::Borrowed(help) => Cow::Borrowed(help),
        Cow::Owned(help) => Cow::Owned(presentable(&help)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_a_very_long_message_behind_its_credentials() {
        let long = format!("{}redis://u:{}@a", "ä".repeat(900), "s".repeat(4_000));
        let message = presentable(&long);
        assert!(message.len() <= MAX_MESSAGE_BYTES + '…'.len_utf8() && !message.contains("ss"), "{message}");
        assert_eq!(presentable(&"x".repeat(MAX_MESSAGE_BYTES)).len(), MAX_MESSAGE_BYTES);
    }
}
