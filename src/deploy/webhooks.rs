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

use crate::deploy::{Endpoint, NAME, Plan, Rules, cluster_metadata, texts};
use crate::model::kind::Kind;
use crate::model::selector::PodSelector;

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
///
/// No entry bears the name of a validating one: the apiserver writes the audit annotations of both
/// under the names of their entries, and keeps the first it gets.
#[must_use]
pub fn mutating(plan: &Plan) -> MutatingWebhookConfiguration {
    let mut webhooks = Vec::new();
    for family in &plan.families {
        webhooks.extend(family.pods.iter().map(|pods| agent_pods(plan, family, pods)));
    }
    webhooks.push(required_pods(plan));
    for (fail_open, families) in by_policy(plan) {
        let rules = rules(families.iter().flat_map(|family| &family.defaulted), &["CREATE", "UPDATE"]);
        if !rules.is_empty() {
            let (name, failure, seconds) = resources(fail_open);
            webhooks.push(MutatingWebhook {
                rules: Some(rules),
                match_conditions: Some(conditions(&[NOT_DELETING])),
                ..mutating_webhook(plan, &format!("defaults.{name}"), failure, seconds)
            });
        }
    }
    MutatingWebhookConfiguration { metadata: cluster_metadata(), webhooks: Some(webhooks) }
}

/// The configuration of the validating calls: the families' own resources.
#[must_use]
pub fn validating(plan: &Plan) -> ValidatingWebhookConfiguration {
    let memories = rules(plan.families.iter().flat_map(|family| &family.memories), &["DELETE"]);
    let mut webhooks = Vec::new();
    for (fail_open, families) in by_policy(plan) {
        let always = |family: &'_ &Rules| {
            let marked = family.marked;
            let judged = family.judged.iter().copied();
            judged.filter(move |kind| marked.iter().all(|(other, _)| other != kind)).collect::<Vec<_>>()
        };
        let kinds: Vec<&Kind> = families.iter().flat_map(always).collect();
        let rules = rules(kinds.iter(), &["CREATE", "UPDATE"]);
        if !rules.is_empty() {
            let (name, failure, seconds) = resources(fail_open);
            webhooks.push(ValidatingWebhook {
                rules: Some(rules),
                match_conditions: Some(conditions(&[NOT_DELETING])),
                ..validating_webhook(plan, name, failure, seconds)
            });
        }
    }
    for family in &plan.families {
        webhooks.extend(family.marked.iter().map(|marked| marked_resources(plan, family, *marked)));
    }
    if !memories.is_empty() {
        webhooks.push(ValidatingWebhook {
            rules: Some(memories),
            ..validating_webhook(plan, "deletions", Failure::Ignore, 1)
        });
    }
    ValidatingWebhookConfiguration { metadata: cluster_metadata(), webhooks: Some(webhooks) }
}

/// Objects of a kind that is mostly none of memgate's business: only those with an annotation whose
/// key starts so, before the change or after it.
fn marked_resources(plan: &Plan, family: &Rules, (kind, start): (&'static Kind, &str)) -> ValidatingWebhook {
    let (_, failure, seconds) = resources(family.fail_open);
    let marked = |object: &str| {
        format!(
            "{object} != null && has({object}.metadata.annotations) && \
             {object}.metadata.annotations.exists(key, key.startsWith('{start}'))"
        )
    };
    let expression = format!("({}) || ({})", marked("object"), marked("oldObject"));
    let mut conditions = conditions(&[NOT_DELETING]);
    conditions.push(MatchCondition { name: "marked".to_owned(), expression });
    ValidatingWebhook {
        rules: Some(rules([&kind].into_iter(), &["CREATE", "UPDATE"])),
        match_conditions: Some(conditions),
        ..validating_webhook(plan, &format!("{}.{}", family.name, kind.plural), failure, seconds)
    }
}

/// The families whose resources are refused when memgate does not answer, then the others.
fn by_policy(plan: &Plan) -> [(bool, Vec<&Rules>); 2] {
    [false, true].map(|open| (open, plan.families.iter().filter(|family| family.fail_open == open).collect()))
}

/// The entry for resources: its name, and what happens when memgate does not answer in so many
/// seconds.
const fn resources(fail_open: bool) -> (&'static str, Failure, i32) {
    if fail_open { ("advice", Failure::Ignore, 2) } else { ("resources", Failure::Fail, 5) }
}

/// Agent pods of one sort. A selector knows no "or", so each sort has an entry of its own. Where
/// pods can insist on their memory, those that do have another entry.
fn agent_pods(plan: &Plan, family: &Rules, selector: &PodSelector) -> MutatingWebhook {
    let elsewhere: &[&str] = if family.honours_required { &["disabled", "required"] } else { &["disabled"] };
    let operator = |values: &[&str]| if values.is_empty() { "Exists" } else { "In" };
    let labels = selector.labels.iter();
    let mut pods: Vec<_> = labels.map(|(key, values)| requirement(key, operator(values), values)).collect();
    pods.push(requirement(INJECT_LABEL, "NotIn", elsewhere));
    let mut namespaces = outside_the_system(plan);
    namespaces.push(requirement(INJECT_LABEL, "NotIn", &["disabled"]));
    let webhook = pods_webhook(plan, &format!("{}.pods", selector.name), Failure::Ignore, 2);
    let mut conditions = webhook.match_conditions.clone().unwrap_or_default();
    conditions.extend(selector.annotation.map(|annotation| MatchCondition {
        name: "opted-in".to_owned(),
        expression: format!(
            "has(object.metadata.annotations) && '{annotation}' in object.metadata.annotations"
        ),
    }));
    MutatingWebhook {
        object_selector: Some(expressions(pods)),
        namespace_selector: Some(expressions(namespaces)),
        match_conditions: Some(conditions),
        ..webhook
    }
}

/// Pods that ask to be refused rather than started without their memory. What a pod says of itself
/// counts more than what its namespace says, so that one cannot switch it off. Pods of a platform
/// that makes do without memory are not among them.
fn required_pods(plan: &Plan) -> MutatingWebhook {
    let required = texts(&[(INJECT_LABEL, "required")]);
    let lenient = plan.families.iter().filter(|family| !family.honours_required);
    let labels = lenient.flat_map(|family| family.pods).filter_map(|pods| pods.labels.first());
    let others: Vec<_> = labels.map(|(key, _)| requirement(key, "DoesNotExist", &[])).collect();
    let others = (!others.is_empty()).then_some(others);
    MutatingWebhook {
        object_selector: Some(LabelSelector { match_labels: Some(required), match_expressions: others }),
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

/// One rule for each group, version and scope, in the order in which the kinds come.
fn rules<'k>(kinds: impl Iterator<Item = &'k &'static Kind>, operations: &[&str]) -> Vec<RuleWithOperations> {
    let mut groups: Vec<(&Kind, Vec<String>)> = Vec::new();
    for kind in kinds {
        let plural = kind.plural.to_owned();
        let alike = |first: &Kind| {
            (first.group, first.version, first.namespaced) == (kind.group, kind.version, kind.namespaced)
        };
        match groups.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, plurals)) => plurals.push(plural),
            None => groups.push((kind, vec![plural])),
        }
    }
    let rule = |(kind, plurals): (&Kind, Vec<String>)| RuleWithOperations {
        scope: Some(if kind.namespaced { "Namespaced" } else { "Cluster" }.to_owned()),
        ..rule(kind.group, kind.version, plurals, operations)
    };
    groups.into_iter().map(rule).collect()
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
