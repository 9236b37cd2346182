//! The requests that an exported policy matches.

use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use serde_json::{Value, json};

use crate::cel_policies::resource_rules;
use crate::entry::{condition, not_deleting};
use memgate_model::family::Family;
use memgate_model::kind::{Kind, SYSTEM_NAMESPACES};
use memgate_model::label_selector::{self, SelectorOperator};
use memgate_model::policy::Match;
use memgate_model::request::Operation;
use memgate_policy::in_cel::{globs, list, literal};
use memgate_primitives::glob::Glob;

/// The namespace of a request; for a Namespace its own name, and empty for another object without a namespace.
const NAMESPACE: &str = "(request.kind.kind == 'Namespace' ? object.metadata.name : \
    has(request.namespace) ? request.namespace : '')";

/// The constraints that the apiserver matches without CEL.
pub(super) fn resources(matching: &Match, kinds: &[&Kind]) -> Value {
    let is_wanted = |it: &Operation| matching.operations.as_ref().is_none_or(|wanted| wanted.contains(it));
    let operations = [Operation::Create, Operation::Update].into_iter().filter(is_wanted);
    let operations: Vec<&str> = operations.map(Operation::name).collect();
    let selectors =
        [("namespaceSelector", &matching.namespace_selector), ("objectSelector", &matching.object_selector)];
    let selectors =
        selectors.into_iter().filter_map(|(name, value)| Some((name, json!(selector(value.as_ref()?)))));
    selectors.chain([("resourceRules", resource_rules(kinds, &operations))]).collect()
}

fn selector(selector: &label_selector::LabelSelector) -> LabelSelector {
    let requirement = |it: &label_selector::Requirement| LabelSelectorRequirement {
        key: it.key.clone(),
        operator: match it.operator {
            SelectorOperator::In => "In",
            SelectorOperator::NotIn => "NotIn",
            SelectorOperator::Exists => "Exists",
            SelectorOperator::DoesNotExist => "DoesNotExist",
        }
        .to_owned(),
        values: Some(it.values.clone()).filter(|values| !values.is_empty()),
    };
    LabelSelector {
        match_expressions: Some(selector.requirements.iter().map(requirement).collect()),
        match_labels: None,
    }
}

/// Whether a selector fits the labels of an object. An apiserver asks a selector of namespaces only about objects that
/// have one.
fn selects(selector: &label_selector::LabelSelector, object: &str) -> String {
    let labels = format!("(has({object}.metadata.labels) ? {object}.metadata.labels : {{}})");
    let requirement = |it: &label_selector::Requirement| {
        let key = literal(&it.key);
        let (exists, values) = (format!("{key} in {labels}"), list(&it.values));
        match it.operator {
            SelectorOperator::In => format!("({exists} && {labels}[{key}] in {values})"),
            SelectorOperator::NotIn => format!("!({exists} && {labels}[{key}] in {values})"),
            SelectorOperator::Exists => format!("({exists})"),
            SelectorOperator::DoesNotExist => format!("!({exists})"),
        }
    };
    let all: Vec<String> = selector.requirements.iter().map(requirement).collect();
    if all.is_empty() { "true".to_owned() } else { format!("({})", all.join(" && ")) }
}

/// The further conditions, in CEL.
pub(super) fn conditions(
    matching: &Match,
    (family, kinds): (&Family, &[&Kind]),
    excluded: &[String],
) -> Vec<MatchCondition> {
    let namespaces: Vec<String> =
        SYSTEM_NAMESPACES.iter().map(|name| (*name).to_owned()).chain(excluded.iter().cloned()).collect();
    let fits = |subject: &str, patterns: &[Glob]| {
        format!("{subject}.matches({})", globs(patterns.iter().map(Glob::as_str)))
    };
    let mut all = vec![
        not_deleting(&[family], kinds),
        condition(("not-excluded", &format!("!({NAMESPACE} in {})", list(&namespaces)))),
    ];
    let mut add = |name: &str, expression: String| all.push(condition((name, &expression)));
    // What has no namespace is in none of the wanted namespaces, and in none of the excluded ones.
    if let Some(patterns) = &matching.namespaces {
        add("namespaces", format!("{NAMESPACE} != '' && {}", fits(NAMESPACE, patterns)));
    }
    if !matching.exclude_namespaces.is_empty() {
        let excluded = fits(NAMESPACE, &matching.exclude_namespaces);
        add("exclude-namespaces", format!("{NAMESPACE} == '' || !{excluded}"));
    }
    let without_namespace = kinds.iter().filter(|kind| !kind.namespaced && kind.kind != "Namespace");
    let without_namespace: Vec<String> = without_namespace.map(|kind| kind.kind.to_owned()).collect();
    if let Some(selector) = matching.namespace_selector.as_ref().filter(|_| !without_namespace.is_empty()) {
        let (kinds, new, old) =
            (list(&without_namespace), selects(selector, "object"), selects(selector, "oldObject"));
        add(
            "namespace-selector",
            format!("!(request.kind.kind in {kinds}) || {new} || (oldObject != null && {old})"),
        );
    }
    if let Some(patterns) = &matching.names {
        add("names", fits("object.metadata.name", patterns));
    }
    if !matching.exclude_users.is_empty() {
        add("exclude-users", format!("!(request.userInfo.username in {})", list(&matching.exclude_users)));
    }
    if !matching.exclude_groups.is_empty() {
        let groups = list(&matching.exclude_groups);
        let expression = format!(
            "!has(request.userInfo.groups) || !request.userInfo.groups.exists(group, group in {groups})"
        );
        add("exclude-groups", expression);
    }
    all
}
