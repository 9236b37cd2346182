//! The rules that a value can break, and their texts.

use serde_json::Value;

use crate::cursor::Cursor;
use crate::metadata_fault::Fault;
use crate::shown::{key_shown, shown};
use crate::violation::BrokenRule;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

/// A rule, and what its message needs beside the value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule<'d> {
    Type {
        expected: &'static str,
        got: &'static str,
    },
    /// The field with this name.
    Required(&'d str, &'static str),
    Unsupported(&'d [Value]),
    TooLong(u64),
    TooShort(u64),
    TooMany {
        count: usize,
        max: u64,
    },
    /// The fields that tell elements apart; nothing for the whole value.
    Duplicate(Option<&'d [String]>),
    Pattern(&'d str),
    Format(&'static str),
    /// The number does not have this format: its type and name.
    Size(&'static str, &'static str),
    MultipleOf(f64),
    Least {
        bound: f64,
        exclusive: bool,
    },
    Most {
        bound: f64,
        exclusive: bool,
    },
    /// There are too few elements or fields, as this word says.
    TooFew {
        count: usize,
        min: u64,
        what: &'static str,
    },
    HasDuplicates,
    AnyOf,
    /// How many alternatives hold.
    OneOf(usize),
    Not,
    NoMapElement,
    /// A number of replicas.
    Replicas(&'static str),
    /// A rule of metadata about a value.
    Metadata(Fault),
    /// A rule of metadata about the key of a value.
    MetadataKey(Fault),
    /// The same about a field with this name that is not there.
    MetadataField(&'d str, Fault),
}

impl<'d> Rule<'d> {
    /// The name of a field that is not there.
    pub(super) const fn missing_field(self) -> Option<&'d str> {
        match self {
            Self::Required(name, _) | Self::MetadataField(name, _) => Some(name),
            _ => None,
        }
    }

    /// The rule with its texts, broken by a value.
    pub(super) fn broken(self, value: Cursor<'_>, pointer: &Pointer) -> BrokenRule {
        let about_value = |detail: String, about_field: bool| BrokenRule::Invalid {
            value: shown(value),
            detail,
            about_field,
        };
        let choice =
            |detail: String| BrokenRule::Invalid { value: String::new(), detail, about_field: false };
        match self {
            Self::Type { expected, got } => BrokenRule::Type { expected, got },
            Self::Required(_, detail) => BrokenRule::Required(detail),
            Self::Unsupported(allowed) => unsupported(value, allowed),
            Self::TooLong(max) => BrokenRule::TooLong { max },
            Self::TooShort(min) => BrokenRule::TooShort { value: shown(value), min },
            Self::TooMany { count, max } => BrokenRule::TooMany { count, max },
            Self::Duplicate(None) => BrokenRule::Duplicate(shown(value)),
            Self::Duplicate(Some(names)) => BrokenRule::Duplicate(key_shown(value, names)),
            Self::Pattern(pattern) => about_value(format!("should match '{pattern}'"), true),
            Self::Format(name) => about_value(format!("must be of type {name}: {}", shown(value)), true),
            Self::Size(type_name, format) => {
                about_value(format!("must be of type {type_name} with format {format}"), true)
            }
            Self::MultipleOf(factor) => about_value(format!("should be a multiple of {factor}"), true),
            Self::Least { bound, exclusive } => {
                about_value(format!("should be greater than {}{bound}", or_equal(exclusive)), true)
            }
            Self::Most { bound, exclusive } => {
                about_value(format!("should be less than {}{bound}", or_equal(exclusive)), true)
            }
            Self::TooFew { count, min, what } => BrokenRule::Invalid {
                value: count.to_string(),
                detail: format!("should have at least {min} {what}"),
                about_field: true,
            },
            Self::HasDuplicates => BrokenRule::Invalid {
                value: "\"\"".to_owned(),
                detail: "shouldn't contain duplicates".to_owned(),
                about_field: true,
            },
            Self::AnyOf => choice(format!("{:?} must validate at least one schema (anyOf)", pointer.field())),
            Self::OneOf(valid) => {
                let why = match valid {
                    0 => "Found none valid".to_owned(),
                    many => format!("Found {many} valid alternatives"),
                };
                choice(format!("{:?} must validate one and only one schema (oneOf). {why}", pointer.field()))
            }
            Self::Not => choice(format!("{:?} must not validate the schema (not)", pointer.field())),
            Self::NoMapElement => {
                about_value("must be an object for an array of list-type map".to_owned(), false)
            }
            Self::Replicas(detail) => about_value(detail.to_owned(), false),
            Self::Metadata(Fault::Controllers) => choice(Fault::Controllers.words()),
            Self::Metadata(fault @ Fault::Negative) => about_value(fault.words(), false),
            Self::Metadata(fault) | Self::MetadataKey(fault) | Self::MetadataField(_, fault) => {
                let value = quoted(value.text().unwrap_or_default());
                BrokenRule::Invalid { value, detail: fault.words(), about_field: false }
            }
        }
    }
}

const fn or_equal(exclusive: bool) -> &'static str {
    if exclusive { "" } else { "or equal to " }
}

fn unsupported(value: Cursor<'_>, allowed: &[Value]) -> BrokenRule {
    /// More than any enum that people choose from. Each wrong element brings these along.
    const MAX_SHOWN: usize = 100;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    BrokenRule::Unsupported {
        value: shown(value),
        supported: allowed.iter().take(MAX_SHOWN).map(text).collect(),
        more: allowed.len().saturating_sub(MAX_SHOWN),
    }
}
