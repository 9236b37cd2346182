//! The views of the family's objects, for rules of policies.

mod agent;
mod memory;

use crate::model::family::Subject;
use crate::model::kind::Kind;
use crate::model::memory_view::{MemoryView, Role};
use crate::model::pod::Pod;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;

use super::FAMILY;
use super::api::{MEMORY, TARGET_NAMESPACE, VALIDATED_AGENT};
use super::inject::memory_of;

/// The path of views that holds the Orloj namespace of an object.
pub const NAMESPACE_PATH: &str = "orlojNamespace";

/// The kinds of which there is a view.
pub static VIEWED: [(&Kind, Role); 2] = [(&MEMORY, Role::Memory), (&VALIDATED_AGENT, Role::Referrer)];

/// The view of an object of the family's own kinds; of an Agent only where it has a field for memory.
#[must_use]
pub fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    if *subject.kind == MEMORY {
        Some(memory::view(subject.object, (subject.namespace, subject.name), state))
    } else if *subject.kind == VALIDATED_AGENT {
        agent::view(subject, state)
    } else {
        None
    }
}

/// The view of an agent pod.
#[must_use]
pub fn view_pod(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let memory = memory_of(pod, namespace, state)?.ok().map(|memory| memory::view_of(memory, state));
    let own_namespace = memory.as_ref().and_then(|memory| memory.own_namespace.clone());
    Some(MemoryView { own_namespace, ..MemoryView::of_pod(FAMILY.name, namespace, memory) })
}

/// Sets the namespace that Orloj sees an object in.
fn set_orloj_namespace(view: &mut MemoryView, namespace: &str) {
    view.own_namespace = Some((NAMESPACE_PATH, namespace.to_owned()));
    view.at(NAMESPACE_PATH, Pointer::new("/metadata/annotations").key(TARGET_NAMESPACE));
}
