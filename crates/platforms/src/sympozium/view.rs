//! The views of the family's objects, for rules of policies.
//!
//! An Agent declares private memory, an Ensemble shared memory, and the SkillPack `memory` the server of private
//! memory. A WorkspaceSession and a HarnessSession keep the state of a session. An AgentRun and a pod use the memory of
//! their Agent. The other objects that the controllers create (Deployments, Services, claims) have no view.

mod memory;
mod session;

use super::prelude::*;
use crate::endpoint_view;
use crate::inject::own::{OwnReading, OwnVariable, OwnVariables, distinct};
use crate::inject::own_memory::has_credential;

use super::inject::find::find;
use super::inject::instance;
use super::inject::own_variables;
use super::inject::use_own_servers;
use super::variables::{ACCESS, PRIVATE_URL, SHARED_URL, VISIBILITY};
use memory::{Usage, made_agent};

/// The kinds that have a view.
pub(crate) static VIEWED: [(&Kind, Role); 8] = [
    (&AGENT, Role::Memory),
    (&AGENT_OLD, Role::Memory),
    (&ENSEMBLE, Role::Memory),
    (&ENSEMBLE_OLD, Role::Memory),
    (&SKILL_PACK, Role::Memory),
    (&AGENT_RUN, Role::Referrer),
    (&WORKSPACE_SESSION, Role::Memory),
    (&HARNESS_SESSION, Role::Memory),
];

/// What the views hold.
pub(crate) static TABLES: [ViewTable; 6] = [
    ViewTable {
        paths: &[
            "backend", "durable", "endpoint", "references", "workspace", "storageBytes", "storageClass",
            "ttlSeconds",
        ],
        // An endpoint is there, or the memory has no such thing.
        backends: &[
            ("endpoint", &["none"]),
            ("workspace", &["sqlite", "configmap"]),
            ("storageBytes", &["workspace"]),
            ("storageClass", &["workspace"]),
            ("ttlSeconds", &["workspace"]),
        ],
        values: &[("backend", &["sqlite", "configmap", "workspace"]), ("durable", &["true"])],
        sure: &["backend", "durable"],
        derived: &["backend", "endpoint"],
        ..ViewTable::new(Role::Memory, &[&AGENT, &AGENT_OLD])
    },
    ViewTable {
        paths: &["backend", "durable", "storageBytes", "endpoint", "sharing"],
        values: &[
            ("backend", &["sqlite"]),
            ("durable", &["true"]),
            ("sharing.configs[].visibility", &["public", "trusted", "private"]),
        ],
        sure: &["backend", "durable", "storageBytes"],
        derived: &["backend", "endpoint"],
        ..ViewTable::new(Role::Memory, &[&ENSEMBLE, &ENSEMBLE_OLD])
    },
    ViewTable {
        paths: &["backend", "durable", "secrets", "containers"],
        values: &[("backend", &["sqlite"]), ("durable", &["true"])],
        sure: &["backend", "durable"],
        derived: &["backend"],
        ..ViewTable::new(Role::Memory, &[&SKILL_PACK])
    },
    ViewTable {
        paths: &["backend", "durable", "references", "storageBytes", "storageClass", "ttlSeconds"],
        values: &[("backend", &["workspace"]), ("durable", &["true"])],
        sure: &["backend", "durable"],
        derived: &["backend"],
        ..ViewTable::new(Role::Memory, &[&WORKSPACE_SESSION])
    },
    ViewTable {
        paths: &["backend", "durable", "references", "storageBytes", "ttlSeconds"],
        values: &[("backend", &["harness-session"]), ("durable", &["true"])],
        sure: &["backend", "durable"],
        ..ViewTable::new(Role::Memory, &[&HARNESS_SESSION])
    },
    ViewTable { paths: &["references"], ..ViewTable::new(Role::Referrer, &[&AGENT_RUN]) },
];

/// A stored object as a subject.
fn subject_of(object: &Object) -> Subject<'_> {
    let Object { kind, namespace, name, .. } = object;
    Subject { kind, operation: Operation::Create, namespace, name, object: object.tree(), old: None }
}

fn new_view(subject: &Subject<'_>, role: Role) -> MemoryView {
    let Subject { kind, namespace, name, object, .. } = *subject;
    MemoryView::new(super::FAMILY.name, role, kind.kind, namespace, name).labelled(object)
}

/// The view of an object of the family's own kinds.
pub(crate) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    match subject.kind.kind {
        "Agent" | "SympoziumInstance" => {
            let view = memory::of_agent(subject, has_memory(subject.object), state);
            session::add_workspace(view, subject)
        }
        "Ensemble" | "PersonaPack" => memory::of_ensemble(subject, state),
        "WorkspaceSession" | "HarnessSession" => Some(session::of_session(subject, state)),
        "SkillPack" => (subject.name == MEMORY_SKILL).then(|| memory::of_pack(subject)),
        _ => Some(memory::of_run(subject, state)),
    }
}

/// The view of an agent pod.
pub(crate) fn view_pod(
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let pod = pods[0];
    let instance = instance(pod)?;
    let agent = container_named(pod, AGENT_CONTAINER).filter(|_| !instance.is_empty());
    // The memory of a pod that contradicts itself, or whose objects are unknown, is unknown.
    let found = agent.and_then(|_| find(pod, instance, namespace, state).ok());
    let usage = found.as_ref().map(|found| {
        let made = || made_agent((namespace, instance), found.ensemble?, found.made_from?);
        Usage {
            agent: found.agent.map(Cow::Borrowed).or_else(|| made().map(Cow::Owned)),
            private: found.private.is_some(),
            ensemble: found.ensemble.filter(|_| found.shared),
        }
    });
    let mut declared = usage.map(|usage| usage.memories(state)).unwrap_or_default();
    let config = found.as_ref().and_then(|found| found.config).unwrap_or(instance).to_owned();
    let is_private = found.as_ref().is_some_and(|found| found.private.is_some());
    let (own, others) = own_variables(pods, found, namespace, state);
    if is_private && own.readings().all(|own| own.get(PRIVATE_URL).is_none()) {
        use_written(&mut declared, pods[1], (namespace, instance), state);
    }
    let mut memories = declared.clone();
    for reading in own.readings().filter(|_| !declared.is_empty()) {
        let mut used = declared.clone();
        use_own(&mut used, (&own, reading), (namespace, instance, &config), state);
        if reading.has_env_from() { memories.extend(used) } else { memories = used }
    }
    for other in distinct(&others, &declared, state.budget()) {
        let mut used = declared.clone();
        use_own(&mut used, other, (namespace, instance, &config), state);
        memories.extend(used);
    }
    use_own_servers(&mut memories, pods, state.budget());
    if agent.is_none() && memories.is_empty() {
        return None;
    }
    let mut view = MemoryView::of_pod(super::FAMILY.name, namespace, memories);
    own.add_to(&mut view);
    Some(view)
}

/// Adds the Service of the private memory that memgate writes into the pod, where the Agent does not say it: the pod may
/// choose it, and a run may come before its Agent.
fn use_written(
    memories: &mut Vec<MemoryView>,
    pod: &Pod<'_>,
    (namespace, instance): (&str, &str),
    state: &mut StateReader<'_>,
) {
    let Some((_, agent)) = container_named(pod, AGENT_CONTAINER) else { return };
    let Some(url) = agent.variable(PRIVATE_URL).and_then(|(_, variable)| variable.literal()) else { return };
    let endpoint = endpoint_view::parse(EndpointSource::Derived, url, namespace, state);
    // A server beside the agent is not reached by others.
    if endpoint.hosts.iter().all(|host| host.loopback) {
        return;
    }
    let is_agent = |view: &MemoryView| [AGENT.kind, AGENT_OLD.kind].contains(&view.kind);
    if !memories.iter().any(is_agent) {
        memories.push(MemoryView::new(super::FAMILY.name, Role::Memory, AGENT.kind, namespace, instance));
    }
    if let Some(view) = memories.iter_mut().find(|view| is_agent(view)) {
        let known = view.endpoint.take().filter(|known| known.unknown.is_none());
        view.endpoint = Some(known.unwrap_or(endpoint));
    }
}

/// Puts what the pod itself sets in the place of what its memories declare. A memory that only the pod names is one
/// of its agent, if that has any.
fn use_own(
    memories: &mut Vec<MemoryView>,
    (all, own): (&OwnVariables, OwnReading<'_>),
    (namespace, instance, config): (&str, &str, &str),
    state: &mut StateReader<'_>,
) {
    let is_declared = !memories.is_empty();
    for (name, kinds) in [(PRIVATE_URL, [&AGENT, &AGENT_OLD]), (SHARED_URL, [&ENSEMBLE, &ENSEMBLE_OLD])] {
        let Some(set) = own.get(name) else { continue };
        let is_its = |view: &MemoryView| kinds.iter().any(|kind| kind.kind == view.kind);
        if !memories.iter().any(is_its) && !set.is_env_from() {
            let agent = MemoryView::new(super::FAMILY.name, Role::Memory, AGENT.kind, namespace, instance);
            memories.push(if is_declared { agent } else { undeclared(all, set, namespace) });
        }
        let named = memories.iter().rposition(|view| is_its(view) || view.text("backend").is_none());
        let named =
            named.or_else(|| Some(0).filter(|_| set.is_env_from())).and_then(|it| memories.get_mut(it));
        if let Some(view) = named {
            set.set_endpoint(view, "endpoint", has_credential, state);
        }
    }
    for (name, is_access) in [(ACCESS, true), (VISIBILITY, false)] {
        let (Some(set), Some(view)) = (own.get(name), memories.iter_mut().find(|it| it.sharing.is_some()))
        else {
            continue;
        };
        let mut configs = view.sharing.iter_mut().flat_map(|sharing| &mut sharing.configs);
        match (&set.text, configs.find(|it| it.name == config)) {
            (None, _) => set.decide(view, "sharing"),
            (text, Some(of_pod)) if is_access => of_pod.access.clone_from(text),
            (text, Some(of_pod)) => {
                (of_pod.visibility, of_pod.field) = (text.clone(), set.field.clone());
            }
            (_, None) => {}
        }
    }
}

/// A memory that only the pod names, at this variable. What keeps it is unknown.
fn undeclared(own: &OwnVariables, set: &OwnVariable, namespace: &str) -> MemoryView {
    let mut view = own.undeclared_view(super::FAMILY.name, namespace);
    for path in ["backend", "durable"] {
        view.at(path, &set.field);
        view.set_unknown(path, set.why());
    }
    view
}
