//! The rules in CEL of a definition (`x-kubernetes-validations`).
//!
//! A rule is evaluated for each value that its node has, after everything else of the schema was checked, and not where
//! the value, or one in it, is missing or has the wrong type. A rule that meets an error is silent: what is wrong there,
//! the schema reports. A rule that memgate cannot evaluate has a note. Rules come with the definition, so they are
//! input too: how long and how deep one may be is bounded, and what it costs to evaluate one is known before.
//! Source: Kubernetes documentation, "Validation rules"; k8s.io/apiextensions-apiserver, `schema/cel/validation.go`.

mod cost;
mod value;

use std::sync::Arc;

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, Value};
use serde_json::Value as Json;

use crate::check::OldElements;
use crate::crd::{CelRule, SchemaNode};
use crate::place::Place;
use crate::program::{self, Program, functions};
use crate::violation::{Rule, Violations};
use memgate_primitives::budget::Budget;
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Pointer;

/// What all rules of one object may cost, in values that are read.
const MAX_COST: u64 = 20_000_000;

/// What a byte of a rule costs that is compiled.
const COST_OF_BYTE: usize = 32;

/// For how many bytes of a rule looking at it costs one more value.
const BYTES_PER_LOOK: usize = 8;

/// Why a rule is not evaluated that would cost more than is left.
const TOO_MUCH: &str = "it may take too long";

/// The same for the rule at which nothing is left.
const ENDED: &str = "it and all rules behind it may take too long";

/// Reads the rules of a schema.
pub(super) fn rules(schema: &Json) -> Vec<CelRule> {
    let rules = schema.get("x-kubernetes-validations").and_then(Json::as_array);
    rules.into_iter().flatten().filter_map(rule).collect()
}

fn rule(value: &Json) -> Option<CelRule> {
    let text = |key: &str| value.get(key).and_then(Json::as_str).unwrap_or_default();
    Some(CelRule {
        text: Some(text("rule")).filter(|rule| !rule.is_empty())?.to_owned(),
        message: text("message").to_owned(),
        reason: text("reason").to_owned(),
        below: below(text("fieldPath")),
        with_new: value.get("optionalOldSelf").and_then(Json::as_bool).unwrap_or_default(),
        compiled: std::sync::OnceLock::new(),
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
    found: &mut Violations<'d>,
) {
    let Some(budget) = found.budget().filter(|budget| schema.has_rules && !budget.has_ended()) else {
        return;
    };
    let mut walk = Walk {
        budget,
        left: MAX_COST,
        has_ended: false,
        unsound: unsound(found),
        compiled: Members::default(),
        noted: Members::default(),
    };
    // What is broken more often than a part has steps for is reported often enough.
    budget.apart(bytes, || walk.check(root, schema, found));
}

/// The places with a fault for which an apiserver evaluates no rules, and those above them.
fn unsound(found: &Violations<'_>) -> Members<Box<str>> {
    let mut places = Members::default();
    for violation in found.iter() {
        let stops = matches!(
            violation.rule,
            Rule::Type { .. }
                | Rule::Required(..)
                | Rule::Unsupported(_)
                | Rule::TooLong(_)
                | Rule::TooMany { .. }
                | Rule::NoMapElement
        );
        let mut place = Some(violation.pointer.as_str()).filter(|_| stops);
        while let Some(here) = place.filter(|here| places.insert(Box::from(*here))) {
            place = here.rsplit_once('/').map(|(above, _)| above);
        }
    }
    places
}

/// A way through an object along the rules of its schema.
struct Walk<'d> {
    budget: &'d Budget<'d>,
    /// What the rules may still cost.
    left: u64,
    has_ended: bool,
    unsound: Members<Box<str>>,
    /// The rules that were met.
    compiled: Members<*const CelRule>,
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
}

impl<'d> Walk<'d> {
    fn check(&mut self, here: &Place<'_, 'd>, schema: &'d SchemaNode, found: &mut Violations<'d>) {
        if !schema.has_rules || here.value.is_null() || self.has_ended || self.budget.has_ended() {
            return;
        }
        if !schema.rules.is_empty() && !self.is_unsound(here) {
            let weight = value::weight(here.value) + here.old.map_or(0, value::weight);
            let mut seen = Seen { here, schema, weight, context: None };
            for rule in &schema.rules {
                let Err(why) = self.rule(&mut seen, rule, found) else { continue };
                if self.noted.insert(std::ptr::from_ref(rule)) || self.has_ended {
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

    fn is_unsound(&self, here: &Place<'_, 'd>) -> bool {
        !self.unsound.is_empty() && self.unsound.contains(here.path.pointer().as_str())
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
        // Counted for each object, so that it does not matter which one compiled it first.
        let is_first = self.compiled.insert(std::ptr::from_ref(rule));
        let bytes = rule.text.len().min(program::MAX_BYTES);
        let look = if is_first { bytes * COST_OF_BYTE } else { 1 + bytes / BYTES_PER_LOOK };
        if !self.spend(look as u64) {
            self.has_ended = true;
            return Err(ENDED);
        }
        let program = rule.program()?;
        let here = seen.here;
        if program.reads_old && here.old.is_none() && !rule.with_new {
            return Ok(());
        }
        if !self.spend(cost::of(&program.expression, seen.weight)) {
            return Err(TOO_MUCH);
        }
        if seen.holds(rule, program) == Some(false) {
            let from = found.len();
            found.push_at(here, || here.path.pointer().join(&rule.below), Rule::Cel(rule));
            if program.reads_old {
                found.mark_all(from, false);
            }
        }
        Ok(())
    }
}

impl Seen<'_, '_> {
    /// Whether a rule holds; `None` if it meets an error.
    fn holds(&mut self, rule: &CelRule, program: &Program) -> Option<bool> {
        let Self { here, schema, context, .. } = self;
        let context = context.get_or_insert_with(|| {
            let mut context = functions::CONTEXT.new_inner_scope();
            context.add_variable_from_value("self", value::seen(here.value, Some(schema), None));
            context
        });
        if !program.reads_old {
            return program.holds(context);
        }
        let old = here.old.map(|old| value::seen(old, Some(schema), Some(here.value)));
        let old = if rule.with_new {
            Value::Opaque(Arc::new(old.map_or_else(OptionalValue::none, OptionalValue::of)))
        } else {
            old.unwrap_or(Value::Null)
        };
        let mut context = context.new_inner_scope();
        context.add_variable_from_value("oldSelf", old);
        program.holds(&context)
    }
}

#[cfg(test)]
mod tests;
