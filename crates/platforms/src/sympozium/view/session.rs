//! The views of sessions with storage of their own: the workspaces of an Agent, and what a harness keeps.

use memgate_model::family::Subject;
use memgate_model::memory_view::{MemoryView, ReferenceView, Role};
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::duration::nanoseconds;
use memgate_primitives::pointer::Pointer;

use super::memory::storage;
use super::new_view;
use crate::sympozium::api::agent::agent_ref;
use crate::sympozium::api::{AGENT, WORKSPACE_SESSION, is_true};
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
        set_workspace(&mut view, session.object.get("spec"), &spec);
    } else {
        view.backend = Some("harness-session".to_owned());
        view.durable = Some(true);
        // The controller stops an idle harness and never deletes its state.
        view.ttl_seconds = Some(0);
        view.storage = storage("1Gi");
    }
    if let Some(name) = agent_ref(session.object) {
        let lookup = lookup::agent(session.namespace, name, state);
        view.references.push(ReferenceView::new(
            &AGENT,
            (session.namespace, name),
            spec.key("agentRef"),
            lookup,
        ));
    }
    let runtime =
        session.object.text_at(&["spec", "runtimeRef"]).filter(|_| *session.kind != WORKSPACE_SESSION);
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
    let mut workspace = new_view(agent, Role::Memory);
    let here = Pointer::new("/spec/workspace");
    set_workspace(&mut workspace, agent.object.at(&["spec", "workspace"]), &here);
    let Some(mut view) = view else { return Some(workspace) };
    view.at("workspace", here);
    view.workspace = Some(Box::new(workspace));
    Some(view)
}

/// Sets what a workspace with these settings keeps, and how long.
fn set_workspace(view: &mut MemoryView, settings: Option<&Tree>, here: &Pointer) {
    let text = |field: &str| settings.and_then(|settings| settings.text_at(&[field]));
    for (path, field) in
        [("storageBytes", "size"), ("storageClass", "storageClassName"), ("ttlSeconds", "idleTTL")]
    {
        view.at(path, here.key(field));
    }
    view.backend = Some("workspace".to_owned());
    view.durable = Some(true);
    view.storage = storage(text("size").unwrap_or_default());
    view.storage_class = text("storageClassName").filter(|class| !class.is_empty()).map(str::to_owned);
    view.ttl_seconds = match text("idleTTL") {
        None => Some(DEFAULT_TTL_SECONDS),
        // A part of a second is a whole one: 0 would be for ever.
        Some(ttl) => nanoseconds(ttl).map(|ttl| ttl.max(0) / SECOND + i64::from(ttl.max(0) % SECOND > 0)),
    };
}
