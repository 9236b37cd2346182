//! The memory tools of a worker, and the place that gives it each of them.
//!
//! The worker of a Task of type `ai` adds all memory tools unless a switch turns that off. If it is off, the worker
//! has the tools that the Agent or the Task lists; an Agent with coordination adds all of them. A runtime has its
//! allowed tools.

use crate::inject::annotation_pointer;
use memgate_model::family::Subject;
use memgate_model::memory_view::OperationView;
use memgate_model::object::Object;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use crate::orka::api::{MEMORY_TOOLS, STATE_TASK, TOOLS_ANNOTATION, scheduled_parent};
use crate::orka::setting::{self, AgentTool, Setting, SettingValue, TaskVariable, are_off, switch};

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
pub(super) fn of_agent(agent: &Tree, namespace: &str, state: &mut StateReader<'_>) -> Vec<OperationView> {
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
pub(super) fn of_task(
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
    let mut own = env.iter().rev().filter(|variable| variable.name == Setting::Tools.variable());
    if let Some(variable) = own.next() {
        let value = variable.literal().map(|literal| Setting::Tools.read_literal(literal));
        return (value != Some(SettingValue::Switch(false))).then(|| variable.value_pointer());
    }
    let of_agent = agent.and_then(|agent| switch(Setting::Tools, agent));
    if of_agent == Some(false) {
        return None;
    }
    let of_task = switch(Setting::Tools, subject.object).or_else(|| of_parent(subject, state));
    let on = of_task.or(of_agent).or_else(|| setting::of_namespace(subject.namespace, state));
    (on != Some(false)).then(switch_pointer)
}

/// The switch in the Task whose schedule made this one.
fn of_parent(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<bool> {
    let name = scheduled_parent(subject.object)?;
    switch(Setting::Tools, state.get(&STATE_TASK, subject.namespace, name).found()?.tree())
}

/// The memory tools that a Namespace switches on or off; `None` if it has no switch.
pub(super) fn of_namespace(namespace: &Tree) -> Option<Vec<OperationView>> {
    let on = switch(Setting::Tools, namespace)?;
    let mut given = GivenTools::default();
    if on {
        given.give_all(&switch_pointer());
    }
    Some(given.operations())
}
