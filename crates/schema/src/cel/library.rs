//! The functions of rules: those of CEL itself, and of the libraries that an apiserver adds. A rule that calls another
//! one is not evaluated: those of `url`, `ip`, `cidr`, `format`, `semver`, `math` and `authorizer`.
//! Source: google/cel-spec, `doc/langdef.md`, "List of Standard Definitions"; google/cel-go, `ext/strings.go`;
//! Kubernetes documentation, "Common Expression Language in Kubernetes".

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cel::evaluate::is_in;
use crate::cel::value::{Fault, Outcome, Text, Value, compare, equal, spend_bytes, timestamp};
use crate::formats;
use crate::scalar;
use memgate_primitives::budget::Budget;
use memgate_primitives::{duration, quantity};

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `f(a)`
    Global,
    /// `a.f()`
    Method,
}

/// A function that rules can call.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    style: Style,
    /// The least and greatest number of arguments; that of a method includes its value.
    arguments: (usize, usize),
    of: Subject,
}

/// What a function is about.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Types,
    Texts,
    Lists,
    Times,
    Others,
}

const fn global(name: &'static str, arguments: (usize, usize), of: Subject) -> Function {
    Function { name, style: Style::Global, arguments, of }
}

const fn method(name: &'static str, arguments: (usize, usize), of: Subject) -> Function {
    Function { name, style: Style::Method, arguments, of }
}

static FUNCTIONS: [Function; 61] = [
    global("size", (1, 1), Subject::Types),
    method("size", (1, 1), Subject::Types),
    global("bool", (1, 1), Subject::Types),
    global("double", (1, 1), Subject::Types),
    global("dyn", (1, 1), Subject::Types),
    global("int", (1, 1), Subject::Types),
    global("string", (1, 1), Subject::Types),
    global("uint", (1, 1), Subject::Types),
    method("charAt", (2, 2), Subject::Texts),
    method("contains", (2, 2), Subject::Texts),
    method("endsWith", (2, 2), Subject::Texts),
    method("find", (2, 2), Subject::Texts),
    method("findAll", (2, 3), Subject::Texts),
    global("isCIDR", (1, 1), Subject::Texts),
    global("isIP", (1, 1), Subject::Texts),
    global("isURL", (1, 1), Subject::Texts),
    method("lowerAscii", (1, 1), Subject::Texts),
    global("matches", (2, 2), Subject::Texts),
    method("matches", (2, 2), Subject::Texts),
    method("replace", (3, 4), Subject::Texts),
    method("reverse", (1, 1), Subject::Texts),
    method("split", (2, 3), Subject::Texts),
    method("startsWith", (2, 2), Subject::Texts),
    method("substring", (2, 3), Subject::Texts),
    method("trim", (1, 1), Subject::Texts),
    method("upperAscii", (1, 1), Subject::Texts),
    method("indexOf", (2, 3), Subject::Lists),
    method("isSorted", (1, 1), Subject::Lists),
    method("join", (1, 2), Subject::Lists),
    method("lastIndexOf", (2, 3), Subject::Lists),
    method("max", (1, 1), Subject::Lists),
    method("min", (1, 1), Subject::Lists),
    method("sum", (1, 1), Subject::Lists),
    global("sets.contains", (2, 2), Subject::Lists),
    global("sets.equivalent", (2, 2), Subject::Lists),
    global("sets.intersects", (2, 2), Subject::Lists),
    global("duration", (1, 1), Subject::Times),
    global("timestamp", (1, 1), Subject::Times),
    method("getDate", (1, 1), Subject::Times),
    method("getDayOfMonth", (1, 1), Subject::Times),
    method("getDayOfWeek", (1, 1), Subject::Times),
    method("getDayOfYear", (1, 1), Subject::Times),
    method("getFullYear", (1, 1), Subject::Times),
    method("getHours", (1, 1), Subject::Times),
    method("getMilliseconds", (1, 1), Subject::Times),
    method("getMinutes", (1, 1), Subject::Times),
    method("getMonth", (1, 1), Subject::Times),
    method("getSeconds", (1, 1), Subject::Times),
    method("hasValue", (1, 1), Subject::Others),
    method("or", (2, 2), Subject::Others),
    method("orValue", (2, 2), Subject::Others),
    method("value", (1, 1), Subject::Others),
    global("optional.none", (0, 0), Subject::Others),
    global("optional.of", (1, 1), Subject::Others),
    global("isQuantity", (1, 1), Subject::Others),
    global("quantity", (1, 1), Subject::Others),
    method("add", (2, 2), Subject::Others),
    method("compareTo", (2, 2), Subject::Others),
    method("isGreaterThan", (2, 2), Subject::Others),
    method("isLessThan", (2, 2), Subject::Others),
    method("sub", (2, 2), Subject::Others),
];

/// The function of this name that is called with so many arguments.
///
/// # Errors
/// Why there is none, as the rest of a sentence.
pub(super) fn find(name: &str, style: Style, arguments: usize) -> Result<&'static Function, String> {
    let found = FUNCTIONS.iter().find(|function| function.name == name && function.style == style);
    let found = found.ok_or_else(|| format!("the function {name}() is not known to memgate"))?;
    let (least, most) = found.arguments;
    if (least..=most).contains(&arguments) {
        Ok(found)
    } else {
        Err(format!("{name}() has a wrong number of arguments"))
    }
}

/// Calls a function.
pub(super) fn call<'v>(function: &Function, budget: &Budget<'_>, arguments: &[Value<'v>]) -> Outcome<'v> {
    match function.of {
        Subject::Types => of_types(function.name, budget, arguments),
        Subject::Texts => of_texts(function.name, budget, arguments),
        Subject::Lists => of_lists(function.name, budget, arguments),
        Subject::Times => of_times(function.name, arguments),
        Subject::Others => others(function.name, arguments),
    }
}

fn int<'v>(value: impl TryInto<i64>) -> Outcome<'v> {
    value.try_into().map(Value::Int).map_err(|_| Fault::Error)
}

fn of_types<'v>(name: &str, budget: &Budget<'_>, arguments: &[Value<'v>]) -> Outcome<'v> {
    let [argument] = arguments else { return Err(Fault::Error) };
    match (name, argument) {
        ("dyn", value) => Ok(value.clone()),
        ("size", Value::Text(text)) => {
            spend_bytes(budget, text.len())?;
            int(text.chars().count())
        }
        ("size", value) => int(value.len().ok_or(Fault::Error)?),
        ("string", Value::Text(_))
        | ("int", Value::Int(_))
        | ("uint", Value::Uint(_))
        | ("double", Value::Double(_))
        | ("bool", Value::Bool(_)) => Ok(argument.clone()),
        ("string", Value::Int(value)) => Value::made(budget, value.to_string()),
        ("string", Value::Uint(value)) => Value::made(budget, value.to_string()),
        ("string", Value::Double(value)) => Value::made(budget, value.to_string()),
        ("string", Value::Bool(value)) => Value::made(budget, value.to_string()),
        ("int", Value::Uint(value)) => int(*value),
        ("int", Value::Timestamp(nanoseconds)) => int(nanoseconds.div_euclid(1_000_000_000)),
        ("int", Value::Double(value)) => whole(*value).and_then(int),
        ("uint", Value::Int(value)) => u64::try_from(*value).map(Value::Uint).map_err(|_| Fault::Error),
        ("uint", Value::Double(value)) => {
            whole(*value).and_then(|value| u64::try_from(value).map(Value::Uint).map_err(|_| Fault::Error))
        }
        ("double", Value::Int(value)) => read(&value.to_string()).map(Value::Double),
        ("double", Value::Uint(value)) => read(&value.to_string()).map(Value::Double),
        ("int", Value::Text(text)) => read(text).map(Value::Int),
        ("uint", Value::Text(text)) => read(text).map(Value::Uint),
        ("double", Value::Text(text)) => read(text).map(Value::Double),
        ("bool", Value::Text(text)) => match &**text {
            "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
            _ => Err(Fault::Error),
        },
        _ => Err(Fault::Error),
    }
}

fn read<T: std::str::FromStr>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| Fault::Error)
}

/// The whole part of a number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is dropped, and a number out of range is an error"
)]
fn whole(value: f64) -> Result<i128, Fault> {
    if value.is_finite() && value.abs() < 2_f64.powi(64) { Ok(value as i128) } else { Err(Fault::Error) }
}

fn of_texts<'v>(name: &str, budget: &Budget<'_>, arguments: &[Value<'v>]) -> Outcome<'v> {
    let (Some(Value::Text(text)), rest) = (arguments.first(), arguments.get(1..).unwrap_or_default()) else {
        return Err(Fault::Error);
    };
    spend_bytes(budget, text.len())?;
    match (name, rest) {
        ("isURL", []) => Ok(Value::Bool(formats::is_uri(text))),
        ("isIP", []) => Ok(Value::Bool(text.parse::<std::net::IpAddr>().is_ok())),
        ("isCIDR", []) => Ok(Value::Bool(formats::is_cidr(text))),
        ("lowerAscii", []) => Value::made(budget, text.to_ascii_lowercase()),
        ("upperAscii", []) => Value::made(budget, text.to_ascii_uppercase()),
        ("trim", []) => Value::made(budget, text.trim()),
        ("reverse", []) => Value::made(budget, text.chars().rev().collect::<String>()),
        ("charAt", [Value::Int(index)]) => {
            let index = usize::try_from(*index).map_err(|_| Fault::Error)?;
            part(budget, text, index, index + 1).or_else(|fault| match fault {
                // Behind the last character there is nothing.
                Fault::Error if index == text.chars().count() => Value::made(budget, ""),
                _ => Err(fault),
            })
        }
        ("substring", [Value::Int(start), rest @ ..]) => {
            let end = match rest {
                [] => text.chars().count(),
                [Value::Int(end)] => usize::try_from(*end).map_err(|_| Fault::Error)?,
                _ => return Err(Fault::Error),
            };
            part(budget, text, usize::try_from(*start).map_err(|_| Fault::Error)?, end)
        }
        (_, [Value::Text(other), rest @ ..]) => {
            spend_bytes(budget, other.len())?;
            of_two_texts(name, budget, text, other, rest)
        }
        _ => Err(Fault::Error),
    }
}

/// The characters from one place up to another.
fn part<'v>(budget: &Budget<'_>, text: &str, start: usize, end: usize) -> Outcome<'v> {
    let at = |index| {
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        ends.into_iter().nth(index)
    };
    let found = at(start).zip(at(end)).and_then(|(start, end)| text.get(start..end));
    Value::made(budget, found.ok_or(Fault::Error)?)
}

/// How many parts or replacements are wanted; all of them if the number is negative.
fn limit(rest: &[Value<'_>]) -> Result<usize, Fault> {
    match rest {
        [] => Ok(usize::MAX),
        [Value::Int(most)] => Ok(usize::try_from(*most).unwrap_or(usize::MAX)),
        _ => Err(Fault::Error),
    }
}

fn of_two_texts<'v>(
    name: &str,
    budget: &Budget<'_>,
    text: &Text<'v>,
    other: &Text<'v>,
    rest: &[Value<'v>],
) -> Outcome<'v> {
    let made = |parts: Vec<&str>| {
        let parts = parts.into_iter().map(|part| Value::made(budget, part)).collect::<Result<_, _>>()?;
        Value::list(budget, parts)
    };
    match (name, rest) {
        ("startsWith", []) => Ok(Value::Bool(text.starts_with(&**other))),
        ("endsWith", []) => Ok(Value::Bool(text.ends_with(&**other))),
        ("contains", []) => Ok(Value::Bool(text.contains(&**other))),
        ("split", rest) => match limit(rest)? {
            0 => made(Vec::new()),
            most if other.is_empty() => {
                let ends: Vec<_> = text.char_indices().map(|(at, _)| at).skip(1).take(most - 1).collect();
                let starts = [0].into_iter().chain(ends.iter().copied());
                let ends = ends.iter().copied().chain([text.len()]);
                made(starts.zip(ends).filter_map(|(start, end)| text.get(start..end)).collect())
            }
            most => made(text.splitn(most, &**other).collect()),
        },
        ("replace", [Value::Text(with), rest @ ..]) => {
            let most = limit(rest)?;
            let times = text.matches(&**other).take(most).count();
            spend_bytes(budget, times.saturating_mul(with.len()))?;
            Value::made(budget, text.replacen(&**other, with, most))
        }
        ("matches" | "find" | "findAll", rest) => {
            // To compile a pattern takes longer than to look for it.
            const MAX_PATTERN_BYTES: usize = 64 << 10;
            spend_bytes(budget, MAX_PATTERN_BYTES / 4)?;
            let pattern = scalar::compile(other, MAX_PATTERN_BYTES).ok_or(Fault::Error)?;
            let mut found = pattern.find_iter(text).map(|found| found.as_str());
            match name {
                "matches" => Ok(Value::Bool(found.next().is_some())),
                "find" => Value::made(budget, found.next().unwrap_or_default()),
                _ => made(found.take(limit(rest)?).collect()),
            }
        }
        _ => Err(Fault::Error),
    }
}

fn of_lists<'v>(name: &str, budget: &Budget<'_>, arguments: &[Value<'v>]) -> Outcome<'v> {
    if let ("indexOf" | "lastIndexOf", [Value::Text(text), Value::Text(other), rest @ ..]) = (name, arguments)
    {
        spend_bytes(budget, text.len() + other.len())?;
        return index_in_text(name == "lastIndexOf", text, other, rest);
    }
    let (first, rest) = arguments.split_first().ok_or(Fault::Error)?;
    let elements = first.elements(budget)?;
    let has_all = |of: &Value<'v>, elements: &[Value<'v>]| {
        elements.iter().try_fold(true, |all, element| Ok(all && is_in(budget, element, of)?))
    };
    match (name, rest) {
        ("isSorted", []) => {
            let pairs = elements.iter().zip(elements.iter().skip(1));
            let mut orders = pairs.map(|(one, two)| compare(budget, one, two));
            orders.try_fold(true, |sorted, order| Ok(sorted && order?.is_le())).map(Value::Bool)
        }
        ("min" | "max", []) => {
            let wanted = if name == "min" { Ordering::Less } else { Ordering::Greater };
            let mut elements = elements.into_iter();
            let first = elements.next().ok_or(Fault::Error)?;
            elements.try_fold(first, |best, element| {
                Ok(if compare(budget, &element, &best)? == wanted { element } else { best })
            })
        }
        ("sum", []) => sum(&elements),
        ("join", rest) => {
            let separator = match rest {
                [] => "",
                [Value::Text(separator)] => &**separator,
                _ => return Err(Fault::Error),
            };
            let texts = elements.iter().map(|element| match element {
                Value::Text(text) => Ok(&**text),
                _ => Err(Fault::Error),
            });
            let texts = texts.collect::<Result<Vec<&str>, _>>()?;
            let bytes = texts.iter().map(|text| text.len() + separator.len()).sum();
            spend_bytes(budget, bytes)?;
            Value::made(budget, texts.join(separator))
        }
        ("indexOf" | "lastIndexOf", [wanted]) => {
            let mut found = None;
            for (index, element) in elements.iter().enumerate() {
                if (found.is_none() || name == "lastIndexOf") && equal(budget, element, wanted)? {
                    found = Some(index);
                }
            }
            found.map_or(Ok(Value::Int(-1)), int)
        }
        ("sets.contains", [other]) => has_all(first, &other.elements(budget)?).map(Value::Bool),
        ("sets.equivalent", [other]) => {
            Ok(Value::Bool(has_all(first, &other.elements(budget)?)? && has_all(other, &elements)?))
        }
        ("sets.intersects", [other]) => {
            let mut found = elements.iter().map(|element| is_in(budget, element, other));
            found.try_fold(false, |any, is_in| Ok(any || is_in?)).map(Value::Bool)
        }
        _ => Err(Fault::Error),
    }
}

/// The index of the character at which a text has another one; -1 if it does not.
fn index_in_text<'v>(from_end: bool, text: &str, other: &str, rest: &[Value<'v>]) -> Outcome<'v> {
    let count = text.chars().count();
    let offset = match rest {
        [] => None,
        [Value::Int(offset)] => {
            Some(usize::try_from(*offset).ok().filter(|at| *at <= count).ok_or(Fault::Error)?)
        }
        _ => return Err(Fault::Error),
    };
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let found = if from_end {
        let end = offset.map_or(text.len(), |at| (byte(at) + other.len()).min(text.len()));
        text.get(..end).and_then(|start| start.rfind(other))
    } else {
        let start = offset.map_or(0, byte);
        text.get(start..).and_then(|rest| rest.find(other)).map(|at| start + at)
    };
    found.map_or(Ok(Value::Int(-1)), |at| int(text.get(..at).map_or(0, |before| before.chars().count())))
}

fn sum<'v>(elements: &[Value<'v>]) -> Outcome<'v> {
    elements
        .iter()
        .try_fold(None, |sum, element| {
            let sum = match (sum, element) {
                (None, Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_)) => {
                    Some(element.clone())
                }
                (Some(Value::Int(sum)), Value::Int(more)) => sum.checked_add(*more).map(Value::Int),
                (Some(Value::Uint(sum)), Value::Uint(more)) => sum.checked_add(*more).map(Value::Uint),
                (Some(Value::Double(sum)), Value::Double(more)) => Some(Value::Double(sum + more)),
                (Some(Value::Duration(sum)), Value::Duration(more)) => {
                    sum.checked_add(*more).map(Value::Duration)
                }
                _ => None,
            };
            sum.map(Some).ok_or(Fault::Error)
        })
        .map(|sum| sum.unwrap_or(Value::Int(0)))
}

fn of_times<'v>(name: &str, arguments: &[Value<'v>]) -> Outcome<'v> {
    let [argument] = arguments else { return Err(Fault::Error) };
    match (name, argument) {
        ("duration", Value::Duration(_)) | ("timestamp", Value::Timestamp(_)) => Ok(argument.clone()),
        ("duration", Value::Text(text)) => {
            duration::nanoseconds(text).map(Value::Duration).ok_or(Fault::Error)
        }
        ("timestamp", Value::Text(text)) => timestamp(text).map(Value::Timestamp).ok_or(Fault::Error),
        ("getHours", Value::Duration(nanoseconds)) => int(nanoseconds / 3_600_000_000_000),
        ("getMinutes", Value::Duration(nanoseconds)) => int(nanoseconds / 60_000_000_000),
        ("getSeconds", Value::Duration(nanoseconds)) => int(nanoseconds / 1_000_000_000),
        ("getMilliseconds", Value::Duration(nanoseconds)) => int(nanoseconds / 1_000_000 % 1_000),
        (_, Value::Timestamp(nanoseconds)) => {
            let time = Timestamp::from_nanosecond(*nanoseconds).map_err(|_| Fault::Error)?;
            let time = time.to_zoned(TimeZone::UTC);
            int(match name {
                "getFullYear" => i64::from(time.year()),
                "getMonth" => i64::from(time.month()) - 1,
                "getDate" => i64::from(time.day()),
                "getDayOfMonth" => i64::from(time.day()) - 1,
                "getDayOfWeek" => i64::from(time.weekday().to_sunday_zero_offset()),
                "getDayOfYear" => i64::from(time.day_of_year()) - 1,
                "getHours" => i64::from(time.hour()),
                "getMinutes" => i64::from(time.minute()),
                "getSeconds" => i64::from(time.second()),
                "getMilliseconds" => i64::from(time.millisecond()),
                _ => return Err(Fault::Error),
            })
        }
        _ => Err(Fault::Error),
    }
}

/// Functions of optional values and of quantities.
fn others<'v>(name: &str, arguments: &[Value<'v>]) -> Outcome<'v> {
    match (name, arguments) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::some(value.clone())),
        ("hasValue", [Value::Optional(value)]) => Ok(Value::Bool(value.is_some())),
        ("value", [Value::Optional(value)]) => value.as_deref().cloned().ok_or(Fault::Error),
        ("or", [Value::Optional(None), other]) | ("orValue", [Value::Optional(None), other]) => {
            Ok(other.clone())
        }
        ("or", [value @ Value::Optional(Some(_)), _]) => Ok(value.clone()),
        ("orValue", [Value::Optional(Some(value)), _]) => Ok((**value).clone()),
        ("isQuantity", [Value::Text(text)]) => Ok(Value::Bool(quantity::billionths(text).is_some())),
        ("quantity", [Value::Text(text)]) => {
            quantity::billionths(text).map(Value::Quantity).ok_or(Fault::Error)
        }
        (_, [Value::Quantity(one), Value::Quantity(two)]) => match name {
            "compareTo" => Ok(Value::Int(one.cmp(two) as i64)),
            "isGreaterThan" => Ok(Value::Bool(one > two)),
            "isLessThan" => Ok(Value::Bool(one < two)),
            "add" => one.checked_add(*two).map(Value::Quantity).ok_or(Fault::Error),
            "sub" => one.checked_sub(*two).map(Value::Quantity).ok_or(Fault::Error),
            _ => Err(Fault::Error),
        },
        _ => Err(Fault::Error),
    }
}
