//! The meaning of scalars: null, a boolean, a number or a string.
//!
//! The rules are those of kubectl: sigs.k8s.io/yaml reads into untyped values with its fork of
//! go-yaml v2, which knows YAML 1.1 (`yes`, `off`, `0777`, `1_000`) and a little of 1.2 (`0o17`),
//! and then writes JSON. Source: `goyaml.v2/resolve.go` and `yaml.go` there.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use crate::outline::{Style, Tag};
use memgate_primitives::number;

/// The meaning of a scalar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'t> {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of 64 bits.
    Integer(i64),
    /// An integer that only fits without a sign.
    Unsigned(u64),
    /// Any other number, also an integer beyond 64 bits.
    Float(f64),
    /// A string.
    Text(&'t str),
    /// A string that was written in base64.
    Decoded(String),
}

/// The meaning of `text`, written in that style and with that tag.
///
/// # Errors
/// When the value does not fit its tag: the message.
pub(super) fn resolve(text: &str, style: Style, tag: Tag) -> Result<Scalar<'_>, String> {
    let found = match (tag, style) {
        (Tag::Text | Tag::Merge, _) | (Tag::None, Style::Quoted | Style::Block) => {
            return Ok(Scalar::Text(text));
        }
        (Tag::Binary, _) => return decode(text),
        _ => plain(text),
    };
    let expected = match (tag, &found) {
        (Tag::Null, Scalar::Null)
        | (Tag::Bool, Scalar::Bool(_))
        | (Tag::Int, Scalar::Integer(_) | Scalar::Unsigned(_))
        | (Tag::Float, Scalar::Integer(_) | Scalar::Unsigned(_) | Scalar::Float(_)) => return Ok(found),
        (Tag::Null, _) => "null",
        (Tag::Bool, _) => "a boolean",
        (Tag::Int, _) => "an integer",
        (Tag::Float, _) => "a number",
        _ => return Ok(found),
    };
    Err(format!("the tag says {expected}, the value is not"))
}

/// The meaning of a plain scalar.
pub(super) fn plain(text: &str) -> Scalar<'_> {
    let Some(first) = text.bytes().next() else { return Scalar::Null };
    let known = match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => word(text).or_else(|| float(text)),
        b'+' | b'-' | b'0'..=b'9' => word(text).or_else(|| numeric(text)),
        _ => None,
    };
    known.unwrap_or(Scalar::Text(text))
}

fn word(text: &str) -> Option<Scalar<'static>> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn numeric(text: &str) -> Option<Scalar<'static>> {
    let without_underscores;
    let digits = if text.contains('_') {
        without_underscores = text.replace('_', "");
        without_underscores.as_str()
    } else {
        text
    };
    integer(digits).or_else(|| float(digits))
}

/// An integer as Go's `ParseInt` reads it with base 0.
fn integer(text: &str) -> Option<Scalar<'static>> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, unsigned.get(2..)?),
        [b'0', b'o' | b'O', _, ..] => (8, unsigned.get(2..)?),
        [b'0', b'b' | b'B', _, ..] => (2, unsigned.get(2..)?),
        [b'0', _, ..] => (8, unsigned.get(1..)?),
        _ => (10, unsigned),
    };
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    if let Ok(small) = i64::from_str_radix(&format!("{sign}{digits}"), radix) {
        return Some(Scalar::Integer(small));
    }
    if text.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok().map(Scalar::Unsigned)
}

fn float(text: &str) -> Option<Scalar<'static>> {
    let only = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    if !text.bytes().all(only) {
        return None;
    }
    text.parse::<f64>().ok().filter(|float| float.is_finite()).map(Scalar::Float)
}

fn decode(text: &str) -> Result<Scalar<'_>, String> {
    let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let bytes = STANDARD.decode(compact).map_err(|_| "the tag says base64, the value is not".to_owned())?;
    Ok(Scalar::Decoded(String::from_utf8_lossy(&bytes).into_owned()))
}

impl<'t> Scalar<'t> {
    /// The JSON value; `None` for a number that JSON does not have.
    ///
    /// Go writes a whole float as an integer, so `1e3` reaches the apiserver as 1000.
    pub(super) fn value(self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Integer(value) => Value::from(value),
            Self::Unsigned(value) => Value::from(value),
            Self::Float(value) => match number::whole(value) {
                Some(integer) => Value::from(integer),
                None => Value::Number(Number::from_f64(value)?),
            },
            Self::Text(value) => Value::String(value.to_owned()),
            Self::Decoded(value) => Value::String(value),
        })
    }

    /// The scalar as a key of an object, as sigs.k8s.io/yaml writes it; `None` for null.
    pub(super) fn key(self) -> Option<Cow<'t, str>> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(value) => value.to_string().into(),
            Self::Integer(value) => value.to_string().into(),
            Self::Unsigned(value) => value.to_string().into(),
            Self::Float(value) => float_key(value).into(),
            Self::Text(value) => Cow::Borrowed(value),
            Self::Decoded(value) => Cow::Owned(value),
        })
    }
}

/// A float as Go's `FormatFloat(value, 'g', -1, 32)` writes it.
fn float_key(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "sigs.k8s.io/yaml formats keys with 32 bits")]
    let short = value as f32;
    if short.is_infinite() {
        return if short > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{short:e}");
    let exponent = scientific.split_once('e').and_then(|(digits, e)| Some((digits, e.parse::<i32>().ok()?)));
    match exponent {
        Some((digits, exponent)) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => short.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_plain_scalars_as_kubectl_does() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("null", json!(null)),
            ("Null", json!(null)),
            ("nULL", json!("nULL")),
            ("yes", json!(true)),
            ("On", json!(true)),
            ("y", json!(true)),
            ("n", json!(false)),
            ("off", json!(false)),
            ("yEs", json!("yEs")),
            ("0", json!(0)),
            ("-0", json!(0)),
            ("0777", json!(511)),
            ("08", json!(8)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("-0x1f", json!(-31)),
            ("0b101", json!(5)),
            ("0x", json!("0x")),
            ("1_000", json!(1000)),
            ("_1", json!("_1")),
            ("+5", json!(5)),
            (".5", json!(0.5)),
            ("-.5", json!(-0.5)),
            ("5.", json!(5)),
            ("1e3", json!(1000)),
            ("1.5e3", json!(1500)),
            ("1e400", json!("1e400")),
            (".", json!(".")),
            ("-", json!("-")),
            ("...", json!("...")),
            ("1.2.3", json!("1.2.3")),
            ("190:20:30", json!("190:20:30")),
            ("2001-01-01", json!("2001-01-01")),
            ("2001-01-01T00:00:00Z", json!("2001-01-01T00:00:00Z")),
            ("9223372036854775807", json!(i64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
            ("infinity", json!("infinity")),
            ("nan", json!("nan")),
            ("1.0", json!(1)),
            ("=", json!("=")),
        ] {
            assert_eq!(plain(text).value(), Some(value), "{text}");
        }
        assert_eq!(plain(".inf").value(), None);
        assert_eq!(plain(".nan").value(), None);
    }

    #[test]
    fn honours_tags() {
        for (text, style, tag, value) in [
            ("5", Style::Plain, Tag::Text, Some(json!("5"))),
            ("5", Style::Quoted, Tag::Int, Some(json!(5))),
            ("5", Style::Plain, Tag::Float, Some(json!(5))),
            ("yes", Style::Quoted, Tag::Bool, Some(json!(true))),
            ("aGk=", Style::Plain, Tag::Binary, Some(json!("hi"))),
            ("", Style::Plain, Tag::Null, Some(json!(null))),
            ("x", Style::Plain, Tag::Int, None),
            ("5.5", Style::Plain, Tag::Int, None),
            ("x", Style::Plain, Tag::Null, None),
            ("?", Style::Plain, Tag::Binary, None),
        ] {
            let found = resolve(text, style, tag).ok().and_then(Scalar::value);
            assert_eq!(found, value, "{tag:?} {text}");
        }
    }

    #[test]
    fn keys_become_strings_as_sigs_yaml_writes_them() {
        for (text, key) in [
            ("1", Some("1")),
            ("true", Some("true")),
            ("yes", Some("true")),
            ("0x10", Some("16")),
            ("1.5", Some("1.5")),
            ("1e6", Some("1e+06")),
            ("1e5", Some("100000")),
            ("0.00001", Some("1e-05")),
            (".inf", Some(".inf")),
            ("a", Some("a")),
            ("~", None),
        ] {
            assert_eq!(plain(text).key().as_deref(), key, "{text}");
        }
    }
}
