//! The rules on single values: types, texts and numbers, and patterns, which are in the syntax of Go.
//! Source: k8s.io/kube-openapi, `validation/validate/{type,values,validator}.go`; Go, package regexp/syntax.

use regex::Regex;
use serde_json::Number;

use crate::crd::{Bound, FormatRule, JsonTypes, ObjectRules, Pattern, SchemaNode};
use crate::go_pattern;
use crate::node::Node;
use crate::violation::Rule;

/// The rule about types that a value breaks.
pub(super) fn wrong_type<'d>(value: &Node<'_>, schema: &'d SchemaNode) -> Option<Rule<'d>> {
    let (types, got) = (schema.types, value.type_name());
    let is_whole = || matches!(value, Node::Number(number) if is_whole(number));
    let is_right = match types {
        JsonTypes::Any => schema.format.is_none() || got == "string",
        JsonTypes::Number => matches!(value, Node::Number(_)),
        JsonTypes::Integer => is_whole(),
        JsonTypes::IntOrString => got == "string" || is_whole(),
        JsonTypes::Text | JsonTypes::Boolean | JsonTypes::List | JsonTypes::Object => got == types.name(),
    };
    let numeric = matches!(types, JsonTypes::Integer | JsonTypes::Number);
    // The apiserver lets a list pass where a text of some format belongs.
    let is_passed = schema.format.is_some() && !numeric && got == "array";
    if is_right || is_passed {
        return None;
    }
    Some(match schema.format {
        Some(format) if !matches!(got, "string" | "array" | "null") => {
            let got = match got {
                "integer" => "int64",
                "number" => "float64",
                other => other,
            };
            Rule::Type { expected: format.name, got, only: None }
        }
        _ => Rule::Type {
            expected: types.name(),
            got,
            only: only_text(schema.list.items.as_deref().unwrap_or(schema)),
        },
    })
}

/// The field of an object without which it says nothing, if that is one text: the only one that is required, or the only one
/// there is.
fn only_text(schema: &SchemaNode) -> Option<&str> {
    let ObjectRules { properties, required, .. } = &*schema.object;
    let name = match (required.as_slice(), properties.len()) {
        ([name], _) => name,
        ([], 1) => properties.keys().next()?,
        _ => return None,
    };
    properties.get(name).filter(|field| field.types == JsonTypes::Text).map(|_| name.as_str())
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
pub(super) fn text<'d>(text: &str, schema: &'d SchemaNode) -> Option<Rule<'d>> {
    let rules = &schema.text;
    if rules.min.is_some() || rules.max.is_some() {
        let count = text.chars().count() as u64;
        if let Some(max) = rules.max.filter(|max| count > *max) {
            return Some(Rule::TooLong(max));
        }
        if let Some(min) = rules.min.filter(|min| count < *min) {
            return Some(Rule::TooShort(min));
        }
    }
    if let Some(pattern) = &rules.pattern
        && !matches_pattern(pattern, text)
    {
        return Some(Rule::Pattern(&pattern.text));
    }
    let format = schema.format?;
    let FormatRule::Text(holds) = format.rule else { return None };
    (!holds(text)).then_some(Rule::Format(format.name))
}

/// The first rule that a number breaks.
pub(super) fn number<'d>(number: &Number, schema: &'d SchemaNode) -> Option<Rule<'d>> {
    let float = number.as_f64()?;
    match schema.format.map(|format| format.rule) {
        Some(FormatRule::Int32) if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float) => {
            return Some(Rule::Size("integer", "int32"));
        }
        Some(FormatRule::Float) if float.abs() > f64::from(f32::MAX) => {
            return Some(Rule::Size("number", "float"));
        }
        _ => {}
    }
    let rules = &schema.number;
    if let Some(factor) = rules.multiple_of {
        let times = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
        if times.fract() != 0.0 {
            return Some(Rule::MultipleOf(factor));
        }
    }
    // The apiserver compares an integer with the whole part of a bound.
    let bound = |bound: Bound| {
        let truncates = number.is_i64() && schema.types != JsonTypes::Integer;
        Bound { value: if truncates { bound.value.trunc() } else { bound.value }, ..bound }
    };
    let is_below = |min: &Bound| float < min.value || min.exclusive && float <= min.value;
    let is_above = |max: &Bound| float > max.value || max.exclusive && float >= max.value;
    let least = rules.min.map(bound).filter(is_below).map(Rule::Least);
    least.or_else(|| rules.max.map(bound).filter(is_above).map(Rule::Most))
}

/// Whether some part of a text matches. A pattern that cannot be read refuses nothing: the apiserver would not
/// have taken its definition.
pub(super) fn matches_pattern(pattern: &Pattern, text: &str) -> bool {
    let compiled = pattern.compiled.get_or_init(|| Regex::new(&go_pattern::translate(&pattern.text)).ok());
    compiled.as_ref().is_none_or(|regex| regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_patterns_as_go_does() {
        for (pattern, text, expected) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "\u{664}", false),
            (r"^[\d_]+$", "1_2", true),
            (r"^[^\s]+$", "a b", false),
            (r"^\S+$", "ab", true),
            (r"\bx\b", "a x", true),
            (r"^[a-z[]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "]", false),
            (r"^[[:alpha:]_]+$", "a_", true),
            (r"^{x}$", "{x}", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^https?:\/\/", "http://x", true),
            (r"^\pL+$", "é", true),
            (r"^a$", "a\n", false),
            (r"(?i)^A$", "a", true),
            (r"^(unclosed", "anything", true),
        ] {
            let pattern = Pattern::new(pattern);
            assert_eq!(matches_pattern(&pattern, text), expected, "{} on {text:?}", pattern.text);
        }
    }
}
