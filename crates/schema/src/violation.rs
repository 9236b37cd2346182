//! The rules that an object breaks. A message is made when it is read, since an object may have ten thousand violations,
//! of which few are reported.

use std::borrow::Cow;
use std::mem::{Discriminant, discriminant};

use serde_json::Value;

use crate::crd::{Bound, CelRule};
use crate::metadata_fault::Fault;
use crate::node::Node;
use crate::place::Place;
use crate::shown::{key_shown, shown};
use memgate_primitives::budget::Budget;
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::members::Members;
use memgate_primitives::number;
use memgate_primitives::plain_text::{cut, quoted, quoted_key};
use memgate_primitives::pointer::{Path, Pointer, list_index};

/// A rule, and what its message needs besides the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule<'d> {
    /// A value of the wrong JSON type.
    Type {
        /// The types that are allowed.
        expected: &'static str,
        /// The type of the value.
        got: &'static str,
        /// The text that alone makes an object of the type, or an element of the list, if there is one: users write it
        /// bare.
        only: Option<&'d str>,
    },
    /// The field of this name is missing; with what else would do, if anything.
    Required(&'d str, &'static str),
    /// A value that is not one of these.
    Unsupported(&'d [Value]),
    /// A text with more characters than this.
    TooLong(u64),
    /// A text with fewer characters than this.
    TooShort(u64),
    /// A list or object with too many entries.
    TooMany {
        /// How many there are.
        count: usize,
        /// The greatest number of them.
        max: u64,
    },
    /// A list or object with too few entries.
    TooFew {
        /// How many there are.
        count: usize,
        /// The least number of them.
        min: u64,
    },
    /// A value that occurred before. The fields that tell elements apart; nothing for the whole value.
    Duplicate(Option<&'d [String]>),
    /// A list with equal elements.
    HasDuplicates,
    /// A text that does not match this pattern.
    Pattern(&'d str),
    /// A text that does not have this format.
    Format(&'static str),
    /// A number that does not have this format: its type and name.
    Size(&'static str, &'static str),
    /// A number that is not a multiple of this one.
    MultipleOf(f64),
    /// A number that is too small.
    Least(Bound),
    /// A number that is too large.
    Most(Bound),
    /// None of several schemas holds.
    AnyOf,
    /// Not exactly one of several schemas holds, but so many.
    OneOf(usize),
    /// A schema holds that must not.
    Not,
    /// An element of a list by keys that is not an object.
    NoMapElement,
    /// A rule in CEL.
    Cel(&'d CelRule),
    /// A rule in CEL that meets an error.
    CelError(&'d CelRule),
    /// A rule in CEL that was not evaluated, and why.
    NotEvaluated(&'d CelRule, &'d str),
    /// A rule of metadata about a value.
    Metadata(Fault),
    /// A rule of metadata about the key of a value.
    MetadataKey(Fault),
}

/// A rule that an object breaks at a place.
#[derive(Debug, Clone)]
pub struct SchemaViolation<'d> {
    /// The value, or the place where one is missing.
    pub pointer: Pointer,
    /// The rule.
    pub rule: Rule<'d>,
    /// Whether the stored object breaks it with the same value: then it only warns.
    pub stored: bool,
    /// The value, or the object in which one is missing.
    value: &'d Node<'d>,
    /// What a rule in CEL says of this value: its message, or its error.
    pub(super) words: Option<Box<str>>,
}

/// What a message shows in place of a value that may be a credential.
const HIDDEN: &str = "\"***\"";

/// The pattern of a quantity in definitions. Source: kubernetes-sigs/controller-tools, `KnownPackages`.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Whether a field may hold credentials: by its own name, that of its list, or as a header or variable.
pub(crate) fn holds_credential(at: &Pointer) -> bool {
    let tokens: Vec<_> = at.tokens().filter(|token| list_index(token).is_none()).collect();
    let last = tokens.last().map(AsRef::as_ref).unwrap_or_default();
    is_credential_name(last) || last != "name" && tokens.iter().any(|token| holds_any(token))
}

/// Whether a field of this name, or one below it, may hold credentials.
pub(crate) fn may_hold_credential(name: &str) -> bool {
    is_credential_name(name) || holds_any(name)
}

/// Whether any field below one of this name may hold credentials.
fn holds_any(name: &str) -> bool {
    ["headers", "env", "stringData"].contains(&name)
}

impl<'d> SchemaViolation<'d> {
    /// Whether the rule is about the key itself.
    pub const fn at_key(&self) -> bool {
        matches!(self.rule, Rule::MetadataKey(_))
    }

    /// Whether an object that has more than this one may keep the rule, or the value is `null`, which takes one away in a
    /// patch.
    pub fn is_of_whole(&self) -> bool {
        let may_have_more = matches!(self.value, Node::Map(_) | Node::List(_));
        self.value.is_null()
            || match self.rule {
                Rule::Required(..)
                | Rule::TooFew { .. }
                | Rule::Duplicate(_)
                | Rule::NoMapElement
                | Rule::Cel(_)
                | Rule::CelError(_)
                | Rule::NotEvaluated(..) => true,
                Rule::AnyOf | Rule::OneOf(_) | Rule::Not => may_have_more,
                _ => false,
            }
    }

    /// The value that a rule in CEL is about.
    pub fn of_cel(&self, rule: &CelRule) -> Pointer {
        let place = self.pointer.as_str();
        Pointer::new(place.strip_suffix(rule.below.as_str()).unwrap_or(place))
    }

    /// The value, if it is a text that may be shown.
    pub fn text(&self) -> Option<&str> {
        match self.value {
            Node::Text(text) if !holds_credential(&self.pointer) => Some(text),
            _ => None,
        }
    }

    /// The value, if it should be a name of metadata and is none. Not all of these may have dots.
    pub fn wrong_name(&self) -> Option<&str> {
        let is_wrong = matches!(self.rule, Rule::Metadata(_)) && is_name(&self.pointer);
        self.text().filter(|text| is_wrong && !text.contains('.'))
    }

    /// The value as the message shows it: not at all where the field may hold credentials.
    pub fn shown(&self) -> String {
        match self.rule {
            _ if holds_credential(&self.pointer) => HIDDEN.to_owned(),
            Rule::Duplicate(Some(names)) => key_shown(self.value, names),
            _ if is_name(&self.pointer) => match self.value {
                Node::Text(name) => quoted(name),
                _ => shown(self.value),
            },
            Rule::MetadataKey(_) => quoted_key(&self.pointer.tokens().last().unwrap_or_default()),
            _ => shown(self.value),
        }
    }

    /// What two violations of the metadata of an object and its stored one share if they are the same.
    fn identity(&self) -> (Pointer, Discriminant<Rule<'d>>, Option<&'d Node<'d>>) {
        let is_of_value = !matches!(self.rule, Rule::Required(..) | Rule::TooLong(_) | Rule::MetadataKey(_));
        (self.pointer.clone(), discriminant(&self.rule), is_of_value.then_some(self.value))
    }
}

/// Whether the field is the name of an object, or of its namespace.
fn is_name(pointer: &Pointer) -> bool {
    let tokens: Vec<_> = pointer.tokens().collect();
    matches!(tokens.as_slice(), [.., metadata, name]
        if metadata == "metadata" && ["name", "namespace", "generateName"].contains(&&**name))
}

/// The message about a value of the wrong JSON type. The value is shown if it is a number, a boolean, or a text in place
/// of one, and the field cannot hold credentials.
pub fn type_message(at: &Pointer, expected: &str, got: &str, value: &str) -> String {
    let is_plain = |name| ["boolean", "integer", "number"].contains(&name);
    let value = match () {
        () if !is_plain(got) && (got != "string" || !is_plain(expected)) => String::new(),
        () if value.is_empty() || holds_credential(at) => String::new(),
        () => format!(" {value}"),
    };
    format!("{}: must be of type {expected}, not {got}{value}", at.field_or("the object"))
}

/// The message, in the words of the apiserver where a reader who does not know the schema understands them.
pub fn message(violation: &SchemaViolation<'_>) -> String {
    let field = violation.pointer.field();
    let value = violation.shown();
    let invalid = |detail: &str| format!("{field}: Invalid value: {value}: {detail}");
    let must = |detail: String| invalid(&format!("must {detail}"));
    let items = |count: u64| format!("{count} {}", if count == 1 { "item" } else { "items" });
    match violation.rule {
        Rule::Type { expected, got, .. } => type_message(&violation.pointer, expected, got, &value),
        Rule::Required(_, "") => format!("{field}: Required value"),
        Rule::Required(_, detail) => format!("{field}: Required value: {detail}"),
        Rule::Unsupported(allowed) => {
            let (supported, more) = supported(allowed);
            let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
            let supported = supported.join(", ");
            let more = number::more(more);
            format!("{field}: Unsupported value: {value}: supported values: {supported}{more}")
        }
        Rule::TooLong(max) => {
            let unit = if max == 1 { "byte" } else { "bytes" };
            format!("{field}: Too long: may not be more than {max} {unit}")
        }
        Rule::TooShort(1) => must("not be empty".to_owned()),
        Rule::TooShort(min) => must(format!("have at least {min} characters")),
        Rule::TooMany { count: many, max } => {
            format!("{field}: Too many: {many}: must have at most {}", items(max))
        }
        Rule::TooFew { count: few, min } => {
            format!("{field}: Too few: {few}: must have at least {}", items(min))
        }
        Rule::Duplicate(_) => format!("{field}: Duplicate value: {value}"),
        Rule::HasDuplicates => format!("{field}: must not have the same entry twice"),
        Rule::Pattern(QUANTITY) => must("be a quantity, such as 500m or 1Gi".to_owned()),
        Rule::Pattern(pattern) => must(format!("match the pattern {pattern}")),
        Rule::Format(name) => must(format!("have the format {name}")),
        Rule::Size(type_name, format) => must(format!("be of type {type_name} with format {format}")),
        Rule::MultipleOf(factor) => must(format!("be a multiple of {factor}")),
        Rule::Least(bound) => must(format!("be greater than {}{}", or_equal(bound), bound.value)),
        Rule::Most(bound) => must(format!("be less than {}{}", or_equal(bound), bound.value)),
        Rule::AnyOf => format!("{field}: fits none of the forms that its schema allows (anyOf)"),
        Rule::OneOf(0) => format!("{field}: fits none of the forms that its schema allows (oneOf)"),
        Rule::OneOf(many) => {
            format!("{field}: fits {many} forms of its schema, which allows only one at a time (oneOf)")
        }
        Rule::Not => format!("{field}: has a form that its schema forbids (not)"),
        Rule::NoMapElement => invalid("must be an object, since its list is sorted by keys"),
        Rule::Cel(rule) => {
            let place = violation.pointer.field_or("the object");
            match (violation.words.as_deref().unwrap_or_default(), rule.message.as_str()) {
                ("", "") => format!("{place}: failed rule: {}", cel_text(&rule.text)),
                ("", words) | (words, _) => format!("{place}: {}", cel_text(words)),
            }
        }
        Rule::CelError(rule) => {
            let error = violation.words.as_deref().unwrap_or("error");
            let of = if rule.message.is_empty() { &rule.text } else { &rule.message };
            let place = violation.pointer.field_or("the object");
            format!("{place}: {} evaluating rule: {}", cel_text(error), cel_text(of))
        }
        Rule::NotEvaluated(rule, why) => {
            let (place, text) = (violation.pointer.field_or("the object"), cel_text(&rule.text));
            format!("{place}: a rule of the definition is not evaluated, because {why}: {text}")
        }
        Rule::Metadata(fault) | Rule::MetadataKey(fault) => invalid(&fault.words()),
    }
}

/// A text of a definition, on one line.
fn cel_text(text: &str) -> Cow<'_, str> {
    const MAX_CHARS: usize = 512;
    cut(text.trim(), MAX_CHARS)
}

const fn or_equal(bound: Bound) -> &'static str {
    if bound.exclusive { "" } else { "or equal to " }
}

/// The allowed values as messages show them, and how many more there are.
pub fn supported(allowed: &[Value]) -> (Vec<String>, usize) {
    /// More than any enum that people choose from. Each wrong element brings these along.
    const MAX_SHOWN: usize = 100;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (allowed.iter().take(MAX_SHOWN).map(text).collect(), allowed.len().saturating_sub(MAX_SHOWN))
}

/// Everything that was found about one object, in the order in which it was found.
pub struct Violations<'d> {
    /// What counts; `None` where it only matters whether there is any.
    budget: Option<&'d Budget<'d>>,
    found: Vec<SchemaViolation<'d>>,
    has_any: bool,
}

impl<'d> Violations<'d> {
    /// Nothing found yet.
    pub const fn new(budget: &'d Budget<'d>) -> Self {
        Self { budget: Some(budget), found: Vec::new(), has_any: false }
    }

    /// Takes no notes.
    pub(super) const fn whether_any() -> Self {
        Self { budget: None, found: Vec::new(), has_any: false }
    }

    /// Whether nothing was found.
    pub const fn is_empty(&self) -> bool {
        !self.has_any
    }

    /// How much was found.
    pub const fn len(&self) -> usize {
        self.found.len()
    }

    /// What was found.
    pub fn iter(&self) -> impl Iterator<Item = &SchemaViolation<'d>> {
        self.found.iter()
    }

    /// Leaves what counts.
    pub fn retain(&mut self, counts: impl FnMut(&SchemaViolation<'d>) -> bool) {
        self.found.retain(counts);
    }

    /// Whether to look no further.
    pub(super) fn is_over(&self) -> bool {
        self.budget.map_or(self.has_any, Budget::has_ended)
    }

    /// Notes a rule that the value of a place breaks.
    pub(super) fn push(&mut self, place: &Place<'_, 'd>, rule: Rule<'d>) {
        let path = if let Rule::Required(name, _) = rule { Path::Key(&place.path, name) } else { place.path };
        self.push_at(place, || path.pointer(), rule);
    }

    /// Notes a rule that the value of a place breaks, at a place below. Nothing where the budget has ended.
    pub(super) fn push_at(
        &mut self,
        place: &Place<'_, 'd>,
        pointer: impl FnOnce() -> Pointer,
        rule: Rule<'d>,
    ) -> Option<&mut SchemaViolation<'d>> {
        self.has_any = true;
        self.budget.filter(|budget| budget.finding())?;
        let (pointer, stored) = (pointer(), place.is_stored());
        self.found.push(SchemaViolation { pointer, rule, stored, value: place.value, words: None });
        self.found.last_mut()
    }

    /// Runs what notes more, and looks at what was noted before.
    pub(super) fn beside(&mut self, run: impl FnOnce(&[SchemaViolation<'d>], &mut Self)) {
        let mut before = std::mem::take(&mut self.found);
        run(&before, self);
        before.append(&mut self.found);
        self.found = before;
    }

    /// Marks everything from an entry on as stored or not.
    pub(super) fn mark_all(&mut self, from: usize, stored: bool) {
        for violation in self.found.iter_mut().skip(from) {
            violation.stored = stored;
        }
    }

    /// Marks everything from an entry on that is among `stored`, the violations of the stored object.
    pub(super) fn mark(&mut self, from: usize, stored: &Self) {
        let known: Members<_> = stored.iter().map(SchemaViolation::identity).collect();
        for violation in self.found.iter_mut().skip(from) {
            violation.stored = known.contains(&violation.identity());
        }
    }

    /// The budget of the decision.
    pub(super) const fn budget(&self) -> Option<&'d Budget<'d>> {
        self.budget
    }
}

/// The places of violations in order. A list costs a comparison or two for each, where a set by hash would have a copy of
/// each text, and one of each level above.
pub struct Places<'v>(Vec<&'v str>);

impl<'v> Places<'v> {
    /// The places of these violations.
    pub fn of<'d: 'v>(violations: impl Iterator<Item = &'v SchemaViolation<'d>>) -> Self {
        let mut places: Vec<_> = violations.map(|violation| violation.pointer.as_str()).collect();
        // As they were found, they are a few lists in order.
        places.sort_unstable();
        Self(places)
    }

    /// Whether one of them is below a place.
    pub fn has_below(&self, place: &Pointer) -> bool {
        let start = place.key("");
        self.from(start.as_str()).is_some_and(|found| found.starts_with(start.as_str()))
    }

    /// Whether one of them is a value, or in it.
    pub(crate) fn has_in(&self, value: Path<'_>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let place = value.pointer();
        self.from(place.as_str()) == Some(place.as_str()) || self.has_below(&place)
    }

    /// The first that is not in front of a text.
    fn from(&self, text: &str) -> Option<&'v str> {
        self.0.get(self.0.partition_point(|place| *place < text)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_no_value_of_a_field_for_credentials() {
        let node = Node::Text("hunter2".into());
        let allowed = [Value::from("a")];
        let message = |pointer, rule| {
            message(&SchemaViolation {
                pointer: Pointer::new(pointer),
                rule,
                stored: false,
                value: &node,
                words: None,
            })
        };
        let rule = Rule::Unsupported(&allowed);
        assert!(message("/spec/mode", rule).contains("hunter2"));
        for pointer in ["/spec/apiTokens/0", "/spec/headers/X-A", "/spec/env/0/value"] {
            assert!(!message(pointer, rule).contains("hunter2"), "{pointer}");
        }
        assert!(!message("/spec/apiToken", Rule::Format("uuid")).contains("hunter2"));
        let shown = message("/spec/apiToken", rule);
        assert_eq!(shown, "spec.apiToken: Unsupported value: \"***\": supported values: \"a\"");
    }
}
