//! The fields of Agents, AgentRuns and SkillPacks that decisions read.

use memgate_model::platform_settings::Quantities;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::quantity::billionths;
use serde_json::{Value, json};

use super::{
    CELLN, CONFIG_LABEL, ENDURING, ENSEMBLE_LABEL, MEMORY_SKILL, PACK_LABEL, PERSONA_LABEL, SOURCE_LABEL,
    WEB_PROXY, label,
};

/// The `spec.skills` of an Agent or AgentRun.
pub(crate) fn skills(object: &Tree) -> &[Tree] {
    object.list_at(&["spec", "skills"])
}

/// The index of the skill that turns private memory on.
pub(crate) fn memory_skill(skills: &[Tree]) -> Option<usize> {
    skills.iter().position(|skill| skill.text_at(&["skillPackRef"]) == Some(MEMORY_SKILL))
}

/// Whether private memory is on.
pub(crate) fn has_memory(object: &Tree) -> bool {
    memory_skill(skills(object)).is_some()
}

/// Whether the older memory in a ConfigMap is on. If `spec.memory` is set, the CRD's schema turns it on by
/// default.
pub(crate) fn has_legacy_memory(agent: &Tree) -> bool {
    let memory = agent.at(&["spec", "memory"]).filter(|memory| memory.is_object());
    memory.is_some_and(|memory| memory.get("enabled") != Some(&Tree::Boolean(false)))
}

/// Whether the Agent turns off the automatic storing of its runs.
pub(crate) fn auto_store_off(agent: &Tree) -> bool {
    agent.at(&["spec", "memory", "autoStore"]) == Some(&Tree::Boolean(false))
}

/// The name of an AgentRun's Agent.
pub(crate) fn agent_ref(run: &Tree) -> Option<&str> {
    run.text_at(&["spec", "agentRef"]).or_else(|| run.text_at(&["spec", "instanceRef"]))
}

/// The pointer to the name of the Agent, in the field that is used.
pub(crate) fn agent_ref_pointer(run: &Tree) -> Pointer {
    let old = run.text_at(&["spec", "agentRef"]).is_none() && run.text_at(&["spec", "instanceRef"]).is_some();
    Pointer::new(if old { "/spec/instanceRef" } else { "/spec/agentRef" })
}

/// Whether the skills of the Agent count, and not those of its run. A pod may have no run.
pub(crate) fn inherits_skills(run: Option<&Tree>) -> bool {
    run.is_none_or(|run| skills(run).is_empty() && label(run, SOURCE_LABEL) != Some(WEB_PROXY))
}

/// Whether a run is one of Celln: in a virtual machine without a pod, skills or shared memory. An enduring run is always
/// one.
pub(crate) fn is_celln(run: &Tree) -> bool {
    run.text_at(&["spec", "backend"]) == Some(CELLN)
        || run.text_at(&["spec", "executionLifecycle"]) == Some(ENDURING)
}

/// The field by which the runs that the platform makes of an Agent are those of Celln.
pub(crate) fn celln_field(agent: &Tree) -> Option<Pointer> {
    let execution = agent.at(&["spec", "execution"])?;
    let field = match execution.get("backend") {
        Some(backend) => Some("backend").filter(|_| backend.text() == Some(CELLN)),
        None => execution.get("cellnSelection").map(|_| "cellnSelection"),
    };
    Some(Pointer::new("/spec/execution").key(field?))
}

/// The label of an Agent that names its Ensemble, with the name.
pub(crate) fn ensemble_label(agent: &Tree) -> Option<(&'static str, &str)> {
    [ENSEMBLE_LABEL, PACK_LABEL].into_iter().find_map(|key| Some((key, label(agent, key)?)))
}

/// The name of the Ensemble. The Agent's label overrides the run's label, and the current label overrides
/// the old one.
pub(crate) fn ensemble_name<'t>(agent: Option<&'t Tree>, run: Option<&'t Tree>) -> Option<&'t str> {
    let of = |key| agent.and_then(|agent| label(agent, key)).or_else(|| run.and_then(|run| label(run, key)));
    of(ENSEMBLE_LABEL).or_else(|| of(PACK_LABEL))
}

/// The name of the Ensemble's entry from which an Agent was made. It is never guessed from the Agent's
/// name.
pub(crate) fn config_name(agent: &Tree) -> Option<&str> {
    label(agent, CONFIG_LABEL).or_else(|| label(agent, PERSONA_LABEL))
}

/// Whether a run is one of a harness, a third-party image in place of Sympozium's own runner. The run decides, else its
/// Agent by its `runtimeRef`.
pub(crate) fn names_harness(run: Option<&Tree>, agent: Option<&Tree>) -> bool {
    let is_set = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
    let task = run.and_then(|run| run.at(&["spec", "task"]));
    let own = |field| is_set(task.and_then(|task| task.text_at(&["parameters", field])));
    let by_run = task.and_then(|task| task.text_at(&["mode"])) == Some("harness");
    by_run
        || !own("image")
            && !own("runtime")
            && is_set(agent.and_then(|it| it.text_at(&["spec", "runtimeRef"])))
}

/// The image of a SkillPack's sidecar; `None` when it has no sidecar, or one without an image.
pub(crate) fn sidecar_image(pack: &Tree) -> Option<&str> {
    pack.filled_at(&["spec", "sidecar", "image"])
}

/// The command of a SkillPack's sidecar; empty without one.
pub(crate) fn sidecar_command(pack: &Tree) -> Vec<&str> {
    let command = pack.list_at(&["spec", "sidecar", "command"]);
    command.iter().filter_map(Tree::text).collect()
}

/// The CPU and memory of a SkillPack's sidecar, each one that is a quantity.
pub(crate) fn sidecar_resources(pack: &Tree) -> Quantities {
    let size = |resource: &&str| pack.text_at(&["spec", "sidecar", "resources", resource]);
    let sizes = ["cpu", "memory"].into_iter().filter_map(|resource| Some((resource, size(&resource)?)));
    let is_size = |size: &str| billionths(size).is_some_and(|amount| amount >= 0);
    let sizes = sizes.filter(|(_, size)| is_size(size));
    sizes.map(|(resource, size)| (resource.to_owned(), size.to_owned())).collect()
}

/// The variables of a SkillPack's sidecar: their names, and the entries of a container's `env`. Of the sources of a
/// value the definition has only a key of a Secret; an apiserver drops others.
pub(crate) fn sidecar_env(pack: &Tree) -> impl Iterator<Item = (&str, Value)> {
    let entries = pack.list_at(&["spec", "sidecar", "env"]);
    entries.iter().filter_map(|entry| {
        let name = entry.text_at(&["name"])?;
        let key = entry
            .whole()
            .and_then(|mut it| it.get_mut("valueFrom")?.get_mut("secretKeyRef").map(Value::take));
        let variable = match key.filter(Value::is_object) {
            Some(key) => json!({"name": name, "valueFrom": {"secretKeyRef": key}}),
            None => json!({"name": name, "value": entry.text_at(&["value"]).unwrap_or_default()}),
        };
        Some((name, variable))
    })
}
