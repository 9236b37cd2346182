//! Finds the memories of a pod, through its AgentRun, Agent and Ensemble in its own namespace.

use crate::references::exists_elsewhere;
use crate::sympozium::lookup;
use crate::sympozium::prelude::*;

use super::instance_label;

/// The objects that belong to a pod, and the memories that are on.
#[derive(Default)]
pub(crate) struct PodMemories<'s> {
    /// The name of the agent.
    pub(super) instance: String,
    /// The Agent; `None` if only the run sets memory, or if the Ensemble will create the Agent.
    pub(crate) agent: Option<&'s Object>,
    /// The config of the Ensemble from which the Agent will be made.
    pub(crate) made_from: Option<AgentConfig<'s>>,
    /// The object and the field that turn private memory on.
    pub(crate) private: Option<(&'s Object, String)>,
    /// The object and the field that turn the memory in a ConfigMap on.
    pub(super) legacy: Option<(&'s Object, &'static str)>,
    /// Those that turn the automatic storing of runs off.
    pub(super) auto_store_off: Option<(&'s Object, &'static str)>,
    /// The Ensemble.
    pub(crate) ensemble: Option<&'s Object>,
    /// Whether its shared memory is on.
    pub(crate) shared: bool,
    /// The Agent's entry in the Ensemble.
    pub(crate) config: Option<&'s str>,
    /// Whether the run or the agent names a harness in place of Sympozium's own runner.
    pub(super) harness: bool,
    /// What is missing.
    pub(super) unmet: Vec<Finding>,
    /// The missing objects as references, under each kind that they could have.
    pub(super) missing: Vec<Reference>,
}

pub(crate) fn find<'s>(
    pod: &Pod<'_>,
    instance: &str,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<PodMemories<'s>, Unmet> {
    let run = find_run(pod, instance, namespace, state)?;
    let (agent, maker) = lookup::agent_or_maker(namespace, instance, state);
    if let Lookup::Unknown(()) = agent {
        let object = ["Agent", namespace, instance];
        return Err(lookup_failed(&LOOKUP_FAILED, instance_label(), object, state));
    }
    let agent = agent.found();
    let turns = |is_so: fn(&Tree) -> bool, field| Some((agent.filter(|it| is_so(it.tree()))?, field));
    let mut found = PodMemories {
        instance: instance.to_owned(),
        agent,
        private: private(run, agent),
        legacy: turns(has_legacy_memory, "spec.memory.enabled"),
        auto_store_off: turns(auto_store_off, "spec.memory.autoStore"),
        config: agent.and_then(|agent| config_name(agent.tree())),
        harness: names_harness(run.map(Object::tree), agent.map(Object::tree)),
        ..PodMemories::default()
    };
    match (agent, maker) {
        (Some(agent), _) => find_ensemble(&mut found, agent, run, namespace, state),
        (None, Some((ensemble, config))) => found.add_made_agent(ensemble, config, run),
        (None, None) => found.add_missing_agent(namespace, state),
    }
    Ok(found)
}

/// The run that the pod names, if it exists; an error if the run belongs to another agent.
fn find_run<'s>(
    pod: &Pod<'_>,
    instance: &str,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<Option<&'s Object>, Unmet> {
    let Some(name) = pod.label(RUN_LABEL).filter(|name| !name.is_empty()) else { return Ok(None) };
    let run = look_up(&STATE_AGENT_RUN, [namespace, name], (&LOOKUP_FAILED, RUN_LABEL), state)?;
    let Some(run) = run else { return Ok(None) };
    match agent_ref(run.tree()) {
        Some(agent) if agent != instance => {
            let text = "instance label {} does not match AgentRun {} of agent {}";
            let message = filled(text, [instance, name, agent]);
            let unmet = unmet(Reason::Conflict, &INSTANCE_MISMATCH, instance_label(), message);
            Err(unmet_by(unmet, run, Pointer::new("/spec/agentRef"), "another agent"))
        }
        _ => Ok(Some(run)),
    }
}

/// The object and the field that turn private memory on: the run's own skills count, or its agent's if the run has
/// none.
fn private<'s>(run: Option<&'s Object>, agent: Option<&'s Object>) -> Option<(&'s Object, String)> {
    let object = if inherits_skills(run.map(Object::tree)) { agent? } else { run? };
    let index = memory_skill(skills(object.tree()))?;
    Some((object, format!("spec.skills[{index}].skillPackRef")))
}

fn find_ensemble<'s>(
    found: &mut PodMemories<'s>,
    agent: &'s Object,
    run: Option<&'s Object>,
    namespace: &str,
    state: &mut StateReader<'s>,
) {
    let run: Option<&Tree> = run.map(Object::tree);
    let Some(name) = ensemble_name(Some(agent.tree()), run) else { return };
    match lookup::ensemble(namespace, name, state) {
        Lookup::Found(ensemble) => {
            found.shared = shares_memory(ensemble.tree());
            found.ensemble = Some(ensemble);
        }
        Lookup::Absent => {
            let finding = warning(&POD_ENSEMBLE_NOT_FOUND, instance_label(), "Ensemble {} not found", [name]);
            let at = Pointer::new("/metadata/labels").key(ENSEMBLE_LABEL);
            found.unmet.push(finding.elsewhere(agent, at, "named here"));
            found.missing = references(lookup::ENSEMBLES, namespace, name);
        }
        Lookup::Unknown(()) => {
            let object = ["Ensemble", namespace, name];
            found.unmet.extend(lookup_failed(&LOOKUP_FAILED, instance_label(), object, state).unmet);
        }
    }
}

impl<'s> PodMemories<'s> {
    /// Whether any memory is on.
    pub(super) const fn has_memory(&self) -> bool {
        self.private.is_some() || self.legacy.is_some() || self.shared
    }

    /// The objects whose memory the pod gets.
    pub(super) fn used(&self) -> impl Iterator<Item = &'s Object> {
        let of_agent = self.private.is_some() || self.legacy.is_some();
        let agent = self.agent.filter(|_| of_agent);
        let ensemble = self.ensemble.filter(|_| self.shared || of_agent && self.made_from.is_some());
        agent.into_iter().chain(ensemble)
    }

    /// Uses the Ensemble's config for an Agent that the Ensemble will create. Upstream gives each such Agent the
    /// skill.
    fn add_made_agent(&mut self, ensemble: &'s Object, config: AgentConfig<'s>, run: Option<&'s Object>) {
        if inherits_skills(run.map(Object::tree)) {
            let field = configs_field(ensemble.tree());
            self.private = Some((ensemble, format!("spec.{field}[{}]", config.index)));
        }
        // Each made Agent has the older memory, unless its config turns memory off.
        self.legacy = (!config.memory_disabled()).then_some((ensemble, "spec.agentConfigs"));
        let is_off = config.auto_store_off(ensemble.tree());
        self.auto_store_off = is_off.then_some((ensemble, "spec.autoStoreMemory"));
        self.shared = shares_memory(ensemble.tree());
        self.config = config.name;
        self.ensemble = Some(ensemble);
        self.made_from = Some(config);
    }

    /// Reports the missing Agent. Turns private memory off if the name is invalid for its Service and claim.
    fn add_missing_agent(&mut self, namespace: &str, state: &StateReader<'_>) {
        if !is_dns_subdomain(&self.instance) {
            self.private = None;
        }
        let elsewhere = exists_elsewhere(&lookup::AGENTS, (namespace, &self.instance), state);
        let values = [&*self.instance, &elsewhere];
        self.unmet.push(warning(&POD_AGENT_NOT_FOUND, instance_label(), "Agent {} not found{bare}", values));
        self.missing = references(lookup::AGENTS, namespace, &self.instance);
    }
}
