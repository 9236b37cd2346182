//! An object of a file before and after it is decided about: a workload stands for the pod that its controller would
//! create, that of a StatefulSet with its claims.

use serde_json::{Map, Value};

use crate::manifest::document::Document;
use crate::manifest::place::DocumentPlace;
use crate::model::claim_volumes::{ClaimVolumes, add_to_pod};
use crate::model::edit::Edit;
use crate::model::kind::SYSTEM_NAMESPACES;
use crate::model::pointer::Pointer;
use crate::model::request::{Occasion, Operation, Request};
use crate::model::workload;
use crate::offline::classify::{Class, classify};
use crate::report::ObjectRef;

/// One object to decide about, and what stays of it when that is done.
#[derive(Debug, Clone)]
pub struct CheckedObject {
    /// Where it was read.
    pub place: DocumentPlace,
    /// Where in the document it stands: empty, or the pod template of a workload.
    pub template: Pointer,
    /// The volumes that a pod of a StatefulSet has for its claims.
    claims: ClaimVolumes,
    /// How reports name it.
    pub object_ref: ObjectRef,
}

/// An object with what is needed to decide about it.
#[derive(Debug, Clone)]
pub struct UndecidedObject {
    /// The object.
    pub object: CheckedObject,
    text: NamedText,
    /// The workload of which this is the pod.
    workload: Option<NamedText>,
    /// The namespace that the manifest or the settings name; empty when neither does.
    namespace: String,
}

/// The JSON of an object, and what a request says of it. The object itself would take ten times its text.
#[derive(Debug, Clone)]
struct NamedText {
    group: String,
    version: String,
    kind: String,
    name: String,
    json: String,
}

impl NamedText {
    fn of(document: &Document) -> serde_json::Result<Self> {
        let [group, version, kind, name] =
            [document.group(), document.version(), document.kind(), document.name()].map(str::to_owned);
        Ok(Self { group, version, kind, name, json: serde_json::to_string(document.value())? })
    }

    /// A pod that a controller makes, which gives it its name.
    fn of_pod(pod: &Value) -> serde_json::Result<Self> {
        let [group, version, kind, name] = ["", "v1", "Pod", ""].map(str::to_owned);
        Ok(Self { group, version, kind, name, json: serde_json::to_string(pod)? })
    }

    /// The request to create it.
    fn request<'r>(&'r self, namespace: &'r str) -> Request<'r> {
        Request {
            operation: Operation::Create,
            group: self.group.as_str().into(),
            version: self.version.as_str().into(),
            kind: self.kind.as_str().into(),
            subresource: "".into(),
            namespace: namespace.into(),
            name: self.name.as_str().into(),
            object: Some(&self.json),
            old_object: None,
            occasion: Occasion::default(),
            cancelled: None,
        }
    }
}

impl CheckedObject {
    /// Where a place of the object that is decided about stands in the document.
    #[must_use]
    pub fn in_document(&self, place: &Pointer) -> Pointer {
        self.claims.in_workload(&self.template, place)
    }

    /// Edits of the object that is decided about as edits of the document.
    #[must_use]
    pub fn edits_in_document(&self, edits: &[Edit]) -> Vec<Edit> {
        self.claims.edits_in_workload(&self.template, edits)
    }

    /// Whether this is the pod of a workload.
    #[must_use]
    pub fn is_template(&self) -> bool {
        !self.template.as_str().is_empty()
    }
}

impl UndecidedObject {
    /// The object of a document, or the pod that a workload makes. A workload without a template is judged as
    /// it is: an apiserver refuses it.
    pub(super) fn of(
        document: Document,
        object_ref: ObjectRef,
        namespace: String,
    ) -> serde_json::Result<Self> {
        let whole = NamedText::of(&document)?;
        let template = match classify(&whole.group, &whole.kind) {
            Class::Workload { template } => document.value().pointer(template).filter(|it| it.is_object()),
            Class::Object | Class::PassedOver => None,
        };
        let Some((template, kind)) = template.zip(workload::find(&whole.group, &whole.kind)) else {
            let (template, claims, place) = (Pointer::root(), ClaimVolumes::default(), document.into_place());
            let object = CheckedObject { place, template, claims, object_ref };
            return Ok(Self { object, text: whole, workload: None, namespace });
        };
        let mut pod = pod(template);
        let mut claims = ClaimVolumes::default();
        if kind.has_claims() {
            let claim_templates = document.value().pointer("/spec/volumeClaimTemplates");
            claims = add_to_pod(&mut pod, document.name(), claim_templates.unwrap_or(&Value::Null));
        }
        let (template, place) = (Pointer::new(kind.template), document.into_place());
        let object = CheckedObject { place, template, claims, object_ref };
        Ok(Self { object, text: NamedText::of_pod(&pod)?, workload: Some(whole), namespace })
    }

    /// Whether this is a pod for which the installed webhooks are not called.
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        self.request().is_pod() && SYSTEM_NAMESPACES.contains(&self.namespace.as_str())
    }

    /// The request to create the object. A controller gives its pods their names.
    #[must_use]
    pub fn request(&self) -> Request<'_> {
        self.text.request(&self.namespace)
    }

    /// The name of the workload of which this is the pod.
    pub(super) fn workload_name(&self) -> Option<&str> {
        self.workload.as_ref().map(|workload| workload.name.as_str())
    }

    /// The JSON of the manifest; that of the workload, if this is its pod.
    #[must_use]
    pub fn manifest(&self) -> &str {
        &self.workload.as_ref().unwrap_or(&self.text).json
    }

    /// The request to create the workload of which this is the pod.
    #[must_use]
    pub fn workload_request(&self) -> Option<Request<'_>> {
        self.workload.as_ref().map(|workload| workload.request(&self.namespace))
    }
}

/// The pod that a controller would create from a template.
fn pod(template: &Value) -> Value {
    let mut pod = Map::new();
    pod.insert("apiVersion".to_owned(), "v1".into());
    pod.insert("kind".to_owned(), "Pod".into());
    for key in ["metadata", "spec"] {
        if let Some(value) = template.get(key) {
            pod.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(pod)
}
