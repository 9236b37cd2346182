//! Validates an Agent, and storage of sessions: its workspaces, WorkspaceSessions and HarnessSessions.

use crate::message::fit_names;
use crate::prelude::*;
use crate::sympozium::api::agent::{
    auto_store_off, celln_field, has_legacy_memory, has_memory, memory_skill, skills as agent_skills,
};
use crate::sympozium::api::{
    ENSEMBLE_LABEL, STORAGE_SIZE_DEFAULT, WORKSPACE_SESSION, is_true, label, private_server,
};
use crate::sympozium::codes::{
    AGENT_DELETE_DATA_LOSS, AUTO_STORE_NO_EFFECT, LEGACY_MEMORY, MANAGED_AGENT_EDIT, SKILL_REMOVED,
    WORKSPACE_CLASS_CHANGED, WORKSPACE_DELETE_DATA_LOSS, WORKSPACE_NO_EFFECT, WORKSPACE_OFF,
    WORKSPACE_SHRINK, WORKSPACE_SIZE_INVALID, WORKSPACE_TTL_INVALID,
};
use crate::sympozium::lookup;
use memgate_model::finding::excerpt;
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::quantity::billionths;

use super::report::in_hours;
use super::{Report, names, pods, run};

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let (agent, report) = (subject.object, Report::new(state.budget()));
    let mut findings = names::agent(subject, report);
    findings.extend(pods::skill_findings(subject, state));
    findings.extend(memory(subject, report));
    findings.extend(pods::volume_warnings(agent, report));
    let env = ["spec", "agents", "default", "env"];
    let ensemble = if pods::names_reserved(agent, &env) {
        lookup::ensemble_of(Some(agent), None, subject.namespace, state)
    } else {
        None
    };
    findings.extend(pods::environment_findings(agent, &env, ensemble, report));
    findings.extend(run::celln_agent_findings(agent, report));
    findings.extend(workspace_findings(agent, report));
    if let Some(index) = memory_skill(agent_skills(agent)) {
        let at = Pointer::new("/spec/skills").index(index);
        findings.extend(pods::without_key(&private_server(subject.name), subject.namespace, at, state));
    }
    if let Some(old) = subject.old {
        let changes = changes(subject, old, report).into_iter();
        let changes = changes.chain(workspace_changes(agent, old, report));
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
    let of_sessions = is_per_session(subject.object).then(message);
    let finding = |message| Finding::warn(&AGENT_DELETE_DATA_LOSS, Pointer::root(), message);
    of_memory.into_iter().chain(of_sessions).map(finding).collect()
}

fn memory(subject: &Subject<'_>, report: Report<'_>) -> Vec<Finding> {
    let agent = subject.object;
    let here = || Pointer::new("/spec/memory");
    let mut findings = Vec::new();
    if let Some(memory) = agent.at(&["spec", "memory"]) {
        findings.extend(names::max_size(memory, here, report));
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

const WORKSPACE: &str = "/spec/workspace";
const PER_SESSION: [&str; 3] = ["spec", "workspace", "perSessionPVC"];

/// Whether each session of an Agent has a workspace of its own.
pub(super) fn is_per_session(agent: &Tree) -> bool {
    is_true(agent, &PER_SESSION)
}

/// Findings about the workspaces of an Agent.
pub(super) fn workspace_findings(agent: &Tree, report: Report<'_>) -> Vec<Finding> {
    let Some(workspace) = agent.at(&["spec", "workspace"]) else { return Vec::new() };
    let (here, per_session) = (Pointer::new(WORKSPACE), is_per_session(agent));
    let mut findings: Vec<Finding> = Vec::new();
    let is_set = ["size", "idleTTL", "storageClassName"].iter().any(|field| workspace.get(field).is_some());
    let missing = match (per_session, celln_field(agent)) {
        (true, Some(_)) => Some("with backend \"celln\""),
        (false, _) if is_set => Some("without perSessionPVC: true"),
        _ => None,
    };
    if let Some(missing) = missing {
        let message = move |at: &Pointer| format!("{} has no effect {missing}", at.field());
        findings.extend(report.warn_whole(&WORKSPACE_NO_EFFECT, || here.clone(), message));
    }
    findings.extend(ttl(workspace, "idleTTL", &here, report));
    findings.extend(size(workspace, &here, per_session, report));
    findings
}

/// Findings about a change of the workspaces of an Agent.
pub(super) fn workspace_changes(agent: &Tree, old: &Tree, report: Report<'_>) -> Vec<Finding> {
    let here = Pointer::new(WORKSPACE);
    if !is_per_session(old) {
        return Vec::new();
    }
    if !is_per_session(agent) {
        let at = || here.key("perSessionPVC");
        let message = |_: &Pointer| {
            "new runs start with an empty /workspace; existing sessions stay until their idle time is over"
                .to_owned()
        };
        return report.warn_whole(&WORKSPACE_OFF, at, message).into_iter().collect();
    }
    let (new, old) = (agent.at(&["spec", "workspace"]), old.at(&["spec", "workspace"]));
    let mut findings: Vec<Finding> = shrunk(new, old, &here, report).into_iter().collect();
    let class = |workspace: Option<&Tree>| workspace?.text_at(&["storageClassName"]).map(str::to_owned);
    if class(new) != class(old) {
        let at = || here.key("storageClassName");
        let message = |_: &Pointer| "existing sessions keep their storage class".to_owned();
        findings.extend(report.warn_whole(&WORKSPACE_CLASS_CHANGED, at, message));
    }
    findings
}

/// Findings about a WorkspaceSession or a HarnessSession.
pub(super) fn session_findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let (session, report) = (subject.object, Report::new(state.budget()));
    let Some(spec) = session.get("spec") else { return Vec::new() };
    let here = Pointer::new("/spec");
    let mut findings = Vec::new();
    let old = subject.old.and_then(|old| old.get("spec"));
    if *subject.kind == WORKSPACE_SESSION {
        findings.extend(ttl(spec, "idleTTL", &here, report));
        findings.extend(size(spec, &here, true, report));
        let shrunk = old.and_then(|old| shrunk(Some(spec), Some(old), &here, report));
        findings.extend(shrunk.map(Finding::when_allowed));
        return findings;
    }
    findings.extend(ttl(spec, "idleTimeout", &here, report));
    findings
}

/// Warns about the data that is deleted with a session.
pub(super) fn session_deleted(subject: &Subject<'_>) -> Vec<Finding> {
    let of_status = subject.object.text_at(&["status", "pvcName"]).filter(|name| !name.is_empty());
    let is_workspace = *subject.kind == WORKSPACE_SESSION;
    let usual = if is_workspace { format!("{}-g1", subject.name) } else { subject.name.to_owned() };
    let message = fit_names([of_status.filter(|_| is_workspace).unwrap_or(&usual)], |[claim]| {
        format!("PVC {claim} will be deleted with the state of this session")
    });
    vec![Finding::warn(&WORKSPACE_DELETE_DATA_LOSS, Pointer::root(), message)]
}

/// Denies a time that upstream's controller cannot read: then it cannot list any object of the kind.
fn ttl(tree: &Tree, field: &'static str, here: &Pointer, report: Report<'_>) -> Option<Finding> {
    let text = tree.text_at(&[field]).filter(|text| nanoseconds(text).is_none())?;
    let shown = excerpt(text);
    let message =
        move || format!("Invalid value: {}: must be a Go duration, e.g. \"720h\"", quoted_text(&shown));
    let finding = report.deny(&WORKSPACE_TTL_INVALID, || here.key(field), message)?;
    Some(in_hours(finding.fingerprint_value(text), text))
}

/// Reports a size of which upstream cannot make a claim; it only warns about one that is not used.
fn size(tree: &Tree, here: &Pointer, is_used: bool, report: Report<'_>) -> Option<Finding> {
    let is_invalid = |text: &&str| is_size(text) && billionths(text).is_none_or(|size| size <= 0);
    let text = tree.text_at(&["size"]).filter(is_invalid)?;
    let (at, shown) = (|| here.key("size"), excerpt(text));
    let invalid = |size: &str| format!("Invalid value: {}", quoted_text(size));
    let finding = if is_used {
        report.deny(&WORKSPACE_SIZE_INVALID, at, move || invalid(&shown))
    } else {
        report.warn_of(&WORKSPACE_SIZE_INVALID, at, [text], move |[size]| invalid(size))
    };
    Some(finding?.fingerprint_value(text).help("use a quantity greater than 0, e.g. \"10Gi\""))
}

/// Whether a text fits the pattern of sizes: a number and letters.
fn is_size(text: &str) -> bool {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.split('.').count() <= 2 && number.split('.').all(digits)
}

/// Warns about a smaller size: the claims of existing sessions keep theirs.
fn shrunk(new: Option<&Tree>, old: Option<&Tree>, here: &Pointer, report: Report<'_>) -> Option<Finding> {
    let text = |tree: Option<&Tree>| {
        let size = tree.and_then(|tree| tree.text_at(&["size"])).filter(|size| !size.is_empty());
        size.unwrap_or(STORAGE_SIZE_DEFAULT).to_owned()
    };
    let before = text(old);
    if billionths(&text(new))? >= billionths(&before)? {
        return None;
    }
    report.warn_of(
        &WORKSPACE_SHRINK,
        || here.key("size"),
        [&before],
        |[before]| format!("existing sessions keep {before}; a PVC is never made smaller"),
    )
}
