//! Policies that the apiserver evaluates by itself: they refuse objects that cannot work even while no replica of
//! memgate runs.
//!
//! Each table of a family becomes a ValidatingAdmissionPolicy with its binding, each default that it writes a
//! MutatingAdmissionPolicy. The family has the text of the rules. This module has the common parts: the matched
//! requests, the treatment of faults that the stored object already has, and the form of the message.

use k8s_openapi::api::admissionregistration::v1::{Validation, Variable};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::entry::{condition, not_deleting};
use crate::install_plan::InstallPlan;
use crate::metadata::suffixed_metadata;
use crate::pause::family_not_paused;
use memgate_model::cel::{CelDefault, CelRule, CelTable};
use memgate_model::family::Family;
use memgate_model::kind::Kind;

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The policies that refuse, each with its binding.
pub fn validating(plan: &InstallPlan) -> impl Iterator<Item = Value> {
    plan.families.iter().flat_map(move |family| {
        family.in_cel.tables.iter().flat_map(move |table| {
            let metadata = suffixed_metadata(&plan.name, table.name);
            let spec = spec(plan, table, family);
            [validating_policy(&metadata, &spec), policy_binding(&metadata, "Deny")]
        })
    })
}

/// The policies that write defaults, each with its binding.
pub(super) fn mutating(plan: &InstallPlan) -> impl Iterator<Item = Value> {
    plan.families.iter().flat_map(move |family| {
        family.in_cel.defaults.iter().flat_map(move |default| writer(plan, family, default))
    })
}

fn spec(plan: &InstallPlan, table: &CelTable, family: &Family) -> Value {
    let mut variables = Vec::new();
    for part in table.lets {
        variables.push(variable(part.name, new(part.value)));
        variables.push(variable(&before(part.name), old(part.value)));
    }
    for (name, rule) in named(table.rules) {
        variables.push(variable(&name, new(rule.faults)));
        let stored = format!("oldObject == null ? [] : ({})", old(rule.faults));
        variables.push(variable(&before(&name), stored));
    }
    json!({
        "failurePolicy": if table.kinds.iter().all(|kind| family.fails_open(kind)) { "Ignore" } else { "Fail" },
        "matchConditions": [
            not_deleting(&[family], table.kinds), family_not_paused(&plan.namespace, family.name),
        ],
        "matchConstraints": {"resourceRules": resource_rules(table.kinds, &["CREATE", "UPDATE"])},
        "validations": named(table.rules).map(validation).collect::<Vec<_>>(),
        "variables": variables,
    })
}

/// Allows only faults that the stored object has too.
fn validation((name, rule): (String, &CelRule)) -> Validation {
    Validation {
        expression: format!("variables.{name}.all(fault, fault in variables.{})", before(&name)),
        message: Some(rule.message.to_owned() + &rule.code.in_text()),
        reason: Some("Invalid".to_owned()),
        ..Validation::default()
    }
}

/// A policy that refuses or warns.
pub(super) fn validating_policy(metadata: &ObjectMeta, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec})
}

/// The binding of a policy, with its metadata. Without it the policy has no effect.
pub(super) fn policy_binding(metadata: &ObjectMeta, action: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": metadata.name, "validationActions": [action]},
    })
}

/// The policy that writes a default, and its binding. The parameter is looked up in the namespace of the request; without
/// it nothing is written, and the platform finds by itself later what a default would be.
fn writer(plan: &InstallPlan, family: &Family, default: &CelDefault) -> [Value; 2] {
    let metadata = suffixed_metadata(&plan.name, default.name);
    let own = default.conditions.iter().copied().map(condition);
    let conditions: Vec<_> = own.chain([family_not_paused(&plan.namespace, family.name)]).collect();
    let policy = json!({
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Ignore",
            "matchConditions": conditions,
            "matchConstraints": {"resourceRules": resource_rules(&[default.kind], &["CREATE"])},
            "mutations": [{"jsonPatch": {"expression": default.patch}, "patchType": "JSONPatch"}],
            "paramKind": {"apiVersion": default.param.api_version(), "kind": default.param.kind},
            "reinvocationPolicy": "IfNeeded",
        },
    });
    let binding = json!({
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {
            "paramRef": {"name": default.param_name, "parameterNotFoundAction": "Allow"},
            "policyName": metadata.name,
        },
    });
    [policy, binding]
}

pub(super) fn resource_rules(kinds: &[&Kind], operations: &[&str]) -> Value {
    let rule = |kind: &&Kind| {
        json!({
            "apiGroups": [kind.group],
            "apiVersions": [kind.version],
            "operations": operations,
            "resources": [kind.plural],
            "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        })
    };
    kinds.iter().map(rule).collect()
}

pub(super) fn variable(name: &str, expression: String) -> Variable {
    Variable { name: name.to_owned(), expression }
}

/// Each rule with the name of its variable; rules of one code are numbered.
fn named(rules: &[CelRule]) -> impl Iterator<Item = (String, &CelRule)> {
    rules.iter().enumerate().map(|(index, rule)| {
        let earlier = rules.iter().take(index).filter(|other| other.code == rule.code).count();
        let code = rule.code.name.split_once('/').map_or(rule.code.name, |(_, code)| code);
        let number = if earlier == 0 { String::new() } else { format!("_{}", earlier + 1) };
        (format!("{}{number}", code.replace('-', "_")), rule)
    })
}

/// The name of a variable about the stored object.
fn before(name: &str) -> String {
    format!("{name}_before")
}

pub(super) fn new(expression: &str) -> String {
    about("object", "", expression)
}

/// The expression about the stored object; the caller guards it, since there may be none.
pub(super) fn old(expression: &str) -> String {
    about("oldObject", "_before", expression)
}

/// An expression of a table about one object; variables about it have this at their end.
fn about(object: &str, end: &str, expression: &str) -> String {
    let mut parts = expression.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let (name, rest) = part.split_at(part.find(|c| !is_name(c)).unwrap_or(part.len()));
        // In a regular expression it is the end of the text.
        match name {
            "" => text.push('$'),
            name => text.extend(["variables.", name, end]),
        }
        text.push_str(rest);
    }
    text.replace("self.", &format!("{object}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_expressions_for_both_objects() {
        let expression = "$a_b == 'x' && self.spec.c.matches('^[$]$') ? [self.spec] : []";
        assert_eq!(
            about("object", "", expression),
            "variables.a_b == 'x' && object.spec.c.matches('^[$]$') ? [object.spec] : []"
        );
        assert_eq!(
            about("oldObject", "_before", expression),
            "variables.a_b_before == 'x' && oldObject.spec.c.matches('^[$]$') ? [oldObject.spec] : []"
        );
    }
}
