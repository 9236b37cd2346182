//! Validates an AgentRun.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::object::{Lookup, Object};
use memgate_model::request::Operation;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::agent::{agent_ref, agent_ref_pointer, has_memory, is_celln};
use super::super::api::read::{is_true, label};
use super::super::api::{BUDGET_ACTIONS, ENSEMBLE_LABEL};
use super::super::codes::{
    AGENT_MISSING, BUDGET_SPENT, CIRCUIT_OPEN, ENSEMBLE_LABEL_DIFFERS, LEGACY_INSTANCE_REF,
};
use super::super::lookup;
use super::environment;
use super::{Report, celln, skills, volumes};
use crate::message::fit_names;

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let run = subject.object;
    let report = Report::new(state.budget());
    let mut findings = skills::findings(subject, state);
    findings.extend(volumes::run_findings(run, report));
    findings.extend(old_name(run));
    let (mut agent, mut maker) = (None, None);
    let name = agent_ref(run);
    if let Some(name) = name {
        match lookup::agent(subject.namespace, name, state) {
            Lookup::Found(found) => agent = Some(found),
            Lookup::Absent => {
                maker = lookup::maker(subject.namespace, name, state);
                if maker.is_none() {
                    findings.extend(agent_missing(subject, name, report));
                }
            }
            Lookup::Unknown(()) => {}
        }
    }
    let (env, created) = (["spec", "env"], subject.operation == Operation::Create);
    let ensemble = match maker {
        Some((ensemble, _)) => Some(ensemble),
        None if !created && !is_celln(run) && !environment::names_reserved(run, &env) => None,
        None => lookup::ensemble_of(agent.map(Object::tree), Some(run), subject.namespace, state),
    };
    // The Ensemble has no part in a run of Celln.
    let used = ensemble.filter(|_| !is_celln(run));
    findings.extend(environment::findings(run, &env, used, report));
    // Every Agent that an Ensemble makes has the skill.
    let has_memory = maker.is_some() || agent.is_some_and(|agent| has_memory(agent.tree()));
    findings.extend(celln::run_findings(subject, name.filter(|_| has_memory), ensemble, report));
    if created {
        findings.extend(agent.and_then(|agent| ensemble_label_differs(run, agent)));
        if let Some(ensemble) = used {
            findings.extend(budget_spent(subject, ensemble));
            findings.extend(circuit_open(subject, ensemble));
        }
    }
    findings
}

fn old_name(run: &Tree) -> Option<Finding> {
    run.text_at(&["spec", "instanceRef"])?;
    let message = "spec.instanceRef is the old name of spec.agentRef";
    Some(Finding::warn(&LEGACY_INSTANCE_REF, Pointer::new("/spec/instanceRef"), message).at_key())
}

pub(super) fn agent_missing(subject: &Subject<'_>, name: &str, report: Report<'_>) -> Option<Finding> {
    let at = || agent_ref_pointer(subject.object);
    let finding = report.warn_of(&AGENT_MISSING, at, [name, subject.namespace], |[name, namespace]| {
        format!("Agent {} not found in {}", quoted(name), quoted(namespace))
    })?;
    Some(finding.help("apply the Agent first: Sympozium's own webhook refuses a run without it"))
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
