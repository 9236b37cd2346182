//! Finds the memory of a pod: its arguments or labels name an Agent, and the Agent names the Memory.

use crate::orloj::claim::TARGET_NAMESPACE;
use crate::orloj::namespace::{self, Resolved, namespaced};
use crate::orloj::prelude::*;

use super::{AgentName, Identity};

/// An Agent, its granted operations, and the Memory that it claims.
pub(super) struct GrantedMemory<'s> {
    pub(super) agent: &'s Object,
    pub(super) operations: Vec<&'static str>,
    pub(super) memory: &'s Object,
}

/// Finds Agents by their Orloj namespace and their sanitized name, which has no slash.
static BY_SANITIZED_NAME: Index = Index {
    place: 3,
    keys: |agent| {
        let name = super::sanitized(&agent.name);
        vec![namespaced(namespace::object_namespace(agent), &name).into()]
    },
};

/// Finds the memory for the identity of a pod.
pub(super) struct Finder<'p> {
    /// The pointer of the findings.
    pub(super) pointer: Pointer,
    pub(super) identity: Identity<'p>,
}

impl Finder<'_> {
    pub(super) fn find<'s>(
        &self,
        pod_namespace: &str,
        state: &mut StateReader<'s>,
    ) -> Result<GrantedMemory<'s>, Unmet> {
        let agent = self.find_agent(pod_namespace, state)?;
        let name = claimed_memory(agent.tree()).ok_or_else(|| self.no_memory(agent))?;
        let operations = self.operations(agent)?;
        let memory = self.resolve(&MEMORY, name, &POD_MEMORY_MISSING, state);
        let memory = memory
            .map_err(|unmet| unmet_by(unmet, agent, Pointer::new("/spec/memory/ref"), "claimed here"))?;
        Ok(GrantedMemory { agent, operations, memory })
    }

    fn find_agent<'s>(&self, pod_namespace: &str, state: &mut StateReader<'s>) -> Result<&'s Object, Unmet> {
        // The namespace is checked before all lookups: a pod of another one must not learn what exists.
        let name = match &self.identity.name {
            AgentName::Exact(name) => {
                self.check_namespace(pod_namespace, state)?;
                name
            }
            AgentName::Sanitized(label) => {
                self.check_namespace(pod_namespace, state)?;
                self.find_sanitized(label, state)?.unwrap_or(label)
            }
            AgentName::None => {
                return Err(self.unmet(
                    Reason::ReferenceMissing,
                    &POD_AGENT_MISSING,
                    "the pod names no Agent: it has neither the flag --agent nor the label orloj.dev/agent",
                ));
            }
        };
        self.resolve(&AGENT, name, &POD_AGENT_MISSING, state)
    }

    /// The name of the Agents in the Orloj namespace with this sanitized name; an error if there are several
    /// names.
    fn find_sanitized<'s>(
        &self,
        sanitized: &str,
        state: &mut StateReader<'s>,
    ) -> Result<Option<&'s str>, Unmet> {
        let home = self.identity.namespace.as_ref();
        let key = namespaced(home, sanitized);
        let mut agents = state.indexed(&AGENT, &BY_SANITIZED_NAME, &key);
        let Some(first) = agents.next() else { return Ok(None) };
        // Without an agent at home, claims of other namespaces count only if all of them are held.
        if *first.namespace != *home && state.may_lack(&AGENT, (&BY_SANITIZED_NAME, &key)) {
            return Err(self.unknown(AGENT.kind, sanitized, state));
        }
        match agents.find(|agent| agent.name != first.name) {
            None => Ok(Some(&first.name)),
            Some(second) => {
                let message = filled("label {bare} {} matches several Agents", [AGENT_LABEL, sanitized]);
                let at = label_pointer(AGENT_LABEL);
                let unmet = unmet(Reason::ReferenceInvalid, &POD_AGENT_AMBIGUOUS, at, message);
                let both = [first, second].into_iter();
                let name = || Pointer::new("/metadata/name");
                Err(both.fold(unmet, |unmet, agent| unmet_by(unmet, agent, name(), "matches")))
            }
        }
    }

    /// The operations of the Agent. An Agent without operations has no memory, and Orloj ignores an Agent with an
    /// invalid operation.
    fn operations(&self, agent: &Object) -> Result<Vec<&'static str>, Unmet> {
        let mut operations = Vec::with_capacity(OPERATIONS.len());
        for (index, entry) in allow(agent.tree()).iter().enumerate() {
            let Some(operation) = operation(entry) else {
                let message = self.message_about("Agent {/} has an invalid spec.memory.allow", &agent.name);
                let unmet = self.unmet(Reason::ReferenceInvalid, &POD_ALLOW_INVALID, message);
                let at = Pointer::new("/spec/memory/allow").index(index);
                return Err(unmet_by(unmet, agent, at, "invalid"));
            };
            if !operations.contains(&operation) {
                operations.push(operation);
            }
        }
        if operations.is_empty() { Err(self.no_memory(agent)) } else { Ok(operations) }
    }

    /// The object of this name in the Orloj namespace of the pod's task.
    fn resolve<'s>(
        &self,
        kind: &'static Kind,
        name: &str,
        missing: &'static Code,
        state: &mut StateReader<'s>,
    ) -> Result<&'s Object, Unmet> {
        let home = self.identity.namespace.as_ref();
        match namespace::resolve(kind, home, name, state) {
            Resolved::Found(object) => Ok(object),
            Resolved::Ambiguous(claims) => {
                let finding = ambiguous(kind, home, name, &claims, self.pointer.clone());
                Err(Box::new(Injection::unmet(Reason::ReferenceInvalid, finding)))
            }
            Resolved::Absent => Err(self.not_found(missing, kind, name)),
            Resolved::Unknown => Err(self.unknown(kind.kind, name, state)),
        }
    }

    /// Refuses a pod of another namespace, unless Orloj runs its Jobs there.
    fn check_namespace(&self, pod_namespace: &str, state: &StateReader<'_>) -> Result<(), Unmet> {
        let home = self.identity.namespace.as_ref();
        let jobs = &state.settings().orloj.job_namespaces;
        if pod_namespace == home || jobs.iter().any(|namespace| namespace == pod_namespace) {
            return Ok(());
        }
        let text = "namespace {} may not use memory of Orloj namespace {}";
        let finding = warning(&POD_FOREIGN_NAMESPACE, &self.pointer, text, [pod_namespace, home])
            .help("see the setting orloj.jobNamespaces");
        Err(Box::new(Injection::unmet(Reason::ReferenceInvalid, finding)))
    }

    fn no_memory(&self, agent: &Object) -> Unmet {
        let text = "Agent {/} uses no memory: it needs spec.memory.ref and spec.memory.allow";
        let message = self.message_about(text, &agent.name);
        let unmet = no_memory(&POD_MEMORY_NONE, self.pointer.clone(), message);
        unmet_by(unmet, agent, Pointer::new("/spec/memory"), "grants no operation of a memory")
    }

    fn not_found(&self, code: &'static Code, kind: &'static Kind, name: &str) -> Unmet {
        let message = self.message_about(&[kind.kind, " {/} not found"].concat(), name);
        let mut unmet = self.unmet(Reason::ReferenceMissing, code, message);
        unmet.missing = references([kind], &self.identity.namespace, name);
        unmet
    }

    fn unknown(&self, kind: &str, name: &str, state: &StateReader<'_>) -> Unmet {
        let object = [kind, &self.identity.namespace, name];
        lookup_failed(&LOOKUP_FAILED, self.pointer.clone(), object, state)
    }

    fn unmet(&self, reason: Reason, code: &'static Code, message: impl Into<String>) -> Unmet {
        unmet(reason, code, self.pointer.clone(), message)
    }

    /// A message about an object in the Orloj namespace of the pod's task.
    fn message_about(&self, template: &str, name: &str) -> String {
        filled(template, [self.identity.namespace.as_ref(), name])
    }
}

/// The Agent of this identity, if it is in the Kubernetes namespace that has the name of its Orloj namespace.
pub(super) fn agent_at_home<'s>(
    identity: &Identity<'_>,
    namespace: &str,
    state: &StateReader<'s>,
) -> Option<&'s Object> {
    let fits = |agent: &&Object| {
        *agent.namespace == *namespace
            && namespace::object_namespace(agent) == namespace
            && identity.matches(&agent.name)
    };
    match &identity.name {
        AgentName::Exact(name) => state.peek(&AGENT, namespace, name).filter(fits),
        AgentName::Sanitized(label) => {
            state.peek_indexed(&AGENT, &BY_SANITIZED_NAME, &namespaced(namespace, label)).find(fits)
        }
        AgentName::None => None,
    }
}

/// The finding about a name in an Orloj namespace that objects of several other namespaces claim. memgate uses
/// none of them: a user who may create objects in one namespace must not change the pods of another.
pub(super) fn ambiguous(
    kind: &'static Kind,
    home: &str,
    name: &str,
    claims: &[&Object],
    pointer: Pointer,
) -> Finding {
    /// How many of the objects the finding shows.
    const MAX_SHOWN: usize = 2;
    let text = "{bare} {/} is claimed by several namespaces";
    let mut finding = warning(&POD_AMBIGUOUS, pointer, text, [kind.kind, home, name])
        .help("create it in the namespace of that very name, or see the setting orloj.sourceNamespaces");
    let shown = claims.iter().take(MAX_SHOWN);
    finding.elsewhere.extend(shown.map(|object| {
        let at = Pointer::new("/metadata/annotations").key(TARGET_NAMESPACE);
        Elsewhere::of(object, at, "claims the name")
    }));
    finding
}
