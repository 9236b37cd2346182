//! Running pods of agents that lack their memory, by what owns them. A pod lacks its memory if it would get some were it
//! made now.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::agent_pods::{AgentPod, Owner};
use crate::cluster_state::elements;
use memgate_core::decide::decide;
use memgate_model::family::Family;
use memgate_model::kind::{POD, SYSTEM_NAMESPACES};
use memgate_model::object::{KindState, Reference};
use memgate_model::reason::Reason;
use memgate_model::request::Request as Review;
use memgate_model::snapshot::Snapshot;
use memgate_platforms::inject::INJECTED_ANNOTATION;
use memgate_primitives::name::is_dns_subdomain;

use super::state::{Pages, State, Stored};
use super::{Faults, TooManyFaults};

/// The pods of an owner that lack their memory.
#[derive(Debug)]
pub struct Missed {
    /// How many they are.
    pub pods: usize,
    /// Why the first of them does.
    cause: Cause,
}

/// Why a pod lacks its memory.
#[derive(Debug)]
enum Cause {
    /// It was made without; a new one would get it.
    Made,
    /// The memory cannot be used: what is wrong, and the code of the finding.
    Unusable(String, String),
}

impl Missed {
    /// What is the matter.
    pub fn message(&self) -> String {
        let pods = if self.pods == 1 { "1 pod runs".to_owned() } else { format!("{} pods run", self.pods) };
        match &self.cause {
            Cause::Made => format!("{pods} without the memory that a new one would get"),
            Cause::Unusable(why, _) => format!("{pods} without memory: {why}"),
        }
    }

    /// How the pods get their memory.
    pub fn help(&self, owner: &Owner) -> String {
        match &self.cause {
            Cause::Made => owner.renewal(),
            Cause::Unusable(_, code) => format!("memgate explain {code}; then {}", owner.renewal()),
        }
    }

    /// What the log says.
    pub(super) fn sentence(&self, owner: &Owner) -> String {
        format!("{}: {}; {}", owner.title(), self.message(), self.help(owner))
    }
}

/// Counts the running pods without their memory.
pub(super) async fn count(
    state: &mut State<'_>,
    faults: &mut Faults,
) -> Result<BTreeMap<Owner, Missed>, TooManyFaults> {
    let mut missed = BTreeMap::<Owner, Missed>::new();
    let settings = state.snapshot.settings.clone();
    let families = settings.families.iter().filter(|family| has_objects(&state.snapshot, family));
    let selectors: Vec<_> = families.flat_map(|family| family.pods.selectors).collect();
    for (index, selector) in selectors.iter().enumerate() {
        let mut pages = Pages::new(state.reader, &POD, selector.query());
        loop {
            let mut pods = match pages.next().await {
                Ok(Some(pods)) => pods,
                Ok(None) => break,
                Err(why) => {
                    faults.add(why)?;
                    break;
                }
            };
            pods.retain(|pod| {
                let is_seen = !SYSTEM_NAMESPACES.contains(&pod.namespace.as_str())
                    && pod.namespace != settings.policies.own_namespace;
                is_seen && {
                    let pod = read(pod);
                    let labels = labels(&pod);
                    let has = |key: &str| pod.annotation(key).is_some();
                    // Each pod counts once.
                    !pod.ends() && selectors.iter().position(|it| it.selects(&labels, has)) == Some(index)
                }
            });
            for (pod, cause) in state.judge(pods, faults, cause).await? {
                if let Some(cause) = cause.flatten() {
                    missed.entry(owner(&read(&pod))).or_insert(Missed { pods: 0, cause }).pods += 1;
                }
            }
        }
    }
    Ok(missed)
}

fn has_objects(snapshot: &Snapshot, family: &Family) -> bool {
    let kinds = family.kinds.watched.iter().filter(|kind| !kind.group.is_empty());
    kinds.filter_map(|kind| snapshot.kind(kind)).any(|state| KindState::kept(state).next().is_some())
}

fn read(pod: &Stored) -> AgentPod {
    AgentPod { json: serde_json::from_str(&pod.text).unwrap_or_default() }
}

fn labels(pod: &AgentPod) -> BTreeMap<String, String> {
    let labels = pod.json.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Why a pod lacks memory, if it does, and what is not known.
fn cause(pod: &Stored, snapshot: &Snapshot) -> (Option<Cause>, Vec<Reference>) {
    let decision = decide(&Review::to_create_pod(&pod.namespace, &pod.name, &pod.text), snapshot);
    if decision.adds_memory() {
        return (Some(Cause::Made), Vec::new());
    }
    // What was injected into a pod stays in it when the memory is deleted.
    let has_none = matches!(decision.reason, Reason::ReferenceMissing | Reason::ReferenceInvalid)
        && read(pod).annotation(INJECTED_ANNOTATION).is_none();
    match decision.findings.first().filter(|_| has_none) {
        Some(finding) => {
            let (why, code) = (finding.message().into_owned(), finding.code_name().to_owned());
            (Some(Cause::Unusable(why, code)), Vec::new())
        }
        None => (None, decision.unknown),
    }
}

/// What owns a pod. A user who makes a pod may write anything as its owner: then it is the pod itself.
fn owner(pod: &AgentPod) -> Owner {
    let controls = |owner: &Value| owner.get("controller") == Some(&Value::Bool(true));
    let has_controller = elements(&pod.json, "/metadata/ownerReferences").any(controls);
    let owner = pod.owner();
    let is_kind = owner.kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if has_controller && is_kind && is_dns_subdomain(&owner.name) {
        return owner;
    }
    Owner { kind: POD.kind.to_owned(), name: pod.name().to_owned(), ..owner }
}
