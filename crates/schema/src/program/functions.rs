//! The functions of rules: those of `cel` and `kube-cel`, and two that differ from an apiserver's there.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value, functions};
use regex::Regex;

use crate::go_pattern;
use memgate_primitives::members::ByKey;

pub(crate) const MATCHES: &str = "matches";

/// How many bytes a compiled pattern may have.
const MAX_PATTERN_BYTES: usize = 32 << 10;

/// How many compiled patterns are kept.
const MAX_PATTERNS: usize = 256;

/// The functions that are not used: the list of a number has no bound, and two optional values are never equal here.
const LEFT_OUT: [&str; 4] = ["lists.range", "optional.none", "optional.of", "optional.ofNonZeroValue"];

/// The functions.
pub(crate) static CONTEXT: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    context.add_function("size", size);
    context.add_function(MATCHES, matches);
    context.add_function("dyn", |value: Value| -> Result<Value, ExecutionError> { Ok(value) });
    context
});

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
    let pattern = pattern(&written).ok_or_else(|| ExecutionError::function_error(MATCHES, "no pattern"))?;
    Ok(pattern.is_match(&text))
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
    let pattern = go_pattern::compile(written, MAX_PATTERN_BYTES);
    known.0 += 1;
    known.1.insert(written.to_owned(), pattern.clone());
    pattern
}

/// Whether memgate can evaluate a call as an apiserver does; an error says why not.
pub(crate) fn check(library: Option<&str>, call: &CallExpr) -> Result<(), String> {
    let name =
        library.map_or_else(|| call.func_name.clone(), |library| format!("{library}.{}", call.func_name));
    let is_operator = !name.starts_with(char::is_alphabetic);
    if !is_operator && (LEFT_OUT.contains(&&*name) || !is_known(&name)) {
        return Err(format!("the function {name}() is not known to memgate"));
    }
    let text = call.args.last().and_then(|argument| match &argument.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    });
    match (&*name, text) {
        (MATCHES, None) => Err("its pattern is not written in it".to_owned()),
        (MATCHES, Some(text)) if pattern(text).is_none() => {
            Err("its pattern is not valid, or too large".to_owned())
        }
        ("split", Some("")) => Err("it splits between all characters".to_owned()),
        _ => Ok(()),
    }
}

/// Whether there is a function. That is seen at a call without arguments, since the library does not tell.
fn is_known(name: &str) -> bool {
    let call = CallExpr { func_name: name.to_owned(), target: None, args: Vec::new() };
    let answer = CONTEXT.resolve(&IdedExpr { id: 0, expr: Expr::Call(call) });
    !matches!(answer, Err(ExecutionError::UndeclaredReference(_)))
}
