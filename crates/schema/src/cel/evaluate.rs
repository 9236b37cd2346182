//! Evaluates a rule. Its variables are a stack; how deep this recurses is bounded by the parser.

use std::cmp::Ordering;

use crate::cel::library;
use crate::cel::program::{Expr, FieldUse, Fold, FoldKind};
use crate::cel::value::{Fault, Outcome, Text, Value, compare, equal, spend, spend_bytes};
use memgate_primitives::budget::Budget;

/// What a rule is evaluated with.
pub(super) struct Machine<'b, 'v> {
    pub(super) budget: &'b Budget<'b>,
    pub(super) variables: Vec<Value<'v>>,
}

impl<'v> Machine<'_, 'v> {
    /// The value of a part of a rule.
    pub(super) fn evaluate(&mut self, expr: &'v Expr) -> Outcome<'v> {
        spend(self.budget, 1)?;
        match expr {
            Expr::Literal(literal) => Ok(Value::written(literal)),
            Expr::Variable(slot) => self.variables.get(*slot).cloned().ok_or(Fault::Error),
            Expr::Field(value, field, how) => {
                let value = self.evaluate(value)?;
                access(&value, *how, |value| value.field(field))
            }
            Expr::Index(parts, is_optional) => {
                let [value, index] = &**parts;
                let (value, index) = (self.evaluate(value)?, self.evaluate(index)?);
                let how = if *is_optional { FieldUse::Optional } else { FieldUse::Read };
                let budget = self.budget;
                access(&value, how, |value| value.at(budget, &index))
            }
            Expr::List(elements) => {
                let elements =
                    elements.iter().map(|element| self.evaluate(element)).collect::<Result<_, _>>()?;
                Value::list(self.budget, elements)
            }
            Expr::Map(entries) => {
                let entry = |(key, value)| Ok((self.evaluate(key)?, self.evaluate(value)?));
                Ok(Value::Map(
                    entries.iter().map(|(key, value)| (key, value)).map(entry).collect::<Result<_, _>>()?,
                ))
            }
            Expr::Not(operand) => Ok(Value::Bool(!self.flag(operand)?)),
            Expr::Negative(operand) => match self.evaluate(operand)? {
                Value::Int(value) => value.checked_neg().map(Value::Int).ok_or(Fault::Error),
                Value::Double(value) => Ok(Value::Double(-value)),
                Value::Duration(value) => value.checked_neg().map(Value::Duration).ok_or(Fault::Error),
                _ => Err(Fault::Error),
            },
            Expr::Or(parts) => Joined::of(true).over(parts.iter().map(|part| self.flag(part))),
            Expr::And(parts) => Joined::of(false).over(parts.iter().map(|part| self.flag(part))),
            Expr::Choice(parts) => {
                let [condition, then, otherwise] = &**parts;
                if self.flag(condition)? { self.evaluate(then) } else { self.evaluate(otherwise) }
            }
            Expr::Binary(symbol, parts) => {
                let [left, right] = &**parts;
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                binary(self.budget, symbol, &left, &right)
            }
            Expr::Matches(text, pattern) => {
                let Value::Text(text) = self.evaluate(text)? else { return Err(Fault::Error) };
                spend_bytes(self.budget, text.len())?;
                Ok(Value::Bool(pattern.is_match(&text)))
            }
            Expr::Call(function, arguments) => {
                let arguments: Vec<_> =
                    arguments.iter().map(|argument| self.evaluate(argument)).collect::<Result<_, _>>()?;
                library::call(function, self.budget, &arguments)
            }
            Expr::Fold(fold) => self.fold(fold),
        }
    }

    /// The value of a condition.
    pub(super) fn flag(&mut self, expr: &'v Expr) -> Result<bool, Fault> {
        match self.evaluate(expr)? {
            Value::Bool(value) => Ok(value),
            _ => Err(Fault::Error),
        }
    }

    fn fold(&mut self, fold: &'v Fold) -> Outcome<'v> {
        let range = self.evaluate(&fold.range)?;
        if matches!(fold.kind, FoldKind::OptMap | FoldKind::OptFlatMap) {
            return self.fold_optional(fold, &range);
        }
        let count = range.len().ok_or(Fault::Error)?;
        let mut entries = (0..count).map(|index| range.nth(index)?.ok_or(Fault::Error));
        match fold.kind {
            FoldKind::All => Joined::of(false).over(entries.map(|entry| self.holds(fold, entry?, &range))),
            FoldKind::Exists => Joined::of(true).over(entries.map(|entry| self.holds(fold, entry?, &range))),
            FoldKind::ExistsOne => {
                let found = entries.try_fold(0_usize, |found, entry| {
                    Ok(found + usize::from(self.holds(fold, entry?, &range)?))
                })?;
                Ok(Value::Bool(found == 1))
            }
            FoldKind::Filter | FoldKind::Map | FoldKind::OptMap | FoldKind::OptFlatMap => {
                let mut kept = Vec::new();
                for entry in entries {
                    kept.extend(self.mapped(fold, entry?, &range)?);
                }
                Value::list(self.budget, kept)
            }
        }
    }

    /// What `filter` or `map` makes of an entry, if it counts.
    fn mapped(
        &mut self,
        fold: &'v Fold,
        entry: (Value<'v>, Value<'v>),
        range: &Value<'v>,
    ) -> Result<Option<Value<'v>>, Fault> {
        let value = if range.is_map() { entry.0.clone() } else { entry.1.clone() };
        self.within(fold, entry, range, |machine| {
            let counts = fold.condition.as_ref().map_or(Ok(true), |condition| machine.flag(condition))?;
            match fold.kind {
                _ if !counts => Ok(None),
                FoldKind::Filter => Ok(machine.flag(&fold.body)?.then_some(value)),
                _ => machine.evaluate(&fold.body).map(Some),
            }
        })
    }

    fn holds(
        &mut self,
        fold: &'v Fold,
        entry: (Value<'v>, Value<'v>),
        range: &Value<'v>,
    ) -> Result<bool, Fault> {
        self.within(fold, entry, range, |machine| machine.flag(&fold.body))
    }

    /// Does something with the variables of a macro. One variable is the element, or the key of a map.
    fn within<T>(
        &mut self,
        fold: &Fold,
        (key, value): (Value<'v>, Value<'v>),
        range: &Value<'v>,
        evaluate: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let known = self.variables.len();
        match (fold.has_key, range.is_map()) {
            (true, _) => self.variables.extend([key, value]),
            (false, true) => self.variables.push(key),
            (false, false) => self.variables.push(value),
        }
        let result = evaluate(self);
        self.variables.truncate(known);
        result
    }

    fn fold_optional(&mut self, fold: &'v Fold, range: &Value<'v>) -> Outcome<'v> {
        let Value::Optional(inner) = range else { return Err(Fault::Error) };
        let Some(inner) = inner else { return Ok(Value::Optional(None)) };
        self.variables.push((**inner).clone());
        let result = self.evaluate(&fold.body);
        self.variables.pop();
        match fold.kind {
            FoldKind::OptMap => result.map(Value::some),
            _ => result,
        }
    }
}

/// A field or element. What is read of an optional value is optional too.
fn access<'v>(
    value: &Value<'v>,
    how: FieldUse,
    get: impl Fn(&Value<'v>) -> Result<Option<Value<'v>>, Fault>,
) -> Outcome<'v> {
    let (found, is_optional) = match value {
        Value::Optional(None) => (None, true),
        Value::Optional(Some(inner)) => (get(inner)?, true),
        _ => (get(value)?, how == FieldUse::Optional),
    };
    match (how, found) {
        (FieldUse::Has, found) => Ok(Value::Bool(found.is_some())),
        (_, found) if is_optional => Ok(found.map_or(Value::Optional(None), Value::some)),
        (_, found) => found.ok_or(Fault::Error),
    }
}

/// `&&` or `||` over several parts: a part that decides the result makes up for errors in others.
struct Joined {
    deciding: bool,
}

impl Joined {
    const fn of(deciding: bool) -> Self {
        Self { deciding }
    }

    fn over<'v>(&self, parts: impl Iterator<Item = Result<bool, Fault>>) -> Outcome<'v> {
        let mut has_error = false;
        for part in parts {
            match part {
                Ok(value) if value == self.deciding => return Ok(Value::Bool(value)),
                Ok(_) => {}
                Err(Fault::Error) => has_error = true,
                Err(Fault::Stop) => return Err(Fault::Stop),
            }
        }
        if has_error { Err(Fault::Error) } else { Ok(Value::Bool(!self.deciding)) }
    }
}

fn binary<'v>(budget: &Budget<'_>, symbol: &str, left: &Value<'v>, right: &Value<'v>) -> Outcome<'v> {
    let ordered = |holds: fn(Ordering) -> bool| Ok(Value::Bool(holds(compare(budget, left, right)?)));
    match symbol {
        "==" => equal(budget, left, right).map(Value::Bool),
        "!=" => equal(budget, left, right).map(|same| Value::Bool(!same)),
        "<" => ordered(Ordering::is_lt),
        "<=" => ordered(Ordering::is_le),
        ">" => ordered(Ordering::is_gt),
        ">=" => ordered(Ordering::is_ge),
        "in" => is_in(budget, left, right).map(Value::Bool),
        _ => arithmetic(budget, symbol, left, right),
    }
}

/// Whether a list has an element, or a map a key.
pub(super) fn is_in(budget: &Budget<'_>, value: &Value<'_>, range: &Value<'_>) -> Result<bool, Fault> {
    if range.is_map() {
        return Ok(range.at(budget, value)?.is_some());
    }
    let count = range.len().ok_or(Fault::Error)?;
    for index in 0..count {
        let (_, element) = range.nth(index)?.ok_or(Fault::Error)?;
        if equal(budget, value, &element)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn arithmetic<'v>(budget: &Budget<'_>, symbol: &str, left: &Value<'v>, right: &Value<'v>) -> Outcome<'v> {
    let result = match (symbol, left, right) {
        ("+", Value::Text(one), Value::Text(two)) => {
            spend_bytes(budget, one.len() + two.len())?;
            Some(Value::Text(Text::Made(format!("{}{}", &**one, &**two).into())))
        }
        ("+", Value::Duration(one), Value::Duration(two)) => one.checked_add(*two).map(Value::Duration),
        ("-", Value::Duration(one), Value::Duration(two)) => one.checked_sub(*two).map(Value::Duration),
        ("+", Value::Timestamp(time), Value::Duration(more))
        | ("+", Value::Duration(more), Value::Timestamp(time)) => {
            time.checked_add(i128::from(*more)).map(Value::Timestamp)
        }
        ("-", Value::Timestamp(time), Value::Duration(less)) => {
            time.checked_sub(i128::from(*less)).map(Value::Timestamp)
        }
        ("-", Value::Timestamp(one), Value::Timestamp(two)) => {
            one.checked_sub(*two).and_then(|between| i64::try_from(between).ok()).map(Value::Duration)
        }
        (_, Value::Int(one), Value::Int(two)) => match symbol {
            "+" => one.checked_add(*two),
            "-" => one.checked_sub(*two),
            "*" => one.checked_mul(*two),
            "/" => one.checked_div(*two),
            _ => one.checked_rem(*two),
        }
        .map(Value::Int),
        (_, Value::Uint(one), Value::Uint(two)) => match symbol {
            "+" => one.checked_add(*two),
            "-" => one.checked_sub(*two),
            "*" => one.checked_mul(*two),
            "/" => one.checked_div(*two),
            _ => one.checked_rem(*two),
        }
        .map(Value::Uint),
        (_, Value::Double(one), Value::Double(two)) => match symbol {
            "+" => Some(one + two),
            "-" => Some(one - two),
            "*" => Some(one * two),
            "/" => Some(one / two),
            _ => None,
        }
        .map(Value::Double),
        ("+", _, _) => {
            let mut elements = left.elements(budget)?;
            elements.extend(right.elements(budget)?);
            Some(Value::List(elements.into()))
        }
        _ => None,
    };
    result.ok_or(Fault::Error)
}
