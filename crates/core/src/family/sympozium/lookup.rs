//! Finds the objects that belong to an agent, under their old names too.

use crate::model::kind::Kind;
use crate::model::object::Lookup;
use crate::model::state_reader::StateReader;

use super::api::{AGENT, AGENT_OLD, ENSEMBLE, ENSEMBLE_OLD, MEMORY, SKILL_PACK, SYSTEM_NAMESPACE};

/// The Agent of this name.
pub(super) fn agent<'s>(namespace: &str, name: &str, state: &mut StateReader<'s>) -> Lookup<'s> {
    either([&AGENT, &AGENT_OLD], namespace, name, state)
}

/// The Ensemble of this name.
pub(super) fn ensemble<'s>(namespace: &str, name: &str, state: &mut StateReader<'s>) -> Lookup<'s> {
    either([&ENSEMBLE, &ENSEMBLE_OLD], namespace, name, state)
}

/// The SkillPack of the memory: the namespace's own, else the one for all.
pub(super) fn memory_pack<'s>(namespace: &str, state: &mut StateReader<'s>) -> Lookup<'s> {
    match state.get(&SKILL_PACK, namespace, MEMORY) {
        Lookup::Absent => state.get(&SKILL_PACK, SYSTEM_NAMESPACE, MEMORY),
        found_or_unknown => found_or_unknown,
    }
}

fn either<'s>(
    [today, before]: [&'static Kind; 2],
    namespace: &str,
    name: &str,
    state: &mut StateReader<'s>,
) -> Lookup<'s> {
    match state.get(today, namespace, name) {
        Lookup::Absent => state.get(before, namespace, name),
        found_or_unknown => found_or_unknown,
    }
}
