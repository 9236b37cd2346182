//! What it costs at most to evaluate a rule, known before it is evaluated: the evaluator has no bound, but CEL has no
//! loops but macros.
//!
//! The unit is one value that is read, made or copied; each use of a value copies it.

use kube_cel::cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, LiteralValue};

use crate::cel::value::BYTES_PER_VALUE;
use crate::program::below;
use crate::program::functions::has_pattern;

/// What matching a pattern costs for each value of the text: a pattern may have a thousand states in each byte.
const OF_PATTERN: u64 = 128;

/// The function of one list that compares all its elements with each other.
const DISTINCT: &str = "distinct";

/// What it costs to begin.
const AT_LEAST: u64 = 16;

/// How much larger than the product of two weights a text may be that is made of both.
const OF_PRODUCT: u64 = BYTES_PER_VALUE as u64;

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

    /// For each value of one all of the other. Two averages may be large in the same turn.
    fn times(self, other: Self) -> Self {
        let product = u64::saturating_mul;
        Self { average: product(self.average, other.most), most: product(self.most, other.most) }
    }
}

/// What it costs at most to evaluate a rule on values of this weight.
pub(super) fn of(expression: &IdedExpr, weight: u64) -> u64 {
    let all = Size { average: weight, most: weight };
    let mut estimate =
        Estimate { variables: vec![("self", all), ("oldSelf", all)], turns: 1, cost: AT_LEAST };
    estimate.expression(expression);
    estimate.cost
}

struct Estimate<'e> {
    variables: Vec<(&'e str, Size)>,
    /// How often the expression is evaluated.
    turns: u64,
    cost: u64,
}

impl<'e> Estimate<'e> {
    fn expression(&mut self, expression: &'e IdedExpr) -> Size {
        let size = match &expression.expr {
            Expr::Ident(name) => {
                let known = self.variables.iter().rfind(|(variable, _)| variable == name);
                known.map_or(ONE, |(_, size)| *size)
            }
            Expr::Literal(LiteralValue::String(text)) => {
                let size = 1 + (text.inner().len() / BYTES_PER_VALUE) as u64;
                Size { average: size, most: size }
            }
            Expr::Comprehension(macros) => self.repeated(macros),
            Expr::Call(call) if call.func_name.starts_with(char::is_alphabetic) => {
                let sizes: Vec<_> =
                    below(&expression.expr).into_iter().map(|below| self.expression(below)).collect();
                let factor = if has_pattern(&call.func_name) { OF_PATTERN } else { OF_PRODUCT };
                let factor = Size { average: factor, most: factor };
                match sizes.as_slice() {
                    [] => ONE,
                    [all] if call.func_name == DISTINCT => all.times(*all),
                    [first, others @ ..] => {
                        others.iter().fold(*first, |all, other| all.times(*other).times(factor))
                    }
                }
            }
            other => below(other).into_iter().fold(ONE, |all, below| all.plus(self.expression(below))),
        };
        self.spend(size.average);
        size
    }

    fn spend(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(self.turns.saturating_mul(cost));
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
            // What was made so far is copied in each turn.
            made = Size { average: range.average, most: range.most }.times(step);
            self.spend(made.most);
        }
        (self.turns, self.variables) = (turns, known);
        made
    }
}
