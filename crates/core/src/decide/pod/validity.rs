//! Whether an apiserver would refuse a pod for what a family adds to it. The pod itself counts as valid: an apiserver
//! validates it after this decision.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::slice;

use serde_json::Value as Json;
use serde_json::value::RawValue;

use memgate_model::edit::{Edit, Entry, EnvSource, EnvVar, Value};
use memgate_model::finding::Finding;
use memgate_model::view::{self, Text, view};
use memgate_platforms::common::INVALID_WITH_MEMORY;
use memgate_platforms::inject::INJECTED_ANNOTATION;
use memgate_primitives::plain_text::{quoted, quoted_key, quoted_text};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::quantity::billionths;

use crate::decide::added::text_of;

view! {
    /// A pod, as far as it limits what may be added.
    PodForm {
        /// What it runs.
        spec: SpecForm<'a> = "spec",
    }

    /// What a pod runs.
    SpecForm {
        /// The resources of all containers together.
        resources: &'a RawValue = "resources",
        /// The ordinary containers.
        containers: Vec<ContainerForm<'a>> = "containers",
        /// The init containers.
        init_containers: Vec<ContainerForm<'a>> = "initContainers",
    }

    /// A container.
    ContainerForm {
        /// `Always` for a native sidecar.
        restart_policy: Text<'a> = "restartPolicy",
        /// Requests and limits.
        resources: &'a RawValue = "resources",
    }
}

/// Why an apiserver would refuse the pod with these edits; `None` if it would not.
pub(super) fn refusal(text: &str, edits: &[Edit]) -> Option<Finding> {
    let mut containers: Vec<&Json> = Vec::new();
    for edit in edits {
        let pointer = edit.pointer.as_str();
        let wrong = match &edit.value {
            Value::Env(variable) => wrong_variable(variable),
            Value::EnvList(variables) => variables.iter().find_map(wrong_variable),
            Value::Tree(tree) if is_init_container(pointer) => {
                let added = tree.as_array().map_or_else(|| slice::from_ref(tree), Vec::as_slice);
                containers.extend(added);
                added.iter().find_map(wrong_container)
            }
            _ => None,
        };
        if let Some(message) = wrong {
            return Some(finding(Pointer::new("/spec"), &message));
        }
    }
    if containers.is_empty() {
        return None;
    }
    let spec = view::read::<PodForm<'_>>(text).ok()?.spec?;
    let resources = parsed(spec.resources)?;
    let (field, message) = too_large(&spec, &resources, &containers)?;
    Some(finding(Pointer::new("/spec/resources").key(field), &message))
}

/// Whether this is the list of init containers or an element of it, and not a field of one.
fn is_init_container(pointer: &str) -> bool {
    let rest = pointer.strip_prefix("/spec/initContainers");
    rest.is_some_and(|rest| rest.matches('/').count() < 2)
}

/// How long the annotations of an object may be together, keys and values.
/// Source: kubernetes/kubernetes, apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

view! {
    /// A pod with its annotations.
    AnnotatedForm {
        /// Who it is.
        metadata: MetadataForm<'a> = "metadata",
    }

    /// The annotations of a pod.
    MetadataForm {
        /// All of them.
        annotations: &'a RawValue = "annotations",
    }
}

/// Why an apiserver would refuse the pod with this annotation.
pub(super) fn too_long(text: &str, marker: &Edit) -> Option<Finding> {
    let new = match &marker.value {
        Value::Text(text) | Value::Entry(Entry(_, text)) => text.len(),
        _ => return None,
    };
    if text.len() + new <= MAX_ANNOTATION_BYTES {
        return None;
    }
    let raw = view::read::<AnnotatedForm<'_>>(text).ok()?.metadata?.annotations?;
    let others: BTreeMap<Cow<'_, str>, Option<Cow<'_, str>>> = serde_json::from_str(raw.get()).ok()?;
    let others = others.iter().filter(|(key, _)| *key != INJECTED_ANNOTATION);
    let others: usize = others.map(|(key, value)| key.len() + value.as_ref().map_or(0, |it| it.len())).sum();
    let message = "its annotations would have more than 256 KiB";
    (others + INJECTED_ANNOTATION.len() + new > MAX_ANNOTATION_BYTES)
        .then(|| finding(Pointer::new("/metadata/annotations"), message))
}

fn finding(at: Pointer, message: &str) -> Finding {
    let message = format!("the pod would be invalid with its memory, and gets none: {message}");
    Finding::warn(&INVALID_WITH_MEMORY, at, message)
}

/// What makes a variable invalid. Names that only newer apiservers accept count as wrong.
/// Source: kubernetes/kubernetes, `IsEnvVarName` and `IsConfigMapKey`.
fn wrong_variable(variable: &EnvVar) -> Option<String> {
    let key = match &variable.source {
        EnvSource::Value(_) => None,
        EnvSource::Secret(key) | EnvSource::ConfigMap(key) => Some(key),
    };
    wrong_name(&variable.name).or_else(|| {
        let key = key?;
        wrong_key(&key.name, &key.key)
    })
}

fn wrong_name(name: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_name = !name.is_empty() && name.chars().all(is_part) && name != "." && !name.starts_with("..");
    let is_name = is_name && !name.starts_with(|c: char| c.is_ascii_digit());
    (!is_name).then(|| format!("{} is not the name of a variable", quoted_key(name)))
}

fn wrong_key(name: &str, key: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_key =
        (1..=253).contains(&key.len()) && key.chars().all(is_part) && key != "." && !key.starts_with("..");
    (name.is_empty() || !is_key).then(|| format!("{} has no key {}", quoted(name), quoted_key(key)))
}

/// What makes a container of memgate invalid, of the parts that come from elsewhere.
fn wrong_container(container: &Json) -> Option<String> {
    let image = container.get("image").and_then(Json::as_str).unwrap_or_default();
    if image.is_empty() || image.trim() != image {
        return Some(format!("{} is not an image", quoted_text(image)));
    }
    container.get("env").and_then(Json::as_array).into_iter().flatten().find_map(|entry| {
        let name = text_of(entry, "name");
        wrong_name(&name).or_else(|| {
            let from = entry.get("valueFrom")?.as_object()?;
            let (kind, reference) = from.iter().find(|(_, value)| !value.is_null())?;
            let is_only = from.values().filter(|value| !value.is_null()).count() == 1;
            let is_wrong = match kind.as_str() {
                "secretKeyRef" | "configMapKeyRef" if is_only => {
                    return wrong_key(&text_of(reference, "name"), &text_of(reference, "key"));
                }
                "fieldRef" if is_only => !is_pod_field(&text_of(reference, "fieldPath")),
                "resourceFieldRef" if is_only => {
                    !RESOURCE_FIELDS.contains(&text_of(reference, "resource").as_str())
                        || reference.get("divisor").is_some()
                }
                _ => true,
            };
            is_wrong
                .then(|| format!("variable {} has a source that no container can have", quoted_key(&name)))
        })
    })
}

/// The fields of a pod that a variable can have. Those of single labels and annotations count as wrong.
/// Source: kubernetes/kubernetes, `validEnvDownwardAPIFieldPathExpressions`.
fn is_pod_field(path: &str) -> bool {
    const FIELDS: [&str; 9] = [
        "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
        "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
    ];
    FIELDS.contains(&path)
}

/// The resources of a container that a variable can have.
const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory",
    "requests.ephemeral-storage",
];

fn parsed(raw: Option<&RawValue>) -> Option<Json> {
    serde_json::from_str(raw?.get()).ok()
}

/// A request of a container, else its limit, which an apiserver takes for it; or a limit.
fn amount(resources: Option<&Json>, field: &str, resource: &str) -> i128 {
    let of = |field: &str| {
        let value = resources?.get(field)?.get(resource)?;
        value.as_str().map_or_else(|| billionths(&value.to_string()), billionths)
    };
    let request = of(field);
    request.or_else(|| of("limits").filter(|_| field == "requests")).unwrap_or(0)
}

/// The field of the pod's resources that would not suffice, and why.
/// Source: kubernetes/kubernetes, `validatePodResourceConsistency`.
fn too_large(spec: &SpecForm<'_>, pod: &Json, added: &[&Json]) -> Option<(&'static str, String)> {
    let is_sidecar = |policy: Option<&str>| policy == Some("Always");
    // Where added init containers stand does not matter much: a sidecar counts for all behind it, so it counts as first.
    let mut inits: Vec<(bool, Option<Json>)> = added
        .iter()
        .map(|it| {
            let policy = it.get("restartPolicy").and_then(Json::as_str);
            (is_sidecar(policy), it.get("resources").cloned())
        })
        .collect();
    inits.sort_by_key(|(is_sidecar, _)| !is_sidecar);
    let existing = spec.init_containers.iter().flatten();
    inits.extend(existing.map(|it| (is_sidecar(it.restart_policy.as_deref()), parsed(it.resources))));
    let containers: Vec<Option<Json>> =
        spec.containers.iter().flatten().map(|it| parsed(it.resources)).collect();
    for resource in ["cpu", "memory"] {
        let bound = |field: &str| {
            pod.get(field).and_then(|it| it.get(resource)).map(|_| amount(Some(pod), field, resource))
        };
        let request = |of: &Option<Json>| amount(of.as_ref(), "requests", resource);
        let mut all: i128 = containers.iter().map(request).fold(0, i128::saturating_add);
        let (mut sidecars, mut most) = (0_i128, 0_i128);
        for (is_sidecar, resources) in &inits {
            let own = request(resources);
            if *is_sidecar {
                sidecars = sidecars.saturating_add(own);
                all = all.saturating_add(own);
                most = most.max(sidecars);
            } else {
                most = most.max(sidecars.saturating_add(own));
            }
        }
        if bound("requests").or_else(|| bound("limits")).is_some_and(|bound| all.max(most) > bound) {
            return Some(("requests", format!("the containers would request more {resource} than the pod")));
        }
        let limit = |of: &&Json| amount(of.get("resources"), "limits", resource);
        if bound("limits").is_some_and(|bound| added.iter().any(|it| limit(it) > bound)) {
            return Some(("limits", format!("a container of its memory has a higher limit of {resource}")));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use memgate_model::edit::Origin;

    fn container(change: &Json) -> Json {
        let mut container = json!({"name": "memory-server", "image": "m", "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}});
        if let (Some(to), Some(from)) = (container.as_object_mut(), change.as_object()) {
            to.extend(from.clone());
        }
        container
    }

    fn refused(spec: &Json, change: &Json) -> Option<String> {
        let pod = json!({"spec": spec}).to_string();
        let origin = Origin { resource: "".into(), field: "".into(), rule: "" };
        let value = Value::Tree(container(change));
        let edit = Edit::add(Pointer::new("/spec/initContainers/0"), value, origin);
        refusal(&pod, &[edit]).map(|finding| finding.message().into_owned())
    }

    #[test]
    fn knows_the_resources_of_the_whole_pod() {
        let with = |pod: Json, own: Json, inits: Json| {
            let spec = json!({"resources": pod, "containers": [{"name": "a", "resources": own}],
                "initContainers": inits});
            refused(&spec, &json!({})).is_some()
        };
        let none = || json!([]);
        for (pod, own, inits, expected) in [
            (json!({}), json!({}), none(), false),
            (json!({"requests": {"cpu": "50m"}}), json!({}), none(), false),
            (json!({"requests": {"cpu": "49m"}}), json!({}), none(), true),
            (json!({"requests": {"cpu": 1}}), json!({"requests": {"cpu": "0.95"}}), none(), false),
            (json!({"requests": {"cpu": 1}}), json!({"requests": {"cpu": "0.951"}}), none(), true),
            (json!({"requests": {"cpu": 1}}), json!({"limits": {"cpu": 1}}), none(), true),
            (json!({"limits": {"memory": "128Mi"}}), json!({}), none(), false),
            (json!({"limits": {"memory": "127Mi"}}), json!({}), none(), true),
            (json!({"requests": {"hugepages-2Mi": "2Mi"}}), json!({}), none(), false),
            (
                json!({"requests": {"cpu": "100m"}}),
                json!({}),
                json!([{"resources": {"requests": {"cpu": "51m"}}}]),
                true,
            ),
        ] {
            assert_eq!(with(pod.clone(), own.clone(), inits.clone()), expected, "{pod} {own} {inits}");
        }
    }

    #[test]
    fn knows_what_a_container_cannot_have() {
        let env = |entry: Json| json!({"env": [entry]});
        for (change, expected) in [
            (json!({}), false),
            (json!({"image": ""}), true),
            (json!({"image": " m"}), true),
            (json!({"image": "m\n"}), true),
            (env(json!({"name": "A"})), false),
            (env(json!({"name": ""})), true),
            (env(json!({"name": "1A"})), true),
            (env(json!({"name": "A B"})), true),
            (env(json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}})), false),
            (env(json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k/"}}})), true),
            (env(json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})), false),
            (env(json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}})), true),
            (env(json!({"name": "A", "valueFrom": {"other": {}}})), true),
        ] {
            assert_eq!(refused(&json!({}), &change).is_some(), expected, "{change}");
        }
    }
}
