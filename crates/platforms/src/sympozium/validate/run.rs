//! Validates an AgentRun; those of Celln run in a virtual machine without a pod, skills or shared memory.

use crate::sympozium::lookup;
use crate::sympozium::prelude::*;
use crate::sympozium::report::{Report, whole};
use memgate_model::finding::Severity::{Deny, Warn};
use memgate_primitives::pointer::Path::{Index, Key, Known};

use super::pods;

pub(super) fn findings(subject: &Subject<'_>, out: &mut Report<'_>, state: &mut StateReader<'_>) {
    let run = subject.object;
    pods::skills(run, out);
    pods::volumes_of_run(run, out);
    if run.text_at(&["spec", "instanceRef"]).is_some() {
        let text = "spec.instanceRef is the old name of spec.agentRef";
        out.extend([Finding::warn(&LEGACY_INSTANCE_REF, "/spec/instanceRef", text).at_key()]);
    }
    let name = agent_ref(run);
    let found = name.map(|name| lookup::agent_or_maker(subject.namespace, name, state));
    let (agent, maker) = found.map_or((None, None), |(agent, maker)| (agent.found(), maker));
    let (env, created) = (["spec", "env"], subject.operation == Operation::Create);
    let ensemble = match maker {
        Some((ensemble, _)) => Some(ensemble),
        None if !created && !is_celln(run) && !pods::names_reserved(run, &env) => None,
        None => lookup::ensemble_of(agent.map(Object::tree), Some(run), subject.namespace, state),
    };
    // The Ensemble has no part in a run of Celln.
    let used = ensemble.filter(|_| !is_celln(run));
    pods::environment(run, (&env, Known("/spec/env")), used, out);
    // Every Agent that an Ensemble makes has the skill.
    let has_memory = maker.is_some() || agent.is_some_and(|agent| has_memory(agent.tree()));
    let sharing = ensemble.filter(|ensemble| shares_memory(ensemble.tree()));
    if is_celln(run) {
        celln(run, name.filter(|_| has_memory), sharing, out);
    } else if has_memory || agent.is_none() || sharing.is_some() || memory_skill(skills(run)).is_some() {
        warm_pool(run, out);
    }
    if created {
        out.extend(agent.and_then(|agent| ensemble_label_differs(run, agent)));
        if let Some(ensemble) = used {
            out.extend(budget_spent(run, ensemble));
            out.extend(circuit_open(run, ensemble));
        }
    }
}

/// Warns about a run in a sandbox of a warm pool, which is made before the run and without its pod.
fn warm_pool(run: &Tree, out: &mut Report<'_>) {
    if let Some(pool) = run.filled_at(&["spec", "agentSandbox", "warmPoolRef"])
        && is_true(run, &["spec", "agentSandbox", "enabled"])
    {
        let text = "a sandbox of pool {} is made before its run: this run has no memory";
        out.warn(&WARM_POOL_NO_MEMORY, Known("/spec/agentSandbox/warmPoolRef"), text, &[pool]);
    }
}

/// Warns about an Ensemble label that differs from the Agent's label. The Agent's label counts at run time.
fn ensemble_label_differs(run: &Tree, agent: &Object) -> Option<Finding> {
    let (own, agents) = (label(run, ENSEMBLE_LABEL)?, label(agent.tree(), ENSEMBLE_LABEL)?);
    let at = Pointer::new("/metadata/labels").key(ENSEMBLE_LABEL);
    let text = "label sympozium.ai/ensemble is {}, but Agent {} belongs to Ensemble {}";
    let finding = || warning(&ENSEMBLE_LABEL_DIFFERS, &at, text, [own, &agent.name, agents]);
    (own != agents).then(|| finding().elsewhere(agent, at.clone(), "the label of the Agent counts"))
}

/// Warns about an open circuit breaker: upstream's router refuses to spawn runs for this run.
fn circuit_open(run: &Tree, ensemble: &Object) -> Option<Finding> {
    let text = "the circuit breaker of Ensemble {} is open: this run cannot spawn others";
    let finding = || warning(&CIRCUIT_OPEN, agent_ref_pointer(run), text, [&ensemble.name]);
    let at = Pointer::new("/status/circuitBreakerOpen");
    let is_open = is_true(ensemble.tree(), &["status", "circuitBreakerOpen"]);
    is_open.then(|| finding().elsewhere(ensemble, at, "open"))
}

/// Warns about a spent token budget, with upstream's message. Upstream fails such a run.
fn budget_spent(run: &Tree, ensemble: &Object) -> Option<Finding> {
    let budget = ensemble.tree().at(&["spec", "sharedMemory", "membrane", "tokenBudget"])?;
    let limit = budget.get("maxTokens").and_then(Tree::integer).filter(|limit| *limit > 0)?;
    let used = ensemble.tree().at(&["status", "tokenBudgetUsed"]).and_then(Tree::integer)?;
    if budget.filled_at(&["action"]).unwrap_or(BUDGET_ACTIONS[0]) != BUDGET_ACTIONS[0] || used < limit {
        return None;
    }
    let text = "token budget exceeded: ensemble {} has used {bare} tokens (limit: {bare})";
    let values = [&*ensemble.name, &used.to_string(), &limit.to_string()];
    let at = Pointer::new("/spec/sharedMemory/membrane/tokenBudget/maxTokens");
    let finding = warning(&BUDGET_SPENT, agent_ref_pointer(run), text, values);
    Some(finding.elsewhere(ensemble, at, "the limit"))
}

/// Reports a run of Celln. `agent` is the name of its Agent, if that is known and has memory; the Ensemble shares memory.
fn celln(run: &Tree, agent: Option<&str>, ensemble: Option<&Object>, out: &mut Report<'_>) {
    let backend = Known("/spec/backend");
    let is_selected = run.at(&["spec", "cellnSelection"]).is_some();
    if let Some(index) = memory_skill(skills(run)) {
        let skill = Index(&Known("/spec/skills"), index);
        let text = whole("backend \"celln\" runs without SkillPacks: this run has no memory");
        let severity = if is_selected { Deny } else { Warn };
        let at = Key(&skill, "skillPackRef");
        out.add(severity, &CELLN_NO_MEMORY, at, text, &[]);
    } else if let Some(agent) = agent {
        let text = whole("backend \"celln\" ignores the skills of Agent {}: this run has no memory");
        let help = "use an Agent without skills: Sympozium's own webhook refuses this run";
        let text = if is_selected { text.help(help) } else { text };
        out.warn(&CELLN_NO_MEMORY, backend, text, &[agent]);
    }
    if let Some(ensemble) = ensemble {
        let text = "backend \"celln\" has no shared memory: Ensemble {} is not used";
        let finding = warning(&CELLN_NO_SHARED_MEMORY, backend.pointer(), text, [&ensemble.name]);
        let at = Pointer::new("/spec/sharedMemory/enabled");
        out.extend([finding.elsewhere(ensemble, at, "not used")]);
    }
}
