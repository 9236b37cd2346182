//! The webhook configurations: which requests the apiserver asks memgate about.
//!
//! `Fail` stands where somebody named the thing (a label on the pod, the families' own kinds) and
//! its absence would be a wrong result; `Ignore` where memory is best effort. No `Fail` rule can
//! match a pod of the control plane or of memgate itself.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::deploy::{Endpoint, NAME, Plan, cluster_metadata, texts};
use crate::model::kind::Kind;

/// The label by which pods and namespaces opt out and pods insist.
const INJECT_LABEL: &str = "memgate.dev/inject";
/// Namespaces whose pods a cluster needs to come up.
const SYSTEM_NAMESPACES: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// Mirror pods come from a kubelet: nothing that is added to them reaches the container.
const NOT_NODE: (&str, &str) =
    ("not-node", "!has(request.userInfo.groups) || !('system:nodes' in request.userInfo.groups)");
/// The same, should the kubelet bear another name.
const NOT_MIRROR: (&str, &str) = (
    "not-mirror",
    "!has(object.metadata.annotations) || !('kubernetes.io/config.mirror' in object.metadata.annotations)",
);
/// An object on its way out only has its finalizers removed.
const NOT_DELETING: (&str, &str) =
    ("not-deleting", "object == null || !has(object.metadata.deletionTimestamp)");

/// What happens when memgate does not answer.
#[derive(Clone, Copy)]
enum Failure {
    Fail,
    Ignore,
}

impl Failure {
    fn name(self) -> String {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
        .to_owned()
    }
}

/// The configuration of the mutating calls: agent pods, and resources that get defaults.
#[must_use]
pub fn mutating(plan: &Plan) -> MutatingWebhookConfiguration {
    let mut webhooks = Vec::new();
    for family in &plan.families {
        for label in &family.pod_labels {
            webhooks.push(agent_pods(plan, family.name, label));
        }
    }
    webhooks.push(required_pods(plan));
    let defaulted = rules(plan.families.iter().flat_map(|family| &family.defaulted), &["CREATE", "UPDATE"]);
    if !defaulted.is_empty() {
        webhooks.push(MutatingWebhook {
            rules: Some(defaulted),
            match_conditions: Some(conditions(&[NOT_DELETING])),
            ..mutating_webhook(plan, "resources", Failure::Fail, 5)
        });
    }
    MutatingWebhookConfiguration { metadata: cluster_metadata(), webhooks: Some(webhooks) }
}

/// The configuration of the validating calls: the families' own resources.
#[must_use]
pub fn validating(plan: &Plan) -> ValidatingWebhookConfiguration {
    let judged = rules(plan.families.iter().flat_map(|family| &family.judged), &["CREATE", "UPDATE"]);
    let memories = rules(plan.families.iter().flat_map(|family| &family.memories), &["DELETE"]);
    let mut webhooks = Vec::new();
    if !judged.is_empty() {
        webhooks.push(ValidatingWebhook {
            rules: Some(judged),
            match_conditions: Some(conditions(&[NOT_DELETING])),
            ..validating_webhook(plan, "resources", Failure::Fail, 5)
        });
    }
    if !memories.is_empty() {
        webhooks.push(ValidatingWebhook {
            rules: Some(memories),
            ..validating_webhook(plan, "deletions", Failure::Ignore, 1)
        });
    }
    ValidatingWebhookConfiguration { metadata: cluster_metadata(), webhooks: Some(webhooks) }
}

/// Pods that bear `label`. A selector knows no "or", so each label has an entry of its own.
fn agent_pods(plan: &Plan, family: &str, label: &str) -> MutatingWebhook {
    let platform = label.split(['.', '/']).next().unwrap_or(label);
    let entry = if platform == family { family.to_owned() } else { format!("{family}-{platform}") };
    let pods = vec![
        requirement(label, "Exists", &[]),
        requirement(INJECT_LABEL, "NotIn", &["disabled", "required"]),
    ];
    let mut namespaces = outside_the_system(plan);
    namespaces.push(requirement(INJECT_LABEL, "NotIn", &["disabled"]));
    MutatingWebhook {
        object_selector: Some(expressions(pods)),
        namespace_selector: Some(expressions(namespaces)),
        ..pods_webhook(plan, &format!("{entry}.pods"), Failure::Ignore, 2)
    }
}

/// Pods that ask to be refused rather than started without their memory. What a pod says of itself
/// counts more than what its namespace says, so that one cannot switch it off.
fn required_pods(plan: &Plan) -> MutatingWebhook {
    let required = texts(&[(INJECT_LABEL, "required")]);
    MutatingWebhook {
        object_selector: Some(LabelSelector { match_labels: Some(required), match_expressions: None }),
        namespace_selector: Some(expressions(outside_the_system(plan))),
        ..pods_webhook(plan, "required.pods", Failure::Fail, 5)
    }
}

fn pods_webhook(plan: &Plan, name: &str, failure: Failure, seconds: i32) -> MutatingWebhook {
    MutatingWebhook {
        rules: Some(vec![rule("", "v1", vec!["pods".to_owned()], &["CREATE"])]),
        match_conditions: Some(conditions(&[NOT_NODE, NOT_MIRROR])),
        ..mutating_webhook(plan, name, failure, seconds)
    }
}

/// Every namespace but those of the control plane and memgate's own.
fn outside_the_system(plan: &Plan) -> Vec<LabelSelectorRequirement> {
    let mut spared = SYSTEM_NAMESPACES.to_vec();
    spared.push(&plan.namespace);
    vec![requirement("kubernetes.io/metadata.name", "NotIn", &spared)]
}

fn expressions(requirements: Vec<LabelSelectorRequirement>) -> LabelSelector {
    LabelSelector { match_expressions: Some(requirements), match_labels: None }
}

fn mutating_webhook(plan: &Plan, name: &str, failure: Failure, seconds: i32) -> MutatingWebhook {
    MutatingWebhook {
        name: full_name(name),
        client_config: client_config(plan, "/mutate"),
        failure_policy: Some(failure.name()),
        match_policy: Some("Equivalent".to_owned()),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        timeout_seconds: Some(seconds),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..MutatingWebhook::default()
    }
}

fn validating_webhook(plan: &Plan, name: &str, failure: Failure, seconds: i32) -> ValidatingWebhook {
    ValidatingWebhook {
        name: full_name(name),
        client_config: client_config(plan, "/validate"),
        failure_policy: Some(failure.name()),
        match_policy: Some("Equivalent".to_owned()),
        timeout_seconds: Some(seconds),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..ValidatingWebhook::default()
    }
}

fn full_name(name: &str) -> String {
    format!("{name}.memgate.dev")
}

fn client_config(plan: &Plan, path: &str) -> WebhookClientConfig {
    let ca_bundle = plan.ca.clone().map(ByteString);
    match &plan.endpoint {
        Endpoint::Url(url) => WebhookClientConfig {
            ca_bundle,
            url: Some(format!("{}{path}", url.trim_end_matches('/'))),
            service: None,
        },
        Endpoint::Service => WebhookClientConfig {
            ca_bundle,
            url: None,
            service: Some(ServiceReference {
                name: NAME.to_owned(),
                namespace: plan.namespace.clone(),
                path: Some(path.to_owned()),
                port: None,
            }),
        },
    }
}

/// One rule for each group and version, in the order in which the kinds come.
fn rules<'k>(kinds: impl Iterator<Item = &'k &'static Kind>, operations: &[&str]) -> Vec<RuleWithOperations> {
    let mut groups: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for kind in kinds {
        let plural = kind.plural.to_owned();
        match groups.iter_mut().find(|(group, version, _)| *group == kind.group && *version == kind.version) {
            Some((.., plurals)) => plurals.push(plural),
            None => groups.push((kind.group, kind.version, vec![plural])),
        }
    }
    let groups = groups.into_iter();
    groups.map(|(group, version, plurals)| rule(group, version, plurals, operations)).collect()
}

fn rule(group: &str, version: &str, resources: Vec<String>, operations: &[&str]) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec![version.to_owned()]),
        operations: Some(operations.iter().map(|operation| (*operation).to_owned()).collect()),
        resources: Some(resources),
        scope: Some("Namespaced".to_owned()),
    }
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> LabelSelectorRequirement {
    LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: (!values.is_empty()).then(|| values.iter().map(|value| (*value).to_owned()).collect()),
    }
}

fn conditions(conditions: &[(&str, &str)]) -> Vec<MatchCondition> {
    let condition = |(name, expression): &(&str, &str)| MatchCondition {
        name: (*name).to_owned(),
        expression: (*expression).to_owned(),
    };
    conditions.iter().map(condition).collect()
}
