//! Finds the memory of a pod: the memory of its agent.

use crate::inject::elsewhere::unmet_by;
use crate::inject::{Unmet, label_pointer, lookup_failed, no_memory, references, unmet};
use memgate_model::finding::Code;
use memgate_model::kind::Kind;
use memgate_model::object::{Lookup, Object};
use memgate_model::reason::Reason;
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{ARKONIS, DIALECTS, Dialect, memory_name, memory_ref_pointer};
use super::super::codes::{
    AGENT_WITHOUT_MEMORY, LOOKUP_FAILED, POD_AGENT_NOT_FOUND, POD_MEMORY_INVALID, POD_MEMORY_NOT_FOUND,
};
use super::super::validate::first_denial;
use super::recognise::AgentLabel;

/// An agent and the memory that it claims.
pub(super) struct AgentMemory<'s> {
    pub(super) dialect: &'static Dialect,
    pub(super) agent: &'s Object,
    pub(super) memory: &'s Object,
}

impl AgentMemory<'_> {
    /// The memory, in the form that messages use.
    pub(super) fn memory_title(&self) -> String {
        format!("{} {}", self.dialect.memory.kind, quoted(&self.memory.name))
    }
}

/// The memory of the agent that a pod names, if the memory is valid.
pub(super) fn find<'s>(
    agent_label: &AgentLabel<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<AgentMemory<'s>, Unmet> {
    let found = find_claimed(agent_label, namespace, state)?;
    let memory = found.memory;
    match memory.defect(|tree| first_denial(found.dialect, tree)) {
        None => Ok(found),
        Some(first) => {
            let message = format!("{} is invalid: {}", found.memory_title(), first.message);
            let pointer = label_pointer(agent_label.key);
            let unmet = unmet(Reason::ReferenceInvalid, &POD_MEMORY_INVALID, pointer, message);
            Err(unmet_by(unmet, memory, first.pointer.clone(), "invalid"))
        }
    }
}

/// The memory of the agent that a pod names, valid or not.
pub(super) fn find_claimed<'s>(
    agent_label: &AgentLabel<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<AgentMemory<'s>, Unmet> {
    let (dialect, agent) = find_agent(agent_label, namespace, state)?;
    let Some(name) = memory_name(dialect, agent.tree()) else {
        let path = dialect.memory_ref.join(".");
        let message = format!("{} {} has no {path}", dialect.agent.kind, quoted(agent_label.agent));
        let unmet = no_memory(&AGENT_WITHOUT_MEMORY, label_pointer(agent_label.key), message);
        return Err(unmet_by(unmet, agent, Pointer::root(), "claims no memory"));
    };
    match state.get(&dialect.memory, namespace, name) {
        Lookup::Found(memory) => Ok(AgentMemory { dialect, agent, memory }),
        Lookup::Absent => {
            let kinds = [&dialect.memory];
            let unmet = not_found(&POD_MEMORY_NOT_FOUND, &kinds, name, namespace, agent_label);
            let at = memory_ref_pointer(dialect).key("name");
            Err(unmet_by(unmet, agent, at, "claimed here"))
        }
        Lookup::Unknown(()) => Err(unknown(&dialect.memory, [namespace, name], agent_label, state)),
    }
}

/// The agent in any dialect that uses the label. The newest dialect is tried first.
fn find_agent<'s>(
    agent_label: &AgentLabel<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<(&'static Dialect, &'s Object), Unmet> {
    let dialects = || DIALECTS.iter().filter(|dialect| dialect.pod_label == agent_label.key);
    for dialect in dialects() {
        match state.get(&dialect.agent, namespace, agent_label.agent) {
            Lookup::Found(agent) => return Ok((dialect, agent)),
            Lookup::Unknown(()) => {
                return Err(unknown(&dialect.agent, [namespace, agent_label.agent], agent_label, state));
            }
            Lookup::Absent => {}
        }
    }
    let kinds: Vec<&Kind> = dialects().map(|dialect| &dialect.agent).collect();
    Err(not_found(&POD_AGENT_NOT_FOUND, &kinds, agent_label.agent, namespace, agent_label))
}

/// The result for a missing object that could be of any of these kinds, the newest first.
fn not_found(
    code: &'static Code,
    kinds: &[&'static Kind],
    name: &str,
    namespace: &str,
    agent_label: &AgentLabel<'_>,
) -> Unmet {
    let kind = kinds.first().map_or(ARKONIS.agent.kind, |kind| kind.kind);
    let message = format!("{kind} {} not found in namespace {}", quoted(name), quoted(namespace));
    let mut unmet = unmet(Reason::ReferenceMissing, code, label_pointer(agent_label.key), message);
    unmet.missing = references(kinds.iter().copied(), namespace, name);
    unmet
}

fn unknown(
    kind: &Kind,
    [namespace, name]: [&str; 2],
    agent_label: &AgentLabel<'_>,
    state: &StateReader<'_>,
) -> Unmet {
    lookup_failed(&LOOKUP_FAILED, label_pointer(agent_label.key), [kind.kind, namespace, name], state)
}
