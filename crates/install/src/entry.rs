//! Builds the entries of both webhook configurations. `webhooks` and `families` say which entries there are.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, RuleWithOperations, ServiceReference, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::install_plan::{InstallPlan, WebhookEndpoint};
use crate::metadata::NAME;
use memgate_model::change::{Keys, Meaning, OF_NAMESPACES, judges_spec};
use memgate_model::family::Family;
use memgate_model::kind::{Kind, SYSTEM_NAMESPACES};
use memgate_model::selector::PodSelector;
use memgate_primitives::review_path;
use memgate_primitives::review_path::Phase;

/// Excludes mirror pods, which a kubelet creates: additions to them do not reach the container.
const NOT_NODE: (&str, &str) =
    ("not-node", "!has(request.userInfo.groups) || !('system:nodes' in request.userInfo.groups)");
/// Excludes mirror pods of a kubelet with another group.
const NOT_MIRROR: (&str, &str) = (
    "not-mirror",
    "object == null || !has(object.metadata.annotations) || \
     !('kubernetes.io/config.mirror' in object.metadata.annotations)",
);
/// Whether an object is new, goes for good, or is not being deleted.
const NOT_KEPT: &str = "object == null || oldObject == null || !has(oldObject.metadata.deletionTimestamp)";
/// Whether an update changes the spec.
const SPEC_CHANGED: &str =
    "has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec)";

/// The condition that excludes updates of objects of these kinds that are being deleted and leave alone what the objects
/// mean: those that remove finalizers must not depend on memgate. An object with a new meaning is still in use for as long
/// as a finalizer keeps it. Conditions with one name have one expression. Namespaces come without other kinds.
pub(super) fn not_deleting(families: &[&Family], kinds: &[&Kind]) -> MatchCondition {
    let mut name = "not-deleting".to_owned();
    let mut changed = Vec::new();
    if kinds.iter().all(|kind| judges_spec(kind.kind)) {
        changed.push(SPEC_CHANGED.to_owned());
        for family in families {
            let before = changed.len();
            changed.extend(family.meanings.iter().filter_map(|meaning| meaning_changed(meaning, kinds)));
            if changed.len() > before {
                name = format!("{name}-{}", family.name);
            }
        }
    } else {
        name += "-namespace";
        changed.extend(meaning_changed(&OF_NAMESPACES, kinds));
    }
    condition((&name, &format!("{NOT_KEPT} || {}", changed.join(" || "))))
}

/// Whether an update changes metadata that means something for some of these kinds, in CEL; `None` if it means nothing for
/// them. The request is about one of them.
fn meaning_changed(meaning: &Meaning, kinds: &[&Kind]) -> Option<String> {
    let meant: Vec<&Kind> = kinds.iter().copied().filter(|kind| meaning.kinds.contains(kind)).collect();
    if meant.is_empty() {
        return None;
    }
    let maps = [("labels", meaning.labels), ("annotations", meaning.annotations)];
    let changed = maps.into_iter().filter_map(|(map, keys)| entries_changed(map, keys));
    let changed = changed.collect::<Vec<_>>().join(" || ");
    Some(if meant.len() == kinds.len() { changed } else { format!("({} && ({changed}))", is_one_of(&meant)) })
}

/// Whether an update changes an entry of a map of metadata that has one of these keys, in CEL.
fn entries_changed(map: &str, keys: Keys) -> Option<String> {
    let [new, old] = ["object", "oldObject"]
        .map(|object| format!("(has({object}.metadata.{map}) ? {object}.metadata.{map} : {{}})"));
    Some(match keys {
        Keys::None => return None,
        Keys::All => format!("{new} != {old}"),
        Keys::These(keys) => format!(
            "{}.exists(key, (key in {new}) != (key in {old}) || (key in {new} && {new}[key] != {old}[key]))",
            list(keys)
        ),
        Keys::StartingWith(start) => {
            let start = literal(start);
            format!(
                "({new} != {old} && ({new}.exists(key, key.startsWith({start}) && \
                 !(key in {old} && {new}[key] == {old}[key])) || \
                 {old}.exists(key, key.startsWith({start}) && !(key in {new}))))"
            )
        }
    })
}

/// Whether a request is about one of these kinds, in CEL.
fn is_one_of(kinds: &[&Kind]) -> String {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in kinds {
        groups.entry(kind.group).or_default().insert(kind.kind);
    }
    let of_group = |(group, kinds): (&str, BTreeSet<&str>)| {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        format!("request.kind.group == {} && request.kind.kind in {}", literal(group), list(&kinds))
    };
    format!("({})", groups.into_iter().map(of_group).collect::<Vec<_>>().join(" || "))
}

/// A text in CEL; no name of a kind, a group or a platform has a quote or a backslash.
pub(super) fn literal(text: &str) -> String {
    format!("'{text}'")
}

/// A list of such texts in CEL.
fn list(texts: &[&str]) -> String {
    let literals: Vec<String> = texts.iter().copied().map(literal).collect();
    format!("[{}]", literals.join(", "))
}

/// Whether a pod is selected, in CEL.
pub(super) fn is_selected(selector: &PodSelector) -> String {
    let mut parts = Vec::new();
    if !selector.labels.is_empty() {
        parts.push("has(object.metadata.labels)".to_owned());
    }
    for (key, values) in selector.labels {
        parts.push(format!("'{key}' in object.metadata.labels"));
        let values: Vec<_> = values.iter().map(|value| format!("'{value}'")).collect();
        if !values.is_empty() {
            parts.push(format!("object.metadata.labels['{key}'] in [{}]", values.join(", ")));
        }
    }
    parts.extend(selector.annotation.map(is_annotated));
    parts.extend(selector.without.map(is_without));
    format!("({})", parts.join(" && "))
}

/// Whether a pod has an annotation, in CEL.
pub(super) fn is_annotated(annotation: &str) -> String {
    format!("has(object.metadata.annotations) && '{annotation}' in object.metadata.annotations")
}

/// Whether no label of a pod has a key with this start, in CEL.
pub(super) fn is_without(start: &str) -> String {
    let pooled = format!("object.metadata.labels.exists(key, key.startsWith('{start}'))");
    format!("(!has(object.metadata.labels) || !{pooled})")
}

/// The failure policy of an entry whose requests are refused when memgate does not answer.
pub(super) const FAIL: &str = "Fail";
/// That of an entry whose requests go on without memgate then.
pub(super) const IGNORE: &str = "Ignore";

/// An entry of a configuration. The entries of both kinds have this type: it has every field of a `ValidatingWebhook`.
pub(super) type Webhook = MutatingWebhook;

/// An entry for pods, with its conditions besides those about pods of nodes.
pub(super) fn pods_webhook(
    plan: &InstallPlan,
    name: &str,
    when: (&str, i32),
    more: impl IntoIterator<Item = MatchCondition>,
) -> Webhook {
    let conditions = [NOT_NODE, NOT_MIRROR].map(condition).into_iter().chain(more).collect();
    Webhook {
        rules: Some(vec![rule("", "v1", vec!["pods".to_owned()], &["CREATE"])]),
        ..webhook(plan, Phase::Mutate, name, when, conditions)
    }
}

/// Selects all namespaces except those of the control plane and memgate's own.
pub(super) fn outside_the_system(plan: &InstallPlan) -> Vec<LabelSelectorRequirement> {
    let mut spared = SYSTEM_NAMESPACES.to_vec();
    spared.push(&plan.namespace);
    vec![requirement("kubernetes.io/metadata.name", "NotIn", &spared)]
}

/// A selector with all of its fields: server-side apply owns, and gives back, only what is written out.
pub(super) fn expressions(requirements: Vec<LabelSelectorRequirement>) -> LabelSelector {
    LabelSelector { match_expressions: Some(requirements), match_labels: Some(BTreeMap::new()) }
}

/// An entry with its conditions.
pub(super) fn webhook(
    plan: &InstallPlan,
    call: Phase,
    name: &str,
    (failure, seconds): (&str, i32),
    conditions: Vec<MatchCondition>,
) -> Webhook {
    Webhook {
        name: full_name(name),
        match_conditions: Some(conditions),
        namespace_selector: Some(expressions(Vec::new())),
        object_selector: Some(expressions(Vec::new())),
        client_config: client_config(plan, call),
        failure_policy: Some(failure.to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        reinvocation_policy: (call == Phase::Mutate).then(|| "IfNeeded".to_owned()),
        timeout_seconds: Some(seconds),
        side_effects: "None".to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        ..Webhook::default()
    }
}

pub(super) fn full_name(name: &str) -> String {
    format!("{name}.memgate.dev")
}

fn client_config(plan: &InstallPlan, call: Phase) -> WebhookClientConfig {
    let path = review_path::path(call);
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
                path: Some(path.to_owned()),
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
            let versions_are = (first.version, first.older) == (kind.version, kind.older);
            versions_are && (first.group, first.namespaced) == (kind.group, kind.namespaced)
        };
        match groups.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, plurals)) => plurals.push(plural),
            None => groups.push((kind, vec![plural])),
        }
    }
    let rule = |(kind, plurals): (&Kind, Vec<String>)| RuleWithOperations {
        api_versions: Some(kind.older.into_iter().chain([kind.version]).map(str::to_owned).collect()),
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

pub(super) fn condition((name, expression): (&str, &str)) -> MatchCondition {
    MatchCondition { name: name.to_owned(), expression: expression.to_owned() }
}
