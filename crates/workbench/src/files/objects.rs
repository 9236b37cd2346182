//! The objects of files: which are checked, and one before and after the decision about it. For a workload the decision is about the pod that its
//! controller would create, for a StatefulSet with its claims.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::build::origins::{FindingSpot, Spots};
use crate::report::ObjectRef;
use memgate_manifest::document::Document;
use memgate_manifest::later::{Later, filled_with, has_below};
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::Source;
use memgate_model::claim_volumes::{ClaimVolumes, add_to_pod};
use memgate_model::edit::Edit;
use memgate_model::kind::{Kind, SYSTEM_NAMESPACES};
use memgate_model::object::JsonText;
use memgate_model::request::{Occasion, Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::workload::{self, KNATIVE, Workload};
use memgate_platforms::selects_pod;
use memgate_primitives::pointer::Pointer;

/// Whether objects of this group and kind are checked: pods, the workloads of Kubernetes by the pods of their templates,
/// memory resources, what refers to them, and policies.
pub fn is_checked(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Pod"
        || memgate_platforms::validated(&memgate_platforms::ALL, group, kind).is_some()
        || memgate_policy::resource::kind(group, kind).is_some()
        || workload::find(group, kind).is_some_and(Workload::is_built_in)
}

/// Whether an object is checked: its kind is, or a pod template in it is that of an agent.
pub(crate) fn is_object_checked(group: &str, kind: &str, object: &Value) -> bool {
    is_checked(group, kind) && has_required_annotation(group, kind, object)
        || workload::find(group, kind).is_some_and(|workload| !agent_templates(workload, object).is_empty())
}

/// Whether an object is checked, and of a pod or workload whether it is that of an agent.
pub(crate) fn is_ours(group: &str, kind: &str, object: &Value) -> bool {
    let is_pod = group.is_empty() && kind == "Pod";
    match workload::find(group, kind) {
        Some(workload) => workload.templates_in(object).iter().any(|(_, template)| is_of_agent(template)),
        None => is_object_checked(group, kind, object) && (!is_pod || is_of_agent(object)),
    }
}

/// The pod templates of a workload; of kinds that the webhooks do not know only those of agents.
pub(crate) fn agent_templates<'v>(workload: &Workload, object: &'v Value) -> Vec<(Pointer, &'v Value)> {
    let mut templates = workload.templates_in(object);
    templates.retain(|(_, template)| workload.is_built_in() || is_of_agent(template));
    templates
}

/// Whether a pod template, or a pod, has what the webhooks select pods by.
pub(crate) fn is_of_agent(template: &Value) -> bool {
    template.get("metadata").is_some_and(|metadata| selects_pod(&memgate_platforms::ALL, metadata))
}

/// Whether an object has the annotation that its kind needs to be checked; true for kinds that do not need
/// one.
pub fn has_required_annotation(group: &str, kind: &str, object: &Value) -> bool {
    let annotations = || object.pointer("/metadata/annotations").and_then(Value::as_object);
    memgate_platforms::needed_annotation(&memgate_platforms::ALL, group, kind).is_none_or(|prefix| {
        annotations().is_some_and(|annotations| annotations.keys().any(|key| key.starts_with(prefix)))
    })
}

/// The JSON of an object to check; `None` for one that is passed over.
///
/// # Errors
/// When a number is out of bounds.
pub(crate) fn json_to_check(document: &Document) -> serde_json::Result<Option<Arc<JsonText>>> {
    let (group, kind, value) = (document.group(), document.kind(), document.value());
    if !is_object_checked(group, kind, value) {
        return Ok(None);
    }
    Ok(Some(Arc::new(JsonText(serde_json::to_string(value)?.into()))))
}

/// The state in which kinds of which the inputs hold no object are unknown.
pub fn open_state(snapshot: &Snapshot) -> Snapshot {
    snapshot.without_empty(|kind| {
        kind.namespaced && is_checked(kind.group, kind.kind) && !has_twin(snapshot, kind)
    })
}

/// Whether the inputs hold an object of a kind that stands for this one, such as an older name of it.
fn has_twin(snapshot: &Snapshot, kind: &Kind) -> bool {
    let edges = snapshot.settings.families.iter().flat_map(|family| family.edges);
    let mut twins = edges.filter(|edge| edge.to.contains(&kind)).flat_map(|edge| edge.to);
    twins.any(|twin| snapshot.kind(twin).is_some_and(|state| !state.is_empty()))
}

/// A document with what is put into it.
pub(crate) struct Filled {
    pub(crate) document: Document,
    /// What a later step fills in.
    pub(crate) later: Later,
}

impl Filled {
    /// A document in which nothing is filled in.
    pub(crate) fn of(document: Document) -> Self {
        Self { document, later: Later::default() }
    }
}

/// An object, without its text.
#[derive(Debug, Clone)]
pub struct CheckedObject {
    /// Its place in a file.
    pub place: Arc<DocumentPlace>,
    /// Of a workload, where its pod is.
    template: Option<Box<Template>>,
    /// Its name in reports.
    pub object_ref: ObjectRef,
    /// What of it a later step fills in, if anything.
    pub later: Option<Arc<Later>>,
    /// Of an object that was built, where its findings stand.
    pub(crate) spots: Option<Box<Spots>>,
}

/// Where the pod of a workload is.
#[derive(Debug, Clone)]
struct Template {
    /// The pointer to it in the document.
    pointer: Pointer,
    /// The volumes for the claims of a StatefulSet's pod.
    claims: ClaimVolumes,
    /// Its JSON; empty once it was decided about.
    pod: String,
    /// The places in it of what a later step fills in.
    later: BTreeSet<Pointer>,
    /// Whether the object makes other pods too.
    is_one_of_several: bool,
}

/// An object before the decision about it.
#[derive(Debug, Clone)]
pub struct UndecidedObject {
    /// The object; boxed, since it goes on to the decision.
    pub object: Box<CheckedObject>,
    /// The namespace that the manifest or the settings name; empty when neither does.
    namespace: Arc<str>,
    /// Whether it has no name, so that its name in reports is the start of one.
    is_unnamed: bool,
    /// The object as JSON. As a value it takes ten times its text.
    json: Arc<JsonText>,
}

impl CheckedObject {
    /// A part of an object.
    pub(crate) const fn part(
        place: Arc<DocumentPlace>,
        object_ref: ObjectRef,
        later: Option<Arc<Later>>,
    ) -> Self {
        Self { place, template: None, object_ref, later, spots: None }
    }

    /// The pointer to the object that is decided about in the document: empty, or that of the pod template of a workload.
    pub fn template(&self) -> Pointer {
        self.template.as_ref().map_or_else(Pointer::root, |template| template.pointer.clone())
    }

    /// Where a finding at a field of the document stands.
    pub(crate) fn standing(&self, pointer: &Pointer) -> FindingSpot<'_> {
        FindingSpot::of(&self.place, self.spots.as_deref(), pointer)
    }

    /// The file in which it stands, and the line.
    pub(crate) fn file_and_line(&self) -> (&Arc<Source>, usize) {
        let standing = self.standing(&Pointer::root());
        let line = match self.spots {
            Some(_) => standing.carets(false).0.line,
            None => self.place.span().line,
        };
        (standing.source(), line)
    }

    /// Whether it is a workload, of which its pod is decided about.
    pub(crate) const fn is_workload(&self) -> bool {
        self.template.is_some()
    }

    /// The pointer in the document for a pointer in the object that is decided about.
    pub fn in_document(&self, place: &Pointer) -> Pointer {
        let in_workload = |template: &Template| template.claims.in_workload(&template.pointer, place);
        self.template.as_deref().map_or_else(|| place.clone(), in_workload)
    }

    /// Whether the value at this place of the document, or one in it, was put in.
    pub(crate) fn is_put_in(&self, place: &Pointer) -> bool {
        let is_known = |later: &Later| later.known.contains(place) || has_below(&later.known, place);
        self.later.as_deref().is_some_and(is_known)
    }

    /// Edits of the object that is decided about as edits of the document.
    pub fn edits_in_document(&self, edits: &[Edit]) -> Vec<Edit> {
        let in_workload = |template: &Template| template.claims.edits_in_workload(&template.pointer, edits);
        self.template.as_deref().map_or_else(|| edits.to_vec(), in_workload)
    }
}

impl Template {
    /// A template of a workload. `later` has the places in the document that a later step fills in.
    fn of(
        document: &Document,
        workload: &Workload,
        (pointer, template): (Pointer, &Value),
        later: Option<&BTreeSet<Pointer>>,
    ) -> serde_json::Result<Self> {
        let mut pod = pod(template, workload);
        let mut claims = ClaimVolumes::default();
        if workload.has_claims() {
            let claim_templates = document.value().pointer("/spec/volumeClaimTemplates");
            claims = add_to_pod(&mut pod, document.name(), claim_templates.unwrap_or(&Value::Null));
        }
        let below = later.into_iter().flat_map(|later| later.range(pointer.clone()..));
        let in_pod = below.map_while(|place| place.as_str().strip_prefix(pointer.as_str())).map(Pointer::new);
        let (later, pod) = (in_pod.collect(), serde_json::to_string(&pod)?);
        Ok(Self { pointer, claims, pod, later, is_one_of_several: false })
    }
}

impl UndecidedObject {
    /// The object of a document with this JSON, or the pods that a workload makes. A workload without a template is judged
    /// itself: an apiserver refuses it. `namespace` is the one that the manifest or the settings name; empty when neither
    /// does.
    pub(crate) fn of(
        Filled { document, later }: Filled,
        object_ref: &ObjectRef,
        namespace: &Arc<str>,
        json: &Arc<JsonText>,
    ) -> serde_json::Result<Vec<Self>> {
        let document = &document;
        let later = Some(Arc::new(later)).filter(|later| !later.is_empty());
        let undecided = |template| {
            let (object_ref, later) = (object_ref.clone(), later.clone());
            let object = Box::new(CheckedObject {
                place: document.shared_place(),
                template,
                object_ref,
                later,
                spots: None,
            });
            let is_unnamed = document.name().is_empty();
            Self { object, namespace: Arc::clone(namespace), is_unnamed, json: Arc::clone(json) }
        };
        let workload = workload::find(document.group(), document.kind());
        let templates = workload.map(|workload| (workload, agent_templates(workload, document.value())));
        let Some((workload, templates)) = templates.filter(|(_, templates)| !templates.is_empty()) else {
            return Ok(vec![undecided(None)]);
        };
        let is_one_of_several = templates.len() > 1;
        let unknown = later.as_deref().map(|later| &later.unknown);
        let of_template = |(pointer, template)| {
            let template = Template::of(document, workload, (pointer, template), unknown)?;
            Ok(undecided(Some(Box::new(Template { is_one_of_several, ..template }))))
        };
        templates.into_iter().map(of_template).collect()
    }

    /// Whether a later step fills in the namespace.
    pub(crate) fn hides_namespace(&self) -> bool {
        self.object.later.as_deref().is_some_and(|later| later.marks.are_in(&self.namespace))
    }

    /// The same without what a later step fills in.
    ///
    /// # Errors
    /// Never, since the JSON was read before.
    pub(crate) fn without_later(&self) -> serde_json::Result<Self> {
        let mut bare = self.clone();
        // It has no mark that counts, so all of it is text.
        let Some(later) = self.object.later.as_deref() else { return Ok(bare) };
        bare.is_unnamed |= later.marks.are_in(self.name());
        match &mut bare.object.template {
            Some(template) => template.pod = without_later(&template.pod, later, &template.pointer)?,
            None => {
                bare.json = Arc::new(JsonText(without_later(&self.json.0, later, &Pointer::root())?.into()));
            }
        }
        Ok(bare)
    }

    /// The same with these words in the URLs that a later step fills in in parts, and the places of these; `None` if it has none.
    pub(crate) fn with_parts_filled(&self, words: [&str; 3]) -> Option<(Self, BTreeSet<Pointer>)> {
        let later = self.object.later.as_deref()?;
        let mut bare = self.clone();
        let (json, at) = match &mut bare.object.template {
            Some(template) => (template.pod.clone(), template.pointer.clone()),
            None => (self.json.0.to_string(), Pointer::root()),
        };
        let (mut value, mut filled): (Value, _) = (serde_json::from_str(&json).ok()?, BTreeSet::new());
        for place in &later.unknown {
            let Some(within) = place.as_str().strip_prefix(at.as_str()) else { continue };
            let text = value.pointer(within).and_then(Value::as_str).and_then(|it| filled_with(it, words));
            if let (Some(text), Some(part)) = (text, value.pointer_mut(within)) {
                *part = text.into();
                filled.insert(Pointer::new(within));
            }
        }
        let json = (!filled.is_empty()).then(|| without_later(&value.to_string(), later, &at))?.ok()?;
        match &mut bare.object.template {
            Some(template) => template.pod = json,
            None => bare.json = Arc::new(JsonText(json.into())),
        }
        Some((bare, filled))
    }

    /// The object without its text.
    #[expect(clippy::unnecessary_box_returns, reason = "of many objects, each moves as a pointer")]
    pub(crate) fn into_object(self) -> Box<CheckedObject> {
        let mut object = self.object;
        if let Some(template) = &mut object.template {
            template.pod = String::new();
        }
        object
    }

    /// Whether this is a pod for which the installed webhooks are not called.
    pub fn is_exempt(&self) -> bool {
        self.request().is_pod() && SYSTEM_NAMESPACES.contains(&&*self.namespace)
    }

    /// The request to create the object.
    pub fn request(&self) -> Request<'_> {
        self.request_for(self.object.template.as_deref())
    }

    /// The same at the point and time of an occasion.
    pub(crate) fn request_at(&self, occasion: Occasion<'static>) -> Request<'_> {
        let request = self.request();
        let Occasion { workload, later, .. } = request.occasion;
        Request { occasion: Occasion { workload, later, ..occasion }, ..request }
    }

    pub(crate) fn name(&self) -> &str {
        if self.is_unnamed { "" } else { &self.object.object_ref.name }
    }

    /// The request to create the pod of a template, else the object itself.
    fn request_for<'a>(&'a self, template: Option<&'a Template>) -> Request<'a> {
        let ObjectRef { api_version, kind, .. } = &self.object.object_ref;
        let later = self.object.later.as_deref().map(|later| &later.unknown);
        let (api_version, kind, name, json, later) = match template {
            // A controller gives its pods their names.
            Some(template) => ("v1", "Pod", "", &*template.pod, Some(&template.later)),
            None => (&**api_version, &**kind, self.name(), &*self.json.0, later),
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Request {
            operation: Operation::Create,
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            subresource: "".into(),
            namespace: (&*self.namespace).into(),
            name: name.into(),
            object: Some(json),
            old_object: None,
            occasion: Occasion {
                workload: self.object.is_workload().then(|| self.name()),
                later: later.filter(|later| !later.is_empty()),
                ..Occasion::default()
            },
            cancelled: None,
        }
    }

    /// Whether the pod that is decided about is that of an agent.
    pub(crate) fn is_of_agent(&self) -> bool {
        let pod = self.object.template.as_deref().map_or_else(|| self.manifest(), |template| &template.pod);
        serde_json::from_str(pod).is_ok_and(|pod| is_of_agent(&pod))
    }

    /// The JSON of the manifest.
    pub fn manifest(&self) -> &str {
        &self.json.0
    }

    /// The part of the manifest that is decided about, and where it is: of several templates this one, else all.
    pub(crate) fn judged_part(&self) -> (Pointer, &str) {
        match self.object.template.as_deref().filter(|template| template.is_one_of_several) {
            Some(template) => (template.pointer.clone(), &template.pod),
            None => (Pointer::root(), self.manifest()),
        }
    }

    /// For the pod of a workload, the request to create the workload.
    pub fn workload_request(&self) -> Option<Request<'_>> {
        self.object.is_workload().then(|| self.request_for(None))
    }
}

/// The JSON of the part of an object at a place without what a later step fills in. A text that Flux writes stays, also
/// one such as `${NAME}`.
fn without_later(json: &str, later: &Later, at: &Pointer) -> serde_json::Result<String> {
    let mut value: Value = serde_json::from_str(json)?;
    let below = later.known.range(at.clone()..).map_while(|known| known.as_str().strip_prefix(at.as_str()));
    let written: Vec<_> = below.filter_map(|place| Some((place, value.pointer(place)?.clone()))).collect();
    later.marks.remove(&mut value);
    for (place, text) in written {
        if let Some(removed) = value.pointer_mut(place) {
            *removed = text;
        }
    }
    serde_json::to_string(&value)
}

/// The pod that a controller would create from a template. It gives the pods their names, and Knative the containers
/// theirs.
fn pod(template: &Value, workload: &Workload) -> Value {
    let mut pod = Map::new();
    pod.insert("apiVersion".to_owned(), "v1".into());
    pod.insert("kind".to_owned(), "Pod".into());
    for key in ["metadata", "spec"] {
        if let Some(value) = template.get(key) {
            pod.insert(key.to_owned(), value.clone());
        }
    }
    let mut pod = Value::Object(pod);
    if workload.group == KNATIVE {
        let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
        let containers = containers.into_iter().flatten().filter_map(Value::as_object_mut);
        for (index, container) in containers.enumerate() {
            let name =
                if index == 0 { "user-container".to_owned() } else { format!("user-container-{index}") };
            container.entry("name").or_insert_with(|| name.into());
        }
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_pods_memory_resources_and_workloads() {
        for (group, kind, expected) in [
            ("", "Pod", true),
            ("arkonis.dev", "ArkMemory", true),
            ("apps", "Deployment", true),
            ("batch", "CronJob", true),
            ("", "Deployment", false),
            ("", "ConfigMap", false),
        ] {
            assert_eq!(is_checked(group, kind), expected, "{group} {kind}");
        }
    }
}
