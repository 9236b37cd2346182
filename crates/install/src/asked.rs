//! Which entries of a webhook configuration ask memgate about anything.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, RuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1;

use memgate_model::label_selector::{LabelSelector, LabelValue, Requirement, SelectorOperator};
use memgate_model::object::Object;

/// Whether an entry can ask about something, as far as that shows, beside what is installed under its name (without such, itself):
/// a rule is about the same, no condition is `false`, no object needs a further label, and a Namespace of those that are known
/// fits. Where none is known none may need a further label.
pub fn asks(live: &MutatingWebhook, wanted: Option<&MutatingWebhook>, namespaces: &[&Object]) -> bool {
    let wanted = wanted.unwrap_or(live);
    let installed = || wanted.rules.iter().flatten();
    let has_rule = live.rules.iter().flatten().any(|live| installed().any(|rule| overlap(live, rule)));
    let is_off =
        live.match_conditions.iter().flatten().any(|condition| condition.expression.trim() == "false");
    let selector = read(live.namespace_selector.as_ref());
    let is_fit = |namespace: &&Object| {
        let label = |key: &str| namespace.label(key).map_or(LabelValue::Missing, LabelValue::Found);
        selector.matches(label) == Some(true)
    };
    let selects = if namespaces.is_empty() {
        !is_narrower(&selector, &read(wanted.namespace_selector.as_ref()))
    } else {
        namespaces.iter().any(is_fit)
    };
    let [objects, installed] = [live, wanted].map(|entry| read(entry.object_selector.as_ref()));
    has_rule && !is_off && selects && !is_narrower(&objects, &installed)
}

/// Whether two rules have a request in common.
fn overlap(a: &RuleWithOperations, b: &RuleWithOperations) -> bool {
    let shares = |a: &Option<Vec<String>>, b: &Option<Vec<String>>| {
        a.iter()
            .flatten()
            .any(|one| b.iter().flatten().any(|other| one == other || one == "*" || other == "*"))
    };
    shares(&a.api_groups, &b.api_groups)
        && shares(&a.api_versions, &b.api_versions)
        && shares(&a.resources, &b.resources)
        && shares(&a.operations, &b.operations)
}

/// Whether a selector needs a label that the other does not need.
fn is_narrower(selector: &LabelSelector, other: &LabelSelector) -> bool {
    let needs = |one: &&Requirement| matches!(one.operator, SelectorOperator::In | SelectorOperator::Exists);
    selector.requirements.iter().filter(needs).any(|one| !other.requirements.contains(one))
}

fn read(selector: Option<&v1::LabelSelector>) -> LabelSelector {
    let labels = selector.iter().flat_map(|it| it.match_labels.iter().flatten());
    let labels = labels.map(|(key, value)| (key, SelectorOperator::In, vec![value.clone()]));
    let expressions = selector.iter().flat_map(|it| it.match_expressions.iter().flatten()).filter_map(|it| {
        let operator = match it.operator.as_str() {
            "In" => SelectorOperator::In,
            "NotIn" => SelectorOperator::NotIn,
            "Exists" => SelectorOperator::Exists,
            "DoesNotExist" => SelectorOperator::DoesNotExist,
            _ => return None,
        };
        Some((&it.key, operator, it.values.clone().unwrap_or_default()))
    });
    let requirements = labels.chain(expressions);
    let requirement =
        |(key, operator, values): (&String, _, _)| Requirement { key: key.clone(), operator, values };
    LabelSelector { requirements: requirements.map(requirement).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use memgate_model::kind::NAMESPACE;

    fn entry(change: Value) -> MutatingWebhook {
        let mut entry = json!({
            "name": "pods.memgate.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            "namespaceSelector": {"matchExpressions": [{"key": "off", "operator": "DoesNotExist"}]},
            "objectSelector": {"matchLabels": {"agent": "yes"}},
        });
        if let (Value::Object(entry), Value::Object(change)) = (&mut entry, change) {
            entry.extend(change);
        }
        serde_json::from_value(entry).expect("an entry")
    }

    #[test]
    fn an_entry_that_can_match_nothing_asks_nothing() {
        let namespace = |labels: Value| {
            let object = json!({"metadata": {"name": "team", "labels": labels}});
            Object::read(&NAMESPACE, object).expect("it reads").expect("it has a name")
        };
        let (plain, off) = (namespace(json!({"team": "a"})), namespace(json!({"off": "yes"})));
        let rule = |resource: &str| json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource], "operations": ["*"]}]});
        let wanted = entry(json!({}));
        for (change, with, without) in [
            (json!({}), true, true),
            (rule("pods"), true, true),
            (rule("*"), true, true),
            (rule("nothings"), false, false),
            (json!({"rules": []}), false, false),
            (json!({"rules": null}), false, false),
            (json!({"matchConditions": [{"name": "never", "expression": " false "}]}), false, false),
            (json!({"matchConditions": [{"name": "some", "expression": "request.name != 'a'"}]}), true, true),
            (json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), true, false),
            (json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}), false, false),
            (
                json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}}),
                true,
                true,
            ),
            (json!({"namespaceSelector": null}), true, true),
            (json!({"objectSelector": null}), true, true),
            (json!({"objectSelector": {"matchLabels": {"agent": "yes", "never": "never"}}}), false, false),
        ] {
            let live = entry(change.clone());
            assert_eq!(asks(&live, Some(&wanted), &[&off, &plain]), with, "{change}");
            assert_eq!(asks(&live, Some(&wanted), &[]), without, "{change} where no Namespace is known");
        }
        assert!(!asks(&wanted, Some(&wanted), &[&off]));
        assert!(asks(&entry(rule("others")), None, &[&plain]), "an entry of another version");
    }
}
