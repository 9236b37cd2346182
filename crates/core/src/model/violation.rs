//! How an object breaks the schema of its kind, in words that a family can still put in its own way.

use crate::model::pointer::Pointer;

/// One rule of the schema that an object breaks.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The value, or the place where one is missing.
    pub pointer: Pointer,
    /// The rule.
    pub rule: BrokenRule,
    /// Whether the stored object breaks it with the same value: then it is no reason to refuse.
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
        /// What is allowed, strings without their quotes.
        supported: Vec<String>,
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

/// The apiserver's message about a value of the wrong JSON type.
#[must_use]
pub fn type_message(field: &str, expected: &str, got: &str) -> String {
    format!("{field}: Invalid value: \"{got}\": {field} in body must be of type {expected}: \"{got}\"")
}

impl Violation {
    /// A rule that a value breaks.
    #[must_use]
    pub const fn new(pointer: Pointer, rule: BrokenRule) -> Self {
        Self { pointer, rule, stored: false, at_key: false }
    }

    /// The apiserver's own message.
    #[must_use]
    pub fn message(&self) -> String {
        let field = self.pointer.field();
        match &self.rule {
            BrokenRule::Type { expected, got } => type_message(&field, expected, got),
            BrokenRule::Required("") => format!("{field}: Required value"),
            BrokenRule::Required(detail) => format!("{field}: Required value: {detail}"),
            BrokenRule::Unsupported { value, supported } => {
                let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
                format!("{field}: Unsupported value: {value}: supported values: {}", supported.join(", "))
            }
            BrokenRule::TooLong { max } => {
                let unit = if *max == 1 { "byte" } else { "bytes" };
                format!("{field}: Too long: may not be more than {max} {unit}")
            }
            BrokenRule::TooShort { value, min } => {
                format!(
                    "{field}: Invalid value: {value}: {field} in body should be at least {min} chars long"
                )
            }
            BrokenRule::TooMany { count, max } => {
                let unit = if *max == 1 { "item" } else { "items" };
                format!("{field}: Too many: {count}: must have at most {max} {unit}")
            }
            BrokenRule::Duplicate(value) => format!("{field}: Duplicate value: {value}"),
            BrokenRule::Invalid { value, detail, about_field } => {
                let value = if value.is_empty() { String::new() } else { format!(": {value}") };
                let about = if *about_field { format!("{field} in body ") } else { String::new() };
                format!("{field}: Invalid value{value}: {about}{detail}")
            }
        }
    }
}
