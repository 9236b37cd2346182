//! Policies that the apiserver evaluates by itself: they refuse objects that cannot work even while no replica of
//! memgate runs.
//!
//! Each table of a family becomes a ValidatingAdmissionPolicy with its binding, each default that it writes a
//! MutatingAdmissionPolicy. The family has the text of the rules. This module has the common parts: the matched
//! requests, the treatment of faults that the stored object already has, and the form of the message.

use k8s_openapi::api::admissionregistration::v1::{
    JSONPatch, MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpec, MutatingAdmissionPolicySpec, Mutation, NamedRuleWithOperations,
    ParamKind, ParamRef, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::deploy::entry::{condition, not_deleting};
use crate::deploy::metadata::suffixed_metadata;
use memgate_model::cel::{CelDefault, CelRule, CelTable};
use memgate_model::family::Family;
use memgate_model::kind::Kind;

/// The policies that refuse, each with its binding, for an installation of this name.
pub fn validating(name: &str, families: &[&'static Family]) -> impl Iterator<Item = Value> {
    families.iter().flat_map(move |family| {
        family.in_cel.tables.iter().flat_map(move |table| {
            let policy = policy(name, table, family.validation.fails_open);
            [json!(policy), json!(policy_binding(policy.metadata.clone(), "Deny"))]
        })
    })
}

/// The policies that write defaults, each with its binding, for an installation of this name.
pub(super) fn mutating(name: &str, families: &[&'static Family]) -> impl Iterator<Item = Value> {
    let written = families.iter().flat_map(|family| family.in_cel.defaults);
    written.flat_map(move |default| [json!(writer(name, default)), json!(writer_binding(name, default))])
}

fn policy(installation: &str, table: &CelTable, fail_open: bool) -> ValidatingAdmissionPolicy {
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
    ValidatingAdmissionPolicy {
        metadata: suffixed_metadata(installation, table.name),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some(if fail_open { "Ignore" } else { "Fail" }.to_owned()),
            match_constraints: Some(constraints(table.kinds, &["CREATE", "UPDATE"])),
            match_conditions: Some(vec![not_deleting(table.kinds)]),
            variables: Some(variables),
            validations: Some(named(table.rules).map(validation).collect()),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        ..ValidatingAdmissionPolicy::default()
    }
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

/// The binding of a policy, with its metadata. Without it the policy has no effect.
pub(super) fn policy_binding(metadata: ObjectMeta, action: &str) -> ValidatingAdmissionPolicyBinding {
    ValidatingAdmissionPolicyBinding {
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: metadata.name.clone().unwrap_or_default(),
            validation_actions: vec![action.to_owned()],
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
        metadata,
    }
}

fn writer(installation: &str, default: &CelDefault) -> MutatingAdmissionPolicy {
    MutatingAdmissionPolicy {
        metadata: suffixed_metadata(installation, default.name),
        spec: Some(MutatingAdmissionPolicySpec {
            // A default that is not written is one that the platform finds by itself later.
            failure_policy: Some("Ignore".to_owned()),
            match_constraints: Some(constraints(&[default.kind], &["CREATE"])),
            match_conditions: Some(default.conditions.iter().copied().map(condition).collect()),
            param_kind: Some(ParamKind {
                api_version: Some(default.param.api_version()),
                kind: Some(default.param.kind.to_owned()),
            }),
            mutations: Some(vec![Mutation {
                patch_type: "JSONPatch".to_owned(),
                json_patch: Some(JSONPatch { expression: Some(default.patch.to_owned()) }),
                apply_configuration: None,
            }]),
            reinvocation_policy: Some("IfNeeded".to_owned()),
            variables: None,
        }),
    }
}

/// The parameter is looked up in the namespace of the request; without it nothing is written.
fn writer_binding(installation: &str, default: &CelDefault) -> MutatingAdmissionPolicyBinding {
    let metadata = suffixed_metadata(installation, default.name);
    MutatingAdmissionPolicyBinding {
        spec: Some(MutatingAdmissionPolicyBindingSpec {
            policy_name: metadata.name.clone(),
            param_ref: Some(ParamRef {
                name: Some(default.param_name.to_owned()),
                parameter_not_found_action: Some("Allow".to_owned()),
                ..ParamRef::default()
            }),
            match_resources: None,
        }),
        metadata,
    }
}

pub(super) fn constraints(kinds: &[&Kind], operations: &[&str]) -> MatchResources {
    let rule = |kind: &&Kind| NamedRuleWithOperations {
        api_groups: Some(vec![kind.group.to_owned()]),
        api_versions: Some(vec![kind.version.to_owned()]),
        resources: Some(vec![kind.plural.to_owned()]),
        operations: Some(operations.iter().map(|operation| (*operation).to_owned()).collect()),
        scope: Some(if kind.namespaced { "Namespaced" } else { "Cluster" }.to_owned()),
        resource_names: None,
    };
    MatchResources { resource_rules: Some(kinds.iter().map(rule).collect()), ..MatchResources::default() }
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
