//! Agents, AgentRuns and SkillPacks as decisions read them.

use serde_json::{Value, json};

use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use super::{CONFIG_LABEL, ENSEMBLE_LABEL, MEMORY_SKILL, PACK_LABEL, PERSONA_LABEL, SOURCE_LABEL, WEB_PROXY};

/// The value of a label; `None` when it is absent or empty.
pub(crate) fn label<'t>(object: &'t Tree, key: &str) -> Option<&'t str> {
    object.at(&["metadata", "labels"])?.entry(key).filter(|value| !value.is_empty())
}

/// An object at a path.
pub(crate) fn section<'t>(tree: &'t Tree, path: &[&str]) -> Option<&'t Tree> {
    tree.at(path).filter(|section| section.is_object())
}

/// Whether a field that is false by default is true.
pub(crate) fn is_true(object: &Tree, path: &[&str]) -> bool {
    object.at(path) == Some(&Tree::Boolean(true))
}

/// The `spec.skills` of an Agent or AgentRun.
pub(crate) fn skills(object: &Tree) -> &[Tree] {
    object.at(&["spec", "skills"]).map(Tree::elements).unwrap_or_default()
}

/// The index of the skill that turns private memory on.
pub(crate) fn memory_skill(skills: &[Tree]) -> Option<usize> {
    skills.iter().position(|skill| skill.text_at(&["skillPackRef"]) == Some(MEMORY_SKILL))
}

/// Whether private memory is on.
pub(crate) fn has_memory(object: &Tree) -> bool {
    memory_skill(skills(object)).is_some()
}

/// Whether the older memory in a ConfigMap is on: with `spec.memory` it is on by
/// default, from the CRD's schema.
pub(crate) fn has_legacy_memory(agent: &Tree) -> bool {
    let memory = agent.at(&["spec", "memory"]).filter(|memory| memory.is_object());
    memory.is_some_and(|memory| memory.get("enabled") != Some(&Tree::Boolean(false)))
}

/// Whether the Agent disables storing its runs automatically.
pub(crate) fn auto_store_off(agent: &Tree) -> bool {
    agent.at(&["spec", "memory", "autoStore"]) == Some(&Tree::Boolean(false))
}

/// The name of the Agent that an AgentRun is of.
pub(crate) fn agent_ref(run: &Tree) -> Option<&str> {
    run.text_at(&["spec", "agentRef"]).or_else(|| run.text_at(&["spec", "instanceRef"]))
}

/// The pointer to the name of the Agent, under the name that is used.
pub(crate) fn agent_ref_pointer(run: &Tree) -> Pointer {
    let old = run.text_at(&["spec", "agentRef"]).is_none() && run.text_at(&["spec", "instanceRef"]).is_some();
    Pointer::new(if old { "/spec/instanceRef" } else { "/spec/agentRef" })
}

/// Whether an AgentRun without skills inherits those of its Agent.
pub(crate) fn inherits_skills(run: &Tree) -> bool {
    label(run, SOURCE_LABEL) != Some(WEB_PROXY)
}

/// Whose skills a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SkillsOwner {
    /// Its own.
    Run,
    /// Those of its Agent.
    Agent,
}

/// Whose skills count: those of the run, and without any it takes its agent's. A pod can be without a run.
pub(crate) fn skills_owner(run: Option<&Tree>, agent: Option<&Tree>) -> Option<SkillsOwner> {
    if run.is_some_and(|run| !skills(run).is_empty()) {
        return Some(SkillsOwner::Run);
    }
    let inherits = run.is_none_or(inherits_skills);
    agent.filter(|_| inherits).map(|_| SkillsOwner::Agent)
}

/// The label of an Agent that names its Ensemble, with the name.
pub(crate) fn ensemble_label(agent: &Tree) -> Option<(&'static str, &str)> {
    [ENSEMBLE_LABEL, PACK_LABEL].into_iter().find_map(|key| Some((key, label(agent, key)?)))
}

/// The name of the Ensemble. The Agent's label overrides the run's, and the current label the old one.
pub(crate) fn ensemble_name<'t>(agent: Option<&'t Tree>, run: Option<&'t Tree>) -> Option<&'t str> {
    let of = |key| agent.and_then(|agent| label(agent, key)).or_else(|| run.and_then(|run| label(run, key)));
    of(ENSEMBLE_LABEL).or_else(|| of(PACK_LABEL))
}

/// The name of the Ensemble's entry that an Agent was made from; never guessed from its name.
pub(crate) fn config_name(agent: &Tree) -> Option<&str> {
    label(agent, CONFIG_LABEL).or_else(|| label(agent, PERSONA_LABEL))
}

/// The image of a SkillPack's sidecar; `None` when it has no sidecar, or one without an image.
pub(crate) fn sidecar_image(pack: &Tree) -> Option<&str> {
    pack.text_at(&["spec", "sidecar", "image"]).filter(|image| !image.is_empty())
}

/// The command of a SkillPack's sidecar; empty without one.
pub(crate) fn sidecar_command(pack: &Tree) -> Vec<&str> {
    let command = pack.at(&["spec", "sidecar", "command"]).map(Tree::elements).unwrap_or_default();
    command.iter().filter_map(Tree::text).collect()
}

/// The variables of a SkillPack's sidecar: their names, and the entries of a container's `env`.
pub(crate) fn sidecar_env(pack: &Tree) -> impl Iterator<Item = (&str, Value)> {
    let entries = pack.at(&["spec", "sidecar", "env"]).map(Tree::elements).unwrap_or_default();
    entries.iter().filter_map(|entry| {
        let name = entry.text_at(&["name"]).filter(|name| !name.is_empty() && !name.contains('='))?;
        let source = || entry.whole()?.remove("valueFrom");
        let variable = if entry.get("valueFrom").is_some_and(Tree::is_object) {
            json!({"name": name, "valueFrom": source()?})
        } else {
            json!({"name": name, "value": entry.text_at(&["value"]).unwrap_or_default()})
        };
        Some((name, variable))
    })
}
