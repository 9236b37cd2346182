//! The views of the family's objects, for rules of policies.
//!
//! An Agent declares private memory, an Ensemble shared memory, and the SkillPack `memory` the server of private
//! memory. An AgentRun and a pod use the memory of their Agent. The objects that the controllers create
//! (Deployments, Services, claims) have no view.

mod memory;

use crate::family::inject::container_named;
use memgate_model::family::Subject;
use memgate_model::kind::Kind;
use memgate_model::memory_view::{MemoryView, Role};
use memgate_model::object::Object;
use memgate_model::pod::Pod;
use memgate_model::request::Operation;
use memgate_model::state_reader::StateReader;

use super::api::agent::has_memory;
use super::api::{
    AGENT, AGENT_CONTAINER, AGENT_OLD, AGENT_RUN, ENSEMBLE, ENSEMBLE_OLD, MEMORY_SKILL, SKILL_PACK,
};
use super::inject::find::find;
use super::inject::recognise::recognise;
use memory::Usage;

/// The kinds that have a view.
pub(crate) static VIEWED: [(&Kind, Role); 6] = [
    (&AGENT, Role::Memory),
    (&AGENT_OLD, Role::Memory),
    (&ENSEMBLE, Role::Memory),
    (&ENSEMBLE_OLD, Role::Memory),
    (&SKILL_PACK, Role::Memory),
    (&AGENT_RUN, Role::Referrer),
];

/// A stored object as a subject.
fn subject_of(object: &Object) -> Subject<'_> {
    let Object { kind, namespace, name, tree, .. } = object;
    Subject { kind, operation: Operation::Create, namespace, name, object: tree, old: None }
}

fn new_view(subject: &Subject<'_>, role: Role) -> MemoryView {
    let Subject { kind, namespace, name, object, .. } = *subject;
    MemoryView::new(super::FAMILY.name, role, kind.kind, namespace, name).labelled(object)
}

/// The view of an object of the family's own kinds.
pub(crate) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let kind = subject.kind;
    if *kind == AGENT || *kind == AGENT_OLD {
        memory::of_agent(subject, has_memory(subject.object), state)
    } else if *kind == ENSEMBLE || *kind == ENSEMBLE_OLD {
        memory::of_ensemble(subject, state)
    } else if *kind == SKILL_PACK {
        (subject.name == MEMORY_SKILL).then(|| memory::of_pack(subject))
    } else {
        (*kind == AGENT_RUN).then(|| memory::of_run(subject, state))
    }
}

/// The view of an agent pod.
pub(crate) fn view_pod(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let instance = recognise(pod)?;
    container_named(pod, AGENT_CONTAINER)?;
    // If the pod contradicts itself, or its objects are unknown, its memory is unknown.
    let usage = find(pod, instance, namespace, state).map(|found| Usage {
        agent: found.agent,
        private: found.private.is_some(),
        ensemble: found.ensemble.filter(|_| found.shared),
    });
    let memories = usage.unwrap_or_default().memories(state);
    Some(MemoryView::of_pod(super::FAMILY.name, namespace, memories))
}
