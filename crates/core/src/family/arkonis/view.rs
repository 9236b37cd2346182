//! The views of the family's objects, for rules of policies.

mod agent;
mod memory;

use crate::model::family::Subject;
use crate::model::kind::Kind;
use crate::model::memory_view::{MemoryView, Role};
use crate::model::pod::Pod;
use crate::model::state_reader::StateReader;

use super::FAMILY;
use super::api::{AGENTOPS, ARKONIS, ARKONIS_OLD, KUBESWARM};
use super::inject::memory_of;
use super::validate::{Role as KindRole, role};

/// The kinds of which there is a view.
pub static VIEWED: [(&Kind, Role); 8] = [
    (&ARKONIS.memory, Role::Memory),
    (&ARKONIS.agent, Role::Referrer),
    (&ARKONIS_OLD.memory, Role::Memory),
    (&ARKONIS_OLD.agent, Role::Referrer),
    (&KUBESWARM.memory, Role::Memory),
    (&KUBESWARM.agent, Role::Referrer),
    (&AGENTOPS.memory, Role::Memory),
    (&AGENTOPS.agent, Role::Referrer),
];

/// The view of an object of the family's own kinds.
#[must_use]
pub fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let Subject { namespace, name, object, .. } = subject;
    match role(subject.kind)? {
        (dialect, KindRole::Memory) => Some(memory::view(dialect, object, (namespace, name), state)),
        (dialect, KindRole::Agent) => Some(agent::view(dialect, subject, state)),
        (_, KindRole::Settings) => None,
    }
}

/// The view of an agent pod.
#[must_use]
pub fn view_pod(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let found = memory_of(pod, namespace, state)?;
    let memory = found.ok().map(|(dialect, memory)| memory::view_of(dialect, memory, state));
    Some(MemoryView::of_pod(FAMILY.name, namespace, memory))
}
