//! What a pod lacks to have its Notebook.

use memgate::family::inject::env::{Existing, Variable};
use memgate::family::inject::{
    Conflict, Wanted, WantedInContainer, field, label, maker, merge, resource, unmet,
};
use memgate::model::event::InvolvedObject;
use memgate::model::finding::Finding;
use memgate::model::injection::Injection;
use memgate::model::object::Lookup;
use memgate::model::pod::Pod;
use memgate::model::reason::Reason;
use memgate::model::state_reader::StateReader;
use memgate::model::tree::Tree;

use super::api::{LABEL, NOTEBOOK};
use super::codes::{NOTEBOOK_NOT_FOUND, URL_CONFLICT};

const URL: &str = "NOTEBOOK_URL";

pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let name = pod.label(LABEL)?;
    let notebook = match state.get(&NOTEBOOK, namespace, name) {
        Lookup::Found(notebook) => notebook,
        Lookup::Absent | Lookup::Unknown => {
            let message = format!("Notebook \"{name}\" not found");
            return Some(*unmet(Reason::ReferenceMissing, &NOTEBOOK_NOT_FOUND, label(LABEL), message));
        }
    };
    let url = notebook.tree.at(&["spec", "url"]).and_then(Tree::text)?;
    let origin = field(&resource(NOTEBOOK.kind, notebook), "spec.url");
    let containers = pod.containers().iter().enumerate().map(|(index, container)| {
        let url = Variable::literal(URL, url, origin.clone());
        WantedInContainer::variables(index, container, Existing::of(container, &[URL]), vec![url])
    });
    let memory = vec![format!("Notebook/{name}")];
    let wanted = Wanted { memory, containers: containers.collect(), ..Wanted::default() };
    Some(merge(wanted, |conflict: &Conflict<'_>| {
        let message = format!("{URL} is already set in container \"{}\"", conflict.container);
        Finding::warn(&URL_CONFLICT, conflict.entry.clone(), message)
    }))
}

/// What made the pod: no object of the platform stands for it.
pub(crate) fn referrer(pod: &Pod<'_>, namespace: &str, _state: &StateReader<'_>) -> Option<InvolvedObject> {
    maker(pod, namespace)
}
