//! What the objects of this family refer to.

use super::prelude::*;
use memgate_model::edge::{Edge, Form, Home, Named, Wanted, known_if, look_up_some, memory_used};

use super::lookup::{self, AGENTS, ENSEMBLES};

static OF_AGENTS: [&Kind; 3] = [&AGENT_RUN, &WORKSPACE_SESSION, &HARNESS_SESSION];
static RUNS: [&Kind; 1] = [&AGENT_RUN];
static OF_AGENT_RUNS: [&Kind; 3] = [&AGENT, &AGENT_OLD, &AGENT_RUN];

/// Finds objects by the memory that they use.
pub(crate) static BY_MEMORY: Index = Index { place: 1, keys: |object| memory_used(&EDGES, object) };

/// The rows.
pub(crate) static EDGES: [Edge; 8] = [
    agent(&OF_AGENTS, "/spec/agentRef").only_if(|_, run| run.text_at(&["spec", "agentRef"]).is_some()),
    agent(&RUNS, "/spec/instanceRef").only_if(|site, run| {
        agent_ref(run) == Some(site.text) && run.text_at(&["spec", "agentRef"]).is_none()
    }),
    Edge::new(&OF_AGENT_RUNS, "/spec/skills/*/skillPackRef", &[&SKILL_PACK])
        .only_if(|site, _| site.text == MEMORY_SKILL)
        .in_home(Home::OrIn(SYSTEM_NAMESPACE))
        .serving_memory()
        .of_form(Form::Fixed)
        .found_by(pack)
        .warns(&SKILLPACK_MISSING, ""),
    ensemble("/metadata/labels/sympozium.ai~1ensemble")
        .only_if(|_, object| ensemble_label(object).is_some_and(|(key, _)| key == ENSEMBLE_LABEL)),
    ensemble("/metadata/labels/sympozium.ai~1persona-pack")
        .only_if(|_, object| ensemble_label(object).is_some_and(|(key, _)| key == PACK_LABEL)),
    Edge::new(&[], "/metadata/labels/sympozium.ai~1instance", &AGENTS).of_memory(),
    Edge::new(&[], "/metadata/labels/sympozium.ai~1ensemble", &ENSEMBLES),
    Edge::new(&[], "/metadata/labels/sympozium.ai~1persona-pack", &ENSEMBLES),
];

const fn agent(from: &'static [&'static Kind], path: &'static str) -> Edge {
    Edge::new(from, path, &AGENTS)
        .of_memory()
        .found_by(agent_or_maker)
        .warns(&AGENT_MISSING, "apply the Agent first: Sympozium's own webhook refuses a run without it")
}

const fn ensemble(path: &'static str) -> Edge {
    let edge = Edge::new(&OF_AGENT_RUNS, path, &ENSEMBLES).of_memory().found_by(ensemble_of_label);
    edge.warns(&ENSEMBLE_MISSING, "without it there is no shared memory")
}

/// The SkillPack `memory`. Upstream's memory works without it, so where no pack is known, nothing is said.
fn pack<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let here =
        || [wanted.named.namespace, SYSTEM_NAMESPACE].iter().any(|it| state.holds_one_in(&SKILL_PACK, it));
    let exists = if state.of_files() { state.holds_any(&SKILL_PACK) } else { here() };
    known_if(exists, lookup::memory_pack(wanted.named.namespace, state))
}

/// The Ensemble of a label. The label of a run does not count if its Agent has one.
fn ensemble_of_label<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let namespace = wanted.named.namespace;
    let agent = agent_ref(wanted.by).and_then(|name| lookup::agent(namespace, name, state).found());
    match agent.and_then(|agent| ensemble_label(agent.tree())) {
        Some(_) => Lookup::Unknown(()),
        None => look_up_some(wanted, state),
    }
}

/// The Agent. One that an Ensemble makes is not missing.
fn agent_or_maker<'s>(wanted: &Wanted<'_>, state: &mut StateReader<'s>) -> Lookup<'s> {
    let Named { namespace, name, .. } = wanted.named;
    let (found, maker) = lookup::agent_or_maker(namespace, name, state);
    known_if(maker.is_none(), found)
}
