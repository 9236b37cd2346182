//! The views of the family's objects, for rules of policies.

mod endpoint;
mod memory;
mod query;

use crate::model::family::Subject;
use crate::model::kind::Kind;
use crate::model::memory_view::{MemoryView, Role};
use crate::model::pod::Pod;
use crate::model::state_reader::StateReader;

use super::FAMILY;
use super::api::{MEMORY, QUERY};
use super::inject::memory_of;

/// The kinds of which there is a view.
pub static VIEWED: [(&Kind, Role); 2] = [(&MEMORY, Role::Memory), (&QUERY, Role::Referrer)];

/// The view of an object of the family's own kinds.
#[must_use]
pub fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    if *subject.kind == MEMORY {
        Some(memory::view(subject.object, (subject.namespace, subject.name), state))
    } else if *subject.kind == QUERY {
        Some(query::view(subject, state))
    } else {
        None
    }
}

/// The view of a pod that opts in.
#[must_use]
pub fn view_pod(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let found = memory_of(pod, namespace, state)?;
    let memories = found.into_iter().map(|(home, memory)| memory::view_of(memory, home, state));
    Some(MemoryView::of_pod(FAMILY.name, namespace, memories))
}
