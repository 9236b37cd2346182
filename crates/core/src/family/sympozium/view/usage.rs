//! The views of what uses memory: an AgentRun, and what runs and pods have for sources.

use crate::model::memory_view::{MemoryView, ReferenceView, Role, SourceView};
use crate::model::object::{Lookup, Object};
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::api::AGENT;
use super::super::api::agent::{
    SkillsOwner, agent_ref, agent_ref_pointer, ensemble_name, memory_skill, skills, skills_owner,
};
use super::super::api::ensemble::shares_memory;
use super::super::lookup;
use super::super::lookup::PackMode;
use super::{Viewed, memory};

/// The memories that a run or a pod uses.
#[derive(Default)]
pub(super) struct Usage<'s> {
    /// Its Agent.
    pub(super) agent: Option<&'s Object>,
    /// Whether the Agent's private memory is used.
    pub(super) private: bool,
    /// The Ensemble, if it shares memory.
    pub(super) ensemble: Option<&'s Object>,
}

impl Usage<'_> {
    /// The views of these memories.
    pub(super) fn memories(&self, state: &mut StateReader<'_>) -> Vec<MemoryView> {
        let mut views = Vec::new();
        if let Some(agent) = self.agent.map(Viewed::object) {
            views.extend(memory::of_agent(agent, self.private, state));
            if self.private
                && let PackMode::Sidecar(Some(pack)) = memory::pack_mode(agent, state)
            {
                views.push(memory::of_pack(Viewed::object(pack)));
            }
        }
        views.extend(self.ensemble.and_then(|ensemble| memory::of_ensemble(Viewed::object(ensemble), state)));
        views
    }
}

/// The view of an AgentRun.
pub(super) fn of_run(run: Viewed<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let mut view = run.view(Role::Referrer);
    let Some(name) = agent_ref(run.tree) else { return view };
    let field = agent_ref_pointer(run.tree);
    let (lookup, usage) = look_up(run, name, state);
    let memories = usage.memories(state).into_iter();
    view.sources = memories.map(|view| SourceView { view, field: field.clone() }).collect();
    view.references.push(ReferenceView::new(&AGENT, (run.namespace, name), field, lookup));
    view
}

/// The Agent of a run, or what will make it, and what the run uses of it.
fn look_up<'s>(run: Viewed<'_>, agent: &str, state: &mut StateReader<'s>) -> (Lookup<'s>, Usage<'s>) {
    let lookup = lookup::agent(run.namespace, agent, state);
    match lookup {
        Lookup::Found(agent) => {
            let ensemble = shared_ensemble(run, &agent.tree, state);
            let owner = skills_owner(Some(run.tree), Some(&agent.tree));
            let private = owner.is_some_and(|owner| {
                let owner = if owner == SkillsOwner::Run { run.tree } else { &agent.tree };
                memory_skill(skills(owner)).is_some()
            });
            (lookup, Usage { agent: Some(agent), private, ensemble })
        }
        Lookup::Absent => match lookup::maker(run.namespace, agent, state) {
            Some((ensemble, _)) => {
                let shares = shares_memory(&ensemble.tree);
                let usage = Usage { ensemble: Some(ensemble).filter(|_| shares), ..Usage::default() };
                (Lookup::Found(ensemble), usage)
            }
            None => (lookup, Usage::default()),
        },
        Lookup::Unknown => (lookup, Usage::default()),
    }
}

/// The Ensemble that shares its memory with a run of this Agent.
fn shared_ensemble<'s>(run: Viewed<'_>, agent: &Tree, state: &mut StateReader<'s>) -> Option<&'s Object> {
    let name = ensemble_name(Some(agent), Some(run.tree))?;
    match lookup::ensemble(run.namespace, name, state) {
        Lookup::Found(ensemble) if shares_memory(&ensemble.tree) => Some(ensemble),
        Lookup::Found(_) | Lookup::Absent | Lookup::Unknown => None,
    }
}
