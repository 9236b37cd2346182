//! The rules in CEL of a definition (`x-kubernetes-validations`).
//!
//! A rule is evaluated for each value that its node has, after everything else of the schema was checked, and not where
//! the value, or one in it, is missing or has the wrong type. A rule that meets an error denies, as in an apiserver, but
//! not where the schema refuses something in the value anyway. A rule that memgate cannot evaluate has a note. Rules come
//! with the definition, so they are input too: how many there may be, and how long and how deep, is bounded, and what it
//! costs to evaluate one is known before.
//! Source: Kubernetes documentation, "Validation rules"; k8s.io/apiextensions-apiserver, `schema/cel/validation.go`.

mod cost;
mod value;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, Value};
use serde_json::Value as Json;

use crate::cel::cost::Bounds;
use crate::check::OldElements;
use crate::crd::{CelRule, SchemaNode};
use crate::place::Place;
use crate::program::{self, Outcome, Program, functions};
use crate::violation::{Places, Rule, SchemaViolation, Violations, holds_credential};
use memgate_primitives::budget::Budget;
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Pointer;

/// What all rules of one object may cost, in values that are read.
const MAX_COST: u64 = 4_000_000;

/// What they may cost however many objects there are: so much, and so much for each byte of the object. The rules that
/// come with memgate cost half of that on large objects.
const MIN_COST: u64 = 20_000;
const MIN_COST_OF_BYTE: u64 = 64;

/// What the rules of all objects of a run may cost, beyond that.
const MAX_COST_OF_RUN: u64 = 20_000_000;

/// How many values a rule may hold at once: some 250 bytes each, with all that surrounds them.
const MAX_PEAK: u64 = 512 << 10;

/// A rule that may hold more than so many has [`LARGE`], so that no more memory is needed where there are many cores.
const LARGE_PEAK: u64 = MAX_PEAK / 64;
static LARGE: Mutex<()> = Mutex::new(());

/// How many rules of a definition are compiled.
const MAX_RULES: usize = 1_000;

/// How many bytes they may have.
const MAX_BYTES_OF_RULES: usize = 256 << 10;

/// How many bytes the message of an expression may have. Source: k8s.io/apiserver, `MaxEvaluatedMessageExpressionSizeBytes`.
const MAX_MESSAGE_BYTES: usize = 5 << 10;

/// Why a rule is not evaluated that stands behind too many.
const TOO_MANY: &str =
    "its definition has more than 1000 rules, or rules of more than 256 KiB; no more are evaluated";

/// For how many bytes of a rule looking at it costs one more value.
const BYTES_PER_LOOK: usize = 8;

/// Why a rule is not evaluated that would cost more than is left.
const TOO_MUCH: &str = "it may take too long";

/// Why a rule is not evaluated that holds more than [`MAX_PEAK`].
const TOO_LARGE: &str = "it may take too much memory";

/// The same for the rule at which nothing is left.
const ENDED: &str = "it and all rules behind it may take too long";

/// Reads the rules of a schema.
pub(super) fn rules(schema: &Json) -> Vec<CelRule> {
    let rules = schema.get("x-kubernetes-validations").and_then(Json::as_array);
    rules.into_iter().flatten().filter_map(rule).collect()
}

/// What the rules in CEL of each object may cost in a run with so many objects: less, the more there are, so that all
/// together are bounded, and it does not matter which comes first.
pub fn allowance(objects: usize) -> u64 {
    let share = MAX_COST_OF_RUN / u64::try_from(objects).unwrap_or(u64::MAX).max(1);
    share.min(MAX_COST)
}

/// Leaves out the rules of a definition that are too many.
pub(super) fn bound(schema: &SchemaNode) {
    fn visit(schema: &SchemaNode, left: &mut (usize, usize)) {
        for rule in &schema.rules {
            let bytes = rule.text.len() + rule.message_expression.as_ref().map_or(0, |rule| rule.text.len());
            match (left.0.checked_sub(1), left.1.checked_sub(bytes)) {
                (Some(rules), Some(bytes)) => *left = (rules, bytes),
                _ => drop(rule.compiled.set(Err(TOO_MANY.to_owned()))),
            }
        }
        for below in schema.below().filter(|below| below.has_rules) {
            visit(below, left);
        }
    }
    visit(schema, &mut (MAX_RULES, MAX_BYTES_OF_RULES));
}

fn rule(value: &Json) -> Option<CelRule> {
    let text = |key: &str| value.get(key).and_then(Json::as_str).unwrap_or_default();
    let with = |expression: &str| (!expression.is_empty()).then(|| CelRule::new(expression));
    Some(CelRule {
        message: text("message").to_owned(),
        message_expression: with(text("messageExpression")).map(Box::new),
        reason: text("reason").to_owned(),
        below: below(text("fieldPath")),
        with_new: value.get("optionalOldSelf").and_then(Json::as_bool).unwrap_or_default(),
        ..with(text("rule"))?
    })
}

/// The place of a JSONPath: `.spec.a`, `['a.b']`.
fn below(path: &str) -> Pointer {
    let (mut pointer, mut rest) = (Pointer::root(), path);
    loop {
        let quoted = rest.strip_prefix("['").and_then(|rest| rest.split_once("']"));
        let (name, behind) = match (quoted, rest.strip_prefix('.')) {
            (Some(found), _) => found,
            (None, Some(plain)) => plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len())),
            (None, None) => return pointer,
        };
        pointer = pointer.key(name);
        rest = behind;
    }
}

/// Notes each rule that an object breaks, and each that cannot be evaluated. `found` has what is wrong otherwise.
pub(super) fn check<'d>(
    root: &Place<'_, 'd>,
    bytes: usize,
    schema: &'d SchemaNode,
    allowance: u64,
    found: &mut Violations<'d>,
) {
    let Some(budget) = found.budget().filter(|budget| schema.has_rules && !budget.has_ended()) else {
        return;
    };
    let least = MIN_COST.saturating_add(MIN_COST_OF_BYTE.saturating_mul(bytes as u64));
    found.beside(|faults, found| {
        let mut walk = Walk {
            budget,
            left: allowance.max(least).min(MAX_COST),
            has_ended: false,
            unsound: Places::of(faults.iter().filter(|fault| stops(fault))),
            faulty: Places::of(faults.iter()),
            noted: Members::default(),
        };
        // What is broken more often than a part has steps for is reported often enough.
        budget.apart(bytes, || walk.check(root, schema, found));
    });
}

/// Whether an apiserver evaluates no rules because of a fault.
const fn stops(violation: &SchemaViolation<'_>) -> bool {
    matches!(
        violation.rule,
        Rule::Type { .. }
            | Rule::Required(..)
            | Rule::Unsupported(_)
            | Rule::TooLong(_)
            | Rule::TooMany { .. }
            | Rule::NoMapElement
    )
}

/// A way through an object along the rules of its schema.
struct Walk<'w, 'd> {
    budget: &'d Budget<'d>,
    /// What the rules may still cost.
    left: u64,
    has_ended: bool,
    /// The places where no rules are evaluated.
    unsound: Places<'w>,
    /// The places where something is wrong.
    faulty: Places<'w>,
    /// The rules that have their note.
    noted: Members<*const CelRule>,
}

/// A value that has rules.
struct Seen<'w, 'd> {
    here: &'w Place<'w, 'd>,
    schema: &'d SchemaNode,
    /// How many values it and the stored one have.
    weight: u64,
    /// The value as rules see it, once one does.
    context: Option<Context<'static>>,
    /// Once the stored value is in there: whether as an optional value, which rules with `optionalOldSelf` read.
    old_is_optional: Option<bool>,
}

impl<'d> Walk<'_, 'd> {
    fn check(&mut self, here: &Place<'_, 'd>, schema: &'d SchemaNode, found: &mut Violations<'d>) {
        if !schema.has_rules || here.value.is_null() || self.has_ended || self.budget.has_ended() {
            return;
        }
        if !schema.rules.is_empty() && !self.unsound.has_in(here.path) {
            let weight = value::weight(here.value) + here.old.map_or(0, value::weight);
            let mut seen = Seen { here, schema, weight, context: None, old_is_optional: None };
            for rule in &schema.rules {
                let Err(why) = self.rule(&mut seen, rule, found) else { continue };
                // Those that are too many share a note.
                let of_whom = if why == TOO_MANY { std::ptr::null() } else { std::ptr::from_ref(rule) };
                if self.noted.insert(of_whom) || self.has_ended {
                    found.push_at(here, || here.path.pointer(), Rule::NotEvaluated(rule, why));
                }
                if self.has_ended {
                    return;
                }
            }
        }
        for (key, value) in here.value.fields() {
            if let Some(schema) = schema.object.field(key) {
                self.check(&here.key(key, value, here.old.and_then(|old| old.get(key))), schema, found);
            }
        }
        let Some(items) = schema.list.items.as_deref().filter(|items| items.has_rules) else { return };
        let old = OldElements::of(here, &schema.list);
        for (index, element) in here.value.elements().iter().enumerate() {
            self.check(&here.index(index, element, old.get(element)), items, found);
        }
    }

    /// Spends what a part costs; returns whether so much was left.
    fn spend(&mut self, cost: u64) -> bool {
        let left = self.left.checked_sub(cost);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Evaluates a rule; an error says why it is not evaluated.
    fn rule(
        &mut self,
        seen: &mut Seen<'_, 'd>,
        rule: &'d CelRule,
        found: &mut Violations<'d>,
    ) -> Result<(), &'d str> {
        let bytes = rule.text.len().min(program::MAX_BYTES);
        if !self.spend((1 + bytes / BYTES_PER_LOOK) as u64) {
            self.has_ended = true;
            return Err(ENDED);
        }
        let program = rule.program()?;
        let here = seen.here;
        if program.reads_old && here.old.is_none() && !rule.with_new {
            return Ok(());
        }
        let bounds = cost::of(&program.expression, seen.weight);
        if !self.spend(bounds.cost) {
            return Err(TOO_MUCH);
        }
        if bounds.peak > MAX_PEAK {
            return Err(TOO_LARGE);
        }
        let alone = alone(&bounds);
        let outcome = seen.outcome(rule, program);
        drop(alone);
        let (kind, words) = match outcome {
            Outcome::Holds => return Ok(()),
            // The schema reports what is wrong there.
            Outcome::Failed(_) | Outcome::Unknown(_) if self.faulty.has_in(here.path) => return Ok(()),
            Outcome::Unknown(why) => return Err(why),
            Outcome::Failed(error) => (Rule::CelError(rule), Some(error)),
            Outcome::Broken => (Rule::Cel(rule), self.words(seen, rule)),
        };
        if let Some(noted) = found.push_at(here, || here.path.pointer().join(&rule.below), kind) {
            noted.words = words.map(String::into_boxed_str);
            noted.stored &= !program.reads_old;
        }
        Ok(())
    }

    /// What the expression for the message of a broken rule makes, if it makes a line of text. It sees no value of a field
    /// that may hold credentials.
    fn words(&mut self, seen: &Seen<'_, 'd>, rule: &CelRule) -> Option<String> {
        let program = rule.message_expression.as_ref()?.program().ok()?;
        let bounds = cost::of(&program.expression, seen.weight);
        let cost = bounds.cost.saturating_add(2 * seen.weight);
        if holds_credential(&seen.here.path.pointer()) || bounds.peak > MAX_PEAK || !self.spend(cost) {
            return None;
        }
        let _alone = alone(&bounds);
        let mut context = functions::CONTEXT.new_inner_scope();
        let own = value::seen(seen.here.value, Some(seen.schema), None);
        context.add_variable_from_value("self", value::masked(own, ""));
        if program.reads_old {
            context.add_variable_from_value("oldSelf", value::masked(seen.old(rule), ""));
        }
        let text = program.text(&context)?;
        let text = text.trim();
        let is_line = !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains(['\n', '\r']);
        is_line.then(|| text.to_owned())
    }
}

/// What a rule has that takes much memory, while it is evaluated.
fn alone(bounds: &Bounds) -> Option<MutexGuard<'static, ()>> {
    (bounds.peak > LARGE_PEAK).then(|| LARGE.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Seen<'_, '_> {
    /// Whether a rule holds.
    fn outcome(&mut self, rule: &CelRule, program: &Program) -> Outcome {
        let lacks_old = program.reads_old && self.old_is_optional != Some(rule.with_new);
        let old = lacks_old.then(|| self.old(rule));
        let Self { here, schema, context, old_is_optional, .. } = self;
        let context = context.get_or_insert_with(|| {
            let mut context = functions::CONTEXT.new_inner_scope();
            context.add_variable_from_value("self", value::seen(here.value, Some(schema), None));
            context
        });
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", old);
            *old_is_optional = Some(rule.with_new);
        }
        program.outcome(&rule.text, context)
    }

    /// The stored value as rules see it.
    fn old(&self, rule: &CelRule) -> Value {
        let old = self.here.old.map(|old| value::seen(old, Some(self.schema), Some(self.here.value)));
        if rule.with_new {
            Value::Opaque(Arc::new(old.map_or_else(OptionalValue::none, OptionalValue::of)))
        } else {
            old.unwrap_or(Value::Null)
        }
    }
}

#[cfg(test)]
mod tests;
