//! The rules on single values: types, texts and numbers.
//! Source: k8s.io/kube-openapi, `validation/validate/{type,values,validator}.go`.

use serde_json::{Number, Value};

use crate::crd::pattern;
use crate::model::crd::{Bound, FormatRule, JsonTypes, SchemaNode};
use crate::model::credential::masked_start;
use crate::model::finding::quoted;
use crate::model::pointer::Pointer;
use crate::model::violation::{BrokenRule, Violation};

/// The name of a value's JSON type, where whole numbers have their own.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The rule about types that a value breaks.
pub(super) fn wrong_type(value: &Value, schema: &SchemaNode) -> Option<BrokenRule> {
    let types = schema.types;
    let is_whole = || value.as_number().is_some_and(is_whole);
    let is_right = match types {
        JsonTypes::Any => schema.format.is_none() || value.is_string(),
        JsonTypes::Text => value.is_string(),
        JsonTypes::Integer => is_whole(),
        JsonTypes::Number => value.is_number(),
        JsonTypes::Boolean => value.is_boolean(),
        JsonTypes::List => value.is_array(),
        JsonTypes::Object => value.is_object(),
        JsonTypes::IntOrString => value.is_string() || is_whole(),
    };
    let numeric = matches!(types, JsonTypes::Integer | JsonTypes::Number);
    // The apiserver lets a list pass where a text of some format belongs.
    let is_passed = schema.format.is_some() && !numeric && value.is_array();
    if is_right || is_passed {
        return None;
    }
    let got = type_name(value);
    Some(match schema.format {
        Some(format) if !matches!(value, Value::String(_) | Value::Array(_) | Value::Null) => {
            let got = match got {
                "integer" => "int64",
                "number" => "float64",
                other => other,
            };
            BrokenRule::Type { expected: format.name, got }
        }
        _ => BrokenRule::Type { expected: types.name(), got },
    })
}

/// Whether a number is an integer for the apiserver, which allows for an error of rounding.
fn is_whole(number: &Number) -> bool {
    /// 2^53 - 1, the greatest integer that every double around it can tell apart.
    const MAX: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if number.is_i64() {
        return true;
    }
    let Some(number) = number.as_f64().filter(|number| number.abs() <= MAX) else { return false };
    let part = number.fract().abs();
    part == 0.0 || number > 0.0 && part / (number + number.trunc()) < EPSILON
}

/// The first rule that a text breaks.
pub(super) fn text(text: &str, schema: &SchemaNode) -> Option<BrokenRule> {
    let rules = &schema.text;
    if rules.min.is_some() || rules.max.is_some() {
        let count = text.chars().count() as u64;
        if let Some(max) = rules.max.filter(|max| count > *max) {
            return Some(BrokenRule::TooLong { max });
        }
        if let Some(min) = rules.min.filter(|min| count < *min) {
            return Some(BrokenRule::TooShort { value: quoted(text), min });
        }
    }
    if let Some(pattern) = &rules.pattern
        && !pattern::matches(pattern, text)
    {
        let detail = format!("should match '{}'", pattern.text);
        return Some(BrokenRule::Invalid { value: quoted(text), detail, about_field: true });
    }
    let format = schema.format?;
    let FormatRule::Text(holds) = format.rule else { return None };
    (!holds(text)).then(|| {
        let value = quoted(text);
        let detail = if value.is_empty() {
            format!("must be of type {}", format.name)
        } else {
            format!("must be of type {}: {value}", format.name)
        };
        BrokenRule::Invalid { value, detail, about_field: true }
    })
}

/// The first rule that a number breaks.
pub(super) fn number(number: &Number, schema: &SchemaNode) -> Option<BrokenRule> {
    let value = || number.to_string();
    let float = number.as_f64()?;
    let invalid = |detail: String| Some(BrokenRule::Invalid { value: value(), detail, about_field: true });
    match schema.format.map(|format| format.rule) {
        Some(FormatRule::Int32) if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float) => {
            return invalid("must be of type integer with format int32".to_owned());
        }
        Some(FormatRule::Float) if float.abs() > f64::from(f32::MAX) => {
            return invalid("must be of type number with format float".to_owned());
        }
        _ => {}
    }
    let rules = &schema.number;
    if let Some(factor) = rules.multiple_of {
        let times = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
        if times.fract() != 0.0 {
            return invalid(format!("should be a multiple of {factor}"));
        }
    }
    // The apiserver compares an integer with the whole part of a bound.
    let bound = |bound: Bound| {
        if number.is_i64() && schema.types != JsonTypes::Integer { bound.value.trunc() } else { bound.value }
    };
    if let Some(min) = rules.min {
        let bound = bound(min);
        if float < bound || min.exclusive && float <= bound {
            let equal = if min.exclusive { "" } else { "or equal to " };
            return invalid(format!("should be greater than {equal}{bound}"));
        }
    }
    if let Some(max) = rules.max {
        let bound = bound(max);
        if float > bound || max.exclusive && float >= bound {
            let equal = if max.exclusive { "" } else { "or equal to " };
            return invalid(format!("should be less than {equal}{bound}"));
        }
    }
    None
}

/// What is wrong with the number of replicas of an object that can be scaled.
pub(super) fn replicas(object: &Value, way: &[String]) -> Option<Violation> {
    let mut pointer = Pointer::root();
    let mut here = object;
    for name in way {
        pointer = pointer.key(name);
        here = here.get(name)?;
    }
    let number = here.as_i64()?;
    let detail = if number < 0 {
        "should be a non-negative integer".to_owned()
    } else if number > i64::from(i32::MAX) {
        format!("should be less than or equal to {}", i32::MAX)
    } else {
        return None;
    };
    let rule = BrokenRule::Invalid { value: number.to_string(), detail, about_field: false };
    Some(Violation::new(pointer, rule))
}

/// A value as messages show it: texts in quotes, everything else as JSON. What in it looks like a credential
/// is masked.
pub(super) fn shown(value: &Value) -> String {
    const MAX_CHARS: usize = 256;
    match value {
        Value::String(text) => quoted(text),
        other => masked_start(&other.to_string()).chars().take(MAX_CHARS).collect(),
    }
}
