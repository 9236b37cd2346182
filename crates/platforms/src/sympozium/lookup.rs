//! Finds the objects that belong to an agent, under their current or old kinds. Also decides where its private memory
//! runs if the pod does not set that: by the mode of an annotation, else of the settings, else by the SkillPack.

use super::prelude::*;
use memgate_model::platform_settings::MemoryMode;

/// The kinds of an Agent, the current one first.
pub(super) static AGENTS: [&Kind; 2] = [&AGENT, &AGENT_OLD];

/// The kinds of an Ensemble, the current one first.
pub(super) static ENSEMBLES: [&Kind; 2] = [&ENSEMBLE, &ENSEMBLE_OLD];

/// The Agent of this name.
pub(super) fn agent<'s>(namespace: &str, name: &str, state: &mut StateReader<'s>) -> Lookup<'s> {
    either(AGENTS.map(|kind| (kind, namespace)), name, state)
}

/// The Agent of this name, and if there is none the Ensemble that will create it, with its config.
pub(super) fn agent_or_maker<'s>(
    namespace: &str,
    name: &str,
    state: &mut StateReader<'s>,
) -> (Lookup<'s>, Option<Maker<'s>>) {
    let found = agent(namespace, name, state);
    (found, if found == Lookup::Absent { maker(namespace, name, state) } else { None })
}

/// An Ensemble, and the config of which it makes an Agent.
pub(super) type Maker<'s> = (&'s Object, AgentConfig<'s>);

/// The Ensemble of this name.
pub(super) fn ensemble<'s>(namespace: &str, name: &str, state: &mut StateReader<'s>) -> Lookup<'s> {
    either(ENSEMBLES.map(|kind| (kind, namespace)), name, state)
}

/// The Ensemble of an Agent, or of an AgentRun with its Agent if that is known.
pub(super) fn ensemble_of<'s>(
    agent: Option<&Tree>,
    run: Option<&Tree>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Option<&'s Object> {
    ensemble(namespace, ensemble_name(agent, run)?, state).found()
}

/// For files: the Ensemble that will create the Agent of this name, with its config. `None` for an excluded config,
/// and for an Ensemble stored in a cluster, whose Agents already exist.
fn maker<'s>(namespace: &str, agent: &str, state: &mut StateReader<'s>) -> Option<Maker<'s>> {
    /// The longest name of any object.
    const MAX_NAME_BYTES: usize = 253;
    if agent.len() > MAX_NAME_BYTES || state.in_cluster(&AGENT) {
        return None;
    }
    // The names of Ensembles and configs may both contain dashes, so each dash is tried.
    agent.match_indices('-').find_map(|(dash, _)| {
        let (name, rest) = agent.split_at(dash);
        let config = rest.strip_prefix('-')?;
        let home = |kind| state.peek(kind, namespace, name);
        let object = home(&ENSEMBLE).or_else(|| home(&ENSEMBLE_OLD))?;
        if object.stored {
            return None;
        }
        let found = find_config(object.tree(), config)?;
        (!is_excluded(object.tree(), config)).then_some((object, found))
    })
}

/// The SkillPack `memory`: the namespace's own, or else the one for all namespaces.
pub(super) fn memory_pack<'s>(namespace: &str, state: &mut StateReader<'s>) -> Lookup<'s> {
    either([namespace, SYSTEM_NAMESPACE].map(|home| (&SKILL_PACK, home)), MEMORY_SKILL, state)
}

/// The object of this name, of the first of these kinds and namespaces that has it. The second is looked up only where
/// the first does not exist.
fn either<'s>(
    [first, second]: [(&'static Kind, &str); 2],
    name: &str,
    state: &mut StateReader<'s>,
) -> Lookup<'s> {
    match state.get(first.0, first.1, name) {
        Lookup::Absent => state.get(second.0, second.1, name),
        found_or_unknown => found_or_unknown,
    }
}

/// Where the private memory runs.
pub(super) enum PackMode<'s> {
    /// In a Deployment of its own.
    Service,
    /// In a native sidecar, configured by its SkillPack if there is one.
    Sidecar(Option<&'s Object>),
    /// It is unknown whether there is a SkillPack.
    Unknown,
}

/// Where the private memory runs in this mode.
pub(super) fn pack_mode<'s>(mode: MemoryMode, namespace: &str, state: &mut StateReader<'s>) -> PackMode<'s> {
    if mode == MemoryMode::Service {
        return PackMode::Service;
    }
    match memory_pack(namespace, state) {
        Lookup::Found(pack) if mode == MemoryMode::Sidecar || sidecar_image(pack.tree()).is_some() => {
            PackMode::Sidecar(Some(pack))
        }
        Lookup::Found(_) => PackMode::Service,
        Lookup::Absent => PackMode::Sidecar(None),
        Lookup::Unknown(()) => PackMode::Unknown,
    }
}

/// The mode that an annotation asks for.
pub(super) fn asked_mode(annotation: &str) -> Option<MemoryMode> {
    match annotation {
        "service" => Some(MemoryMode::Service),
        "sidecar" => Some(MemoryMode::Sidecar),
        // The pack decides; the settings do not count.
        "auto" => Some(MemoryMode::Auto),
        _ => None,
    }
}
