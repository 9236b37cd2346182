//! The form of the values that policies may write into a field.

use std::fmt;

use serde_json::Value;

/// The form of a value. `Display` writes it for messages: "must be FORM".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldForm {
    /// An integer from 0 on.
    Count,
    /// An integer from one number to another, both included.
    Between(i64, i64),
    /// A string that is not blank.
    Text,
    /// An object with one string field of this name that is not blank.
    Reference(&'static str),
}

impl FieldForm {
    /// Whether a value has this form.
    pub fn accepts(self, value: &Value) -> bool {
        let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
        match self {
            Self::Count => value.as_i64().is_some_and(|number| number >= 0),
            Self::Between(least, most) => {
                value.as_i64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Text => is_text(value),
            Self::Reference(name) => value
                .as_object()
                .is_some_and(|fields| fields.len() == 1 && fields.get(name).is_some_and(is_text)),
        }
    }
}

impl fmt::Display for FieldForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("an integer that is not negative"),
            Self::Between(least, most) => write!(f, "an integer from {least} to {most}"),
            Self::Text => f.write_str("a string that is not empty"),
            Self::Reference(name) => write!(f, "{{{name}: NAME}} alone"),
        }
    }
}
