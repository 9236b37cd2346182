//! Validates an Agent, and storage of sessions: its workspaces, WorkspaceSessions and HarnessSessions.

use crate::sympozium::lookup;
use crate::sympozium::prelude::*;
use crate::sympozium::report::{Report, whole};
use memgate_model::finding::Severity::{Deny, Warn};
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::pointer::Path::{self, Index, Key, Known};
use memgate_primitives::quantity::billionths;

use super::{names, pods};

const MEMORY: Path<'_> = Known("/spec/memory");
const WORKSPACE: Path<'_> = Known("/spec/workspace");
const SPEC: Path<'_> = Known("/spec");

pub(super) fn findings(subject: &Subject<'_>, out: &mut Report<'_>, state: &mut StateReader<'_>) {
    let agent = subject.object;
    names::agent(subject, out);
    pods::skills(agent, out);
    memory(subject, out);
    pods::volumes(agent, out);
    let env = ["spec", "agents", "default", "env"];
    let ensemble = if pods::names_reserved(agent, &env) {
        lookup::ensemble_of(Some(agent), None, subject.namespace, state)
    } else {
        None
    };
    pods::environment(agent, (&env, Known("/spec/agents/default/env")), ensemble, out);
    if let Some(at) = celln_field(agent).filter(|_| has_memory(agent)) {
        let text = whole("runs with backend \"celln\" have no memory; use another Agent for them");
        out.warn(&CELLN_NO_MEMORY, Known(at.as_str()), text, &[]);
    }
    workspace(agent, out);
    if let Some(index) = memory_skill(skills(agent)) {
        let at = Index(&Known("/spec/skills"), index);
        out.extend(pods::without_key(&private_server(subject.name), subject.namespace, at, state));
    }
    if let Some(old) = subject.old {
        let known = out.findings.len();
        changes(agent, old, out);
        workspace_changes(agent, old, out);
        out.when_allowed(known);
    }
}

/// Warns about the data that is deleted with an Agent.
pub(super) fn deleted(subject: &Subject<'_>) -> impl Iterator<Item = Finding> {
    let warns = |text| warning(&AGENT_DELETE_DATA_LOSS, Pointer::root(), text, [subject.name]);
    let of_memory = "PVC {name}-memory-db will be deleted with all memories of this agent";
    let of_sessions = "the workspaces of all sessions of this agent will be deleted";
    let of_memory = has_memory(subject.object).then(|| warns(of_memory));
    of_memory.into_iter().chain(is_per_session(subject.object).then(|| warns(of_sessions)))
}

fn memory(subject: &Subject<'_>, out: &mut Report<'_>) {
    let agent = subject.object;
    if let Some(memory) = agent.at(&["spec", "memory"]) {
        names::max_size(memory, MEMORY, out);
    }
    if has_memory(agent) {
        return;
    }
    if auto_store_off(agent) {
        let text = "no effect: the agent has no skill \"memory\"";
        out.warn(&AUTO_STORE_NO_EFFECT, Key(&MEMORY, "autoStore"), text, &[]);
    }
    if has_legacy_memory(agent) {
        let help = "add `skillPackRef: memory` to spec.skills, or write `enabled: false`: without it the default \
                    is true";
        let text = ("falls back to ConfigMap {}: there is no skill \"memory\"", help);
        out.warn(&LEGACY_MEMORY, Key(&MEMORY, "enabled"), text, &[&private_server(subject.name)]);
    }
}

fn changes(agent: &Tree, old: &Tree, out: &mut Report<'_>) {
    if has_memory(old) && !has_memory(agent) {
        let text = "Deployment, Service and PVC stay until the Agent is deleted";
        out.warn(&SKILL_REMOVED, Known("/spec/skills"), text, &[]);
    }
    let is_changed = |field: &&str| match (agent.at(&["spec", field]), old.at(&["spec", field])) {
        (Some(new), Some(old)) => !new.is_equivalent(old),
        (new, old) => new.is_some() || old.is_some(),
    };
    if let Some(ensemble) = label(agent, ENSEMBLE_LABEL)
        && ["skills", "memory"].iter().any(is_changed)
    {
        let text = whole("managed by Ensemble {}; edit the Ensemble");
        out.warn(&MANAGED_AGENT_EDIT, SPEC, text, &[ensemble]);
    }
}

/// Whether each session of an Agent has a workspace of its own.
fn is_per_session(agent: &Tree) -> bool {
    is_true(agent, &["spec", "workspace", "perSessionPVC"])
}

fn workspace(agent: &Tree, out: &mut Report<'_>) {
    let Some(workspace) = agent.at(&["spec", "workspace"]) else { return };
    let per_session = is_per_session(agent);
    let is_set = ["size", "idleTTL", "storageClassName"].iter().any(|field| workspace.get(field).is_some());
    if per_session && celln_field(agent).is_some() {
        out.warn(&WORKSPACE_NO_EFFECT, WORKSPACE, whole("{field} has no effect with backend \"celln\""), &[]);
    } else if !per_session && is_set {
        let text = whole("{field} has no effect without perSessionPVC: true");
        out.warn(&WORKSPACE_NO_EFFECT, WORKSPACE, text, &[]);
    }
    ttl(workspace, "idleTTL", WORKSPACE, out);
    size(workspace, WORKSPACE, per_session, out);
}

fn workspace_changes(agent: &Tree, old: &Tree, out: &mut Report<'_>) {
    if !is_per_session(old) {
        return;
    }
    if !is_per_session(agent) {
        let text =
            "new runs start with an empty /workspace; existing sessions stay until their idle time is over";
        return out.warn(&WORKSPACE_OFF, Key(&WORKSPACE, "perSessionPVC"), whole(text), &[]);
    }
    let [new, old] = [agent, old].map(|it| it.at(&["spec", "workspace"]));
    shrunk(new, old, WORKSPACE, out);
    let class = |workspace: Option<&Tree>| workspace?.text_at(&["storageClassName"]).map(str::to_owned);
    if class(new) != class(old) {
        let text = whole("existing sessions keep their storage class");
        out.warn(&WORKSPACE_CLASS_CHANGED, Key(&WORKSPACE, "storageClassName"), text, &[]);
    }
}

/// Reports a WorkspaceSession or a HarnessSession.
pub(super) fn session(subject: &Subject<'_>, out: &mut Report<'_>) {
    let Some(spec) = subject.object.get("spec") else { return };
    if *subject.kind != WORKSPACE_SESSION {
        return ttl(spec, "idleTimeout", SPEC, out);
    }
    ttl(spec, "idleTTL", SPEC, out);
    size(spec, SPEC, true, out);
    if let Some(old) = subject.old.and_then(|old| old.get("spec")) {
        let known = out.findings.len();
        shrunk(Some(spec), Some(old), SPEC, out);
        out.when_allowed(known);
    }
}

/// Warns about the data that is deleted with a session.
pub(super) fn session_deleted(subject: &Subject<'_>) -> Finding {
    let is_workspace = *subject.kind == WORKSPACE_SESSION;
    let of_status = subject.object.filled_at(&["status", "pvcName"]).filter(|_| is_workspace);
    let usual = if is_workspace { format!("{}-g1", subject.name) } else { subject.name.to_owned() };
    let text = "PVC {name} will be deleted with the state of this session";
    warning(&WORKSPACE_DELETE_DATA_LOSS, Pointer::root(), text, [of_status.unwrap_or(&usual)])
}

/// Denies a time that upstream's controller cannot read: then it cannot list any object of the kind.
fn ttl(tree: &Tree, field: &str, here: Path<'_>, out: &mut Report<'_>) {
    if let Some(ttl) = tree.text_at(&[field]).filter(|text| nanoseconds(text).is_none()) {
        let text = "Invalid value: {text}: must be a Go duration, e.g. \"720h\"";
        out.duration(Deny, &WORKSPACE_TTL_INVALID, Key(&here, field), text, ttl);
    }
}

/// Reports a size of which upstream cannot make a claim; it only warns about one that is not used.
fn size(tree: &Tree, here: Path<'_>, is_used: bool, out: &mut Report<'_>) {
    let is_invalid = |text: &&str| is_size(text) && billionths(text).is_none_or(|size| size <= 0);
    if let Some(size) = tree.text_at(&["size"]).filter(is_invalid) {
        let text = ("Invalid value: {text}", "use a quantity greater than 0, e.g. \"10Gi\"");
        let severity = if is_used { Deny } else { Warn };
        out.add(severity, &WORKSPACE_SIZE_INVALID, Key(&here, "size"), text, &[size]);
    }
}

/// Whether a text fits the pattern of sizes: a number and letters.
fn is_size(text: &str) -> bool {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.split('.').count() <= 2 && number.split('.').all(digits)
}

/// Warns about a smaller size: the claims of existing sessions keep theirs.
fn shrunk(new: Option<&Tree>, old: Option<&Tree>, here: Path<'_>, out: &mut Report<'_>) {
    let [new, old] =
        [new, old].map(|tree| tree.and_then(|it| it.filled_at(&["size"])).unwrap_or(STORAGE_SIZE_DEFAULT));
    if billionths(new).zip(billionths(old)).is_some_and(|(new, old)| new < old) {
        let text = "existing sessions keep {bare}; a PVC is never made smaller";
        out.warn(&WORKSPACE_SHRINK, Key(&here, "size"), text, &[old]);
    }
}
