//! Finds the memory of a pod: its arguments or labels name an Agent, and the Agent names the Memory.

use crate::family::inject::{Unmet, label_pointer, no_memory, references, unmet};
use crate::model::finding::{Code, Finding, quoted};
use crate::model::injection::Injection;
use crate::model::kind::Kind;
use crate::model::object::{Lookup, Object};
use crate::model::pointer::Pointer;
use crate::model::reason::Reason;
use crate::model::state_reader::StateReader;

use super::super::api::{AGENT, AGENT_LABEL, Claim, MEMORY, operation};
use super::super::codes::{
    LOOKUP_FAILED, POD_AGENT_AMBIGUOUS, POD_AGENT_MISSING, POD_ALLOW_INVALID, POD_FOREIGN_NAMESPACE,
    POD_MEMORY_MISSING, POD_MEMORY_NONE,
};
use super::super::message::fit_names;
use super::super::namespace;
use super::recognise::{self, AgentName, Identity};

/// An Agent, what it may do, and the Memory that it claims.
pub(super) struct Found<'s> {
    pub(super) agent: &'s Object,
    pub(super) operations: Vec<&'static str>,
    pub(super) memory: &'s Object,
}

/// Finds the memory for the identity of a pod.
pub(super) struct Finder<'p> {
    /// Where findings point.
    pub(super) pointer: Pointer,
    pub(super) identity: Identity<'p>,
}

impl Finder<'_> {
    pub(super) fn find<'s>(
        &self,
        pod_namespace: &str,
        state: &mut StateReader<'s>,
    ) -> Result<Found<'s>, Unmet> {
        let agent = self.find_agent(state)?;
        let claim = Claim::read(&agent.tree);
        let name = claim.reference.ok_or_else(|| self.no_memory(agent))?;
        let operations = self.operations(agent, &claim)?;
        let memory = self.find_memory(name, state)?;
        self.check_namespace(pod_namespace, state)?;
        Ok(Found { agent, operations, memory })
    }

    fn find_agent<'s>(&self, state: &mut StateReader<'s>) -> Result<&'s Object, Unmet> {
        let home = self.identity.namespace.as_ref();
        let (name, sanitized) = match &self.identity.name {
            AgentName::Exact(name) => (name.as_ref(), false),
            AgentName::Sanitized(label) => (*label, true),
            AgentName::None => {
                let message = "pod names no Agent".to_owned();
                return Err(unmet(
                    Reason::ReferenceMissing,
                    &POD_AGENT_MISSING,
                    self.pointer.clone(),
                    message,
                ));
            }
        };
        if sanitized && let Some(agent) = self.find_sanitized(name, state)? {
            return Ok(agent);
        }
        match namespace::find(&AGENT, home, name, state) {
            Lookup::Found(agent) => Ok(agent),
            Lookup::Absent => Err(self.not_found(&POD_AGENT_MISSING, &AGENT, name)),
            Lookup::Unknown => Err(self.lookup_failed("Agent", name)),
        }
    }

    /// The only Agent of the Orloj namespace with this sanitized name.
    fn find_sanitized<'s>(
        &self,
        sanitized: &str,
        state: &mut StateReader<'s>,
    ) -> Result<Option<&'s Object>, Unmet> {
        let home = self.identity.namespace.as_ref();
        let agents = state.everywhere(&AGENT).filter(|agent| namespace::object_namespace(agent) == home);
        let mut names: Vec<&str> = agents.map(|agent| agent.name.as_str()).collect();
        names.retain(|name| recognise::sanitized(name) == sanitized);
        names.sort_unstable();
        names.dedup();
        match names.as_slice() {
            [] => Ok(None),
            [only] => Ok(match namespace::find(&AGENT, home, only, state) {
                Lookup::Found(agent) => Some(agent),
                Lookup::Absent | Lookup::Unknown => None,
            }),
            _ => {
                let message = fit_names([sanitized], |[label]| {
                    format!("label {AGENT_LABEL} {} matches several Agents", quoted(label))
                });
                Err(unmet(
                    Reason::ReferenceInvalid,
                    &POD_AGENT_AMBIGUOUS,
                    label_pointer(AGENT_LABEL),
                    message,
                ))
            }
        }
    }

    /// The operations of the Agent. Without any it has no memory, and with an invalid one Orloj never sees
    /// the Agent.
    fn operations(&self, agent: &Object, claim: &Claim<'_>) -> Result<Vec<&'static str>, Unmet> {
        let granted: Option<Vec<_>> = claim.allow.iter().map(|entry| operation(entry)).collect();
        let Some(granted) = granted else {
            let message = self.message_about(&agent.name, |agent| {
                format!("Agent {agent} has an invalid spec.memory.allow")
            });
            return Err(unmet(Reason::ReferenceInvalid, &POD_ALLOW_INVALID, self.pointer.clone(), message));
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
            Lookup::Absent => Err(self.not_found(&POD_MEMORY_MISSING, &MEMORY, name)),
            Lookup::Unknown => Err(self.lookup_failed("Memory", name)),
        }
    }

    /// Refuses a pod of another namespace, unless Orloj runs its Jobs there.
    fn check_namespace(&self, pod_namespace: &str, state: &StateReader<'_>) -> Result<(), Unmet> {
        let home = self.identity.namespace.as_ref();
        let jobs = &state.settings().orloj.job_namespaces;
        if pod_namespace == home || jobs.iter().any(|namespace| namespace == pod_namespace) {
            return Ok(());
        }
        let message = fit_names([pod_namespace, home], |[pod, home]| {
            format!("namespace {} may not use memory of Orloj namespace {}", quoted(pod), quoted(home))
        });
        let finding = Finding::warn(&POD_FOREIGN_NAMESPACE, self.pointer.clone(), message)
            .help("see --orloj-job-namespace");
        Err(Box::new(Injection::unmet(Reason::ReferenceInvalid, finding)))
    }

    fn no_memory(&self, agent: &Object) -> Unmet {
        let message = self.message_about(&agent.name, |agent| format!("Agent {agent} uses no memory"));
        no_memory(&POD_MEMORY_NONE, self.pointer.clone(), message)
    }

    fn not_found(&self, code: &'static Code, kind: &'static Kind, name: &str) -> Unmet {
        let message = self.message_about(name, |name| format!("{} {name} not found", kind.kind));
        let mut unmet = unmet(Reason::ReferenceMissing, code, self.pointer.clone(), message);
        unmet.missing = references([kind], &self.identity.namespace, name);
        unmet
    }

    fn lookup_failed(&self, kind: &str, name: &str) -> Unmet {
        let message = self.message_about(name, |name| format!("{kind} {name} could not be looked up"));
        unmet(Reason::ReferenceUnknown, &LOOKUP_FAILED, self.pointer.clone(), message)
    }

    /// A message about `"namespace/name"`, the Orloj namespace being that of the pod's task.
    fn message_about(&self, name: &str, message: impl Fn(&str) -> String) -> String {
        let home = self.identity.namespace.as_ref();
        fit_names([home, name], |[home, name]| message(&quoted(&format!("{home}/{name}"))))
    }
}
