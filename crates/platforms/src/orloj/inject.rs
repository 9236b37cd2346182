//! Injects the variables of an agent's memory into its pods.
//!
//! The arguments of the pod's container name the task and the agent. The prefix of the task is the Orloj
//! namespace, and the Agent in it names the Memory. Users can write any arguments and labels, so a pod gets
//! memory of another namespace only in the namespaces in which Orloj runs its Jobs.

mod find;
mod recognise;
pub(super) mod want;

use serde_json::{Value, json};

use crate::inject::elsewhere::origin_place;
use crate::inject::own::{self, OwnVariables};
use crate::inject::{Conflict, Unmet, container_named, controller_of, env, merge, unmet};
use memgate_model::event::InvolvedObject;
use memgate_model::finding::Finding;
use memgate_model::injection::Injection;
use memgate_model::kind::Kind;
use memgate_model::object::Object;
use memgate_model::pod::{Container, Pod};
use memgate_model::reason::Reason;
use memgate_model::state_reader::StateReader;
use memgate_primitives::pointer::Pointer;

use self::find::{Finder, GrantedMemory};
use self::recognise::{Identity, sanitized};
use super::api::{
    AGENT, AGENT_CONTAINER, AGENT_JOB, AGENT_LABEL, COMPONENT_LABEL, MEMORY, MODEL_ENDPOINT, NAMESPACE_LABEL,
};
use super::codes::{POD_CONTAINER_MISSING, POD_ENV_KEPT};

/// What to add to the pod; `None` if it is not an agent pod of this family.
pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    if !is_agent_pod(pod) {
        return None;
    }
    Some(try_inject(pod, namespace, state).unwrap_or_else(|unmet| *unmet))
}

fn try_inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Result<Injection, Unmet> {
    let (index, container) = agent_container(pod)?;
    let found = find(pod, (index, container), namespace, state)?;
    let (wanted, omitted) = want::want((index, container), &found, namespace, state);
    let mut injection = merge(wanted, state.budget(), |conflict: &Conflict<'_>| {
        let message = format!("env {} is already set; kept", conflict.variable.name);
        let origin = &conflict.variable.origin;
        Finding::warn(&POD_ENV_KEPT, conflict.list.clone(), message)
            .and_elsewhere(|| origin_place(origin, &[&AGENT, &MEMORY, &MODEL_ENDPOINT]))
    });
    injection.warnings.extend(omitted);
    Ok(injection)
}

/// The memory of the agent that the container of a pod names.
fn find<'p, 's>(
    pod: &'p Pod<'_>,
    (index, container): (usize, &'p Container<'_>),
    namespace: &'p str,
    state: &mut StateReader<'s>,
) -> Result<GrantedMemory<'s>, Unmet> {
    let identity = Identity::read(pod, (index, container), namespace, state.budget());
    Finder { pointer: env::pointer(index), identity }.find(namespace, state)
}

/// The Memory of an agent pod, or why it is not found; `None` if it is not an agent pod of this family.
pub(super) fn memory_of<'s>(
    pod: &Pod<'_>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Option<Result<&'s Object, Unmet>> {
    if !is_agent_pod(pod) {
        return None;
    }
    let found = agent_container(pod).and_then(|container| find(pod, container, namespace, state));
    Some(found.map(|found| found.memory))
}

/// The variables that a pod sets itself: in the container of the agent, and in the others. Where its Memory is not found,
/// all are others.
pub(super) fn own_variables(
    pods: [&Pod<'_>; 2],
    namespace: &str,
    state: &mut StateReader<'_>,
) -> (OwnVariables, Vec<OwnVariables>) {
    let (pod, work) = (pods[0], state.budget());
    let found = agent_container(pod).and_then(|it| Ok((it, find(pod, it, namespace, state)?)));
    let Ok((container, found)) = found else {
        let others = OwnVariables::undeclared(pod, want::NAMES, Some(want::PROVIDER), work);
        return (OwnVariables::default(), others);
    };
    let (wanted, _) = want::want(container, &found, namespace, state);
    let wanted = wanted.containers.first().map(|it| it.env.as_ref()).unwrap_or_default();
    let declared = own::declared(MEMORY.kind, &found.memory.name);
    let own = OwnVariables::read(container.0, pods, wanted, want::NAMES, Some(&declared));
    let others = (|index| index == container.0, work);
    let mut others = OwnVariables::of_others(pod, wanted, want::NAMES, Some(&declared), others);
    others.retain(|own| !own.is_empty());
    (own, others)
}

fn is_agent_pod(pod: &Pod<'_>) -> bool {
    pod.label(COMPONENT_LABEL) == Some(AGENT_JOB)
}

/// The Agent of the pod, or else the pod's controller. `None` if the task belongs to another namespace.
pub(crate) fn involved_object(
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let agent = match agent_container(pod) {
        Ok(container) => {
            let identity = Identity::read(pod, container, namespace, state.budget());
            if identity.namespace != namespace {
                return None;
            }
            find::agent_at_home(&identity, namespace, state)
        }
        Err(_) => None,
    };
    agent.map(|agent| InvolvedObject::of(&AGENT, agent)).or_else(|| controller_of(pod, namespace))
}

/// The labels of the pods of an Agent.
pub(crate) fn labels_for_agent(kind: &Kind, namespace: &str, name: &str) -> Option<Value> {
    let labels =
        || json!({COMPONENT_LABEL: AGENT_JOB, AGENT_LABEL: sanitized(name), NAMESPACE_LABEL: namespace});
    (*kind == AGENT).then(labels)
}

fn agent_container<'p>(pod: &'p Pod<'p>) -> Result<(usize, &'p Container<'p>), Unmet> {
    container_named(pod, AGENT_CONTAINER).ok_or_else(|| {
        let message = format!("pod has no container \"{AGENT_CONTAINER}\"");
        unmet(Reason::NoContainer, &POD_CONTAINER_MISSING, Pointer::new("/spec/containers"), message)
    })
}
