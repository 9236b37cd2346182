//! The functions of rules: those of `cel` and `kube-cel`, and some that they lack, or that differ from an apiserver's there.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue};
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::objects::Opaque;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value, functions};
use regex::{Regex, RegexBuilder};

use crate::{go_pattern, uri};
use memgate_primitives::members::ByKey;

/// The functions with a pattern.
const WITH_PATTERN: [&str; 3] = ["matches", "find", "findAll"];

/// The conditions of `all`, those of `exists`, and what comes of either.
pub(super) const ALL: &str = "@all";
pub(super) const ANY: &str = "@any";
pub(super) const RESULT: &str = "@result_of";

/// The names of types, which [`type_of`] gives. Only rules compare them.
pub(super) const TYPES: [&str; 9] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];

/// The functions that have no result for some values of the right type.
const FAILING: [&str; 21] = [
    "asInteger", "charAt", "double", "duration", "first", "indexOf", "int", "last", "lastIndexOf", "max",
    "min", "quantity", "replace", "semver", "slice", "split", "substring", "sum", "timestamp", "uint",
    "value",
];

/// How many bytes a compiled pattern may have.
const MAX_PATTERN_BYTES: usize = 32 << 10;

/// How many compiled patterns are kept.
const MAX_PATTERNS: usize = 256;

/// How large what a function makes may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// A number, a truth value, or the like.
    None,
    /// What it is given, or a part of it.
    Part,
    /// A text about what it is given.
    Text,
    /// The same, with as many digits as its first text says.
    Format,
    /// For each part of one value all of the others.
    Product,
}

/// The functions that are used, without the names of their libraries. Those that these have beside them are not: the list
/// of a number has no bound, and two optional values are never equal here.
pub(crate) const FUNCTIONS: [(Growth, &[&str]); 5] = [
    (
        Growth::None,
        &[
            "asApproximateFloat", "asInteger", "byte", "compareTo", "contains", "date", "datetime",
            "dns1035Label", "dns1035LabelPrefix", "dns1123Label", "dns1123LabelPrefix", "dns1123Subdomain",
            "dns1123SubdomainPrefix", "double", "duration", "endsWith", "equivalent", "getDate",
            "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds",
            "getMinutes", "getMonth", "getSeconds", "hasValue", "indexOf", "int", "intersects", "isCIDR",
            "isGreaterThan", "isIP", "isInteger", "isLessThan", "isQuantity", "isSemver", "isSorted",
            "isURL", "labelValue", "lastIndexOf", "major", "matches", "minor", "named", "patch",
            "qualifiedName", "quantity", "sign", "size", "startsWith", "sum", "timestamp", "type", "uint",
            "uri", "uuid",
        ],
    ),
    (
        Growth::Part,
        &[
            "add", "bytes", "charAt", "distinct", "dyn", "find", "first", "flatten", "last", "lowerAscii",
            "max", "min", "or", "orValue", "reverse", "semver", "slice", "sort", "sub", "substring", "trim",
            "upperAscii", "value",
        ],
    ),
    (Growth::Text, &["quote", "string", "validate"]),
    (Growth::Format, &["format"]),
    (Growth::Product, &["findAll", "join", "replace", "split"]),
];

/// The libraries whose names stand before those of their functions.
const LIBRARIES: [&str; 3] = ["format", "sets", "strings"];

/// The functions.
pub(crate) static CONTEXT: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    context.add_function("size", size);
    context.add_function("matches", matches);
    context.add_function("find", find);
    context.add_function("findAll", find_all);
    context.add_function("dyn", |value: Value| -> Result<Value, ExecutionError> { Ok(value) });
    context.add_function("type", type_of);
    context.add_function("isURL", |text: Arc<String>| uri::is_uri(&text));
    context.add_function("isIP", |text: Arc<String>| address(&text).is_some());
    context.add_function("isCIDR", |text: Arc<String>| is_range(&text));
    context.add_function(ALL, |call: &FunctionContext<'_, '_>| joined(call, false));
    context.add_function(ANY, |call: &FunctionContext<'_, '_>| joined(call, true));
    context.add_function(RESULT, result_of);
    for name in TYPES {
        context.add_variable_from_value(name, name);
    }
    context
});

/// Whether the search for a pattern is what a function does.
pub(crate) fn has_pattern(function: &str) -> bool {
    WITH_PATTERN.contains(&function)
}

/// Whether an error of a function is about the value, rather than about a type for which memgate lacks the function.
pub(super) fn fails(function: &str, message: &str) -> bool {
    FAILING.contains(&function) && !message.starts_with("cannot convert")
}

/// An error that a later condition may make good.
#[derive(Debug, PartialEq)]
struct Failed(ExecutionError);

impl Eq for Failed {}

impl Opaque for Failed {
    fn runtime_type_name(&self) -> &'static str {
        "memgate.failed"
    }
}

/// Joins the result so far and the next condition: what `decides` once stays, and else an error does.
fn joined(call: &FunctionContext<'_, '_>, decides: bool) -> Result<Value, ExecutionError> {
    let [so_far, next] = call.args else { return Err(ExecutionError::NoSuchOverload) };
    let so_far = call.ptx.resolve(so_far)?;
    if so_far == Value::Bool(decides) {
        return Ok(so_far);
    }
    let failed = |error| Value::Opaque(Arc::new(Failed(error)));
    Ok(match call.ptx.resolve(next) {
        Ok(Value::Bool(next)) if next == decides => Value::Bool(next),
        Err(error) if so_far == Value::Bool(!decides) => failed(error),
        Ok(Value::Bool(_)) | Err(_) => so_far,
        Ok(_) => failed(ExecutionError::NoSuchOverload),
    })
}

/// What is joined, or its error.
#[expect(clippy::needless_pass_by_value, reason = "the library gives its values away")]
fn result_of(value: Value) -> Result<Value, ExecutionError> {
    let failed = match &value {
        Value::Opaque(opaque) => opaque.downcast_ref::<Failed>(),
        _ => None,
    };
    failed.map_or(Ok(value.clone()), |Failed(error)| Err(error.clone()))
}

/// The name of the type of a value.
#[expect(clippy::needless_pass_by_value, reason = "the library gives its values away")]
fn type_of(value: Value) -> Result<Value, ExecutionError> {
    let name = match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Float(_) => "double",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::String(_) => "string",
        Value::UInt(_) => "uint",
        _ => return Err(ExecutionError::function_error("type", "not known")),
    };
    Ok(name.into())
}

/// An address without zone, and not one of IPv4 in the form of IPv6.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|address| !matches!(address, IpAddr::V6(it) if it.to_ipv4_mapped().is_some()))
}

fn is_range(text: &str) -> bool {
    let Some((of, length)) = text.split_once('/') else { return false };
    let is_number = length == "0" || !length.starts_with(['0', '+']);
    let most = |address| if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
    is_number && address(of).map(most).zip(length.parse::<u8>().ok()).is_some_and(|(most, it)| it <= most)
}

/// The size of a text in characters, of all else as the library has it.
fn size(call: &FunctionContext<'_, '_>, This(this): This<Value>) -> Result<i64, ExecutionError> {
    match this {
        Value::String(text) => Ok(i64::try_from(text.chars().count()).unwrap_or(i64::MAX)),
        other => functions::size(call, This(other)),
    }
}

/// Whether a text matches a pattern in the syntax of Go.
#[expect(clippy::needless_pass_by_value, reason = "the library gives its values away")]
fn matches(This(text): This<Arc<String>>, written: Arc<String>) -> Result<bool, ExecutionError> {
    Ok(needed(&written)?.is_match(&text))
}

/// The first part that matches a pattern, or nothing.
#[expect(clippy::needless_pass_by_value, reason = "the library gives its values away")]
fn find(This(text): This<Arc<String>>, written: Arc<String>) -> Result<Value, ExecutionError> {
    Ok(needed(&written)?.find(&text).map_or("", |found| found.as_str()).into())
}

/// The parts that match a pattern.
fn find_all(This(text): This<Arc<String>>, Arguments(given): Arguments) -> Result<Value, ExecutionError> {
    let (written, most) = match given.as_slice() {
        [Value::String(written)] => (written, usize::MAX),
        [Value::String(written), Value::Int(most)] => (written, usize::try_from(*most).unwrap_or(usize::MAX)),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let found = needed(written)?;
    let found: Vec<Value> = found.find_iter(&text).take(most).map(|found| found.as_str().into()).collect();
    Ok(found.into())
}

fn needed(written: &str) -> Result<Regex, ExecutionError> {
    pattern(written).ok_or_else(|| ExecutionError::function_error("matches", "no pattern"))
}

/// Compiled patterns, and how many there are.
type Patterns = (usize, ByKey<String, Option<Regex>>);

/// A pattern, compiled once; `None` if it is not valid, or too large.
pub(crate) fn pattern(written: &str) -> Option<Regex> {
    static KNOWN: LazyLock<Mutex<Patterns>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pattern) = known.1.get(written) {
        return pattern.clone();
    }
    if known.0 == MAX_PATTERNS {
        *known = Default::default();
    }
    let pattern =
        RegexBuilder::new(&go_pattern::translate(written)).size_limit(MAX_PATTERN_BYTES).build().ok();
    known.0 += 1;
    known.1.insert(written.to_owned(), pattern.clone());
    pattern
}

/// How large what a function makes may be; `None` for a function that is not used.
pub(crate) fn growth(function: &str) -> Option<Growth> {
    let known = FUNCTIONS.iter().find(|(_, names)| names.contains(&function));
    known.map(|(growth, _)| *growth)
}

/// Whether memgate can evaluate a call as an apiserver does; an error says why not.
pub(crate) fn check(library: Option<&str>, call: &CallExpr) -> Result<(), String> {
    let name = call.func_name.as_str();
    let is_known = library.is_none_or(|library| LIBRARIES.contains(&library)) && growth(name).is_some();
    if name.starts_with(char::is_alphabetic) && !is_known {
        let library = library.map(|library| format!("{library}.")).unwrap_or_default();
        return Err(format!("the function {library}{name}() is not known to memgate"));
    }
    let argument = match (name, &call.target) {
        ("format", target) => target.as_deref(),
        (name, Some(_)) if has_pattern(name) => call.args.first(),
        _ => call.args.last(),
    };
    let text = argument.and_then(|argument| match &argument.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    });
    match (name, text) {
        ("format", None) => Err("its format is not written in it".to_owned()),
        (name, None) if has_pattern(name) => Err("its pattern is not written in it".to_owned()),
        (name, Some(text)) if has_pattern(name) && pattern(text).is_none() => {
            Err("its pattern is not valid, or too large".to_owned())
        }
        ("split", Some("")) => Err("it splits between all characters".to_owned()),
        _ => Ok(()),
    }
}
