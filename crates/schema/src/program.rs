//! A rule, compiled by the crate `cel` with the functions of `kube-cel`.
//!
//! Those bound nothing, so it is done here: the length of a rule, and how deep the parser and the evaluator go.

pub(crate) mod functions;
pub(crate) mod names;
mod rewrite;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{LazyLock, Once};
use std::thread::Builder;

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, operators};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, Value};

use crate::program::names::unescaped;
use memgate_primitives::pointer::Pointer;

/// How many bytes a rule may have.
pub(crate) const MAX_BYTES: usize = 16 << 10;

/// How many brackets and question marks a rule may have, in texts too. For each the parser may go down eight levels.
const MAX_BRACKETS: usize = 100;

/// How many dots and operators a rule may have, in texts too. For each the parser may go down a level.
const MAX_OPERATORS: usize = 400;

/// How deep the expressions of a rule may nest. The evaluator needs 22 KiB of the stack for each level in a build for
/// tests.
const MAX_DEPTH: usize = 40;

/// Why a rule is not evaluated that the parser or memgate's reading fails at.
const UNREADABLE: &str = "it cannot be read";

/// The stack of the parser.
const STACK_BYTES: usize = 64 << 20;

/// A rule that can be evaluated.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) expression: IdedExpr,
    /// Whether it asks for the stored value.
    pub(crate) reads_old: bool,
    /// The places below `self` that it reads.
    pub(crate) reads: Vec<Read>,
    /// Whether it makes durations or times, from which memgate makes fewer types than an apiserver.
    converts: bool,
}

/// What a rule says of a value.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Holds,
    Broken,
    /// It meets an error, as it does in an apiserver.
    Failed(String),
    /// It meets something that memgate does not know.
    Unknown(&'static str),
}

/// A place below the value of a rule that the rule reads.
#[derive(Debug)]
pub struct Read {
    /// The place; the root for the value itself.
    pub place: Pointer,
    /// Whether the rule only asks if the place exists.
    pub only_exists: bool,
}

/// Compiles a rule.
pub(crate) fn compile(text: &str) -> Result<Program, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes"));
    }
    let count = |symbols: &[u8]| text.bytes().filter(|byte| symbols.contains(byte)).count();
    if count(b"([{?") > MAX_BRACKETS || count(b".!+-*/%<>=") > MAX_OPERATORS {
        return Err(format!("it has more than {MAX_BRACKETS} brackets, or {MAX_OPERATORS} operators"));
    }
    if repeats_a_sign(text) {
        return Err("it has the same sign twice".to_owned());
    }
    on_deep_stack(text).unwrap_or_else(|| Err(UNREADABLE.to_owned()))
}

/// A rule to compile, and who waits for it.
type Order = (String, SyncSender<Option<Result<Program, String>>>);

/// Compiles a rule on the thread with a deep stack, since the parser goes down eight levels for each bracket; `None` if it
/// panics.
fn on_deep_stack(text: &str) -> Option<Result<Program, String>> {
    static COMPILER: LazyLock<Option<Sender<Order>>> = LazyLock::new(|| {
        let (sender, orders) = channel::<Order>();
        let compile = move || {
            for (text, waiting) in orders {
                // A caller that has gone does not need an answer.
                _ = waiting.send(guarded(|| parse(&text)));
            }
        };
        Builder::new().name("cel".to_owned()).stack_size(STACK_BYTES).spawn(compile).ok().map(|_| sender)
    });
    let (sender, answer) = sync_channel(1);
    COMPILER.as_ref()?.send((text.to_owned(), sender)).ok()?;
    answer.recv().ok()?
}

/// Whether `!` or `-` may stand twice in a row: the parser reads `!!x` as `!x`, and `!!(!!(x))` in twice the time for each
/// level. A comment may be between them.
fn repeats_a_sign(text: &str) -> bool {
    let without_texts = text.replace("'--'", "");
    let has_nothing = |between: &str| between.is_empty() || between.starts_with("//");
    let twice = |sign| without_texts.split(sign).skip(1).any(|between| has_nothing(between.trim_start()));
    twice('!') || twice('-')
}

fn parse(text: &str) -> Result<Program, String> {
    let parser = Parser::new().enable_optional_syntax(true);
    let mut expression = parser.parse(text).map_err(|_| UNREADABLE)?;
    rewrite::rewrite(&mut expression);
    let mut reading = Reading {
        variables: vec!["self", "oldSelf"],
        depth: 0,
        reads_old: false,
        reads: Vec::new(),
        is_operand: false,
        converts: false,
    };
    reading.expression(&expression)?;
    let Reading { reads_old, reads, converts, .. } = reading;
    Ok(Program { expression, reads_old, reads, converts })
}

impl Program {
    /// Whether the rule holds; `text` is its text.
    pub(crate) fn outcome(&self, text: &str, context: &Context<'_>) -> Outcome {
        match guarded(|| context.resolve(&self.expression)) {
            Some(Ok(Value::Bool(true))) => Outcome::Holds,
            Some(Ok(Value::Bool(false))) => Outcome::Broken,
            Some(Ok(_)) => Outcome::Unknown("it is neither true nor false"),
            Some(Err(error)) => self.failure(text, &error),
            None => Outcome::Unknown("memgate fails to evaluate it"),
        }
    }

    /// The text that an expression makes, if it does.
    pub(crate) fn text(&self, context: &Context<'_>) -> Option<String> {
        match guarded(|| context.resolve(&self.expression))? {
            Ok(Value::String(text)) => Some(text.to_string()),
            _ => None,
        }
    }

    /// An error in the words of an apiserver. A key that the rule takes from the object may be a credential.
    fn failure(&self, text: &str, error: &ExecutionError) -> Outcome {
        use ExecutionError as E;
        Outcome::Failed(match error {
            E::NoSuchKey(key) if text.contains(key.as_str()) => format!("no such key: {key}"),
            E::NoSuchKey(_) => "no such key".to_owned(),
            E::DivisionByZero(_) => "division by zero".to_owned(),
            E::RemainderByZero(_) => "modulus by zero".to_owned(),
            E::Overflow(..) => "integer overflow".to_owned(),
            E::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
            E::FunctionError { function, message } if functions::fails(function, message) => {
                format!("{function}() has no result for this value")
            }
            E::NoSuchOverload
            | E::UnexpectedType { .. }
            | E::UnsupportedTargetType { .. }
            | E::UnsupportedKeyType(_)
            | E::ValuesNotComparable(..)
            | E::UnsupportedUnaryOperator(..)
            | E::UnsupportedBinaryOperator(..)
            | E::UnsupportedMapIndex(_)
            | E::UnsupportedListIndex(_)
            | E::UnsupportedIndex(..)
                if !self.converts =>
            {
                "no such overload".to_owned()
            }
            _ => return Outcome::Unknown("it calls a function in a way that memgate does not know"),
        })
    }
}

/// Runs foreign code on input; `None` if it panics, which no output tells.
fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    thread_local!(static IS_GUARDED: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                hook(panic);
            }
        }));
    });
    let before = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    IS_GUARDED.set(before);
    result
}

/// A way through a rule that finds what cannot be evaluated.
struct Reading<'e> {
    variables: Vec<&'e str>,
    depth: usize,
    reads_old: bool,
    reads: Vec<Read>,
    /// Whether the next expression is the operand of a place that was noted already.
    is_operand: bool,
    converts: bool,
}

impl<'e> Reading<'e> {
    fn expression(&mut self, expression: &'e IdedExpr) -> Result<(), String> {
        let known = self.variables.len();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it nests more than {MAX_DEPTH} levels deep"));
        }
        let mut below = below(&expression.expr);
        let is_noted = std::mem::take(&mut self.is_operand);
        let read = read(&expression.expr).filter(|_| !is_noted);
        self.is_operand = matches!(expression.expr, Expr::Select(_)) && (is_noted || read.is_some());
        self.reads.extend(read);
        match &expression.expr {
            Expr::Ident(name) => {
                self.reads_old |= name == "oldSelf";
                if !self.is_variable(name) {
                    return Err(format!("{name} is not known to memgate"));
                }
            }
            Expr::Call(call) => {
                let library = call.target.as_ref().and_then(|target| self.library(target));
                functions::check(library, call)?;
                let compares = [operators::EQUALS, operators::NOT_EQUALS].contains(&call.func_name.as_str());
                if compares && call.args.iter().any(|part| rewrite::is_optional(&part.expr)) {
                    return Err("it compares optional values".to_owned());
                }
                self.converts |= ["duration", "timestamp"].contains(&call.func_name.as_str());
                if library.is_some() {
                    below.remove(0);
                }
            }
            Expr::Comprehension(macros) => {
                self.expression(&macros.iter_range)?;
                self.variables.extend([macros.iter_var.as_str(), macros.accu_var.as_str()]);
            }
            Expr::Struct(_) | Expr::Unspecified => return Err("it makes an object of a type".to_owned()),
            Expr::Select(_) | Expr::List(_) | Expr::Map(_) | Expr::Literal(_) => {}
        }
        below.into_iter().try_for_each(|below| self.expression(below))?;
        self.variables.truncate(known);
        self.depth -= 1;
        Ok(())
    }

    fn is_variable(&self, name: &str) -> bool {
        self.variables.contains(&name) || functions::TYPES.contains(&name)
    }

    /// The name of the library, of a call such as `math.abs(x)`.
    fn library(&self, target: &'e IdedExpr) -> Option<&'e str> {
        match &target.expr {
            Expr::Ident(name) if !self.variables.contains(&name.as_str()) => Some(name),
            _ => None,
        }
    }
}

/// What `self`, or `self.field.field`, reads.
fn read(expression: &Expr) -> Option<Read> {
    let (mut names, mut here) = (Vec::new(), expression);
    while let Expr::Select(select) = here {
        names.push(unescaped(&select.field));
        here = &select.operand.expr;
    }
    if !matches!(here, Expr::Ident(name) if name == "self") {
        return None;
    }
    let place = names.iter().rev().fold(Pointer::root(), |place, name| place.key(name));
    Some(Read { place, only_exists: matches!(expression, Expr::Select(select) if select.test) })
}

/// The expressions right below one, but for the range of a macro.
pub(crate) fn below(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).collect(),
        Expr::Comprehension(macros) => {
            vec![&macros.accu_init, &macros.loop_cond, &macros.loop_step, &macros.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| parts(&entry.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(_) | Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    }
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_a_rule_reads() {
        for (text, expected) in [
            ("self.a.b == 1 && has(self.c.d)", "/a/b, /c/d?"),
            ("self.items.all(item, item.x > self.min)", "/items, /min"),
            ("self > 0 || has(self.a)", ", /a?"),
            ("self['a'].b == 1", ""),
            ("!has(self.x__dash__y)", "/x-y?"),
        ] {
            let program = compile(text).expect("compiles");
            let shown =
                |read: &Read| format!("{}{}", read.place.as_str(), if read.only_exists { "?" } else { "" });
            assert_eq!(program.reads.iter().map(shown).collect::<Vec<_>>().join(", "), expected, "{text}");
        }
    }
}
