//! What it costs at most to evaluate a rule, and how much it holds at once, known before it is evaluated: the evaluator
//! has no bound, but CEL has no loops but macros.
//!
//! The unit is one value that is read, made or copied; each use of a value copies it.

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

use crate::cel::value::BYTES_PER_VALUE;
use crate::program::below;
use crate::program::functions::{self, Growth, has_pattern};

/// What matching a pattern costs for each value of the text: a pattern may have a thousand states in each byte.
const OF_PATTERN: u64 = 128;

/// The function of one list that compares all its elements with each other.
const DISTINCT: &str = "distinct";

/// What it costs to begin.
const AT_LEAST: u64 = 16;

/// How much larger than the product of two weights it may be to compare both.
const OF_PRODUCT: u64 = BYTES_PER_VALUE as u64;

/// How much larger than what it is made of a text may be: `0.1` has 326 characters to the power of 324, an address that is
/// not one a fault for each dot.
const OF_TEXT: u64 = 64;

/// How many copies of a value there are while it is made and handed on.
pub(super) const COPIES: u64 = 3;

/// The operators whose result is as large as their operands; that of the others is a number, or true or false.
const JOINING: [&str; 4] = [operators::ADD, operators::CONDITIONAL, operators::INDEX, operators::OPT_INDEX];

/// How large a value is, in values.
#[derive(Clone, Copy)]
struct Size {
    /// On average over all turns of the macros around it.
    average: u64,
    /// In one turn.
    most: u64,
}

const ONE: Size = Size { average: 1, most: 1 };

impl Size {
    fn plus(self, other: Self) -> Self {
        let sum = u64::saturating_add;
        Self { average: sum(self.average, other.average), most: sum(self.most, other.most) }
    }

    /// The same in each turn.
    const fn all(values: u64) -> Self {
        Self { average: values, most: values }
    }

    const fn of_bytes(bytes: usize) -> Self {
        Self::all(1 + (bytes / BYTES_PER_VALUE) as u64)
    }

    /// For each value of one all of the other. Two averages may be large in the same turn.
    fn times(self, other: Self) -> Self {
        let product = u64::saturating_mul;
        Self { average: product(self.average, other.most), most: product(self.most, other.most) }
    }
}

/// What it takes at most to evaluate an expression.
pub(super) struct Bounds {
    pub(super) cost: u64,
    /// How many values it holds at once.
    pub(super) peak: u64,
}

/// What it takes at most to evaluate a rule on values of this weight.
pub(super) fn of(expression: &IdedExpr, weight: u64) -> Bounds {
    let (Estimate { cost, peak, .. }, _) = estimate(expression, weight);
    Bounds { cost, peak }
}

/// How large the result is.
#[cfg(test)]
pub(super) fn of_result(expression: &IdedExpr, weight: u64) -> u64 {
    estimate(expression, weight).1.most
}

fn estimate(expression: &IdedExpr, weight: u64) -> (Estimate<'_>, Size) {
    let all = Size::all(weight);
    let variables = vec![("self", all), ("oldSelf", all)];
    let mut estimate = Estimate { variables, turns: 1, cost: AT_LEAST, held: 0, peak: 0 };
    let result = estimate.expression(expression);
    (estimate, result)
}

/// The digits of all numbers with a precision in a text of `format`. Rust writes no more than a `u16` counts.
fn digits(format: &IdedExpr) -> u64 {
    let Expr::Literal(LiteralValue::String(text)) = &format.expr else { return u64::MAX };
    let precision = |behind: &str| {
        let number = behind.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        if number.is_empty() { 0 } else { number.parse::<u16>().map_or(u64::MAX, u64::from) }
    };
    text.inner().split("%.").skip(1).map(precision).fold(0, u64::saturating_add)
}

struct Estimate<'e> {
    variables: Vec<(&'e str, Size)>,
    /// How often the expression is evaluated.
    turns: u64,
    cost: u64,
    /// How many values are held where the way is, and at most.
    held: u64,
    peak: u64,
}

impl<'e> Estimate<'e> {
    fn expression(&mut self, expression: &'e IdedExpr) -> Size {
        let held = self.held;
        let size = match &expression.expr {
            Expr::Ident(name) => {
                let known = self.variables.iter().rfind(|(variable, _)| variable == name);
                known.map_or(ONE, |(_, size)| *size)
            }
            Expr::Literal(LiteralValue::String(text)) => Size::of_bytes(text.inner().len()),
            Expr::Literal(LiteralValue::Bytes(bytes)) => Size::of_bytes(bytes.inner().len()),
            Expr::Comprehension(macros) => self.repeated(macros),
            Expr::Call(call) if call.func_name.starts_with(char::is_alphabetic) => {
                let sizes: Vec<_> =
                    below(&expression.expr).into_iter().map(|below| self.expression(below)).collect();
                self.called(call, &sizes)
            }
            other => {
                let all = below(other).into_iter().fold(ONE, |all, below| all.plus(self.expression(below)));
                match other {
                    Expr::Call(call) if !JOINING.contains(&call.func_name.as_str()) => {
                        self.spend(all.average);
                        ONE
                    }
                    _ => all,
                }
            }
        };
        self.spend(size.average);
        self.peak = self.peak.max(self.held.saturating_add(size.most.saturating_mul(COPIES)));
        self.held = held.saturating_add(size.most);
        size
    }

    fn spend(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(self.turns.saturating_mul(cost));
    }

    /// What a function makes of values of these sizes.
    fn called(&mut self, call: &CallExpr, sizes: &[Size]) -> Size {
        let factor = if has_pattern(&call.func_name) { OF_PATTERN } else { OF_PRODUCT };
        let product = match sizes {
            [] => ONE,
            [all] if call.func_name == DISTINCT => all.times(*all),
            [first, others @ ..] => {
                others.iter().fold(*first, |all, other| all.times(*other).times(Size::all(factor)))
            }
        };
        self.spend(product.average);
        let sum = sizes.iter().fold(ONE, |all, size| all.plus(*size));
        match functions::growth(&call.func_name) {
            Some(Growth::None) => ONE,
            Some(Growth::Part) => sum,
            Some(Growth::Text) => sum.times(Size::all(OF_TEXT)),
            Some(Growth::Format) => {
                let digits = call.target.as_deref().map_or(u64::MAX, digits) / BYTES_PER_VALUE as u64;
                sum.times(Size::all(OF_TEXT)).plus(Size::all(digits))
            }
            Some(Growth::Product) | None => {
                sizes.iter().fold(Size::all(OF_TEXT), |all, size| all.times(*size))
            }
        }
    }

    /// A macro: a turn for each value of its range, which is a part of it.
    fn repeated(&mut self, macros: &'e ComprehensionExpr) -> Size {
        let range = self.expression(&macros.iter_range);
        let (turns, known) = (self.turns, self.variables.clone());
        if range.average < range.most {
            // It may be long just where the variables around it are large.
            for (_, size) in &mut self.variables {
                size.average = size.most;
            }
        }
        self.turns = turns.saturating_mul(range.average);
        let element = Size { average: 1, most: range.most };
        self.variables.extend([(macros.iter_var.as_str(), element), (macros.accu_var.as_str(), ONE)]);
        let step = self.expression(&macros.loop_step);
        self.spend(4);
        let mut made = ONE;
        if matches!(macros.accu_init.expr, Expr::List(_)) {
            let average = range.average.saturating_mul(step.average);
            // Of a macro that is in no other one the average is what it makes.
            let most = if turns == 1 { average } else { range.most.saturating_mul(step.most) };
            made = Size { average, most };
            // What was made so far is copied in each turn.
            self.spend(made.most);
        }
        (self.turns, self.variables) = (turns, known);
        made
    }
}
