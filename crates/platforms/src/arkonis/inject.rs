//! Injects the variables of an agent's memory into its pods.
//!
//! The pod's label names the agent, and the agent's `memoryRef` names the memory, all in one namespace.

mod find;
pub(super) mod recognise;
pub(super) mod want;

use serde_json::{Value, json};

use crate::inject::elsewhere::origin_place;
use crate::inject::own::{self, OwnVariables};
use crate::inject::{Conflict, Unmet, container_named, controller_of, merge, unmet};
use memgate_model::event::InvolvedObject;
use memgate_model::finding::Finding;
use memgate_model::injection::Injection;
use memgate_model::kind::Kind;
use memgate_model::object::Object;
use memgate_model::pod::Pod;
use memgate_model::reason::Reason;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::api::{AGENT_CONTAINER, DIALECTS, Dialect, KUBESWARM};
use super::codes::{POD_ENV_CONFLICT, POD_NO_AGENT_CONTAINER};

/// What to add to the pod; `None` if it is not an agent pod of this family.
pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let agent_label = recognise::recognise(pod)?;
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
    let agent_label = recognise::recognise(pod)?;
    let found = find::find_claimed(&agent_label, namespace, state);
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
    let agent_label = recognise::recognise(pod)?;
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
    agent_label: &recognise::AgentLabel<'_>,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Result<Injection, Unmet> {
    let agent = container_named(pod, AGENT_CONTAINER);
    let found = find::find(agent_label, namespace, state).map_err(|mut unmet| {
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
    Ok(merge(wanted, state.budget(), |conflict: &Conflict<'_>| {
        let message = format!("{} is already set and differs from {memory}", conflict.variable.name);
        let origin = &conflict.variable.origin;
        let kinds = [&found.dialect.memory];
        Finding::warn(&POD_ENV_CONFLICT, conflict.entry.clone(), message)
            .and_elsewhere(|| origin_place(origin, &kinds))
    }))
}
