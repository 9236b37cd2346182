//! The rules in CEL of a definition (`x-kubernetes-validations`).
//!
//! A rule is evaluated for each value that its node has, after everything else of the schema was checked, and not where
//! the value, or one in it, is missing or has the wrong type. A rule that meets an error is silent: what is wrong there,
//! the schema reports. A rule that memgate cannot evaluate has a note. Rules come with the definition, so they are
//! input too: how long and how deep one may be is bounded, and each step counts in the budget.
//! Source: Kubernetes documentation, "Validation rules"; k8s.io/apiextensions-apiserver, `schema/cel/validation.go`.
//!
//! The crate `cel`, and `kube-cel` on top of it, have no bound on steps or on the size of what a rule makes, compile a
//! pattern each time that it is used, and copy the object. So the evaluator is memgate's own.

mod evaluate;
mod lexer;
mod library;
pub(crate) mod program;
mod value;

use serde_json::Value as Json;

use crate::cel::evaluate::Machine;
use crate::cel::program::Program;
use crate::cel::value::{Fault, Value};
use crate::check::OldElements;
use crate::crd::{CelRule, SchemaNode};
use crate::place::Place;
use crate::violation::{Rule, Violations};
use memgate_primitives::budget::Budget;
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Pointer;

/// Compiles a rule.
pub(crate) fn compile(text: &str) -> Result<Program, String> {
    program::parse(text)
}

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
    let mut walk = Walk { budget, unsound: unsound(found), noted: Members::default(), stopped: None };
    let (stopped, over) = budget.apart(bytes, || {
        walk.check(root, schema, found);
        walk.stopped
    });
    if let (Some((pointer, rule)), Some(_)) = (stopped, over) {
        found.push_at(root, || pointer, Rule::NotEvaluated(rule, "it takes too many steps"));
    }
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
    unsound: Members<Box<str>>,
    /// The rules that have their note.
    noted: Members<*const CelRule>,
    /// Where the budget ended.
    stopped: Option<(Pointer, &'d CelRule)>,
}

impl<'d> Walk<'d> {
    fn check(&mut self, here: &Place<'_, 'd>, schema: &'d SchemaNode, found: &mut Violations<'d>) {
        if !schema.has_rules || here.value.is_null() || self.stopped.is_some() {
            return;
        }
        if !schema.rules.is_empty() && !self.is_unsound(here) {
            for rule in &schema.rules {
                self.rule(here, schema, rule, found);
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

    fn rule(
        &mut self,
        here: &Place<'_, 'd>,
        schema: &'d SchemaNode,
        rule: &'d CelRule,
        found: &mut Violations<'d>,
    ) {
        if self.stopped.is_some() {
            return;
        }
        // Counted each time, so that it does not matter who compiled it first.
        if !self.budget.bytes(rule.text.len()) {
            self.stopped = Some((here.path.pointer(), rule));
            return;
        }
        let program = match rule.program() {
            Ok(program) => program,
            Err(why) => {
                if self.noted.insert(std::ptr::from_ref(rule)) {
                    found.push_at(here, || here.path.pointer(), Rule::NotEvaluated(rule, why));
                }
                return;
            }
        };
        if program.reads_old && here.old.is_none() && !rule.with_new {
            return;
        }
        match self.evaluate(here, schema, rule, program) {
            Ok(false) => {
                let from = found.len();
                found.push_at(here, || here.path.pointer().join(&rule.below), Rule::Cel(rule));
                if program.reads_old {
                    found.mark_all(from, false);
                }
            }
            Ok(true) | Err(Fault::Error) => {}
            Err(Fault::Stop) => self.stopped = Some((here.path.pointer(), rule)),
        }
    }

    fn evaluate(
        &self,
        here: &Place<'_, 'd>,
        schema: &'d SchemaNode,
        rule: &CelRule,
        program: &'d Program,
    ) -> Result<bool, Fault> {
        let old =
            here.old.filter(|_| program.reads_old).map(|old| Value::stored(old, Some(schema))).transpose()?;
        let old = match old {
            old if rule.with_new => Value::Optional(old.map(std::rc::Rc::new)),
            old => old.unwrap_or(Value::Null),
        };
        let variables = vec![Value::stored(here.value, Some(schema))?, old];
        Machine { budget: self.budget, variables }.flag(&program.root)
    }
}

#[cfg(test)]
mod tests;
