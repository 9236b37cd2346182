//! What an agent pod lacks to have its memory.
//!
//! The way from a pod to its memory: the arguments of its container name the task and the agent, the
//! task's prefix is the Orloj namespace, and there the Agent names the Memory. Arguments and labels
//! are free text, so a pod gets what is of another namespace only where Orloj runs its Jobs.

mod fill;
mod identity;
mod rows;

use crate::family::pod::{Injection, env_pointer, maker};
use crate::model::decision::Reason;
use crate::model::event::InvolvedObject;
use crate::model::finding::{Code, Finding, quoted};
use crate::model::pod::{Container, Pod};
use crate::model::pointer::Pointer;
use crate::model::snapshot::{Lookup, Object, StateReader};

use self::identity::{Identity, Name};
use super::api::{AGENT, AGENT_CONTAINER, AGENT_JOB, AGENT_LABEL, COMPONENT_LABEL, Claim, MEMORY, operation};
use super::codes::{
    LOOKUP_FAILED, POD_AGENT_AMBIGUOUS, POD_AGENT_MISSING, POD_ALLOW_INVALID, POD_CONTAINER_MISSING,
    POD_FOREIGN_NAMESPACE, POD_MEMORY_MISSING, POD_MEMORY_NONE,
};
use super::namespace;
use super::wording::fitted;

/// What the pod lacks; `None` when it is no agent pod of this family.
#[must_use]
pub fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    if pod.label(COMPONENT_LABEL) != Some(AGENT_JOB) {
        return None;
    }
    let found = agent_container(pod).and_then(|(index, container)| {
        let way = Way { here: env_pointer(index), identity: Identity::read(pod, container, namespace) };
        let found = way.find(namespace, state)?;
        Ok(fill::add_missing(index, container, &rows::wanted(&found, namespace, state)))
    });
    Some(found.unwrap_or_else(|unmet| *unmet))
}

/// The Agent of the pod, or else what made the pod. Nothing where the task is of an Orloj namespace of
/// another name than the pod's.
#[must_use]
pub fn referrer(pod: &Pod<'_>, namespace: &str, state: &StateReader<'_>) -> Option<InvolvedObject> {
    let agent = match agent_container(pod) {
        Ok((_, container)) => {
            let identity = Identity::read(pod, container, namespace);
            if identity.namespace != namespace {
                return None;
            }
            let agents = state.all(&AGENT, namespace);
            agents.into_iter().find(|agent| identity.is(&agent.name))
        }
        Err(_) => None,
    };
    agent.map(|agent| InvolvedObject::of(&AGENT, agent)).or_else(|| maker(pod, namespace))
}

/// Why there is no memory; boxed, since it is the rare way out.
type Unmet = Box<Injection>;

fn unmet(reason: Reason, code: &'static Code, pointer: &Pointer, message: String) -> Unmet {
    Box::new(Injection::unmet(reason, Finding::warn(code, pointer.clone(), message)))
}

fn agent_container<'p, 'a>(pod: &'p Pod<'a>) -> Result<(usize, &'p Container<'a>), Unmet> {
    let mut containers = pod.containers().iter().enumerate();
    containers.find(|(_, container)| container.name.as_deref() == Some(AGENT_CONTAINER)).ok_or_else(|| {
        let message = format!("pod has no container \"{AGENT_CONTAINER}\"");
        unmet(Reason::NoContainer, &POD_CONTAINER_MISSING, &Pointer::new("/spec/containers"), message)
    })
}

/// An Agent, what it may do, and the Memory that it claims.
struct Found<'s> {
    agent: &'s Object,
    operations: Vec<&'static str>,
    memory: &'s Object,
}

/// The way from a pod to its memory.
struct Way<'p> {
    /// Where findings point.
    here: Pointer,
    identity: Identity<'p>,
}

impl Way<'_> {
    fn find<'s>(&self, pod_namespace: &str, state: &mut StateReader<'s>) -> Result<Found<'s>, Unmet> {
        let agent = self.find_agent(state)?;
        let claim = Claim::read(&agent.tree);
        let name = claim.reference.ok_or_else(|| self.no_memory(agent))?;
        let operations = self.operations(agent, &claim)?;
        let memory = self.find_memory(name, state)?;
        self.guard(pod_namespace, state)?;
        Ok(Found { agent, operations, memory })
    }

    fn find_agent<'s>(&self, state: &mut StateReader<'s>) -> Result<&'s Object, Unmet> {
        let home = self.identity.namespace.as_ref();
        let (name, sanitized) = match &self.identity.name {
            Name::Exact(name) => (name.as_ref(), false),
            Name::Sanitized(label) => (*label, true),
            Name::None => {
                let message = "pod names no Agent".to_owned();
                return Err(unmet(Reason::ReferenceMissing, &POD_AGENT_MISSING, &self.here, message));
            }
        };
        if sanitized && let Some(agent) = self.find_sanitized(name, state)? {
            return Ok(agent);
        }
        match namespace::find(&AGENT, home, name, state) {
            Lookup::Found(agent) => Ok(agent),
            Lookup::Absent => Err(self.not_found(&POD_AGENT_MISSING, "Agent", name)),
            Lookup::Unknown => Err(self.not_known("Agent", name)),
        }
    }

    /// The only Agent of the Orloj namespace whose name is sanitized to this.
    fn find_sanitized<'s>(
        &self,
        label: &str,
        state: &mut StateReader<'s>,
    ) -> Result<Option<&'s Object>, Unmet> {
        let home = self.identity.namespace.as_ref();
        let agents = state.everywhere(&AGENT).filter(|agent| namespace::of_object(agent) == home);
        let mut names: Vec<&str> = agents.map(|agent| agent.name.as_str()).collect();
        names.retain(|name| identity::sanitized(name) == label);
        names.sort_unstable();
        names.dedup();
        match names.as_slice() {
            [] => Ok(None),
            [only] => Ok(match namespace::find(&AGENT, home, only, state) {
                Lookup::Found(agent) => Some(agent),
                Lookup::Absent | Lookup::Unknown => None,
            }),
            _ => {
                let message = fitted([label], |[label]| {
                    format!("label {AGENT_LABEL} {} matches several Agents", quoted(label))
                });
                let pointer = Pointer::new("/metadata/labels").key(AGENT_LABEL);
                Err(unmet(Reason::ReferenceInvalid, &POD_AGENT_AMBIGUOUS, &pointer, message))
            }
        }
    }

    /// What the Agent may do. Grants are explicit: none mean no memory, and an Agent with a bad one
    /// never reaches Orloj.
    fn operations(&self, agent: &Object, claim: &Claim<'_>) -> Result<Vec<&'static str>, Unmet> {
        let granted: Option<Vec<_>> = claim.allow.iter().map(|entry| operation(entry)).collect();
        let Some(granted) = granted else {
            let message =
                self.about(&agent.name, |agent| format!("Agent {agent} has an invalid spec.memory.allow"));
            return Err(unmet(Reason::ReferenceInvalid, &POD_ALLOW_INVALID, &self.here, message));
        };
        let mut operations = Vec::new();
        for operation in granted {
            if !operations.contains(&operation) {
                operations.push(operation);
            }
        }
        if operations.is_empty() { Err(self.no_memory(agent)) } else { Ok(operations) }
    }

    fn find_memory<'s>(&self, name: &str, state: &mut StateReader<'s>) -> Result<&'s Object, Unmet> {
        match namespace::find(&MEMORY, &self.identity.namespace, name, state) {
            Lookup::Found(memory) => Ok(memory),
            Lookup::Absent => Err(self.not_found(&POD_MEMORY_MISSING, "Memory", name)),
            Lookup::Unknown => Err(self.not_known("Memory", name)),
        }
    }

    /// A pod of another namespace gets nothing, unless that is one where Orloj runs its Jobs.
    fn guard(&self, pod_namespace: &str, state: &StateReader<'_>) -> Result<(), Unmet> {
        let home = self.identity.namespace.as_ref();
        let jobs = &state.settings().orloj.job_namespaces;
        if pod_namespace == home || jobs.iter().any(|namespace| namespace == pod_namespace) {
            return Ok(());
        }
        let message = fitted([pod_namespace, home], |[pod, home]| {
            format!("namespace {} may not use memory of Orloj namespace {}", quoted(pod), quoted(home))
        });
        let finding = Finding::warn(&POD_FOREIGN_NAMESPACE, self.here.clone(), message)
            .help("see --orloj-job-namespace");
        Err(Box::new(Injection::unmet(Reason::ReferenceInvalid, finding)))
    }

    fn no_memory(&self, agent: &Object) -> Unmet {
        let message = self.about(&agent.name, |agent| format!("Agent {agent} uses no memory"));
        let mut none = unmet(Reason::NoMemory, &POD_MEMORY_NONE, &self.here, message);
        none.quiet = true;
        none
    }

    fn not_found(&self, code: &'static Code, kind: &str, name: &str) -> Unmet {
        let message = self.about(name, |name| format!("{kind} {name} not found"));
        unmet(Reason::ReferenceMissing, code, &self.here, message)
    }

    fn not_known(&self, kind: &str, name: &str) -> Unmet {
        let message = self.about(name, |name| format!("{kind} {name} could not be looked up"));
        unmet(Reason::ReferenceUnknown, &LOOKUP_FAILED, &self.here, message)
    }

    /// A message about `"namespace/name"`, the Orloj namespace being that of the pod's task.
    fn about(&self, name: &str, message: impl Fn(&str) -> String) -> String {
        let home = self.identity.namespace.as_ref();
        fitted([home, name], |[home, name]| message(&quoted(&format!("{home}/{name}"))))
    }
}
