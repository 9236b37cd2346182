//! Reads the manifest of a policy or an exemption, with all its faults.

mod exemption;
mod matching;
mod rule;

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

use memgate_model::family::Family;
use memgate_model::finding::{Cause, Finding};
use memgate_model::policy::{
    Action, ActionOverrides, Actions, Exemption, ExemptionTerms, Policy, Promotion, Rule,
};
use memgate_primitives::budget::Budget;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::{quoted, quoted_text};

use super::defaults;
use super::names::namespaces;
use super::reader::{Fields, PolicyReading, Reader};
use super::values::{DAY, positive, timestamp};

/// The most characters of the name of a policy or exemption.
pub const MAX_NAME: usize = 63;

/// The fields of every object.
const OBJECT_FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// The most rules of a policy.
const MAX_RULES: usize = 64;

/// The most defaults of a policy.
const MAX_DEFAULTS: usize = 32;

/// The longest that an exemption may last.
const MAX_AGE: i128 = 366 * DAY;

/// The words for actions.
pub(super) const ACTIONS: [(&str, Action); 4] =
    [("deny", Action::Deny), ("warn", Action::Warn), ("report", Action::Report), ("none", Action::None)];

/// A policy with its faults. A policy with faults is not in force.
pub fn policy(manifest: &Value, families: &[&'static Family]) -> (Policy, Vec<Finding>) {
    policy_within(manifest, families, &Budget::default())
}

/// The same within a budget.
pub(super) fn policy_within(
    manifest: &Value,
    families: &[&'static Family],
    budget: &Budget<'_>,
) -> (Policy, Vec<Finding>) {
    let (mut policy, faults) = PolicyReading::read(manifest, families, budget, |reader| {
        let fields = reader.fields(&OBJECT_FIELDS);
        let name = name(fields.as_ref());
        let spec = fields.and_then(|fields| fields.required("spec")).and_then(|spec| {
            spec.fields(&["match", "actions", "promote", "existing", "rules", "defaults", "exemptions"])
        });
        Policy { name: name.clone(), ..spec.map(|spec| of_spec(&name, &spec)).unwrap_or_default() }
    });
    if let Some(first) = faults.first() {
        policy.invalid = Some(first.message().into_owned());
        policy.rules.clear();
        policy.defaults.clear();
    }
    (policy, faults)
}

/// An exemption with its faults; `None` if it has any.
pub fn exemption(manifest: &Value, families: &[&'static Family]) -> (Option<Exemption>, Vec<Finding>) {
    exemption_within(manifest, families, &Budget::default())
}

/// The same within a budget.
pub(super) fn exemption_within(
    manifest: &Value,
    families: &[&'static Family],
    budget: &Budget<'_>,
) -> (Option<Exemption>, Vec<Finding>) {
    let (exemption, faults) = PolicyReading::read(manifest, families, budget, |reader| {
        let fields = reader.fields(&OBJECT_FIELDS);
        let name = name(fields.as_ref());
        let metadata = manifest.pointer("/metadata/namespace").and_then(Value::as_str);
        let namespace = metadata.unwrap_or_default().to_owned();
        fields
            .and_then(|fields| fields.required("spec"))
            .and_then(|spec| exemption::read(&spec, namespace, name))
    });
    (exemption.filter(|_| faults.is_empty()), faults)
}

/// The name. An object with `generateName` has none yet.
fn name(fields: Option<&Fields<'_>>) -> String {
    let metadata = fields.and_then(|fields| fields.get("metadata")).and_then(|it| it.any_fields());
    let Some(reader) = metadata.as_ref().and_then(|metadata| metadata.get("name")) else {
        let generates = metadata.as_ref().is_some_and(|metadata| metadata.has("generateName"));
        if let Some(fields) = fields.filter(|_| !generates) {
            fields.fault("metadata", Cause::Required, "has no name");
        }
        return String::new();
    };
    let Value::String(name) = reader.value() else { return String::new() };
    if name.len() > MAX_NAME || !is_dns_subdomain(name) {
        reader.fault(
            Cause::Invalid,
            &format!("{} is not a name; use at most {MAX_NAME} of a-z, 0-9, \"-\" and \".\"", quoted(name)),
        );
    }
    name.clone()
}

fn of_spec(name: &str, spec: &Fields<'_>) -> Policy {
    let matching = spec.get("match").and_then(|it| matching::read(&it)).unwrap_or_default();
    let actions = spec.get("actions").map(|it| actions_at(&it)).unwrap_or_default();
    let rules = rules(name, spec);
    let defaults = spec.get("defaults").map(|it| it.list(0, MAX_DEFAULTS)).unwrap_or_default();
    let defaults = defaults.iter().filter_map(defaults::read).collect::<Vec<_>>();
    let is_empty = |field| spec.get(field).is_none_or(|it| it.value().as_array().is_some_and(Vec::is_empty));
    if is_empty("rules") && is_empty("defaults") {
        spec.fault("rules", Cause::Required, "is required; a policy without rules needs defaults");
    }
    Policy {
        matching,
        actions,
        promote: spec.get("promote").and_then(|it| promote(&it, actions.admission)),
        enforces_existing: spec.choice("existing", &[("ratchet", false), ("enforce", true)]) == Some(true),
        rules,
        defaults,
        exemptions: spec.get("exemptions").and_then(|it| terms(&it)),
        ..Policy::default()
    }
}

fn actions_at(reader: &Reader<'_>) -> Actions {
    let (given, default) = (overrides(reader, &AUDIT_ACTIONS), Actions::default());
    Actions {
        admission: given.admission.unwrap_or(default.admission),
        ci: given.ci.unwrap_or(default.ci),
        audit: given.audit.unwrap_or(default.audit),
    }
}

/// The words for what an audit does, which can refuse nothing.
const AUDIT_ACTIONS: [(&str, Action); 2] = [("report", Action::Report), ("off", Action::None)];

/// The words for what an audit does of a rule, which may drop it as elsewhere.
pub(super) const RULE_AUDIT_ACTIONS: [(&str, Action); 3] =
    [("report", Action::Report), ("off", Action::None), ("none", Action::None)];

/// The actions that are given, with these words for that of an audit.
fn overrides(reader: &Reader<'_>, of_audit: &[(&str, Action)]) -> ActionOverrides {
    let Some(fields) = reader.fields(&["admission", "ci", "audit"]) else {
        return ActionOverrides::default();
    };
    ActionOverrides {
        admission: fields.choice("admission", &ACTIONS),
        ci: fields.choice("ci", &ACTIONS),
        audit: fields.choice("audit", of_audit),
    }
}

fn promote(reader: &Reader<'_>, admission: Action) -> Option<Promotion> {
    let fields = reader.fields(&["at", "to"])?;
    let at = fields.required("at").and_then(|at| instant(&at));
    let to = fields.required("to").and_then(|to| to.choice(&ACTIONS));
    if let Some(to) = to.filter(|to| *to <= admission) {
        let message =
            format!("{} is not stricter than actions.admission, which is {}", to.name(), admission.name());
        fields.fault("to", Cause::Invalid, &message);
    }
    Some(Promotion { at: at?, to: to? })
}

/// A point in time.
fn instant(reader: &Reader<'_>) -> Option<jiff::Timestamp> {
    let text = reader.text(64)?;
    let instant = timestamp(text);
    if instant.is_none() {
        let message =
            format!("{} is not a point in time; write it like 2027-01-15T00:00:00Z", quoted_text(text));
        reader.fault(Cause::Invalid, &message);
    }
    instant
}

fn terms(reader: &Reader<'_>) -> Option<ExemptionTerms> {
    let fields = reader.fields(&["namespaces", "maxAge"])?;
    let namespaces = fields.required("namespaces").map(|it| namespaces(&it));
    let max_age = fields.required("maxAge").and_then(|it| max_age(&it));
    Some(ExemptionTerms { namespaces: namespaces?.into_iter().collect(), max_age: max_age? })
}

fn max_age(reader: &Reader<'_>) -> Option<i128> {
    let (_, age) = positive(reader)?;
    if age > MAX_AGE {
        reader.fault(Cause::Invalid, "must be at most 366d");
    }
    Some(age).filter(|age| *age <= MAX_AGE)
}

fn rules(policy: &str, spec: &Fields<'_>) -> Vec<Rule> {
    let elements = spec.get("rules").map(|it| it.list(0, MAX_RULES)).unwrap_or_default();
    let seen = RefCell::new(BTreeSet::new());
    elements.iter().filter_map(|element| rule::read(policy, element, &seen)).collect()
}
