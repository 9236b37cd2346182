//! Validates storage of sessions: the workspaces of an Agent, WorkspaceSessions and HarnessSessions.

use memgate_model::family::Subject;
use memgate_model::finding::{Finding, excerpt};
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::quantity::billionths;

use super::super::api::agent::{agent_ref, celln_field};
use super::super::api::read::is_true;
use super::super::api::{STORAGE_SIZE_DEFAULT, WORKSPACE_SESSION};
use super::super::codes::{
    SCHEMA, WORKSPACE_CLASS_CHANGED, WORKSPACE_DELETE_DATA_LOSS, WORKSPACE_NO_EFFECT, WORKSPACE_OFF,
    WORKSPACE_SHRINK, WORKSPACE_SIZE_INVALID, WORKSPACE_TTL_INVALID,
};
use super::super::lookup;
use super::{Report, run};
use crate::message::fit_names;

const WORKSPACE: &str = "/spec/workspace";
const PER_SESSION: [&str; 3] = ["spec", "workspace", "perSessionPVC"];

/// Whether each session of an Agent has a workspace of its own.
pub(super) fn is_per_session(agent: &Tree) -> bool {
    is_true(agent, &PER_SESSION)
}

/// Findings about the workspaces of an Agent.
pub(super) fn agent_findings(agent: &Tree, report: Report<'_>) -> Vec<Finding> {
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
pub(super) fn agent_changes(agent: &Tree, old: &Tree, report: Report<'_>) -> Vec<Finding> {
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
    if let Some(name) = agent_ref(session).filter(|name| !name.is_empty())
        && lookup::agent(subject.namespace, name, state) == Lookup::Absent
        && lookup::maker(subject.namespace, name, state).is_none()
    {
        findings.extend(run::agent_missing(subject, name, report));
    }
    let old = subject.old.and_then(|old| old.get("spec"));
    if *subject.kind == WORKSPACE_SESSION {
        findings.extend(ttl(spec, "idleTTL", &here, report));
        findings.extend(size(spec, &here, true, report));
        let shrunk = old.and_then(|old| shrunk(Some(spec), Some(old), &here, report));
        findings.extend(shrunk.map(Finding::when_allowed));
        return findings;
    }
    findings.extend(ttl(spec, "idleTimeout", &here, report));
    for field in ["agentRef", "runtimeRef"] {
        let text = |spec: &Tree| spec.text_at(&[field]).map(str::to_owned);
        if old.is_some_and(|old| text(old) != text(spec)) {
            findings.extend(report.deny(&SCHEMA, || here.key(field), || "Invalid value: it cannot change"));
        }
    }
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
    let message = move || format!("Invalid value: {}: must be a Go duration, e.g. \"720h\"", quoted(&shown));
    Some(report.deny(&WORKSPACE_TTL_INVALID, || here.key(field), message)?.fingerprint_value(text))
}

/// Reports a size of which upstream cannot make a claim; it only warns about one that is not used.
fn size(tree: &Tree, here: &Pointer, is_used: bool, report: Report<'_>) -> Option<Finding> {
    let text = tree.text_at(&["size"])?;
    let at = || here.key("size");
    let shown = excerpt(text);
    let finding = if !is_size(text) {
        let message =
            move || format!("Invalid value: {}: must be a number with a unit, e.g. \"1Gi\"", quoted(&shown));
        report.deny(&SCHEMA, at, message)
    } else if billionths(text).is_some_and(|size| size > 0) {
        None
    } else {
        let invalid = |size: &str| format!("Invalid value: {}", quoted(size));
        if is_used {
            report.deny(&WORKSPACE_SIZE_INVALID, at, move || invalid(&shown))
        } else {
            report.warn_of(&WORKSPACE_SIZE_INVALID, at, [text], move |[size]| invalid(size))
        }
    };
    Some(finding?.fingerprint_value(text).help("use a quantity greater than 0, e.g. \"10Gi\""))
}

/// Whether a text is a size by upstream's pattern: a number with a fraction and letters.
fn is_size(text: &str) -> bool {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let whole = digits(text);
    let rest = text.get(whole..).unwrap_or_default();
    let unit = match rest.strip_prefix('.') {
        Some(fraction) if digits(fraction) == 0 => return false,
        Some(fraction) => fraction.get(digits(fraction)..).unwrap_or_default(),
        None => rest,
    };
    whole > 0 && unit.bytes().all(|b| b.is_ascii_alphabetic())
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
