//! Injects the variables of an agent's memory into its pods.
//!
//! The pod's label names the agent, and the agent's `memoryRef` names the memory, all in one namespace.

pub(super) mod want;

use super::prelude::*;
use crate::inject::own::OwnVariables;
use crate::references::{exists_elsewhere, going};
use serde_json::Value;

use super::validate::first_denial;

/// What to add to the pod; `None` if it is not an agent pod of this family.
pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let agent_label = recognise(pod)?;
    if pod.spec.as_ref().is_none_or(|spec| spec.containers.is_none()) {
        return Some(Injection::nothing(Reason::Malformed));
    }
    Some(try_inject(pod, &agent_label, namespace, state).unwrap_or_else(|unmet| *unmet))
}

/// The memory of an agent pod, valid or not, or why it is not found; `None` if the pod is not an agent pod of this
/// family.
pub(super) fn memory_of<'s>(
    pod: &Pod<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Option<Result<(&'static Dialect, &'s Object), Unmet>> {
    let agent_label = recognise(pod)?;
    let found = find_claimed(&agent_label, namespace, state);
    Some(found.map(|found| (found.dialect, found.memory)))
}

/// The variables that a pod with this memory sets itself: in the container of the agent, and in the others. Without a
/// declared memory, all are others.
pub(super) fn own_variables(
    pods: [&Pod<'_>; 2],
    found: Option<(&'static Dialect, &Object)>,
    work: &Budget<'_>,
) -> (OwnVariables, Vec<OwnVariables>) {
    let Some((dialect, memory)) = found else {
        let others = OwnVariables::undeclared(pods[0], want::names_of_address(), Some(want::BACKEND), work);
        return (OwnVariables::default(), others);
    };
    let agent = container_named(pods[0], AGENT_CONTAINER).map(|(index, _)| index);
    let (declared, names) =
        (own::declared(dialect.memory.kind, &memory.name), want::names(is_successor(pods[0], dialect)));
    let wanted = want::variables(dialect, memory);
    let own = agent.map(|index| OwnVariables::read(index, pods, &wanted, names, Some(&declared)));
    let is_agent = |index| Some(index) == agent;
    let mut others = OwnVariables::of_others(pods[0], &wanted, names, Some(&declared), (is_agent, work));
    others.retain(|own| !own.is_empty());
    (own.unwrap_or_default(), others)
}

/// Whether the pod may run the successor's program, which reads more variables. It may have the labels of several.
pub(super) fn is_successor(pod: &Pod<'_>, dialect: &Dialect) -> bool {
    dialect.successor || pod.label(KUBESWARM.pod_label).is_some()
}

/// The agent of the pod, or else the pod's controller.
pub(crate) fn involved_object(
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let agent_label = recognise(pod)?;
    let agent = DIALECTS.iter().filter(|dialect| dialect.pod_label == agent_label.key).find_map(|dialect| {
        let agent = state.peek(&dialect.agent, namespace, agent_label.agent)?;
        Some(InvolvedObject::of(&dialect.agent, agent))
    });
    agent.or_else(|| controller_of(pod, namespace))
}

/// The labels of the pods of an agent.
pub(crate) fn labels_for_agent(kind: &Kind, _namespace: &str, name: &str) -> Option<Value> {
    let dialect = DIALECTS.iter().find(|dialect| dialect.agent == *kind)?;
    Some(json!({dialect.pod_label: name}))
}

fn try_inject(
    pod: &Pod<'_>,
    agent_label: &AgentLabel<'_>,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Result<Injection, Unmet> {
    let agent = container_named(pod, AGENT_CONTAINER);
    let found = find(agent_label, namespace, state).map_err(|mut unmet| {
        // Without the container, the pod would not get its memory even if that is created later.
        unmet.missing.retain(|_| agent.is_some());
        unmet
    })?;
    let agent = agent.ok_or_else(|| {
        let message = format!("no container named \"{AGENT_CONTAINER}\"");
        unmet(Reason::NoContainer, &POD_NO_AGENT_CONTAINER, Pointer::new("/spec/containers"), message)
    })?;
    let wanted = want::want(agent, &found, namespace, state)?;
    let memory = found.memory_title();
    let mut injection = merge(pod, wanted, state.budget(), |conflict: &Conflict<'_>| {
        let message = format!("{} is already set and differs from {memory}", conflict.variable.name);
        let origin = &conflict.variable.origin;
        let kinds = [&found.dialect.memory];
        Finding::warn(&POD_ENV_CONFLICT, conflict.entry.clone(), message)
            .and_elsewhere(|| origin_place(origin, &kinds))
    });
    injection.warnings.extend(going(found.memory, || label_pointer(agent_label.key)));
    Ok(injection)
}

/// The label of an agent pod, and the agent that it names.
#[derive(Debug, Clone, Copy)]
struct AgentLabel<'p> {
    key: &'static str,
    agent: &'p str,
}

/// Whether a pod has any label of the family, which may be empty.
pub(super) fn is_agent_pod(pod: &Pod<'_>) -> bool {
    DIALECTS.iter().any(|dialect| pod.label(dialect.pod_label).is_some())
}

/// The first label of the family with a value.
fn recognise<'p>(pod: &'p Pod<'_>) -> Option<AgentLabel<'p>> {
    DIALECTS.iter().find_map(|dialect| {
        let agent = pod.label(dialect.pod_label).filter(|name| !name.is_empty())?;
        Some(AgentLabel { key: dialect.pod_label, agent })
    })
}

/// An agent and the memory that it claims.
struct AgentMemory<'s> {
    dialect: &'static Dialect,
    agent: &'s Object,
    memory: &'s Object,
}

impl AgentMemory<'_> {
    /// The memory, in the form that messages use.
    fn memory_title(&self) -> String {
        format!("{} {}", self.dialect.memory.kind, quoted(&self.memory.name))
    }
}

/// The memory of the agent that a pod names, if the memory is valid.
fn find<'s>(
    agent_label: &AgentLabel<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<AgentMemory<'s>, Unmet> {
    let found = find_claimed(agent_label, namespace, state)?;
    let memory = found.memory;
    match memory.defect(|tree| first_denial(found.dialect, tree)) {
        None => Ok(found),
        Some(first) => {
            let message = format!("{} is invalid: {}", found.memory_title(), first.message);
            let pointer = label_pointer(agent_label.key);
            let unmet = unmet(Reason::ReferenceInvalid, &POD_MEMORY_INVALID, pointer, message);
            Err(unmet_by(unmet, memory, first.pointer.clone(), "invalid"))
        }
    }
}

/// The memory of the agent that a pod names, valid or not.
fn find_claimed<'s>(
    agent_label: &AgentLabel<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<AgentMemory<'s>, Unmet> {
    let (dialect, agent) = find_agent(agent_label, namespace, state)?;
    let Some(name) = memory_name(dialect, agent.tree()) else {
        let path = dialect.memory_ref.join(".");
        let message = format!("{} {} has no {path}", dialect.agent.kind, quoted(agent_label.agent));
        let unmet = no_memory(&AGENT_WITHOUT_MEMORY, label_pointer(agent_label.key), message);
        return Err(unmet_by(unmet, agent, Pointer::root(), "claims no memory"));
    };
    if let Some(memory) =
        look_up(&dialect.memory, [namespace, name], (&LOOKUP_FAILED, agent_label.key), state)?
    {
        return Ok(AgentMemory { dialect, agent, memory });
    }
    let unmet = not_found(&POD_MEMORY_NOT_FOUND, &[&dialect.memory], (namespace, name), agent_label, state);
    Err(unmet_by(unmet, agent, memory_ref_pointer(dialect).key("name"), "claimed here"))
}

/// The agent in any dialect that uses the label. The newest dialect is tried first.
fn find_agent<'s>(
    agent_label: &AgentLabel<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<(&'static Dialect, &'s Object), Unmet> {
    let dialects = || DIALECTS.iter().filter(|dialect| dialect.pod_label == agent_label.key);
    for dialect in dialects() {
        let named = [namespace, agent_label.agent];
        if let Some(agent) = look_up(&dialect.agent, named, (&LOOKUP_FAILED, agent_label.key), state)? {
            return Ok((dialect, agent));
        }
    }
    let kinds: Vec<&Kind> = dialects().map(|dialect| &dialect.agent).collect();
    Err(not_found(&POD_AGENT_NOT_FOUND, &kinds, (namespace, agent_label.agent), agent_label, state))
}

/// The result for a missing object that could be of any of these kinds, the newest first.
fn not_found(
    code: &'static Code,
    kinds: &[&'static Kind],
    (namespace, name): (&str, &str),
    agent_label: &AgentLabel<'_>,
    state: &StateReader<'_>,
) -> Unmet {
    let kind = kinds.first().map_or(ARKONIS.agent.kind, |kind| kind.kind);
    let elsewhere = exists_elsewhere(kinds, (namespace, name), state);
    let message = format!("{kind} {} not found in namespace {}{elsewhere}", quoted(name), quoted(namespace));
    let mut unmet = unmet(Reason::ReferenceMissing, code, label_pointer(agent_label.key), message);
    unmet.missing = references(kinds.iter().copied(), namespace, name);
    unmet
}
