//! The views of the family's objects, for rules of policies.
//!
//! Only a MemoryBackend declares memory. The kind is not released yet, so its objects have a view but are not the
//! source of another object's memory. Agents, Tasks and Namespaces decide which tools write and read memories.
//!
//! The worker of a Task of type `ai` adds all memory tools unless a switch turns that off. If it is off, the worker
//! has the tools that the Agent or the Task lists; an Agent with coordination adds all of them. A runtime has its
//! allowed tools.

use super::prelude::*;
use crate::endpoint_view;
use memgate_model::memory_view::OperationView;

use super::inject::find::Worker;
use super::inject::own_variables;
use super::setting::{self, AgentTool, SettingValue, TOOLS, TaskVariable, are_off, switch};

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
        ..ViewTable::new(Role::Memory, &[&MEMORY_BACKEND])
    },
    ViewTable { paths: &["secrets", "operations"], ..ViewTable::new(Role::Referrer, &[&AGENT]) },
    ViewTable { paths: &["operations", "inline", "references"], ..ViewTable::new(Role::Referrer, &[&TASK]) },
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
    view.operations = Some(tools_of_agent(subject.object, subject.namespace, state));
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
    view.operations = Some(tools_of_task(subject, &env, agent, state));
    view
}

/// The view of a Namespace. It has operations only if an annotation switches the memory tools.
fn of_namespace(subject: &Subject<'_>) -> MemoryView {
    let mut view = new_view(subject, Role::Referrer);
    view.at("operations", annotation_pointer(TOOLS_ANNOTATION));
    view.operations = tools_of_namespace(subject.object);
    view
}

/// The memory tools, each with the first place that gives it.
#[derive(Default)]
struct GivenTools([Option<Pointer>; MEMORY_TOOLS.len()]);

impl GivenTools {
    /// Gives a tool, if it is a memory tool that was not given before.
    fn give(&mut self, name: &str, place: impl FnOnce() -> Pointer) {
        let mut tools = MEMORY_TOOLS.iter().zip(&mut self.0);
        if let Some((_, given)) = tools.find(|(tool, _)| **tool == name) {
            given.get_or_insert_with(place);
        }
    }

    /// Gives every memory tool that was not given before.
    fn give_all(&mut self, place: &Pointer) {
        for given in &mut self.0 {
            given.get_or_insert_with(|| place.clone());
        }
    }

    /// Gives the tools that a list names.
    fn give_texts(&mut self, list: Option<&Tree>, place: &Pointer) {
        for (index, name) in list.map(Tree::elements).unwrap_or_default().iter().enumerate() {
            self.give(name.text().unwrap_or_default().trim(), || place.index(index));
        }
    }

    /// Gives the tools that an Agent lists and has not disabled.
    fn give_agents(&mut self, agent: &Tree, place: impl Fn(&AgentTool<'_>) -> Pointer) {
        for tool in AgentTool::read_all(agent).filter(|tool| tool.enabled) {
            self.give(tool.name, || place(&tool));
        }
    }

    fn operations(self) -> Vec<OperationView> {
        let tools = MEMORY_TOOLS.into_iter().zip(self.0);
        let operation = |(tool, field): (&str, Option<Pointer>)| {
            Some(OperationView { name: tool.to_owned(), field: field? })
        };
        tools.filter_map(operation).collect()
    }
}

/// The switch of the memory tools.
fn switch_pointer() -> Pointer {
    annotation_pointer(TOOLS_ANNOTATION)
}

/// The memory tools of an Agent's workers, or of its runtime.
fn tools_of_agent(agent: &Tree, namespace: &str, state: &mut StateReader<'_>) -> Vec<OperationView> {
    let mut given = GivenTools::default();
    if let Some(runtime) = agent.at(&["spec", "runtime"]).filter(|runtime| runtime.is_object()) {
        let place = Pointer::new("/spec/runtime/defaultAllowedTools");
        given.give_texts(runtime.get("defaultAllowedTools"), &place);
        // A built-in runtime never gets the tools of an Agent.
        if runtime.text_at(&["type"]).is_none_or(str::is_empty) {
            given.give_agents(agent, |tool| tool.pointer("name"));
        }
        return given.operations();
    }
    given.give_agents(agent, |tool| tool.pointer("name"));
    if !are_off(agent, namespace, state) {
        given.give_all(&switch_pointer());
    } else if coordinates(agent) {
        given.give_all(&Pointer::new("/spec/coordination/enabled"));
    }
    given.operations()
}

fn coordinates(agent: &Tree) -> bool {
    agent.at(&["spec", "coordination", "enabled"]) == Some(&Tree::Boolean(true))
}

/// The memory tools of the worker of a Task of type `ai`.
fn tools_of_task(
    subject: &Subject<'_>,
    env: &[TaskVariable<'_>],
    agent: Option<&Object>,
    state: &mut StateReader<'_>,
) -> Vec<OperationView> {
    let (task, agent) = (subject.object, agent.map(Object::tree));
    let mut given = GivenTools::default();
    given.give_texts(task.at(&["spec", "ai", "tools"]), &Pointer::new("/spec/ai/tools"));
    let through_agent = || Pointer::new("/spec/agentRef/name");
    if let Some(agent) = agent {
        given.give_agents(agent, |_| through_agent());
    }
    if let Some(place) = adds_all(subject, env, agent, state) {
        given.give_all(&place);
    } else if agent.is_some_and(coordinates) {
        given.give_all(&through_agent());
    }
    given.operations()
}

/// The field that makes the worker of a Task add all memory tools; `None` if it does not add them. A variable of the
/// Task wins over every annotation, even with an invalid value.
fn adds_all(
    subject: &Subject<'_>,
    env: &[TaskVariable<'_>],
    agent: Option<&Tree>,
    state: &mut StateReader<'_>,
) -> Option<Pointer> {
    let mut own = env.iter().rev().filter(|variable| variable.name == TOOLS.variable);
    if let Some(variable) = own.next() {
        let value = variable.literal().map(|literal| TOOLS.read_literal(literal));
        return (value != Some(SettingValue::Switch(false))).then(|| variable.value_pointer());
    }
    let of_agent = agent.and_then(|agent| switch(&TOOLS, agent));
    if of_agent == Some(false) {
        return None;
    }
    let of_task = switch(&TOOLS, subject.object).or_else(|| of_parent(subject, state));
    let on = of_task.or(of_agent).or_else(|| setting::of_namespace(subject.namespace, state));
    (on != Some(false)).then(switch_pointer)
}

/// The switch in the Task whose schedule made this one.
fn of_parent(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<bool> {
    let name = scheduled_parent(subject.object)?;
    switch(&TOOLS, state.get(&STATE_TASK, subject.namespace, name).found()?.tree())
}

/// The memory tools that a Namespace switches on or off; `None` if it has no switch.
fn tools_of_namespace(namespace: &Tree) -> Option<Vec<OperationView>> {
    let on = switch(&TOOLS, namespace)?;
    let mut given = GivenTools::default();
    if on {
        given.give_all(&switch_pointer());
    }
    Some(given.operations())
}
