//! What a pod lacks to have its Notebook.

use memgate_model::event::InvolvedObject;
use memgate_model::finding::Finding;
use memgate_model::injection::Injection;
use memgate_model::object::Lookup;
use memgate_model::pod::Pod;
use memgate_model::reason::Reason;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_platforms::inject::env::{ExistingEnv, Variable};
use memgate_platforms::inject::{
    Conflict, WantedByContainer, WantedByPod, controller_of, field_origin, label_pointer, merge,
    resource_name, unmet,
};

use super::api::{LABEL, NOTEBOOK};
use super::codes::{NOTEBOOK_NOT_FOUND, URL_CONFLICT};

const URL: &str = "NOTEBOOK_URL";

pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let name = pod.label(LABEL)?;
    let notebook = match state.get(&NOTEBOOK, namespace, name) {
        Lookup::Found(notebook) => notebook,
        Lookup::Absent | Lookup::Unknown(()) => {
            let message = format!("Notebook \"{name}\" not found");
            return Some(*unmet(
                Reason::ReferenceMissing,
                &NOTEBOOK_NOT_FOUND,
                label_pointer(LABEL),
                message,
            ));
        }
    };
    let url = notebook.tree().at(&["spec", "url"]).and_then(Tree::text)?;
    let origin = field_origin(&resource_name(NOTEBOOK.kind, notebook), "spec.url");
    let containers = pod.containers().iter().enumerate().map(|(index, container)| {
        let url = Variable::literal(URL, url, origin.clone());
        WantedByContainer::variables(index, container, ExistingEnv::read(container, &[URL]), vec![url])
    });
    let memory = vec![format!("Notebook/{name}")];
    let wanted = WantedByPod { memory, containers: containers.collect(), ..WantedByPod::default() };
    Some(merge(pod, wanted, state.budget(), |conflict: &Conflict<'_>| {
        let message = format!("{URL} is already set in container \"{}\"", conflict.container);
        Finding::warn(&URL_CONFLICT, conflict.entry.clone(), message)
    }))
}

/// The pod's controller: the platform has no object for a pod.
pub(crate) fn involved_object(
    pod: &Pod<'_>,
    namespace: &str,
    _state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    controller_of(pod, namespace)
}
