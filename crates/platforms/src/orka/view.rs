//! The views of the family's objects, for rules of policies.
//!
//! Only a MemoryBackend declares memory. The kind is not released yet, so its objects have a view but are not the
//! source of another object's memory. Agents, Tasks and Namespaces decide which tools write and read memories.

mod operations;

use crate::endpoint_view;
use crate::inject::annotation_pointer;
use memgate_model::family::Subject;
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::memory_view::{EndpointSource, InlineView, MemoryView, ReferenceView, Role, SecretView};
use memgate_model::pod::Pod;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_model::view_table::ViewTable;
use memgate_primitives::pointer::Pointer;

use super::api::{
    AGENT, ANNOTATION_PREFIX, MEMORY_BACKEND, STATE_AGENT, TASK, TASK_TYPE_AI, TOOLS_ANNOTATION, agent_ref,
};
use super::inject::find::Worker;
use super::inject::own_variables;
use super::setting::TaskVariable;

/// The kinds that have a view.
pub(crate) static VIEWED: [(&Kind, Role); 4] = [
    (&MEMORY_BACKEND, Role::Memory),
    (&AGENT, Role::Referrer),
    (&TASK, Role::Referrer),
    (&NAMESPACE, Role::Referrer),
];

/// What the views hold.
pub(crate) static TABLES: [ViewTable; 4] = [
    ViewTable {
        paths: &["backend", "endpoint", "collection", "secrets"],
        unknown: &["endpoint"],
        // Its kind is not released, so no object uses it.
        unused: true,
        ..ViewTable::new(Role::Memory, &[&MEMORY_BACKEND])
    },
    ViewTable { paths: &["secrets", "operations"], ..ViewTable::new(Role::Referrer, &[&AGENT]) },
    ViewTable {
        paths: &["operations", "inline", "references"],
        unknown: &["references"],
        ..ViewTable::new(Role::Referrer, &[&TASK])
    },
    ViewTable { paths: &["operations"], ..ViewTable::new(Role::Referrer, &[&NAMESPACE]) },
];

/// The view of an object of the family's own kinds, and of a Namespace that has annotations of the family.
pub(crate) fn view(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<MemoryView> {
    let kind = subject.kind;
    if *kind == MEMORY_BACKEND {
        Some(of_backend(subject, state))
    } else if *kind == AGENT {
        Some(of_agent(subject, state))
    } else if *kind == TASK {
        is_ai(subject.object).then(|| of_task(subject, state))
    } else {
        (*kind == NAMESPACE && is_annotated(subject.object)).then(|| of_namespace(subject))
    }
}

/// The view of the pod of an AI worker; `None` for a pod that contradicts itself.
pub(crate) fn view_pod(
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let worker =
        Worker::find(pods[0]).filter(|worker| worker.contradictions(pods[0], namespace).is_empty())?;
    let mut view = MemoryView::of_pod(super::FAMILY.name, namespace, []);
    own_variables(&worker, pods, namespace, state).add_to(&mut view);
    Some(view)
}

fn is_ai(task: &Tree) -> bool {
    task.filled_at(&["spec", "type"]) == Some(TASK_TYPE_AI)
}

fn is_annotated(namespace: &Tree) -> bool {
    let annotations = namespace.at(&["metadata", "annotations"]);
    annotations.is_some_and(|annotations| annotations.keys().any(|key| key.starts_with(ANNOTATION_PREFIX)))
}

fn new_view(subject: &Subject<'_>, role: Role) -> MemoryView {
    MemoryView::new(super::FAMILY.name, role, subject.kind.kind, subject.namespace, subject.name)
        .labelled(subject.object)
}

fn of_backend(subject: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let object = subject.object;
    let mut view = new_view(subject, Role::Memory);
    view.has_fixed_name = true;
    view.put("backend", "/spec/protocol/profile", object.filled_at(&["spec", "protocol", "profile"]));
    view.put("collection", "/spec/store/name", object.filled_at(&["spec", "store", "name"]));
    view.at("endpoint", "/spec/deployment/endpoint");
    view.at("secrets", "/spec/clientAuth/bearerTokenSecretRef/name");
    view.endpoint = object
        .filled_at(&["spec", "deployment", "endpoint"])
        .map(|endpoint| endpoint_view::parse(EndpointSource::Literal, endpoint, subject.namespace, state));
    view.secrets.extend(secret(subject, &["spec", "clientAuth", "bearerTokenSecretRef"]));
    view
}

/// The Secret of the reference at a path, in the namespace of the object.
fn secret(subject: &Subject<'_>, path: &[&str]) -> Option<SecretView> {
    let reference = subject.object.at(path)?;
    let field = path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key)).key("name");
    let named = (subject.namespace, reference.filled_at(&["name"])?);
    Some(SecretView::new(named, reference.filled_at(&["key"]), field))
}

fn of_agent(subject: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let mut view = new_view(subject, Role::Referrer);
    view.at("operations", annotation_pointer(TOOLS_ANNOTATION));
    view.at("secrets", "/spec/secretRef/name");
    view.operations = Some(operations::of_agent(subject.object, subject.namespace, state));
    view.secrets.extend(secret(subject, &["spec", "secretRef"]));
    view
}

fn of_task(subject: &Subject<'_>, state: &mut StateReader<'_>) -> MemoryView {
    let mut view = new_view(subject, Role::Referrer);
    view.at("operations", annotation_pointer(TOOLS_ANNOTATION));
    let mut agent = None;
    if let Some((home, name)) = agent_ref(subject.object).filter(|(_, name)| !name.is_empty()) {
        // The Agent may be in another namespace; its existence there is not a secret.
        let home = home.unwrap_or(subject.namespace);
        let (field, lookup) = (Pointer::new("/spec/agentRef/name"), state.get(&STATE_AGENT, home, name));
        view.references.push(ReferenceView::new(&STATE_AGENT, (home, name), field, lookup));
        agent = lookup.found();
    }
    let env = TaskVariable::read_all(subject.object);
    let tokens = env.iter().filter_map(|variable| Some((variable, variable.token()?)));
    view.inline = tokens.map(|(variable, token)| InlineView::new(variable.value_pointer(), token)).collect();
    view.operations = Some(operations::of_task(subject, &env, agent, state));
    view
}

/// The view of a Namespace. It has operations only if an annotation switches the memory tools.
fn of_namespace(subject: &Subject<'_>) -> MemoryView {
    let mut view = new_view(subject, Role::Referrer);
    view.at("operations", annotation_pointer(TOOLS_ANNOTATION));
    view.operations = operations::of_namespace(subject.object);
    view
}
