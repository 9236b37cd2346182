//! What the objects of this family refer to.

use memgate_model::edge::{Edge, Form, Named, look_up_some, memory_used};
use memgate_model::kind::Kind;
use memgate_model::object::Lookup;
use memgate_model::object::index::Index;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;

use super::api::agent::{agent_ref, ensemble_label};
use super::api::{
    AGENT, AGENT_OLD, AGENT_RUN, ENSEMBLE_LABEL, HARNESS_SESSION, MEMORY_SKILL, PACK_LABEL, SKILL_PACK,
    WORKSPACE_SESSION,
};
use super::codes::{AGENT_MISSING, ENSEMBLE_MISSING, SKILLPACK_MISSING};
use super::lookup::{self, AGENTS, ENSEMBLES};

static OF_AGENTS: [&Kind; 3] = [&AGENT_RUN, &WORKSPACE_SESSION, &HARNESS_SESSION];
static RUNS: [&Kind; 1] = [&AGENT_RUN];
static OF_AGENT_RUNS: [&Kind; 3] = [&AGENT, &AGENT_OLD, &AGENT_RUN];

/// Finds objects by the memory that they use.
pub(crate) static BY_MEMORY: Index = Index { place: 1, keys: |object| memory_used(&EDGES, object) };

/// The rows.
pub(crate) static EDGES: [Edge; 6] = [
    agent(&OF_AGENTS, "/spec/agentRef").only_if(|_, run| run.text_at(&["spec", "agentRef"]).is_some()),
    agent(&RUNS, "/spec/instanceRef").only_if(|site, run| {
        agent_ref(run) == Some(site.text) && run.text_at(&["spec", "agentRef"]).is_none()
    }),
    Edge::new(&OF_AGENT_RUNS, "/spec/skills/*/skillPackRef", &[&SKILL_PACK])
        .only_if(|site, _| site.text == MEMORY_SKILL)
        .of_form(Form::Fixed)
        .found_by(pack)
        .warns(&SKILLPACK_MISSING, ""),
    ensemble("/metadata/labels/sympozium.ai~1ensemble")
        .only_if(|_, object| ensemble_label(object).is_some_and(|(key, _)| key == ENSEMBLE_LABEL)),
    ensemble("/metadata/labels/sympozium.ai~1persona-pack")
        .only_if(|_, object| ensemble_label(object).is_some_and(|(key, _)| key == PACK_LABEL)),
    Edge::new(&[], "/metadata/labels/sympozium.ai~1instance", &AGENTS).of_memory(),
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
fn pack<'s>(_edge: &Edge, named: &Named<'_>, _object: &Tree, state: &mut StateReader<'s>) -> Lookup<'s> {
    match lookup::memory_pack(named.namespace, state) {
        Lookup::Absent if !state.holds_any(&SKILL_PACK) => Lookup::Unknown(()),
        found_or_not => found_or_not,
    }
}

/// The Ensemble of a label. The label of a run does not count if its Agent has one.
fn ensemble_of_label<'s>(
    edge: &Edge,
    named: &Named<'_>,
    object: &Tree,
    state: &mut StateReader<'s>,
) -> Lookup<'s> {
    let agent = agent_ref(object).and_then(|name| lookup::agent(named.namespace, name, state).found());
    match agent.and_then(|agent| ensemble_label(agent.tree())) {
        Some(_) => Lookup::Unknown(()),
        None => look_up_some(edge, named, object, state),
    }
}

/// The Agent. One that an Ensemble makes is not missing.
fn agent_or_maker<'s>(
    _edge: &Edge,
    named: &Named<'_>,
    _object: &Tree,
    state: &mut StateReader<'s>,
) -> Lookup<'s> {
    match lookup::agent(named.namespace, named.name, state) {
        Lookup::Absent if lookup::maker(named.namespace, named.name, state).is_some() => Lookup::Unknown(()),
        found_or_not => found_or_not,
    }
}
