//! Validates runs of Celln: in a virtual machine without a pod, skills or shared memory.
//!
//! Newer definitions of AgentRun have values and rules for them, which stand here until the bundled definition has them.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::object::Object;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::agent::{celln_field, has_memory, is_celln, memory_skill, skills};
use super::super::api::ensemble::shares_memory;
use super::super::api::{CELLN, ENDURING};
use super::super::codes::{CELLN_NO_MEMORY, CELLN_NO_SHARED_MEMORY, SCHEMA};
use super::Report;
use crate::message::fit_names;

/// The backends of a run.
const BACKENDS: [&str; 2] = ["job", CELLN];
/// The lifecycles of a run.
const LIFECYCLES: [&str; 2] = ["one-shot", ENDURING];

/// Findings about a run. `agent` is its Agent with the name, if that is known and has memory.
pub(super) fn run_findings(
    subject: &Subject<'_>,
    agent: Option<&str>,
    ensemble: Option<&Object>,
    report: Report<'_>,
) -> Vec<Finding> {
    let run = subject.object;
    let spec = Pointer::new("/spec");
    let mut findings: Vec<Finding> = values(run, &spec, report).collect();
    if let Some(run) = run.get("spec") {
        let old = subject.old.and_then(|old| old.get("spec"));
        findings.extend(broken_rules(run, old).filter_map(|(field, rule)| {
            report.deny(&SCHEMA, || spec.key(field), move || format!("Invalid value: {rule}"))
        }));
    }
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
pub(super) fn agent_findings(agent: &Tree, report: Report<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = agent.at(&["spec"]).map_or_else(Vec::new, |spec| {
        let execution = spec.get("execution");
        execution.map(|it| enums(it, &Pointer::new("/spec/execution"), report).collect()).unwrap_or_default()
    });
    if let Some(at) = celln_field(agent).filter(|_| has_memory(agent)) {
        let message =
            |_: &Pointer| "runs with backend \"celln\" have no memory; use another Agent for them".to_owned();
        findings.extend(report.warn_whole(&CELLN_NO_MEMORY, || at, message));
    }
    findings
}

fn values(run: &Tree, spec: &Pointer, report: Report<'_>) -> impl Iterator<Item = Finding> {
    run.get("spec").map(|tree| enums(tree, spec, report)).into_iter().flatten()
}

/// Denies backends and lifecycles that do not exist.
fn enums(tree: &Tree, here: &Pointer, report: Report<'_>) -> impl Iterator<Item = Finding> {
    let fields = [("backend", &BACKENDS), ("executionLifecycle", &LIFECYCLES)];
    let finding = |(field, values): (&'static str, &'static [&str; 2])| {
        report.unsupported(&SCHEMA, || here.key(field), tree.text_at(&[field]), values)
    };
    fields.map(finding).into_iter().flatten()
}

/// The rules that a run breaks, with the field of each.
/// Source: upstream, `api/v1alpha1/agentrun_types.go`.
fn broken_rules(run: &Tree, old: Option<&Tree>) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is = |run: &Tree, field, value| run.text_at(&[field]) == Some(value);
    let has = |field| run.get(field).is_some();
    let (celln, endures) = (is(run, "backend", CELLN), is(run, "executionLifecycle", ENDURING));
    let is_task = run.text_at(&["mode"]).is_none_or(|mode| mode == "task");
    let was_enduring = old.is_some_and(|old| is(old, "executionLifecycle", ENDURING));
    [
        (
            has("cellnSelection") && (!celln || has("celln")),
            "cellnSelection",
            "cellnSelection needs backend \"celln\" and excludes celln",
        ),
        (
            endures && !(has("enduring") && celln && has("cellnSelection") && is_task),
            "executionLifecycle",
            "\"enduring\" needs backend \"celln\", cellnSelection, enduring and mode \"task\"",
        ),
        (has("enduring") && !endures, "enduring", "enduring needs executionLifecycle \"enduring\""),
        (
            has("conversation") && !endures,
            "conversation",
            "conversation needs executionLifecycle \"enduring\"",
        ),
        (
            is(run, "executionLifecycle", LIFECYCLES[0]) && is(run, "mode", "server"),
            "mode",
            "executionLifecycle \"one-shot\" excludes mode \"server\"",
        ),
        (
            was_enduring && !(endures && celln && has("cellnSelection") && has("enduring")),
            "executionLifecycle",
            "an enduring run keeps its lifecycle, backend, selection and limits",
        ),
    ]
    .into_iter()
    .filter_map(|(is_broken, field, rule)| is_broken.then_some((field, rule)))
}
