//! Injects the memories of an agent into its pods.
//!
//! ```text
//! pod ──find──▶ what is on: private, legacy, shared ──want──▶ variables, containers, volumes
//! ```
//!
//! Private memory is a separate service or a native sidecar. Shared memory is always a service. The older
//! memory in a ConfigMap is a volume.

pub(super) mod find;
pub(super) mod recognise;
pub(super) mod server;
mod want;

use serde_json::{Value, json};

use crate::inject::elsewhere::origin_place;
use crate::inject::own::OwnVariables;
use crate::inject::parts::{ExistingMounts, ExistingParts};
use crate::inject::{Conflict, Unmet, container_named, controller_of, merge, no_memory, unmet};
use crate::message::fit_names;
use memgate_model::event::InvolvedObject;
use memgate_model::finding::Finding;
use memgate_model::injection::Injection;
use memgate_model::kind::Kind;
use memgate_model::pod::{Container, Pod};
use memgate_model::reason::Reason;
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use self::find::{PodMemories, find};
use self::recognise::{instance_label, recognise};
use self::want::PodContext;
use super::api::{
    AGENT, AGENT_CONTAINER, AGENT_OLD, AGENT_RUN_COMPONENT, COMPONENT_LABEL, ENSEMBLE, INSTANCE_LABEL,
    RUN_LABEL, STATE_AGENT_RUN,
};
use super::codes::{AGENT_WITHOUT_MEMORY, POD_ENV_CONFLICT, POD_NO_AGENT_CONTAINER};

/// What to add to the pod; `None` if it is not an agent pod of this family.
pub(crate) fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let instance = recognise(pod)?;
    let agent = container_named(pod, AGENT_CONTAINER);
    let work = state.budget();
    let mounts = agent.map_or_else(
        || Some(ExistingMounts::default()),
        |(index, container)| ExistingMounts::read(index, container, work),
    );
    let (Some(parts), Some(mounts)) = (ExistingParts::read(pod, work), mounts) else {
        return Some(Injection::nothing(Reason::Malformed));
    };
    let injection = try_inject(pod, &parts, (agent, mounts), instance, namespace, state);
    Some(injection.unwrap_or_else(|unmet| *unmet))
}

/// The variables that a pod sets itself: in the container of the agent, and the URLs in the others. Where its memory
/// cannot be told, all are others.
pub(super) fn own_variables<'s>(
    pods: [&Pod<'_>; 2],
    found: Option<PodMemories<'s>>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> (OwnVariables, Vec<OwnVariables>) {
    let (pod, work) = (pods[0], state.budget());
    let agent = container_named(pod, AGENT_CONTAINER).zip(found.filter(PodMemories::has_memory));
    let known = agent.and_then(|((index, container), found)| {
        let mounts = ExistingMounts::read(index, container, work)?;
        Some((index, container, found, ExistingParts::read(pod, work)?, mounts))
    });
    let undeclared = || {
        let others = OwnVariables::undeclared(pod, want::URLS, None, work);
        (OwnVariables::default(), others)
    };
    let Some((index, container, found, parts, mounts)) = known else { return undeclared() };
    let context = PodContext { pod, parts: &parts, index, container, mounts, namespace };
    let Ok(wanted) = want::want(context, found, state) else { return undeclared() };
    let wanted = wanted.containers.first().map(|it| it.env.as_ref()).unwrap_or_default();
    let own = OwnVariables::read(index, pods, wanted, want::NAMES, None);
    let is_agent = |it| it == index;
    let mut others = OwnVariables::of_others(pod, wanted, want::URLS, None, (is_agent, work));
    others.retain(|own| !own.is_empty());
    (own, others)
}

/// The Agent of the pod, or else its AgentRun, or else the pod's controller.
pub(crate) fn involved_object(
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    let agent = recognise(pod)?;
    let run = pod.label(RUN_LABEL).unwrap_or_default();
    let known = |(kind, name)| Some(InvolvedObject::of(kind, state.peek(kind, namespace, name)?));
    let objects = [(&AGENT, agent), (&AGENT_OLD, agent), (&STATE_AGENT_RUN, run)];
    objects.into_iter().find_map(known).or_else(|| controller_of(pod, namespace))
}

/// The labels of the pods of an Agent.
pub(crate) fn labels_for_agent(kind: &Kind, _namespace: &str, name: &str) -> Option<Value> {
    let is_agent = [&AGENT, &AGENT_OLD].contains(&kind);
    is_agent.then(|| json!({COMPONENT_LABEL: AGENT_RUN_COMPONENT, INSTANCE_LABEL: name}))
}

fn try_inject<'p>(
    pod: &'p Pod<'p>,
    parts: &'p ExistingParts<'p>,
    (agent, mounts): (Option<(usize, &'p Container<'p>)>, ExistingMounts<'p>),
    instance: &str,
    namespace: &'p str,
    state: &mut StateReader<'_>,
) -> Result<Injection, Unmet> {
    let Some((index, container)) = agent else {
        let message = format!("no container named \"{AGENT_CONTAINER}\"");
        let at = Pointer::new("/spec/containers");
        return Err(unmet(Reason::NoContainer, &POD_NO_AGENT_CONTAINER, at, message));
    };
    let found = find(pod, instance, namespace, state)?;
    if !found.has_memory() {
        if found.unmet.is_empty() {
            let message = fit_names([instance], |[agent]| {
                format!("Agent {} has no memory; add skill \"memory\" to it", quoted(agent))
            });
            return Err(no_memory(&AGENT_WITHOUT_MEMORY, instance_label(), message));
        }
        let nothing = Injection::nothing(Reason::ReferenceMissing);
        return Err(Box::new(Injection { unmet: found.unmet, missing: found.missing, ..nothing }));
    }
    let (pod, missing) =
        (PodContext { pod, parts, index, container, mounts, namespace }, found.missing.clone());
    let injection = merge(want::want(pod, found, state)?, state.budget(), |conflict: &Conflict<'_>| {
        let Conflict { variable, entry, .. } = conflict;
        let (kind, name) = variable.origin.resource.split_once(' ').unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        let message = fit_names([name], |[name]| {
            format!("{} is already set and differs from {kind} {}", variable.name, quoted(name))
        });
        Finding::warn(&POD_ENV_CONFLICT, entry.clone(), message)
            .and_elsewhere(|| origin_place(&variable.origin, &[&AGENT, &ENSEMBLE, &STATE_AGENT_RUN]))
    });
    Ok(Injection { missing, ..injection })
}
