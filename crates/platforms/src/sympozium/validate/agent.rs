//! Validates an Agent.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::agent::{
    auto_store_off, has_legacy_memory, has_memory, memory_skill, skills as agent_skills,
};
use super::super::api::read::label;
use super::super::api::{ENSEMBLE_LABEL, private_server};
use super::super::codes::{
    AGENT_DELETE_DATA_LOSS, AUTO_STORE_NO_EFFECT, CRD_REQUIRED, LEGACY_MEMORY, MANAGED_AGENT_EDIT,
    SKILL_REMOVED,
};
use super::super::lookup;
use super::{Report, celln, configs, environment, names, skills, tokens, volumes, workspace};
use crate::message::fit_names;

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let (agent, report) = (subject.object, Report::new(state.budget()));
    let mut findings: Vec<Finding> = crd_required(agent, state, report).into_iter().collect();
    findings.extend(names::agent(subject, report));
    findings.extend(skills::findings(subject, state));
    findings.extend(memory(subject, report));
    findings.extend(volumes::warnings(agent, report));
    let env = ["spec", "agents", "default", "env"];
    let ensemble = if environment::names_reserved(agent, &env) {
        lookup::ensemble_of(Some(agent), None, subject.namespace, state)
    } else {
        None
    };
    findings.extend(environment::findings(agent, &env, ensemble, report));
    findings.extend(celln::agent_findings(agent, report));
    findings.extend(workspace::agent_findings(agent, report));
    if let Some(index) = memory_skill(agent_skills(agent)) {
        let at = Pointer::new("/spec/skills").index(index);
        findings.extend(tokens::without_key(&private_server(subject.name), subject.namespace, at, state));
    }
    if let Some(old) = subject.old {
        let changes = changes(subject, old, report).into_iter();
        let changes = changes.chain(workspace::agent_changes(agent, old, report));
        findings.extend(changes.map(Finding::when_allowed));
    }
    findings
}

/// Warns about the data that is deleted with an Agent.
pub(super) fn deleted(subject: &Subject<'_>) -> Vec<Finding> {
    let of_memory = has_memory(subject.object).then(|| {
        fit_names([subject.name], |[name]| {
            format!("PVC {name}-memory-db will be deleted with all memories of this agent")
        })
    });
    let message = || "the workspaces of all sessions of this agent will be deleted".to_owned();
    let of_sessions = workspace::is_per_session(subject.object).then(message);
    let finding = |message| Finding::warn(&AGENT_DELETE_DATA_LOSS, Pointer::root(), message);
    of_memory.into_iter().chain(of_sessions).map(finding).collect()
}

/// Denies in files what an apiserver refuses. It accepts an Agent without a spec, and in a cluster it has accepted this
/// one.
fn crd_required(agent: &Tree, state: &StateReader<'_>, report: Report<'_>) -> Option<Finding> {
    let paths: [&[&str]; 2] = [&["spec", "agents"], &["spec", "agents", "default", "model"]];
    let missing = paths.into_iter().find(|path| agent.at(path).is_none())?;
    let at = || missing.iter().fold(Pointer::root(), |pointer, key| pointer.key(key));
    let text = || "required by the CRD";
    let is_refused = state.of_files() && agent.get("spec").is_some();
    if is_refused { report.deny(&CRD_REQUIRED, at, text) } else { report.warn(&CRD_REQUIRED, at, text) }
}

fn memory(subject: &Subject<'_>, report: Report<'_>) -> Vec<Finding> {
    let agent = subject.object;
    let here = || Pointer::new("/spec/memory");
    let mut findings = Vec::new();
    if let Some(memory) = agent.at(&["spec", "memory"]) {
        findings.extend(configs::max_size(memory, here, report));
    }
    if has_memory(agent) {
        return findings;
    }
    if auto_store_off(agent) {
        let text = || "no effect: the agent has no skill \"memory\"";
        findings.extend(report.warn(&AUTO_STORE_NO_EFFECT, || here().key("autoStore"), text));
    }
    if has_legacy_memory(agent) {
        let at = || here().key("enabled");
        let finding = report.warn_of(&LEGACY_MEMORY, at, [subject.name], |[name]| {
            let config_map = quoted(&format!("{name}-memory"));
            format!("falls back to ConfigMap {config_map}: there is no skill \"memory\"")
        });
        let help = "add `skillPackRef: memory` to spec.skills, or write `enabled: false`: without it the default \
                    is true";
        findings.extend(finding.map(|finding| finding.help(help)));
    }
    findings
}

fn changes(subject: &Subject<'_>, old: &Tree, report: Report<'_>) -> Vec<Finding> {
    let agent = subject.object;
    let mut findings = Vec::new();
    if has_memory(old) && !has_memory(agent) {
        let text = || "Deployment, Service and PVC stay until the Agent is deleted";
        findings.extend(report.warn(&SKILL_REMOVED, || Pointer::new("/spec/skills"), text));
    }
    let unchanged = |field: &'static str| match (agent.at(&["spec", field]), old.at(&["spec", field])) {
        (Some(new), Some(old)) => new.is_equivalent(old),
        (new, old) => new.is_none() && old.is_none(),
    };
    if unchanged("skills") && unchanged("memory") {
        return findings;
    }
    let managed = |ensemble| {
        let message = fit_names([ensemble], |[ensemble]| {
            format!("managed by Ensemble {}; edit the Ensemble", quoted(ensemble))
        });
        Finding::warn(&MANAGED_AGENT_EDIT, Pointer::new("/spec"), message)
    };
    findings.extend(label(agent, ENSEMBLE_LABEL).map(managed));
    findings
}
