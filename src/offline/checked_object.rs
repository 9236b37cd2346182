//! An object of a file before and after the decision about it. For a workload the decision is about the pod that its
//! controller would create, for a StatefulSet with its claims.

use serde_json::{Map, Value};

use crate::report::ObjectRef;
use memgate_manifest::document::Document;
use memgate_manifest::place::DocumentPlace;
use memgate_model::claim_volumes::{ClaimVolumes, add_to_pod};
use memgate_model::edit::Edit;
use memgate_model::kind::SYSTEM_NAMESPACES;
use memgate_model::request::{Occasion, Operation, Request};
use memgate_model::workload;
use memgate_primitives::pointer::Pointer;

/// An object, without its text.
#[derive(Debug, Clone)]
pub struct CheckedObject {
    /// Its place in a file.
    pub place: DocumentPlace,
    /// The pointer to it in the document: empty, or that of the pod template of a workload.
    pub template: Pointer,
    /// The volumes for the claims of a StatefulSet's pod.
    claims: ClaimVolumes,
    /// Its name in reports.
    pub object_ref: ObjectRef,
}

/// An object with its requests.
#[derive(Debug, Clone)]
pub struct UndecidedObject {
    /// The object.
    pub object: CheckedObject,
    request: OwnedRequest,
    /// For the pod of a workload, the request to create the workload.
    workload: Option<OwnedRequest>,
}

/// The request to create an object, with the object as JSON. The object as a value takes ten times its text.
#[derive(Debug, Clone)]
struct OwnedRequest {
    /// Without the object.
    request: Request<'static>,
    json: String,
}

impl OwnedRequest {
    /// The request for an object with this group, version, kind and name.
    fn new(names: [&str; 4], namespace: &str, object: &Value) -> serde_json::Result<Self> {
        let [group, version, kind, name] = names.map(|name| name.to_owned().into());
        let request = Request {
            operation: Operation::Create,
            group,
            version,
            kind,
            subresource: "".into(),
            namespace: namespace.to_owned().into(),
            name,
            object: None,
            old_object: None,
            occasion: Occasion::default(),
            read_pod: None,
            cancelled: None,
        };
        Ok(Self { request, json: serde_json::to_string(object)? })
    }

    fn get(&self) -> Request<'_> {
        Request { object: Some(&self.json), ..self.request.clone() }
    }
}

impl CheckedObject {
    /// The pointer in the document for a pointer in the object that is decided about.
    pub fn in_document(&self, place: &Pointer) -> Pointer {
        self.claims.in_workload(&self.template, place)
    }

    /// Edits of the object that is decided about as edits of the document.
    pub fn edits_in_document(&self, edits: &[Edit]) -> Vec<Edit> {
        self.claims.edits_in_workload(&self.template, edits)
    }
}

impl UndecidedObject {
    /// The object of a document, or the pod that a workload makes. A workload without a template is judged itself: an
    /// apiserver refuses it. `namespace` is the one that the manifest or the settings name; empty when neither does.
    pub(super) fn of(document: Document, object_ref: ObjectRef, namespace: &str) -> serde_json::Result<Self> {
        let (group, kind) = (document.group(), document.kind());
        let names = [group, document.version(), kind, document.name()];
        let whole = OwnedRequest::new(names, namespace, document.value())?;
        let workload = workload::find(group, kind);
        let template =
            workload.and_then(|it| document.value().pointer(it.template)).filter(|it| it.is_object());
        let Some((template, kind)) = template.zip(workload) else {
            let (template, claims, place) = (Pointer::root(), ClaimVolumes::default(), document.into_place());
            let object = CheckedObject { place, template, claims, object_ref };
            return Ok(Self { object, request: whole, workload: None });
        };
        let mut pod = pod(template);
        let mut claims = ClaimVolumes::default();
        if kind.has_claims() {
            let claim_templates = document.value().pointer("/spec/volumeClaimTemplates");
            claims = add_to_pod(&mut pod, document.name(), claim_templates.unwrap_or(&Value::Null));
        }
        // A controller gives its pods their names.
        let request = OwnedRequest::new(["", "v1", "Pod", ""], namespace, &pod)?;
        let (template, place) = (Pointer::new(kind.template), document.into_place());
        let object = CheckedObject { place, template, claims, object_ref };
        Ok(Self { object, request, workload: Some(whole) })
    }

    /// Whether this is a pod for which the installed webhooks are not called.
    pub fn is_exempt(&self) -> bool {
        let request = &self.request.request;
        request.is_pod() && SYSTEM_NAMESPACES.contains(&&*request.namespace)
    }

    /// The request to create the object.
    pub fn request(&self) -> Request<'_> {
        self.request.get()
    }

    /// For the pod of a workload, the name of the workload.
    pub(super) fn workload_name(&self) -> Option<&str> {
        self.workload.as_ref().map(|workload| &*workload.request.name)
    }

    /// The JSON of the manifest.
    pub fn manifest(&self) -> &str {
        &self.workload.as_ref().unwrap_or(&self.request).json
    }

    /// For the pod of a workload, the request to create the workload.
    pub fn workload_request(&self) -> Option<Request<'_>> {
        self.workload.as_ref().map(OwnedRequest::get)
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
