//! One entry of a webhook configuration, mutating or validating, and what it is called for.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, RuleWithOperations, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::{Selector, SelectorExt as _};

use memgate_install::objects::WebhookConfiguration;

/// An entry with the apiserver's defaults in place of absent fields.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookEntry {
    /// The name.
    pub name: String,
    /// The address at which memgate is called.
    pub client: WebhookClientConfig,
    /// Whether requests are refused when it does not answer (`failurePolicy: Fail`).
    pub fails_closed: bool,
    /// How many seconds the apiserver waits for its response.
    pub timeout_seconds: i32,
    /// Whether it is called again after another webhook changed the object (`reinvocationPolicy: IfNeeded`).
    pub is_reinvoked: bool,
    /// The operations on resources that it is called for.
    pub rules: Vec<RuleWithOperations>,
    /// The namespaces that it is called for.
    pub namespace_selector: LabelSelector,
    /// The objects that it is called for.
    pub object_selector: LabelSelector,
    /// The further conditions on a request, in CEL.
    pub match_conditions: Vec<MatchCondition>,
}

/// The label that every namespace has, with its name.
pub(super) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// `timeoutSeconds` where an entry has none. Source: k8s.io/api, admissionregistration/v1.
const DEFAULT_TIMEOUT_SECONDS: i32 = 10;

impl From<&MutatingWebhook> for WebhookEntry {
    fn from(webhook: &MutatingWebhook) -> Self {
        Self {
            name: webhook.name.clone(),
            client: webhook.client_config.clone(),
            fails_closed: webhook.failure_policy.as_deref() != Some("Ignore"),
            timeout_seconds: webhook.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS),
            is_reinvoked: webhook.reinvocation_policy.as_deref() == Some("IfNeeded"),
            rules: webhook.rules.clone().unwrap_or_default(),
            namespace_selector: webhook.namespace_selector.clone().unwrap_or_default(),
            object_selector: webhook.object_selector.clone().unwrap_or_default(),
            match_conditions: webhook.match_conditions.clone().unwrap_or_default(),
        }
    }
}

/// The entries of a configuration.
pub fn entries(configuration: &WebhookConfiguration) -> Vec<WebhookEntry> {
    configuration.webhooks.iter().flatten().map(WebhookEntry::from).collect()
}

impl WebhookEntry {
    /// Whether it is an entry that memgate installs.
    pub fn is_memgates(&self) -> bool {
        self.name.ends_with(".memgate.dev")
    }

    /// Whether its rules name the creation of pods.
    pub fn is_called_for_new_pods(&self) -> bool {
        self.rules.iter().any(|rule| {
            contains(rule.operations.as_ref(), "CREATE")
                && contains(rule.api_groups.as_ref(), "")
                && contains(rule.api_versions.as_ref(), "v1")
                && rule
                    .resources
                    .iter()
                    .flatten()
                    .any(|resource| matches!(resource.as_str(), "*" | "*/*" | "pods"))
                && rule.scope.as_deref() != Some("Cluster")
        })
    }

    /// Whether it is called in a namespace with these labels.
    pub fn selects_namespace(&self, labels: &BTreeMap<String, String>) -> bool {
        selector_matches(&self.namespace_selector, labels)
    }

    /// The namespace of the Service that it leads to; none for a URL.
    pub fn service_namespace(&self) -> Option<&str> {
        self.client.service.as_ref().map(|service| service.namespace.as_str())
    }
}

fn contains(list: Option<&Vec<String>>, wanted: &str) -> bool {
    list.into_iter().flatten().any(|item| item == "*" || item == wanted)
}

/// Whether labels meet a selector. An unknown operator selects nothing.
pub fn selector_matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
}

/// A selector as a list of requirements, `matchLabels` among them.
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
            assert_eq!(selector_matches(&read, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn knows_which_entries_are_called_for_new_pods() {
        let entry = |rule| {
            let webhook: MutatingWebhook = serde_json::from_value(json!({
                "name": "a.example.com", "clientConfig": {}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "rules": [rule],
            }))
            .expect("a webhook");
            WebhookEntry::from(&webhook)
        };
        let rule = |operation, group, resource| json!({"operations": [operation], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]});
        assert!(entry(rule("CREATE", "", "pods")).is_called_for_new_pods());
        assert!(entry(rule("*", "*", "*/*")).is_called_for_new_pods());
        assert!(!entry(rule("UPDATE", "", "pods")).is_called_for_new_pods());
        assert!(!entry(rule("CREATE", "apps", "pods")).is_called_for_new_pods());
        assert!(!entry(rule("CREATE", "", "pods/exec")).is_called_for_new_pods());
        let defaults = entry(rule("CREATE", "", "pods"));
        assert!(defaults.fails_closed && defaults.timeout_seconds == 10 && !defaults.is_reinvoked);
    }
}
