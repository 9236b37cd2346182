//! What looks checkable inside of an object and is not checked: manifests in objects that carry them, and pod templates of
//! agents in kinds that memgate does not know. It is named, and neither judged nor edited.

use std::collections::BTreeSet;
use std::ptr;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::object_name::is_of_cluster;
use crate::objects::{agent_templates, is_of_agent};
use crate::report::ObjectRef;
use memgate_core::decide::MAX_REPORTED;
use memgate_manifest::document::{Document, each_value};
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_model::finding::{Code, Finding, Severity};
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::workload::{self, Workload, places};
use memgate_platforms::common::{MANIFEST_INSIDE, POD_TEMPLATE_UNREAD};
use memgate_primitives::plain_text::{quoted, shown_key};
use memgate_primitives::pointer::{Path, Pointer};

/// How deep in an object its values are looked at.
const MAX_DEPTH: usize = 12;

/// Where objects of a kind carry manifests, as mappings or texts: group, kinds with blanks between them, and patterns of
/// [`places`]. Elsewhere a manifest counts if it has a spec; without one it may be a reference.
const CARRIERS: [(&str, &str, &[&str]); 22] = [
    ("work.open-cluster-management.io", "ManifestWork", &["/spec/workload/manifests/N"]),
    (
        "work.open-cluster-management.io",
        "ManifestWorkReplicaSet",
        &["/spec/manifestWorkTemplate/workload/manifests/N"],
    ),
    ("work.karmada.io", "Work", &["/spec/workload/manifests/N"]),
    ("kubernetes.crossplane.io", "Object", &["/spec/forProvider/manifest"]),
    ("kubernetes.m.crossplane.io", "Object", &["/spec/forProvider/manifest"]),
    (
        "apiextensions.crossplane.io",
        "Composition",
        &[
            "/spec/resources/N/base",
            "/spec/pipeline/N/input/resources/N/base",
            "/spec/pipeline/N/input/inline/*",
        ],
    ),
    ("template.openshift.io", "Template", &["/objects/N"]),
    ("", "Template", &["/objects/N"]),
    (
        "argoproj.io",
        "Workflow WorkflowTemplate ClusterWorkflowTemplate",
        &["/spec/templates/N/resource/manifest"],
    ),
    ("argoproj.io", "CronWorkflow", &["/spec/workflowSpec/templates/N/resource/manifest"]),
    ("argoproj.io", "Application", &["/spec/source/helm/values", "/spec/sources/N/helm/values"]),
    (
        "argoproj.io",
        "ApplicationSet",
        &["/spec/template/spec/source/helm/values", "/spec/template/spec/sources/N/helm/values"],
    ),
    ("", "ConfigMap", &["/data/*"]),
    ("kro.run", "ResourceGraphDefinition", &["/spec/resources/N/template"]),
    ("fluxcd.controlplane.io", "ResourceSet", &["/spec/resources/N", "/spec/resourcesTemplate"]),
    ("hive.openshift.io", "SyncSet SelectorSyncSet", &["/spec/resources/N"]),
    (
        "policy.open-cluster-management.io",
        "ConfigurationPolicy",
        &["/spec/object-templates/N/objectDefinition", "/spec/object-templates-raw"],
    ),
    ("policy.open-cluster-management.io", "Policy", &["/spec/policy-templates/N/objectDefinition"]),
    (KYVERNO, "ClusterPolicy Policy", &["/spec/rules/N/generate", "/spec/rules/N/generate/foreach/N"]),
    ("fleet.cattle.io", "Bundle", &["/spec/resources/N/content"]),
    ("workload.codeflare.dev", "AppWrapper", &["/spec/components/N/template"]),
    ("helm.cattle.io", "HelmChart HelmChartConfig", &["/spec/valuesContent"]),
];

/// The group of Kyverno, whose rules have the kind of an object apart from its other fields.
const KYVERNO: &str = "kyverno.io";

/// The values of charts that hold whole manifests, as a list or a text.
const HELM_VALUES: [&str; 3] = ["extraObjects", "extraDeploy", "extraManifests"];

/// The key of a manifest in the objects of Open Cluster Management, which texts in them have too.
const DEFINITION: &str = "objectDefinition";

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

/// The findings about what is inside of an object, and their pointers in it. `has_chosen` says that the settings name the
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
    let mut search = Search { title, text: None, found: Vec::new(), more: 0 };
    search.object((group, kind), object, Path::Root, 0);
    let Search { mut found, more, .. } = search;
    if let Some(last) = found.pop() {
        let help = format!("{more} more places in this object are not listed");
        found.push(if more > 0 { last.help(help) } else { last });
    }
    found
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

/// Whether objects of this kind are not looked into: Secrets never, the manifests in definitions are examples, and a
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

/// Whether a list of kinds with blanks between them has this one.
fn lists(kinds: &str, kind: &str) -> bool {
    kinds.split(' ').any(|known| known == kind)
}

/// Whether a text may be that of a manifest, or of values with one. Most are not, and are not parsed. Keys in quotes may
/// have escapes.
fn may_be_manifest(text: &str) -> bool {
    text.contains("apiVersion") && text.contains("kind") || text.contains('\\') && text.contains('"')
}

/// Whether a value is the pod template of an agent.
fn is_agent_template(value: &Value) -> bool {
    let containers = value.pointer("/spec/containers").and_then(Value::as_array);
    containers.is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_object)) && is_of_agent(value)
}

/// An object in which others are looked for.
struct Carrier<'v> {
    group: &'v str,
    kind: &'v str,
    /// What a controller says about it.
    status: Option<*const Value>,
    /// The places where it carries manifests.
    places: BTreeSet<*const Value>,
    /// The parts that stand for pods in a form of its own.
    pods: BTreeSet<*const Value>,
}

impl<'v> Carrier<'v> {
    fn of((group, kind): (&'v str, &'v str), object: &Value) -> Self {
        let carriers = CARRIERS.iter().filter(|(known, kinds, _)| *known == group && lists(kinds, kind));
        let all = carriers.flat_map(|(.., patterns)| *patterns).flat_map(|pattern| places(object, pattern));
        let items = if kind.ends_with("List") { places(object, "/items/N") } else { Vec::new() };
        let places = all.chain(items).map(|(_, value)| ptr::from_ref(value)).collect();
        let is_form = |known: &str, kinds: &str| known == group && (kinds.is_empty() || lists(kinds, kind));
        let forms = OWN_FORMS.iter().filter(|(known, kinds, ..)| is_form(known, kinds));
        let is_agent = POD_METADATA.iter().any(|at| is_agent_metadata(object.pointer(at)));
        let pods = forms.flat_map(|(.., patterns, fields)| {
            let all = patterns.iter().flat_map(|pattern| workload::places(object, pattern));
            let is_pod =
                |pod: &Value| fields.is_empty() || fields.iter().any(|field| pod.get(field).is_some());
            let all = all.filter(move |(_, pod)| is_pod(pod) && (is_agent || is_of_agent(pod)));
            all.map(|(_, pod)| ptr::from_ref(pod))
        });
        Self { group, kind, status: object.get("status").map(ptr::from_ref), places, pods: pods.collect() }
    }
}

fn is_agent_metadata(metadata: Option<&Value>) -> bool {
    metadata.is_some_and(|metadata| memgate_platforms::selects_pod(&memgate_platforms::ALL, metadata))
}

/// The search in one object of the inputs.
struct Search {
    /// Its kind and name.
    title: String,
    /// The place of the text that is looked into.
    text: Option<Pointer>,
    found: Vec<Finding>,
    /// How many places were found beyond these.
    more: usize,
}

impl Search {
    fn add(&mut self, code: &'static Code, at: Path<'_>, message: impl FnOnce(&str, &str) -> String) {
        if self.found.len() == MAX_REPORTED {
            self.more += 1;
            return;
        }
        let pointer = self.text.clone().unwrap_or_else(|| at.pointer());
        let message = message(&self.title, &pointer.field());
        self.found.push(Finding { severity: Severity::Note, ..Finding::warn(code, pointer, message) });
    }

    /// Adds a manifest of ours.
    fn manifest(&mut self, kind: &str, name: Option<&Value>, at: Path<'_>) {
        let name = name.and_then(Value::as_str).map(|name| format!(" {}", quoted(name))).unwrap_or_default();
        self.add(&MANIFEST_INSIDE, at, |title, field| {
            let kind = shown_key(kind);
            format!("{title}: {kind}{name} at {field} is not judged; check it as a file of its own")
        });
    }

    /// Adds a pod template, or a pod in another form.
    fn template(&mut self, carrier: &Carrier<'_>, at: Path<'_>) {
        self.add(&POD_TEMPLATE_UNREAD, at, |title, field| {
            let kind = shown_key(carrier.kind);
            format!("{title}: the pod template at {field} is not judged: memgate does not know {kind}")
        });
    }

    /// Looks into an object that is not one of ours.
    fn object(&mut self, group_and_kind: (&str, &str), object: &Value, at: Path<'_>, depth: usize) {
        let carrier = Carrier::of(group_and_kind, object);
        self.fields(object.as_object(), (at, depth), &carrier);
    }

    fn fields(
        &mut self,
        fields: Option<&Map<String, Value>>,
        (at, depth): (Path<'_>, usize),
        carrier: &Carrier<'_>,
    ) {
        // A schema has examples.
        let is_closed = |key: &str, value: &Value| {
            carrier.status == Some(ptr::from_ref(value)) || key == "openAPIV3Schema" && value.is_object()
        };
        for (key, value) in fields.into_iter().flatten().filter(|(key, value)| !is_closed(key, value)) {
            let is_template = key == "template" || key == "podTemplate" || key.ends_with("Template");
            let (at, is_place) =
                (Path::Key(&at, key), HELM_VALUES.contains(&key.as_str()) || key == DEFINITION);
            if is_template && is_agent_template(value) && group_and_kind(value).is_none() {
                self.template(carrier, at);
            } else {
                self.value(value, (at, depth + 1), is_place, carrier);
            }
        }
    }

    /// Looks into a value. `is_place` says that it holds manifests. The recursion is bounded by [`MAX_DEPTH`].
    fn value(
        &mut self,
        value: &Value,
        (at, depth): (Path<'_>, usize),
        is_place: bool,
        carrier: &Carrier<'_>,
    ) {
        if depth > MAX_DEPTH {
            return;
        }
        if carrier.pods.contains(&ptr::from_ref(value)) {
            self.template(carrier, at);
        }
        let is_place = is_place || carrier.places.contains(&ptr::from_ref(value));
        match value {
            Value::String(text) if is_place && may_be_manifest(text) => self.text(text, (at, depth), carrier),
            Value::Array(list) => {
                for (index, element) in list.iter().enumerate() {
                    self.value(element, (Path::Index(&at, index), depth + 1), is_place, carrier);
                }
            }
            Value::Object(fields) => match group_and_kind(value) {
                Some(kind) => self.inner(kind, value, (at, depth), is_place, carrier),
                None => self.fields(Some(fields), (at, depth), carrier),
            },
            _ => {}
        }
    }

    /// Looks at an object inside of another one.
    fn inner(
        &mut self,
        (group, kind): (&str, &str),
        value: &Value,
        (at, depth): (Path<'_>, usize),
        is_place: bool,
        carrier: &Carrier<'_>,
    ) {
        let (object, at) = match value.get("data").filter(|_| carrier.group == KYVERNO && is_place) {
            Some(data) => (data, Path::Key(&at, "data")),
            None => (value, at),
        };
        let is_manifest = (is_place && carrier.group != KYVERNO) || object.get("spec").is_some();
        let is_of_agent = || match workload::find(group, kind) {
            Some(workload) => workload.templates_in(object).iter().any(|(_, template)| is_of_agent(template)),
            None => is_of_agent(object),
        };
        if is_closed(group, kind) {
            return;
        }
        if !is_judged(group, kind) {
            return self.object((group, kind), object, at, depth);
        }
        let counts = if is_own(group, kind) { is_manifest } else { is_of_agent() };
        if counts {
            // A rule of Kyverno names the object beside its fields.
            self.manifest(kind, object.pointer("/metadata/name").or_else(|| value.get("name")), at);
        }
    }

    /// Looks into the documents of a text. Their place is that of the text.
    fn text(&mut self, text: &str, (at, depth): (Path<'_>, usize), carrier: &Carrier<'_>) {
        let place = self.text.clone().unwrap_or_else(|| at.pointer());
        let before = self.text.replace(place);
        match values(text) {
            Ok(documents) => self.documents(&documents, (at, depth), carrier),
            // That of a ConfigMap may be any text, such as a prompt with an example.
            Err(_) if carrier.kind == "ConfigMap" => {}
            Err(_) => {
                for part in text.split("\n---") {
                    match values(&without_actions(part)) {
                        Ok(documents) => self.documents(&documents, (at, depth), carrier),
                        Err(_) => self.head(part, at),
                    }
                }
            }
        }
        self.text = before;
    }

    fn documents(&mut self, documents: &[Document], (at, depth): (Path<'_>, usize), carrier: &Carrier<'_>) {
        for document in documents.iter().filter(|document| !document.value().is_string()) {
            self.value(document.value(), (at, depth + 1), true, carrier);
        }
    }

    /// Adds the manifest of ours in a template of which no YAML can be made, by the lines that name its kind.
    fn head(&mut self, template: &str, at: Path<'_>) {
        let field = |key: &str| template.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let texts =
            ["apiVersion", "kind"].map(|key| field(key).map(|it| it.trim().trim_matches(['"', '\''])));
        if let ([Some(api_version), Some(kind)], true) = (texts, template.contains(ACTION)) {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            if is_own(group, kind) {
                self.manifest(kind, None, at);
            }
        }
    }
}

/// The documents of a text.
fn values(text: &str) -> Result<Vec<Document>, Error> {
    each_value(&Arc::new(Source::new("", text))).collect()
}

/// What an action of a template begins with.
const ACTION: &str = "{{";

/// A template with a text in the place of each action. Lines of actions alone are left out.
fn without_actions(template: &str) -> String {
    const MARK: char = '\u{1}';
    let (first, rest) = template.split_once(ACTION).unwrap_or((template, ""));
    let mut marked = first.to_owned();
    for part in rest.split(ACTION).filter(|part| !part.is_empty()) {
        marked.push(MARK);
        marked.push_str(part.split_once("}}").map_or(part, |(_, behind)| behind));
    }
    let has_text =
        |line: &&str| !line.contains(MARK) || line.chars().any(|it| it != MARK && !it.is_whitespace());
    let lines: Vec<&str> = marked.lines().filter(has_text).collect();
    lines.join("\n").replace(MARK, "x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn memory() -> Value {
        json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "metadata": {"name": "a"}})
    }

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

    /// A manifest in the form that stands at a place: of the rules of Kyverno in parts.
    fn carried(group: &str, manifest: &Value) -> Value {
        let Value::Object(mut fields) = manifest.clone() else { return Value::Null };
        if group == KYVERNO {
            let data = json!({"spec": fields.remove("spec"), "metadata": fields.get("metadata")});
            fields.insert("data".to_owned(), data);
            fields.insert("name".to_owned(), "a".into());
        }
        fields.into()
    }

    #[test]
    fn finds_what_each_carrier_carries() {
        let policy = json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "spec": {}});
        let job = |template: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}});
        let rollout = |template: Value| json!({"apiVersion": "argoproj.io/v1", "kind": "Rollout", "spec": {"template": template}});
        let manifests = [memory(), policy].into_iter().chain(templates().into_iter().flat_map(|template| {
            let mut pod = template.clone();
            (pod["apiVersion"], pod["kind"]) = ("v1".into(), "Pod".into());
            [job(template.clone()), rollout(template), pod]
        }));
        for manifest in manifests {
            let kind = manifest["kind"].as_str().expect("a kind");
            for (group, kinds, patterns) in CARRIERS {
                let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
                for (outer, pattern) in
                    kinds.split(' ').flat_map(|it| patterns.iter().map(move |at| (it, at)))
                {
                    let texts =
                        ["ConfigMap", "HelmChart", "HelmChartConfig", "Application", "ApplicationSet"];
                    let carried = carried(group, &manifest);
                    let as_text = Value::from(format!("# a\n---\n{carried}\n"));
                    let forms = if texts.contains(&outer) || group == KYVERNO { 1 } else { 2 };
                    for form in [as_text, carried].into_iter().rev().take(forms) {
                        let form = if texts.contains(&outer) { Value::from(form.to_string()) } else { form };
                        let object = object([&api_version, outer], pattern, form);
                        let place = pattern.replace('N', "1").replace('*', "x");
                        let place = if group == KYVERNO { format!("{place}/data") } else { place };
                        let found = found(&object);
                        let [(code, pointer, message)] = found.as_slice() else {
                            panic!("{object}: {found:?}")
                        };
                        assert_eq!((*code, pointer), ("memgate/manifest-inside", &place), "{object}");
                        let start = format!("Outer \"b\": {kind}");
                        assert!(
                            message.starts_with(&start) && message.contains(" is not judged; "),
                            "{message}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn finds_values_of_charts() {
        let yaml = "- apiVersion: arkonis.dev/v1alpha1\n  kind: ArkMemory\n";
        for key in HELM_VALUES {
            for value in [json!([memory()]), json!(yaml), json!([yaml.replace("- ", "  ")])] {
                let values = json!({"spec": {"values": {"sub": {key: value}}}});
                let mut release = values.clone();
                release["apiVersion"] = "helm.toolkit.fluxcd.io/v2".into();
                release["kind"] = "HelmRelease".into();
                assert_eq!(found(&release).len(), 1, "{release}");
                let text = values["spec"]["values"].to_string();
                let application =
                    object(["argoproj.io/v1", "Application"], "/spec/source/helm/values", text.into());
                let [(_, pointer, _)] = found(&application).try_into().expect("one");
                assert_eq!(pointer, "/spec/source/helm/values");
            }
        }
    }

    #[test]
    fn finds_manifests_anywhere_and_inside_of_each_other() {
        let mut memory = memory();
        memory["spec"] = json!({});
        let deep = |levels: usize| (1..levels).fold(memory.clone(), |below, _| json!({ "a": below }));
        let other = |value: Value| json!({"apiVersion": "example.com/v1", "kind": "Other", "spec": value});
        for (levels, count) in [(1, 1), (11, 1), (12, 1), (13, 0)] {
            // The spec is the first level.
            assert_eq!(found(&other(deep(levels))).len(), count, "{levels}");
        }
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": memory.to_string()}});
        let carrier = object(["work.karmada.io/v1", "Work"], "/spec/workload/manifests/N", config.clone());
        let [(_, pointer, _)] = found(&carrier).try_into().expect("one");
        assert_eq!(pointer, "/spec/workload/manifests/1/data/a");
        let mut secret = config;
        secret["kind"] = "Secret".into();
        secret["stringData"] = json!({"a": memory});
        assert_eq!(found(&secret), []);
        assert_eq!(found(&object(["work.karmada.io/v1", "Work"], "/spec/workload/manifests/N", secret)), []);
        let template = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n{{- if .a }}\n";
        let set =
            object(["fluxcd.controlplane.io/v1", "ResourceSet"], "/spec/resourcesTemplate", template.into());
        assert_eq!(found(&set).len(), 1);
        for text in
            [template, "Write what is asked for, such as apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n"]
        {
            let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": text}});
            assert_eq!(found(&config), []);
        }
    }

    #[test]
    fn finds_manifests_in_lists_and_behind_keys_named_status() {
        let mut with_spec = memory();
        with_spec["spec"] = json!({});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [memory()]});
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {}});
        let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "a"}, "spec": {}});
        for (manifest, count) in [(list, 1), (namespace, 0), (class, 0)] {
            let work = object(["work.karmada.io/v1", "Work"], "/spec/workload/manifests/N", manifest);
            assert_eq!(found(&work).len(), count, "{work}");
        }
        let below = json!({"status": {"extraObjects": [memory()]}});
        for object in [
            object(["v1", "ConfigMap"], "/data/status", memory().to_string().into()),
            object(["v1", "ConfigMap"], "/data/openAPIV3Schema", memory().to_string().into()),
            object(["helm.toolkit.fluxcd.io/v2", "HelmRelease"], "/spec/values/sub", below),
            object(["example.com/v1", "Other"], "/spec/status", with_spec),
        ] {
            assert_eq!(found(&object).len(), 1, "{object}");
        }
    }

    #[test]
    fn finds_manifests_in_texts_that_are_yaml_or_templates_of_it() {
        let example = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\n";
        let turned = "kind: \"ArkMemory\"\napiVersion: arkonis.dev/v1alpha1\n";
        let loop_of =
            |body: &str| format!("{{{{- range .a }}}}\n- objectDefinition:\n{body}    name: {{{{ .b }}}}\n");
        for (text, count) in [
            (turned.to_owned(), 1),
            (format!("a: b: c\n---\n{turned}"), 1),
            (
                format!(
                    "{turned}metadata: {{name: {{{{ .a }}}}-b}}\n---\n{example}labels:\n  {{{{- .b | nindent 2 }}}}\n"
                ),
                2,
            ),
            (format!("{turned}{{{{ if .a }}}}\nspec: {{}}\n{{{{ else }}}}\nspec: {{}}\n{{{{ end }}}}\n"), 1),
            (format!("{turned}a: '{{{{'\n---\n{example}b: c: d\n"), 1),
            (loop_of("    kind: ArkMemory\n    apiVersion: arkonis.dev/v1alpha1\n"), 1),
            (r#"{"\u0061piVersion": "arkonis.dev/v1alpha1", "k\u0069nd": "ArkMemory"}"#.to_owned(), 1),
            (format!("# Notes: how to\n\n```yaml\n{example}```\nThen: *do* this: that\n"), 0),
            (
                format!(
                    "Write `{{{{ x }}}}`, then: look at this: it\n\n    {}",
                    example.replace('\n', "\n    ")
                ),
                0,
            ),
        ] {
            let bundle = object(["fleet.cattle.io/v1", "Bundle"], "/spec/resources/N/content", text.into());
            let found = found(&bundle);
            assert_eq!(found.len(), count, "{bundle} {found:?}");
            assert!(found.iter().all(|(_, pointer, _)| pointer == "/spec/resources/1/content"), "{found:?}");
        }
    }

    #[test]
    fn leaves_references_examples_and_what_is_checked_where_it_is() {
        let mut with_spec = memory();
        with_spec["spec"] = json!({});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {"example": with_spec}});
        let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"ownerReferences": [memory()]}, "spec": {"targetRef": memory()}, "involvedObject": memory()});
        let clone = json!({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy",
            "spec": {"rules": [{"generate": memory(), "mutate": {"targets": [memory()]}}]}});
        let status =
            json!({"apiVersion": "example.com/v1", "kind": "Other", "status": {"manifest": with_spec}});
        let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "data": {"spec": {"template": templates()[0]}}});
        let composite = json!({"apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
            "spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": {"default": with_spec}}}}}]}});
        let plain = json!({"apiVersion": "example.com/v1", "kind": "Other", "spec": {"template":
            {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "agent"}]}}}});
        let mut task = with_spec.clone();
        task["spec"] = json!({ "inner": with_spec });
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"inner": with_spec}});
        for object in [definition, composite, hpa, clone, status, revision, plain, task, job] {
            assert_eq!(found(&object), [], "{object}");
        }
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
    fn costs_follow_size() {
        let mut memory = memory();
        memory["spec"] = json!({});
        let many = json!({"apiVersion": "v1", "kind": "Other", "items": vec![memory; 10_000]});
        let object_ref = ObjectRef::default();
        let told = findings(&many, &object_ref, false);
        assert_eq!(told.len(), MAX_REPORTED);
        let help = told.last().and_then(Finding::help_text).expect("a help");
        assert_eq!(help, "9950 more places in this object are not listed");
    }
}
