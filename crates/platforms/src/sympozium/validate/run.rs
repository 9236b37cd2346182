//! Validates an AgentRun; those of Celln run in a virtual machine without a pod, skills or shared memory.

use crate::message::fit_names;
use crate::prelude::*;
use crate::sympozium::api::agent::{
    agent_ref, agent_ref_pointer, celln_field, has_memory, is_celln, memory_skill, skills,
};
use crate::sympozium::api::ensemble::shares_memory;
use crate::sympozium::api::{BUDGET_ACTIONS, ENSEMBLE_LABEL, is_true, label};
use crate::sympozium::codes::{
    BUDGET_SPENT, CELLN_NO_MEMORY, CELLN_NO_SHARED_MEMORY, CIRCUIT_OPEN, ENSEMBLE_LABEL_DIFFERS,
    LEGACY_INSTANCE_REF, WARM_POOL_NO_MEMORY,
};
use crate::sympozium::lookup;
use memgate_model::request::Operation;

use super::{Report, pods};

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let run = subject.object;
    let report = Report::new(state.budget());
    let mut findings = pods::skill_findings(subject, state);
    findings.extend(pods::volumes_of_run(run, report));
    findings.extend(old_name(run));
    let (mut agent, mut maker) = (None, None);
    let name = agent_ref(run);
    if let Some(name) = name {
        match lookup::agent(subject.namespace, name, state) {
            Lookup::Found(found) => agent = Some(found),
            Lookup::Absent => maker = lookup::maker(subject.namespace, name, state),
            Lookup::Unknown(()) => {}
        }
    }
    let (env, created) = (["spec", "env"], subject.operation == Operation::Create);
    let ensemble = match maker {
        Some((ensemble, _)) => Some(ensemble),
        None if !created && !is_celln(run) && !pods::names_reserved(run, &env) => None,
        None => lookup::ensemble_of(agent.map(Object::tree), Some(run), subject.namespace, state),
    };
    // The Ensemble has no part in a run of Celln.
    let used = ensemble.filter(|_| !is_celln(run));
    findings.extend(pods::environment_findings(run, &env, used, report));
    // Every Agent that an Ensemble makes has the skill.
    let has_memory = maker.is_some() || agent.is_some_and(|agent| has_memory(agent.tree()));
    let shares = ensemble.is_some_and(|ensemble| shares_memory(ensemble.tree()));
    let has_none = agent.is_some() && !has_memory && !shares && memory_skill(skills(run)).is_none();
    findings.extend(warm_pool(run, report).filter(|_| !has_none));
    findings.extend(celln_run_findings(subject, name.filter(|_| has_memory), ensemble, report));
    if created {
        findings.extend(agent.and_then(|agent| ensemble_label_differs(run, agent)));
        if let Some(ensemble) = used {
            findings.extend(budget_spent(subject, ensemble));
            findings.extend(circuit_open(subject, ensemble));
        }
    }
    findings
}

/// Warns about a run in a sandbox of a warm pool, which is made before the run and without its pod.
fn warm_pool(run: &Tree, report: Report<'_>) -> Option<Finding> {
    let is_sandbox = is_true(run, &["spec", "agentSandbox", "enabled"]) && !is_celln(run);
    let pool = run
        .text_at(&["spec", "agentSandbox", "warmPoolRef"])
        .filter(|pool| is_sandbox && !pool.is_empty())?;
    let pool = fit_names([pool], |[pool]| quoted(pool));
    let at = || Pointer::new("/spec/agentSandbox/warmPoolRef");
    report.warn_whole(&WARM_POOL_NO_MEMORY, at, move |at| {
        format!("{}: a sandbox of pool {pool} is made before its run: this run has no memory", at.field())
    })
}

fn old_name(run: &Tree) -> Option<Finding> {
    run.text_at(&["spec", "instanceRef"])?;
    let message = "spec.instanceRef is the old name of spec.agentRef";
    Some(Finding::warn(&LEGACY_INSTANCE_REF, Pointer::new("/spec/instanceRef"), message).at_key())
}

/// Warns about an Ensemble label that differs from the Agent's label. The Agent's label counts at run time.
fn ensemble_label_differs(run: &Tree, agent: &Object) -> Option<Finding> {
    let (own, agents) = (label(run, ENSEMBLE_LABEL)?, label(agent.tree(), ENSEMBLE_LABEL)?);
    let at = Pointer::new("/metadata/labels").key(ENSEMBLE_LABEL);
    let message = fit_names([own, &agent.name, agents], |[own, agent, ensemble]| {
        let (own, agent, ensemble) = (quoted(own), quoted(agent), quoted(ensemble));
        format!("label {ENSEMBLE_LABEL} is {own}, but Agent {agent} belongs to Ensemble {ensemble}")
    });
    let of_agent = at.clone();
    let finding = || Finding::warn(&ENSEMBLE_LABEL_DIFFERS, at, message);
    (own != agents).then(|| finding().elsewhere(agent, of_agent, "the label of the Agent counts"))
}

/// Warns about an open circuit breaker: upstream's router refuses to spawn runs for this run.
fn circuit_open(subject: &Subject<'_>, ensemble: &Object) -> Option<Finding> {
    let message = fit_names([&ensemble.name], |[name]| {
        format!("the circuit breaker of Ensemble {} is open: this run cannot spawn others", quoted(name))
    });
    let is_open = is_true(ensemble.tree(), &["status", "circuitBreakerOpen"]);
    let finding = || Finding::warn(&CIRCUIT_OPEN, agent_ref_pointer(subject.object), message);
    let at = Pointer::new("/status/circuitBreakerOpen");
    is_open.then(|| finding().elsewhere(ensemble, at, "open"))
}

/// Warns about a spent token budget, with upstream's message. Upstream fails such a run.
fn budget_spent(subject: &Subject<'_>, ensemble: &Object) -> Option<Finding> {
    let budget = ensemble.tree().at(&["spec", "sharedMemory", "membrane", "tokenBudget"])?;
    let limit = budget.get("maxTokens").and_then(Tree::integer).filter(|limit| *limit > 0)?;
    let used = ensemble.tree().at(&["status", "tokenBudgetUsed"]).and_then(Tree::integer)?;
    let action = budget.text_at(&["action"]).filter(|action| !action.is_empty()).unwrap_or(BUDGET_ACTIONS[0]);
    let message = fit_names([&ensemble.name], |[name]| {
        format!("token budget exceeded: ensemble {} has used {used} tokens (limit: {limit})", quoted(name))
    });
    let spent = action == BUDGET_ACTIONS[0] && used >= limit;
    let finding = || Finding::warn(&BUDGET_SPENT, agent_ref_pointer(subject.object), message);
    let at = Pointer::new("/spec/sharedMemory/membrane/tokenBudget/maxTokens");
    spent.then(|| finding().elsewhere(ensemble, at, "the limit"))
}

/// Findings about a run. `agent` is its Agent with the name, if that is known and has memory.
pub(super) fn celln_run_findings(
    subject: &Subject<'_>,
    agent: Option<&str>,
    ensemble: Option<&Object>,
    report: Report<'_>,
) -> Vec<Finding> {
    let run = subject.object;
    let spec = Pointer::new("/spec");
    let mut findings = Vec::new();
    if !is_celln(run) {
        return findings;
    }
    let backend = || spec.key("backend");
    if let Some(index) = memory_skill(skills(run)) {
        let at = || spec.key("skills").index(index).key("skillPackRef");
        let message =
            |_: &Pointer| "backend \"celln\" runs without SkillPacks: this run has no memory".to_owned();
        findings.extend(match run.at(&["spec", "cellnSelection"]) {
            Some(_) => report.deny_whole(&CELLN_NO_MEMORY, at, message),
            None => report.warn_whole(&CELLN_NO_MEMORY, at, message),
        });
    } else if let Some(agent) = agent {
        let message = fit_names([agent], |[agent]| {
            format!("backend \"celln\" ignores the skills of Agent {}: this run has no memory", quoted(agent))
        });
        let finding = Finding::warn(&CELLN_NO_MEMORY, backend(), message);
        let is_selected = run.at(&["spec", "cellnSelection"]).is_some();
        let help = "use an Agent without skills: Sympozium's own webhook refuses this run";
        findings.push(if is_selected { finding.help(help) } else { finding });
    }
    if let Some(ensemble) = ensemble.filter(|ensemble| shares_memory(ensemble.tree())) {
        let message = fit_names([&ensemble.name], |[name]| {
            format!("backend \"celln\" has no shared memory: Ensemble {} is not used", quoted(name))
        });
        let finding = Finding::warn(&CELLN_NO_SHARED_MEMORY, backend(), message);
        let at = Pointer::new("/spec/sharedMemory/enabled");
        findings.push(finding.elsewhere(ensemble, at, "not used"));
    }
    findings
}

/// Findings about the runs that the platform makes of an Agent.
pub(super) fn celln_agent_findings(agent: &Tree, report: Report<'_>) -> Option<Finding> {
    let at = celln_field(agent).filter(|_| has_memory(agent))?;
    let message =
        |_: &Pointer| "runs with backend \"celln\" have no memory; use another Agent for them".to_owned();
    report.warn_whole(&CELLN_NO_MEMORY, || at, message)
}
