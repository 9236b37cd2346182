//! The objects of an exported policy.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{Validation, Variable};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::cel_policies::{new, old, policy_binding, validating_policy, variable};
use crate::metadata::string_map;
use memgate_model::cel_view::{BEFORE, CelView, LABELS};
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::policy::{Action, Policy};
use memgate_policy::in_cel::list;

use super::matching;
use super::rules::Check;

/// How many elements of a list the expressions read: the apiserver bounds their cost.
const MAX_ELEMENTS: usize = 64;

/// The policy and the binding for a family and an action.
pub(super) fn pair(
    policy: &Policy,
    family: &Family,
    action: Action,
    checks: &[Check],
    excluded: &[String],
) -> [Value; 2] {
    let name = format!("memgate-policy-{}-{}-{}", policy.name, family.name, action.name());
    let metadata = metadata(name, policy, family, action);
    let kinds: BTreeSet<&Kind> = checks.iter().flat_map(|check| check.kinds.iter().copied()).collect();
    let kinds: Vec<&Kind> = kinds.into_iter().collect();
    let validations: Vec<Validation> = checks.iter().map(|check| validation(check, action)).collect();
    let spec = json!({
        // An object must not be admitted when a rule that could deny it fails to evaluate.
        "failurePolicy": if action == Action::Deny { "Fail" } else { "Ignore" },
        "matchConditions": matching::conditions(&policy.matching, (family, &kinds), excluded),
        "matchConstraints": matching::resources(&policy.matching, &kinds),
        "validations": validations,
        "variables": needed(variables(checks), &validations),
    });
    [validating_policy(&metadata, &spec), policy_binding(&metadata, validation_action(action))]
}

/// The apiserver's name of an action.
const fn validation_action(action: Action) -> &'static str {
    match action {
        Action::Deny => "Deny",
        Action::Warn => "Warn",
        Action::Report | Action::None => "Audit",
    }
}

/// The name of a policy has at most 63 characters, so a label can hold it.
fn metadata(name: String, policy: &Policy, family: &Family, action: Action) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        labels: Some(string_map(&[
            ("policy.memgate.dev/policy", &policy.name),
            ("policy.memgate.dev/family", family.name),
            ("policy.memgate.dev/action", action.name()),
        ])),
        ..ObjectMeta::default()
    }
}

fn validation(check: &Check, action: Action) -> Validation {
    let (counted, _) = check.counted();
    Validation {
        expression: format!("size(variables.{counted}) == 0"),
        message: Some(format!("breaks the rule {}", check.rule)),
        message_expression: Some(check.message()),
        reason: (action == Action::Deny).then(|| "Invalid".to_owned()),
    }
}

/// The variables of all checks, each before those that need it.
fn variables(checks: &[Check]) -> Vec<Variable> {
    let indices: Vec<String> = (0..MAX_ELEMENTS).map(|index| index.to_string()).collect();
    let indices = format!("[{}]", indices.join(", "));
    let labels = "has(self.metadata.labels) ? self.metadata.labels : {}";
    let mut all = vec![variable("indices", indices.clone()), variable(&format!("indices{BEFORE}"), indices)];
    twice(&mut all, LABELS, labels, "{}");
    let mut seen = BTreeSet::new();
    for check in checks.iter().filter(|check| seen.insert(check.view.name)) {
        add_view(&mut all, check.view, &check.kinds);
    }
    let mut named = BTreeSet::new();
    for check in checks {
        if named.insert(check.name.clone()) {
            all.push(variable(&check.name, check.faults.clone()));
            let stored = check.stored.iter();
            all.extend(stored.map(|stored| variable(&format!("{}{BEFORE}", check.name), stored.clone())));
        }
        let (counted, value) = check.counted();
        all.extend(value.map(|value| variable(&counted, value)));
    }
    all
}

fn add_view(all: &mut Vec<Variable>, view: &CelView, kinds: &[&Kind]) {
    for part in view.lets {
        twice(all, part.name, part.value, "");
    }
    for path in view.paths {
        twice(all, &path.variable(view.name), path.entries, "[]");
    }
    let kinds: Vec<String> = kinds.iter().map(|kind| format!("{}/{}", kind.group, kind.kind)).collect();
    let kind = "request.kind.group + '/' + request.kind.kind";
    let viewed = format!("{kind} in {} && ({})", list(&kinds), view.viewed);
    let stored = format!("oldObject != null && {}", old(&viewed));
    let name = format!("{}_viewed", view.name);
    all.extend([variable(&name, new(&viewed)), variable(&format!("{name}{BEFORE}"), stored)]);
}

/// A variable about the object, and the same about the stored object. `absent` is the value of the second when no object
/// is stored; it is empty when no expression reads the variable then.
fn twice(all: &mut Vec<Variable>, name: &str, value: &str, absent: &str) {
    let stored = old(value);
    let stored =
        if absent.is_empty() { stored } else { format!("oldObject == null ? {absent} : ({stored})") };
    all.extend([variable(name, new(value)), variable(&format!("{name}{BEFORE}"), stored)]);
}

/// The variables that the validations need.
fn needed(variables: Vec<Variable>, validations: &[Validation]) -> Vec<Variable> {
    let mut texts: Vec<String> = validations
        .iter()
        .flat_map(|it| [Some(it.expression.clone()), it.message_expression.clone()])
        .flatten()
        .collect();
    let mut kept = Vec::new();
    for variable in variables.into_iter().rev() {
        if texts.iter().any(|text| mentions(text, &variable.name)) {
            texts.push(variable.expression.clone());
            kept.push(variable);
        }
    }
    kept.reverse();
    kept
}

/// Whether an expression reads the variable of this name.
fn mentions(expression: &str, name: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let read = format!("variables.{name}");
    expression.match_indices(&read).any(|(at, _)| expression.get(at + read.len()..).is_some_and(is_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_variables_that_are_read() {
        let variables = ["a", "a_before", "b"]
            .map(|name| variable(name, if name == "b" { "variables.a" } else { "1" }.to_owned()));
        let validation = Validation { expression: "variables.b == 1".to_owned(), ..Validation::default() };
        let kept = needed(variables.into(), &[validation]);
        assert_eq!(kept.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }
}
