//! One entry of a webhook configuration, mutating or validating, and what it is asked about.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, RuleWithOperations, ValidatingWebhook, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// What both sorts of webhooks have.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Where it is called.
    pub client: WebhookClientConfig,
    /// Whether requests are refused when it does not answer.
    pub fails: bool,
    /// For how many seconds it is waited for.
    pub seconds: i32,
    /// Whether it is asked again when another one changed something; mutating entries only.
    pub again: Option<bool>,
    /// What it is asked about.
    pub rules: Vec<RuleWithOperations>,
    /// In which namespaces.
    pub namespaces: LabelSelector,
    /// About which objects.
    pub objects: LabelSelector,
    /// When.
    pub conditions: Vec<MatchCondition>,
}

/// The label that every namespace has, with its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The defaults of the API. Source: k8s.io/api, admissionregistration/v1.
const SECONDS: i32 = 10;

impl From<&MutatingWebhook> for Entry {
    fn from(webhook: &MutatingWebhook) -> Self {
        Self {
            name: webhook.name.clone(),
            client: webhook.client_config.clone(),
            fails: webhook.failure_policy.as_deref() != Some("Ignore"),
            seconds: webhook.timeout_seconds.unwrap_or(SECONDS),
            again: Some(webhook.reinvocation_policy.as_deref() == Some("IfNeeded")),
            rules: webhook.rules.clone().unwrap_or_default(),
            namespaces: webhook.namespace_selector.clone().unwrap_or_default(),
            objects: webhook.object_selector.clone().unwrap_or_default(),
            conditions: webhook.match_conditions.clone().unwrap_or_default(),
        }
    }
}

impl From<&ValidatingWebhook> for Entry {
    fn from(webhook: &ValidatingWebhook) -> Self {
        Self {
            name: webhook.name.clone(),
            client: webhook.client_config.clone(),
            fails: webhook.failure_policy.as_deref() != Some("Ignore"),
            seconds: webhook.timeout_seconds.unwrap_or(SECONDS),
            again: None,
            rules: webhook.rules.clone().unwrap_or_default(),
            namespaces: webhook.namespace_selector.clone().unwrap_or_default(),
            objects: webhook.object_selector.clone().unwrap_or_default(),
            conditions: webhook.match_conditions.clone().unwrap_or_default(),
        }
    }
}

/// The entries of a configuration.
pub fn entries<'w, W>(webhooks: Option<&'w Vec<W>>) -> Vec<Entry>
where
    Entry: From<&'w W>,
{
    webhooks.into_iter().flatten().map(Entry::from).collect()
}

impl Entry {
    /// Whether it is asked when pods are created, as far as its rules tell.
    #[must_use]
    pub fn asks_about_new_pods(&self) -> bool {
        self.rules.iter().any(|rule| {
            holds(rule.operations.as_ref(), "CREATE")
                && holds(rule.api_groups.as_ref(), "")
                && holds(rule.api_versions.as_ref(), "v1")
                && rule
                    .resources
                    .iter()
                    .flatten()
                    .any(|resource| matches!(resource.as_str(), "*" | "*/*" | "pods"))
                && rule.scope.as_deref() != Some("Cluster")
        })
    }

    /// Whether it is asked in a namespace with these labels.
    #[must_use]
    pub fn selects_namespace(&self, labels: &BTreeMap<String, String>) -> bool {
        selects(&self.namespaces, labels)
    }

    /// Whether it is asked about an object with these labels.
    #[must_use]
    pub fn selects_object(&self, labels: &BTreeMap<String, String>) -> bool {
        selects(&self.objects, labels)
    }

    /// The namespace of the Service that it is, if it is one.
    #[must_use]
    pub fn home(&self) -> Option<&str> {
        self.client.service.as_ref().map(|service| service.namespace.as_str())
    }
}

fn holds(list: Option<&Vec<String>>, wanted: &str) -> bool {
    list.into_iter().flatten().any(|item| item == "*" || item == wanted)
}

/// Whether labels fulfil a selector. An operator that nobody knows selects nothing.
#[must_use]
pub fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    selector.match_labels.iter().flatten().all(equal)
        && selector.match_expressions.iter().flatten().all(|requirement| fulfils(requirement, labels))
}

fn fulfils(requirement: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let listed =
        || value.is_some_and(|value| requirement.values.iter().flatten().any(|known| known == value));
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// Whether a selector leaves out a namespace by its name, whatever its labels.
#[must_use]
pub fn leaves_out(selector: &LabelSelector, namespace: &str) -> bool {
    let labels = [(NAME_LABEL.to_owned(), namespace.to_owned())].into();
    let mut by_name = requirements(selector).into_iter().filter(|one| one.key == NAME_LABEL);
    by_name.any(|requirement| !fulfils(&requirement, &labels))
}

/// A selector as a list of requirements, `matchLabels` among them.
#[must_use]
pub fn requirements(selector: &LabelSelector) -> Vec<LabelSelectorRequirement> {
    let equal = |(key, value): (&String, &String)| LabelSelectorRequirement {
        key: key.clone(),
        operator: "In".to_owned(),
        values: Some(vec![value.clone()]),
    };
    let labels = selector.match_labels.iter().flatten().map(equal);
    labels.chain(selector.match_expressions.iter().flatten().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_selectors_as_the_apiserver_does() {
        let labels: BTreeMap<_, _> = [("a".to_owned(), "1".to_owned())].into();
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}), false),
            (json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}), true),
            (json!({"matchExpressions": [{"key": "b", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "Like", "values": ["1"]}]}), false),
        ] {
            let read: LabelSelector = serde_json::from_value(selector.clone()).expect("a selector");
            assert_eq!(selects(&read, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn knows_namespaces_that_are_left_out_by_name() {
        let selector = |operator| {
            let one = json!({"key": "kubernetes.io/metadata.name", "operator": operator, "values": ["home"]});
            let other = json!({"key": "team", "operator": "Exists"});
            serde_json::from_value(json!({"matchExpressions": [one, other]})).expect("a selector")
        };
        assert!(leaves_out(&selector("NotIn"), "home") && !leaves_out(&selector("NotIn"), "team-a"));
        assert!(leaves_out(&selector("In"), "team-a") && !leaves_out(&selector("In"), "home"));
    }

    #[test]
    fn knows_what_asks_about_new_pods() {
        let entry = |rule| {
            let webhook: MutatingWebhook = serde_json::from_value(json!({
                "name": "a.example.com", "clientConfig": {}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "rules": [rule],
            }))
            .expect("a webhook");
            Entry::from(&webhook)
        };
        let rule = |operation, group, resource| json!({"operations": [operation], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]});
        assert!(entry(rule("CREATE", "", "pods")).asks_about_new_pods());
        assert!(entry(rule("*", "*", "*/*")).asks_about_new_pods());
        assert!(!entry(rule("UPDATE", "", "pods")).asks_about_new_pods());
        assert!(!entry(rule("CREATE", "apps", "pods")).asks_about_new_pods());
        assert!(!entry(rule("CREATE", "", "pods/exec")).asks_about_new_pods());
        let defaults = entry(rule("CREATE", "", "pods"));
        assert!(defaults.fails && defaults.seconds == 10 && defaults.again == Some(false));
    }
}
