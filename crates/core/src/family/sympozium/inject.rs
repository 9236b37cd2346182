//! What a pod lacks to have its memory.
//!
//! ```text
//! pod ──find──▶ what is on: private, legacy, shared ──plan──▶ variables, containers, volumes ──▶ edits
//! ```
//!
//! Private memory is a service of its own or a native sidecar, shared memory always a service, and
//! the older memory in a ConfigMap a volume.

mod carry;
mod containers;
pub mod env;
mod find;
mod legacy;
mod mode;
mod plan;
pub mod seen;
mod service;
mod sidecar;

use crate::family::pod::{Injection, maker};
use crate::model::decision::Reason;
use crate::model::event::InvolvedObject;
use crate::model::finding::{Code, Finding, quoted};
use crate::model::pod::Pod;
use crate::model::pointer::Pointer;
use crate::model::snapshot::StateReader;

use self::find::find;
use self::plan::Plan;
use self::seen::Seen;
use super::api::{
    AGENT, AGENT_CONTAINER, AGENT_OLD, AGENT_RUN, AGENT_RUN_COMPONENT, COMPONENT_LABEL, INSTANCE_LABEL,
    RUN_LABEL,
};
use super::codes::{AGENT_WITHOUT_MEMORY, POD_NO_AGENT_CONTAINER};

/// What the pod lacks; `None` when it is no agent pod of this family.
#[must_use]
pub fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let instance = recognise(pod)?;
    let Some(seen) = Seen::read(pod) else { return Some(Injection::nothing(Reason::Malformed)) };
    Some(fill(pod, &seen, instance, namespace, state).unwrap_or_else(|unmet| *unmet))
}

/// The agent that a pod is of.
fn recognise<'p>(pod: &'p Pod<'_>) -> Option<&'p str> {
    let is_run = pod.label(COMPONENT_LABEL) == Some(AGENT_RUN_COMPONENT);
    pod.label(INSTANCE_LABEL).filter(|name| is_run && !name.is_empty())
}

/// The Agent of the pod, or else its AgentRun, or else what made the pod.
#[must_use]
pub fn referrer(pod: &Pod<'_>, namespace: &str, state: &StateReader<'_>) -> Option<InvolvedObject> {
    let agent = recognise(pod)?;
    let run = pod.label(RUN_LABEL).unwrap_or_default();
    let known = |(kind, name)| Some(InvolvedObject::of(kind, state.peek(kind, namespace, name)?));
    let objects = [(&AGENT, agent), (&AGENT_OLD, agent), (&AGENT_RUN, run)];
    objects.into_iter().find_map(known).or_else(|| maker(pod, namespace))
}

/// Why there is no memory; boxed, since it is the rare way out.
type Unmet = Box<Injection>;

fn unmet(reason: Reason, code: &'static Code, at: Pointer, message: impl Into<String>) -> Unmet {
    Box::new(Injection::unmet(reason, Finding::warn(code, at, message)))
}

/// Where a pod names its agent.
fn instance_label() -> Pointer {
    Pointer::new("/metadata/labels").key(INSTANCE_LABEL)
}

fn fill(
    pod: &Pod<'_>,
    seen: &Seen<'_>,
    instance: &str,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Result<Injection, Unmet> {
    let Some(agent) = seen.agent else {
        let message = format!("no container named \"{AGENT_CONTAINER}\"");
        return Err(unmet(
            Reason::NoContainer,
            &POD_NO_AGENT_CONTAINER,
            Pointer::new("/spec/containers"),
            message,
        ));
    };
    let found = find(pod, instance, namespace, state)?;
    if !found.anything() {
        if found.unmet.is_empty() {
            let message = format!("Agent {} has no memory", quoted(instance));
            let mut none = unmet(Reason::NoMemory, &AGENT_WITHOUT_MEMORY, instance_label(), message);
            none.quiet = true;
            return Err(none);
        }
        let mut nothing = Injection::nothing(Reason::ReferenceMissing);
        carry::unmet(&mut nothing, found.unmet);
        return Err(Box::new(nothing));
    }
    let mut plan = Plan::new(pod, seen, agent, namespace, found, &state.settings().sympozium);
    plan.legacy();
    plan.private(state)?;
    plan.shared();
    Ok(carry::out(plan))
}
