//! The rules of a schema that an object breaks. A family may word the message itself.

use memgate_primitives::credential::is_credential_name;
use memgate_primitives::number;
use memgate_primitives::pointer::{Pointer, list_index};

/// One rule of the schema that an object breaks.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaViolation {
    /// The value, or the place where one is missing.
    pub pointer: Pointer,
    /// The rule.
    pub rule: BrokenRule,
    /// Whether the stored object breaks it with the same value: then it only warns.
    pub stored: bool,
    /// Whether the rule is about the key itself.
    pub at_key: bool,
}

/// The rule that is broken.
#[derive(Debug, Clone, PartialEq)]
pub enum BrokenRule {
    /// A value of the wrong JSON type.
    Type {
        /// The types that are allowed.
        expected: &'static str,
        /// The type of the value.
        got: &'static str,
    },
    /// A value that must be there; with what else would do, if anything.
    Required(&'static str),
    /// A value that is not one of a few.
    Unsupported {
        /// The value in JSON.
        value: String,
        /// What is allowed, strings without their quotes; only the first ones of very many.
        supported: Vec<String>,
        /// How many more are allowed.
        more: usize,
    },
    /// A text with too many characters.
    TooLong {
        /// The greatest number of them.
        max: u64,
    },
    /// A text with too few characters.
    TooShort {
        /// The text in quotes.
        value: String,
        /// The least number of them.
        min: u64,
    },
    /// A list or object with too many entries.
    TooMany {
        /// How many there are.
        count: usize,
        /// The greatest number of them.
        max: u64,
    },
    /// A value that occurred before, in JSON.
    Duplicate(String),
    /// Any other rule.
    Invalid {
        /// The value as messages show it.
        value: String,
        /// What is wrong; begins with the field where `about_field` is set.
        detail: String,
        /// Whether the apiserver puts the field in front of the detail.
        about_field: bool,
    },
}

/// A violation before its texts are made.
#[derive(Debug, Clone, Copy)]
pub struct Broken<'p> {
    /// The pointer to the value, or to the place where one is missing.
    pub pointer: &'p str,
    /// Which rule it is.
    pub kind: BrokenKind,
}

/// The rules that families tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenKind {
    /// A value of the wrong JSON type.
    Type {
        /// The type of the value.
        got: &'static str,
    },
    /// A value that must be there.
    Required,
    /// Any other rule.
    Other,
}

/// The apiserver's message about a value of the wrong JSON type.
#[must_use]
pub fn type_message(field: &str, expected: &str, got: &str) -> String {
    format!("{field}: Invalid value: \"{got}\": {field} in body must be of type {expected}: \"{got}\"")
}

/// What a message shows in place of a value that may be a credential.
const HIDDEN: &str = "\"***\"";

impl SchemaViolation {
    /// A rule that a value breaks.
    #[must_use]
    pub const fn new(pointer: Pointer, rule: BrokenRule) -> Self {
        Self { pointer, rule, stored: false, at_key: false }
    }

    /// Whether the field may hold credentials: by its own name, that of its list, or as a header or variable.
    fn is_about_credential(&self) -> bool {
        let tokens: Vec<_> = self.pointer.tokens().filter(|token| list_index(token).is_none()).collect();
        let last = tokens.last().map(AsRef::as_ref).unwrap_or_default();
        let holds_any = |token: &str| ["headers", "env", "stringData"].contains(&token);
        is_credential_name(last) || last != "name" && tokens.iter().any(|token| holds_any(token))
    }

    /// A value as the message shows it: not at all where the field holds credentials.
    fn shown<'v>(&self, value: &'v str) -> &'v str {
        if self.is_about_credential() { HIDDEN } else { value }
    }

    /// The apiserver's own message.
    #[must_use]
    pub fn message(&self) -> String {
        let field = self.pointer.field();
        match &self.rule {
            BrokenRule::Type { expected, got } => type_message(&field, expected, got),
            BrokenRule::Required("") => format!("{field}: Required value"),
            BrokenRule::Required(detail) => format!("{field}: Required value: {detail}"),
            BrokenRule::Unsupported { value, supported, more } => {
                let more = number::more(*more);
                let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
                let value = self.shown(value);
                format!(
                    "{field}: Unsupported value: {value}: supported values: {}{more}",
                    supported.join(", ")
                )
            }
            BrokenRule::TooLong { max } => {
                let unit = if *max == 1 { "byte" } else { "bytes" };
                format!("{field}: Too long: may not be more than {max} {unit}")
            }
            BrokenRule::TooShort { value, min } => {
                let value = self.shown(value);
                format!(
                    "{field}: Invalid value: {value}: {field} in body should be at least {min} chars long"
                )
            }
            BrokenRule::TooMany { count, max } => {
                let unit = if *max == 1 { "item" } else { "items" };
                format!("{field}: Too many: {count}: must have at most {max} {unit}")
            }
            BrokenRule::Duplicate(value) => format!("{field}: Duplicate value: {}", self.shown(value)),
            BrokenRule::Invalid { value, detail, about_field } => {
                // Some details repeat the value.
                let hides = self.is_about_credential() && !value.is_empty();
                let detail = if hides { detail.replace(value, HIDDEN) } else { detail.clone() };
                let value = if value.is_empty() { String::new() } else { format!(": {}", self.shown(value)) };
                let about = if *about_field { format!("{field} in body ") } else { String::new() };
                format!("{field}: Invalid value{value}: {about}{detail}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_no_value_of_a_field_for_credentials() {
        let rule = || BrokenRule::Unsupported {
            value: "\"hunter2\"".to_owned(),
            supported: vec!["a".to_owned()],
            more: 0,
        };
        let message = |pointer| SchemaViolation::new(Pointer::new(pointer), rule()).message();
        assert!(message("/spec/mode").contains("hunter2"));
        let shown = message("/spec/apiToken");
        for pointer in ["/spec/apiTokens/0", "/spec/headers/X-A", "/spec/env/0/value"] {
            assert!(!message(pointer).contains("hunter2"), "{pointer}");
        }
        let value = "\"hunter2\"".to_owned();
        let detail = format!("must be of type uuid: {value}");
        let rule = BrokenRule::Invalid { value, detail, about_field: true };
        assert!(!SchemaViolation::new(Pointer::new("/spec/apiToken"), rule).message().contains("hunter2"));
        assert_eq!(shown, "spec.apiToken: Unsupported value: \"***\": supported values: \"a\"");
    }
}
