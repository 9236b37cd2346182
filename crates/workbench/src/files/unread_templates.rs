//! Pod templates of agents in kinds that memgate does not know. They are named, and neither judged nor edited.

use std::collections::BTreeSet;
use std::ptr;

use serde_json::Value;

use crate::build::object_name::is_of_cluster;
use crate::files::objects::{agent_templates, is_of_agent};
use crate::report::ObjectRef;
use memgate_core::decide::MAX_REPORTED;
use memgate_model::finding::{Finding, Severity};
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::workload::{self, Workload, places};
use memgate_platforms::common::POD_TEMPLATE_UNREAD;
use memgate_primitives::plain_text::{quoted, shown_key};
use memgate_primitives::pointer::{Path, Pointer};

/// How deep in an object its values are looked at.
const MAX_DEPTH: usize = 12;

/// The kinds with pods in a form of their own: group, kinds (empty for all), patterns of [`places`], and fields of which a
/// pod has one (empty for any). The pods have their own metadata, that of the object, or one of [`POD_METADATA`].
const OWN_FORMS: [(&str, &str, &[&str], &[&str]); 4] = [
    (
        "serving.kserve.io",
        "InferenceService",
        &["/spec/predictor", "/spec/transformer", "/spec/explainer"],
        &[],
    ),
    ("tekton.dev", "", &["/spec"], &[]),
    (
        "argoproj.io",
        "Workflow WorkflowTemplate ClusterWorkflowTemplate",
        &["/spec/templates/N"],
        ARGO_CONTAINERS,
    ),
    ("argoproj.io", "CronWorkflow", &["/spec/workflowSpec/templates/N"], ARGO_CONTAINERS),
];

const ARGO_CONTAINERS: &[&str] = &["container", "script", "containerSet"];

/// Where such an object has the metadata of its pods.
const POD_METADATA: [&str; 4] =
    ["/metadata", "/spec/podMetadata", "/spec/workflowSpec/podMetadata", "/spec/workflowMetadata"];

/// The findings about pod templates in an object, and their pointers in it. `has_chosen` says that the settings name the
/// namespace of what has none.
pub(crate) fn findings(object: &Value, object_ref: &ObjectRef, has_chosen: bool) -> Vec<Finding> {
    let Some((group, kind)) = group_and_kind(object) else { return Vec::new() };
    let of_cluster = workload::find(group, kind).filter(|it| is_of_cluster(it) && !has_chosen);
    if is_closed(group, kind) || is_judged(group, kind) && of_cluster.is_none() {
        return Vec::new();
    }
    let ObjectRef { kind: own_kind, name, .. } = object_ref;
    let name = if name.is_empty() { String::new() } else { format!(" {}", quoted(name)) };
    let title = format!("{}{name}", shown_key(own_kind));
    if let Some(workload) = of_cluster {
        return templates_of_cluster(workload, object, &title);
    }
    let mut found = Vec::new();
    add_templates(object, (Path::Root, 0), &other_forms((group, kind), object), &mut found);
    let more = found.len().saturating_sub(MAX_REPORTED);
    let note = |at: Pointer| {
        let (field, kind) = (at.field(), shown_key(kind));
        let message =
            format!("{title}: the pod template at {field} is not judged: memgate does not know {kind}");
        let finding = Finding::warn(&POD_TEMPLATE_UNREAD, at, message);
        Finding { severity: Severity::Note, ..finding }
    };
    let mut notes: Vec<Finding> = found.into_iter().take(MAX_REPORTED).map(note).collect();
    if let Some(last) = notes.pop() {
        let help = format!("{more} more places in this object are not listed");
        notes.push(if more > 0 { last.help(help) } else { last });
    }
    notes
}

/// The notes that the pods of a kind without a namespace are judged as those of the default one.
fn templates_of_cluster(workload: &Workload, object: &Value, title: &str) -> Vec<Finding> {
    let note = |(at, _): (Pointer, &Value)| {
        let field = at.field();
        let message = format!(
            "{title}: the pod template at {field} is judged as one of namespace {DEFAULT_NAMESPACE}: its pods may be in any"
        );
        let finding =
            Finding::warn(&POD_TEMPLATE_UNREAD, at, message).help("name their namespace with --namespace");
        Finding { severity: Severity::Note, ..finding }
    };
    agent_templates(workload, object).into_iter().take(MAX_REPORTED).map(note).collect()
}

/// The group and kind of a value that is an object of Kubernetes, or refers to one.
fn group_and_kind(value: &Value) -> Option<(&str, &str)> {
    let text = |field| value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    Some((api_version.split_once('/').map_or("", |(group, _)| group), kind))
}

/// Whether objects of this kind are not looked into: Secrets never, the templates in definitions are examples, and a
/// controller keeps templates of workloads in revisions.
fn is_closed(group: &str, kind: &str) -> bool {
    const CLOSED: [(&str, &str); 3] = [
        ("", "Secret"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apps", "ControllerRevision"),
    ];
    CLOSED.contains(&(group, kind))
}

/// Whether objects of this kind are judged, or read for decisions, and hold no others.
fn is_judged(group: &str, kind: &str) -> bool {
    is_own(group, kind) || workload::find(group, kind).is_some() || group.is_empty() && kind == "Pod"
}

/// Whether it is a kind in a group of a platform that is judged or read, or a policy. Those of Kubernetes itself are not.
fn is_own(group: &str, kind: &str) -> bool {
    let all = &memgate_platforms::ALL;
    let mut kinds = all.iter().flat_map(|family| family.kinds.validated.iter().chain(family.kinds.misnamed));
    let is_of_platform = group.contains('.') && kinds.any(|known| known.group == group);
    let is_read = || memgate_platforms::state_kind(all, group, kind).is_some();
    memgate_policy::resource::kind(group, kind).is_some()
        || is_of_platform && (memgate_platforms::validated(all, group, kind).is_some() || is_read())
}

/// Whether a value is the pod template of an agent.
fn is_agent_template(value: &Value) -> bool {
    let containers = value.pointer("/spec/containers").and_then(Value::as_array);
    containers.is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_object)) && is_of_agent(value)
}

/// The parts of an object that stand for pods of agents in a form of its own.
fn other_forms((group, kind): (&str, &str), object: &Value) -> BTreeSet<*const Value> {
    let is_form = |known: &str, kinds: &str| {
        known == group && (kinds.is_empty() || kinds.split(' ').any(|known| known == kind))
    };
    let forms = OWN_FORMS.iter().filter(|(known, kinds, ..)| is_form(known, kinds));
    let is_agent = POD_METADATA.iter().any(|at| is_agent_metadata(object.pointer(at)));
    let pods = forms.flat_map(|(.., patterns, fields)| {
        let all = patterns.iter().flat_map(|pattern| places(object, pattern));
        let is_pod = |pod: &Value| fields.is_empty() || fields.iter().any(|field| pod.get(field).is_some());
        all.filter(move |(_, pod)| is_pod(pod) && (is_agent || is_of_agent(pod)))
    });
    pods.map(|(_, pod)| ptr::from_ref(pod)).collect()
}

fn is_agent_metadata(metadata: Option<&Value>) -> bool {
    metadata.is_some_and(|metadata| memgate_platforms::selects_pod(&memgate_platforms::ALL, metadata))
}

/// Adds the places of pod templates in a value, and of pods in other forms. It is not looked into what is an object of its own, nor
/// into what a controller says about the object. The recursion is bounded by [`MAX_DEPTH`].
fn add_templates(
    value: &Value,
    (at, depth): (Path<'_>, usize),
    pods: &BTreeSet<*const Value>,
    found: &mut Vec<Pointer>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if pods.contains(&ptr::from_ref(value)) {
        found.push(at.pointer());
    }
    match value {
        Value::Array(list) => {
            for (index, element) in list.iter().enumerate() {
                add_templates(element, (Path::Index(&at, index), depth + 1), pods, found);
            }
        }
        Value::Object(fields) if depth == 0 || group_and_kind(value).is_none() => {
            // A schema has examples.
            let is_open = |key: &str, value: &Value| {
                !(depth == 0 && key == "status" || key == "openAPIV3Schema" && value.is_object())
            };
            for (key, value) in fields.iter().filter(|(key, value)| is_open(key, value)) {
                let is_template = key == "template" || key == "podTemplate" || key.ends_with("Template");
                let at = Path::Key(&at, key);
                if is_template && is_agent_template(value) && group_and_kind(value).is_none() {
                    found.push(at.pointer());
                } else {
                    add_templates(value, (at, depth + 1), pods, found);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    /// The pod templates of agents of all families, and one with memgate's label.
    fn templates() -> Vec<Value> {
        let selectors = memgate_platforms::ALL.iter().flat_map(|family| family.pods.selectors);
        let of_selector = selectors.map(|selector| {
            let value = |values: &&'static [&'static str]| values.first().copied().unwrap_or("x");
            let labels: Map<_, _> = selector
                .labels
                .iter()
                .map(|(key, values)| ((*key).to_owned(), value(values).into()))
                .collect();
            let annotations: Map<_, _> =
                selector.annotation.iter().map(|key| ((*key).to_owned(), "x".into())).collect();
            json!({"labels": labels, "annotations": annotations})
        });
        let metadata = of_selector.chain([json!({"labels": {"memgate.dev/inject": "required"}})]);
        metadata.map(|it| json!({"metadata": it, "spec": {"containers": [{"name": "agent"}]}})).collect()
    }

    /// An object of this kind with a value at the place that a pattern fits.
    fn object([api_version, kind]: [&str; 2], pattern: &str, value: Value) -> Value {
        let mut object =
            pattern.rsplit('/').filter(|token| !token.is_empty()).fold(value, |below, token| match token {
                "N" => json!([null, below]),
                token => json!({ token.replace('*', "x"): below }),
            });
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object
    }

    fn found(object: &Value) -> Vec<(&'static str, String, String)> {
        let object_ref = ObjectRef { kind: "Outer".into(), name: "b".into(), ..ObjectRef::default() };
        let told = findings(object, &object_ref, false);
        assert!(told.iter().all(|finding| finding.severity == Severity::Note));
        told.iter()
            .map(|it| (it.code.name, it.pointer.as_str().to_owned(), it.message().into_owned()))
            .collect()
    }

    #[test]
    fn finds_pod_templates_of_unknown_kinds() {
        for template in templates() {
            for key in ["template", "podTemplate", "workerTemplate"] {
                let object = object(["example.com/v1", "Fleet"], &format!("/spec/N/{key}"), template.clone());
                let [(code, pointer, message)] = found(&object).try_into().expect("one");
                assert_eq!((code, pointer), ("memgate/pod-template-unread", format!("/spec/1/{key}")));
                let end =
                    format!("the pod template at spec[1].{key} is not judged: memgate does not know Fleet");
                assert!(message.ends_with(&end), "{message}");
            }
            let metadata = template["metadata"].clone();
            for (group, kinds, patterns, fields) in OWN_FORMS {
                let kinds = if kinds.is_empty() { "TaskRun" } else { kinds };
                for (kind, pattern) in kinds.split(' ').flat_map(|it| patterns.iter().map(move |at| (it, at)))
                {
                    let pod = json!({ fields.first().copied().unwrap_or("containers"): [{}] });
                    for at in ["metadata", "podMetadata"] {
                        let mut object = object([&format!("{group}/v1"), kind], pattern, pod.clone());
                        let place = if at == "metadata" { &mut object } else { &mut object["spec"] };
                        place[at] = metadata.clone();
                        let [(code, pointer, _)] = found(&object).try_into().expect("one");
                        let place = pattern.replace('N', "1");
                        assert_eq!((code, pointer), ("memgate/pod-template-unread", place));
                    }
                    assert_eq!(found(&object([&format!("{group}/v1"), kind], pattern, pod)), []);
                }
            }
        }
    }

    #[test]
    fn tells_that_pods_of_a_kind_without_a_namespace_are_judged_as_in_one() {
        let of_cluster: Vec<_> = workload::ALL.iter().filter(|workload| is_of_cluster(workload)).collect();
        assert!(!of_cluster.is_empty());
        for (workload, template) in
            of_cluster.into_iter().flat_map(|it| templates().into_iter().map(move |at| (it, at)))
        {
            let api_version = format!("{}/v1", workload.group);
            for pattern in workload.templates {
                let object = object([&api_version, workload.kind], pattern, template.clone());
                let [(code, pointer, _)] = found(&object).try_into().expect("one");
                assert_eq!((code, pointer), ("memgate/pod-template-unread", pattern.replace('N', "1")));
                assert_eq!(findings(&object, &ObjectRef::default(), true), []);
            }
        }
    }

    #[test]
    fn looks_neither_into_other_objects_nor_into_examples_nor_too_deep() {
        let template = || templates().remove(0);
        let other = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Other", "spec": spec});
        let deep =
            |levels: usize| (1..levels).fold(json!({"template": template()}), |below, _| json!({"a": below}));
        // The spec is the first level.
        for (levels, count) in [(1, 1), (12, 1), (13, 0)] {
            assert_eq!(found(&other(deep(levels))).len(), count, "{levels}");
        }
        let unknown = other(json!({"template": template()}));
        let text = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": unknown.to_string()}});
        let status =
            json!({"apiVersion": "example.com/v1", "kind": "Other", "status": {"template": template()}});
        let schema = other(json!({"openAPIV3Schema": {"template": template()}}));
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {"template": template()}});
        let revision =
            json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "data": {"template": template()}});
        let plain = other(json!({"template":
            {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "agent"}]}}}));
        for object in [other(json!({"manifest": unknown})), text, status, schema, definition, revision, plain]
        {
            assert_eq!(found(&object), [], "{object}");
        }
        let below = json!({"status": {"template": template()}});
        assert_eq!(found(&other(below)).len(), 1, "only that of the object is its status");
    }

    #[test]
    fn costs_follow_size() {
        let holder = json!({"template": templates().remove(0)});
        let many = json!({"apiVersion": "v1", "kind": "Other", "items": vec![holder; 10_000]});
        let told = findings(&many, &ObjectRef::default(), false);
        assert_eq!(told.len(), MAX_REPORTED);
        let help = told.last().and_then(Finding::help_text).expect("a help");
        assert_eq!(help, "9950 more places in this object are not listed");
    }
}
