//! The views of sessions with storage of their own: the workspaces of an Agent, and what a harness keeps.

use crate::sympozium::prelude::*;
use memgate_primitives::duration::nanoseconds;

use super::memory::storage;
use super::new_view;
use crate::sympozium::lookup;

/// The nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// How long a workspace stays after its last run, unless it says so itself.
const DEFAULT_TTL_SECONDS: i64 = 720 * 3600;

/// The view of a WorkspaceSession or a HarnessSession.
pub(super) fn of_session(session: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let spec = Pointer::new("/spec");
    let mut view = new_view(session, Role::Memory);
    if *session.kind == WORKSPACE_SESSION {
        add_own_workspace(&mut view, session.object.get("spec"), &spec);
    } else {
        view.set("backend", Some("harness-session"));
        view.set("durable", Some(true));
        // The controller stops an idle harness and never deletes its state.
        view.set("ttlSeconds", Some(0_i64));
        view.set("storageBytes", storage("1Gi"));
    }
    if let Some(name) = agent_ref(session.object) {
        let (lookup, named) = (lookup::agent(session.namespace, name, state), (session.namespace, name));
        view.references.push(ReferenceView::new(&AGENT, named, spec.key("agentRef"), lookup));
    }
    // A WorkspaceSession has none.
    let runtime = session.object.text_at(&["spec", "runtimeRef"]);
    view.references.extend(runtime.map(|name| ReferenceView {
        kind: "AgentRuntime",
        namespace: session.namespace.to_owned(),
        name: name.to_owned(),
        field: spec.key("runtimeRef"),
        found: None,
    }));
    view
}

/// Adds the workspaces of an Agent's sessions to its view. Without other memory they are the view.
pub(super) fn add_workspace(view: Option<MemoryView>, agent: &Subject<'_>) -> Option<MemoryView> {
    if !is_true(agent.object, &["spec", "workspace", "perSessionPVC"]) {
        return view;
    }
    let here = Pointer::new("/spec/workspace");
    let settings = agent.object.at(&["spec", "workspace"]);
    let Some(mut view) = view else {
        let mut workspace = new_view(agent, Role::Memory);
        add_own_workspace(&mut workspace, settings, &here);
        return Some(workspace);
    };
    view.put("workspace", here, Some(ViewValue::Object));
    view.set("workspace.durable", Some(true));
    for ([_, _, path], value) in KEPT.into_iter().zip(kept(settings)) {
        view.set(path, value);
    }
    Some(view)
}

/// Sets what an object keeps that is a workspace with these settings.
fn add_own_workspace(view: &mut MemoryView, settings: Option<&Tree>, here: &Pointer) {
    view.set("backend", Some("workspace"));
    view.set("durable", Some(true));
    for ([field, path, _], value) in KEPT.into_iter().zip(kept(settings)) {
        view.put(path, here.key(field), value);
    }
}

/// The settings of a workspace, each with the path in the view of a workspace and in that of an Agent that has some.
const KEPT: [[&str; 3]; 3] = [
    ["size", "storageBytes", "workspace.storageBytes"],
    ["storageClassName", "storageClass", "workspace.storageClass"],
    ["idleTTL", "ttlSeconds", "workspace.ttlSeconds"],
];

/// What a workspace with these settings keeps, and how long.
fn kept(settings: Option<&Tree>) -> [Option<ViewValue<'static>>; 3] {
    let text = |field: &str| settings.and_then(|settings| settings.text_at(&[field]));
    let seconds = match text("idleTTL") {
        None => Some(DEFAULT_TTL_SECONDS),
        // A part of a second is a whole one: 0 would be for ever.
        Some(ttl) => nanoseconds(ttl).map(|ttl| ttl.max(0) / SECOND + i64::from(ttl.max(0) % SECOND > 0)),
    };
    let class = text("storageClassName").filter(|class| !class.is_empty());
    [storage(text("size").unwrap_or_default()), class.map(ViewValue::from), seconds.map(ViewValue::from)]
}
