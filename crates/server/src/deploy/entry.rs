//! What the entries of both webhook configurations are made of. Which entries there are is not known here.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, RuleWithOperations, ServiceReference, ValidatingWebhook,
    WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::deploy::install_plan::{InstallPlan, WebhookEndpoint};
use crate::deploy::metadata::NAME;
use crate::model::finding::Phase;
use crate::model::kind::{Kind, SYSTEM_NAMESPACES};
use crate::review_path;

/// Mirror pods come from a kubelet: nothing that is added to them reaches the container.
const NOT_NODE: (&str, &str) =
    ("not-node", "!has(request.userInfo.groups) || !('system:nodes' in request.userInfo.groups)");
/// The same, should the kubelet bear another name.
const NOT_MIRROR: (&str, &str) = (
    "not-mirror",
    "object == null || !has(object.metadata.annotations) || \
     !('kubernetes.io/config.mirror' in object.metadata.annotations)",
);
/// Of an object that is being deleted only finalizers are removed.
pub(super) const NOT_DELETING: (&str, &str) =
    ("not-deleting", "object == null || !has(object.metadata.deletionTimestamp)");

/// What happens when memgate does not answer.
#[derive(Clone, Copy)]
pub(super) enum Failure {
    /// The request is refused.
    Fail,
    /// It goes on without memgate.
    Ignore,
}

impl Failure {
    /// As the API has it.
    pub(super) fn name(self) -> String {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
        .to_owned()
    }
}

pub(super) fn pods_webhook(
    plan: &InstallPlan,
    name: &str,
    failure: Failure,
    seconds: i32,
) -> MutatingWebhook {
    MutatingWebhook {
        rules: Some(vec![rule("", "v1", vec!["pods".to_owned()], &["CREATE"])]),
        match_conditions: Some(conditions(&[NOT_NODE, NOT_MIRROR])),
        ..mutating_webhook(plan, name, failure, seconds)
    }
}

/// Every namespace but those of the control plane and memgate's own.
pub(super) fn outside_the_system(plan: &InstallPlan) -> Vec<LabelSelectorRequirement> {
    let mut spared = SYSTEM_NAMESPACES.to_vec();
    spared.push(&plan.namespace);
    vec![requirement("kubernetes.io/metadata.name", "NotIn", &spared)]
}

pub(super) fn expressions(requirements: Vec<LabelSelectorRequirement>) -> LabelSelector {
    LabelSelector { match_expressions: Some(requirements), match_labels: None }
}

pub(super) fn mutating_webhook(
    plan: &InstallPlan,
    name: &str,
    failure: Failure,
    seconds: i32,
) -> MutatingWebhook {
    MutatingWebhook {
        name: full_name(name),
        client_config: client_config(plan, Phase::Mutate),
        failure_policy: Some(failure.name()),
        match_policy: Some("Equivalent".to_owned()),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        timeout_seconds: Some(seconds),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..MutatingWebhook::default()
    }
}

pub(super) fn validating_webhook(
    plan: &InstallPlan,
    name: &str,
    failure: Failure,
    seconds: i32,
) -> ValidatingWebhook {
    ValidatingWebhook {
        name: full_name(name),
        client_config: client_config(plan, Phase::Validate),
        failure_policy: Some(failure.name()),
        match_policy: Some("Equivalent".to_owned()),
        timeout_seconds: Some(seconds),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..ValidatingWebhook::default()
    }
}

pub(super) fn full_name(name: &str) -> String {
    format!("{name}.memgate.dev")
}

fn client_config(plan: &InstallPlan, call: Phase) -> WebhookClientConfig {
    let path = review_path::plain(call);
    let ca_bundle = plan.ca.clone().map(ByteString);
    match &plan.endpoint {
        WebhookEndpoint::Url(url) => WebhookClientConfig {
            ca_bundle,
            url: Some(format!("{}{path}", url.trim_end_matches('/'))),
            service: None,
        },
        WebhookEndpoint::Service => WebhookClientConfig {
            ca_bundle,
            url: None,
            service: Some(ServiceReference {
                name: NAME.to_owned(),
                namespace: plan.namespace.clone(),
                // memgate writes one that strangers do not know.
                path: (!plan.has_own_certificates()).then(|| path.to_owned()),
                port: None,
            }),
        },
    }
}

/// One rule for each group, version and scope, in the order in which the kinds come.
pub(super) fn rules<'k>(
    kinds: impl Iterator<Item = &'k &'static Kind>,
    operations: &[&str],
) -> Vec<RuleWithOperations> {
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

pub(super) fn rule(
    group: &str,
    version: &str,
    resources: Vec<String>,
    operations: &[&str],
) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec![version.to_owned()]),
        operations: Some(operations.iter().map(|operation| (*operation).to_owned()).collect()),
        resources: Some(resources),
        scope: Some("Namespaced".to_owned()),
    }
}

pub(super) fn requirement(key: &str, operator: &str, values: &[&str]) -> LabelSelectorRequirement {
    LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: (!values.is_empty()).then(|| values.iter().map(|value| (*value).to_owned()).collect()),
    }
}

pub(super) fn conditions(conditions: &[(&str, &str)]) -> Vec<MatchCondition> {
    let condition = |(name, expression): &(&str, &str)| MatchCondition {
        name: (*name).to_owned(),
        expression: (*expression).to_owned(),
    };
    conditions.iter().map(condition).collect()
}
