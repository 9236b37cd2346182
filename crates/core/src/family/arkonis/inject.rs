//! What an agent pod lacks to have its memory.
//!
//! The way from a pod to its memory: the pod's label names the agent, the agent's `memoryRef`
//! names the memory, all in one namespace. What the pod already says wins.

mod env;

use std::borrow::Cow;

use crate::family::pod::{Added, Injection, Place, env_pointer, insert_env, maker};
use crate::model::decision::Reason;
use crate::model::edit::{Edit, EnvSource, Op, Value};
use crate::model::event::InvolvedObject;
use crate::model::finding::{Code, Finding, quoted};
use crate::model::kind::Kind;
use crate::model::pod::{Container, Pod};
use crate::model::pointer::Pointer;
use crate::model::snapshot::{Lookup, Object, StateReader};

use self::env::{Compared, Variable};
use super::api::{AGENT_CONTAINER, DIALECTS, Dialect, memory_backend, memory_name, settings_names};
use super::codes::{
    AGENT_WITHOUT_MEMORY, LOOKUP_FAILED, POD_AGENT_NOT_FOUND, POD_ENV_CONFLICT, POD_MEMORY_INVALID,
    POD_MEMORY_NOT_FOUND, POD_NO_AGENT_CONTAINER,
};
use super::validate::first_denial;

/// What the pod lacks; `None` when it is no agent pod of this family.
#[must_use]
pub fn inject(pod: &Pod<'_>, namespace: &str, state: &mut StateReader<'_>) -> Option<Injection> {
    let (label, agent_name) = recognise(pod)?;
    if pod.spec.as_ref().is_none_or(|spec| spec.containers.is_none()) {
        return Some(Injection::nothing(Reason::Malformed));
    }
    let found = find(label, agent_name, namespace, state);
    Some(found.and_then(|found| fill(pod, namespace, &found, state)).unwrap_or_else(|unmet| *unmet))
}

/// The first label of the family that is not empty, and the agent that it names.
fn recognise<'p>(pod: &'p Pod<'_>) -> Option<(&'static str, &'p str)> {
    DIALECTS.iter().find_map(|dialect| {
        let agent = pod.label(dialect.pod_label).filter(|name| !name.is_empty())?;
        Some((dialect.pod_label, agent))
    })
}

/// The agent of the pod, or else what made the pod.
#[must_use]
pub fn referrer(pod: &Pod<'_>, namespace: &str, state: &StateReader<'_>) -> Option<InvolvedObject> {
    let (label, name) = recognise(pod)?;
    let agent = DIALECTS.iter().filter(|dialect| dialect.pod_label == label).find_map(|dialect| {
        let agent = state.peek(&dialect.agent, namespace, name)?;
        Some(InvolvedObject::of(&dialect.agent, agent))
    });
    agent.or_else(|| maker(pod, namespace))
}

/// An agent and the memory that it claims.
struct Found<'s> {
    dialect: &'static Dialect,
    agent: &'s Object,
    memory: &'s Object,
}

/// Why there is no memory; boxed, since it is the rare way out.
type Unmet = Box<Injection>;

fn unmet(reason: Reason, code: &'static Code, pointer: &Pointer, message: String) -> Unmet {
    Box::new(Injection::unmet(reason, Finding::warn(code, pointer.clone(), message)))
}

fn label_pointer(label: &str) -> Pointer {
    Pointer::new("/metadata/labels").key(label)
}

fn not_found(code: &'static Code, kind: &Kind, name: &str, namespace: &str, label: &str) -> Unmet {
    let message = format!("{} {} not found in namespace {}", kind.kind, quoted(name), quoted(namespace));
    unmet(Reason::ReferenceMissing, code, &label_pointer(label), message)
}

fn not_known(kind: &Kind, name: &str, label: &str) -> Unmet {
    let message = format!("{} {} could not be looked up", kind.kind, quoted(name));
    unmet(Reason::ReferenceUnknown, &LOOKUP_FAILED, &label_pointer(label), message)
}

fn find<'s>(
    label: &'static str,
    agent_name: &str,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<Found<'s>, Unmet> {
    let (dialect, agent) = find_agent(label, agent_name, namespace, state)?;
    let Some(name) = memory_name(dialect, &agent.tree) else {
        let path = dialect.memory_ref.join(".");
        let message = format!("{} {} has no {path}", dialect.agent.kind, quoted(agent_name));
        let mut none = unmet(Reason::NoMemory, &AGENT_WITHOUT_MEMORY, &label_pointer(label), message);
        none.quiet = true;
        return Err(none);
    };
    match state.get(&dialect.memory, namespace, name) {
        Lookup::Found(memory) => Ok(Found { dialect, agent, memory }),
        Lookup::Absent => Err(not_found(&POD_MEMORY_NOT_FOUND, &dialect.memory, name, namespace, label)),
        Lookup::Unknown => Err(not_known(&dialect.memory, name, label)),
    }
}

/// The agent under any of the names that a label stands for, the newest first.
fn find_agent<'s>(
    label: &'static str,
    name: &str,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<(&'static Dialect, &'s Object), Unmet> {
    let dialects = || DIALECTS.iter().filter(|dialect| dialect.pod_label == label);
    for dialect in dialects() {
        match state.get(&dialect.agent, namespace, name) {
            Lookup::Found(agent) => return Ok((dialect, agent)),
            Lookup::Unknown => return Err(not_known(&dialect.agent, name, label)),
            Lookup::Absent => {}
        }
    }
    let newest = dialects().next().map_or(&super::api::ARKONIS.agent, |dialect| &dialect.agent);
    Err(not_found(&POD_AGENT_NOT_FOUND, newest, name, namespace, label))
}

/// Compares what the pod has with what the memory wants, and adds what is missing.
fn fill<'s>(
    pod: &Pod<'_>,
    namespace: &str,
    found: &Found<'s>,
    state: &mut StateReader<'s>,
) -> Result<Injection, Unmet> {
    let (dialect, memory) = (found.dialect, found.memory);
    if let Some(first) = memory.defect(|tree| first_denial(dialect, tree)) {
        let message = format!("{} {} is invalid: {first}", dialect.memory.kind, quoted(&memory.name));
        let here = label_pointer(dialect.pod_label);
        return Err(unmet(Reason::ReferenceInvalid, &POD_MEMORY_INVALID, &here, message));
    }
    let (index, container) = agent_container(pod)?;
    let wanted = env::wanted(dialect, memory);
    let compared = env::compare(container.env.as_deref().unwrap_or_default(), &wanted, dialect);
    let mut plan = Plan::new(dialect, memory, index);
    plan.backend(&compared, || settings_backend(found, namespace, state));
    plan.others(compared);
    Ok(plan.carry_out(container))
}

fn agent_container<'p, 'a>(pod: &'p Pod<'a>) -> Result<(usize, &'p Container<'a>), Unmet> {
    let mut containers = pod.containers().iter().enumerate();
    containers.find(|(_, container)| container.name.as_deref() == Some(AGENT_CONTAINER)).ok_or_else(|| {
        let message = format!("no container named \"{AGENT_CONTAINER}\"");
        unmet(Reason::NoContainer, &POD_NO_AGENT_CONTAINER, &Pointer::new("/spec/containers"), message)
    })
}

/// The backend that the agent's settings name, if these are known: the last ones that exist count.
/// An empty one is none: no operator writes a variable for it.
fn settings_backend<'s>(found: &Found<'s>, namespace: &str, state: &mut StateReader<'s>) -> Option<&'s str> {
    let names = settings_names(found.dialect, &found.agent.tree).into_iter().rev();
    names
        .into_iter()
        .find_map(|(_, name)| match state.get(&found.dialect.settings, namespace, name) {
            Lookup::Found(settings) => Some(memory_backend(&settings.tree)),
            Lookup::Absent | Lookup::Unknown => None,
        })
        .filter(|backend| !backend.is_empty())
}

/// What will be done to the agent's container.
struct Plan<'s> {
    dialect: &'static Dialect,
    memory: &'s Object,
    container: usize,
    /// The pod names another backend on purpose: half a set of variables would mix two.
    given_up: bool,
    rewrite: Option<(usize, Variable)>,
    missing: Vec<Variable>,
    warnings: Vec<Finding>,
}

impl<'s> Plan<'s> {
    const fn new(dialect: &'static Dialect, memory: &'s Object, container: usize) -> Self {
        Self {
            dialect,
            memory,
            container,
            given_up: false,
            rewrite: None,
            missing: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A backend that came from the agent's settings gives way to the memory's; any other stays.
    fn backend<'q>(&mut self, compared: &Compared<'_>, settings_backend: impl FnOnce() -> Option<&'q str>) {
        let Some((index, variable, literal)) = &compared.other_backend else { return };
        if literal.is_some() && *literal == settings_backend() {
            self.rewrite = Some((*index, variable.clone()));
            return;
        }
        let set = literal
            .map_or_else(|| "from a reference".to_owned(), |literal| format!("to {}", quoted(literal)));
        let EnvSource::Value(wanted) = &variable.source else { return };
        let message = format!(
            "{} is already set {set}; {} wants {}",
            variable.name,
            self.memory_name(),
            quoted(wanted)
        );
        self.warn(*index, message);
        self.given_up = true;
    }

    fn others(&mut self, compared: Compared<'_>) {
        if self.given_up {
            return;
        }
        self.missing = compared.missing;
        for (index, name) in compared.different {
            let message = format!("{name} is already set and differs from {}", self.memory_name());
            self.warn(index, message);
        }
        for (index, name) in compared.unwanted {
            let message = format!("{name} is set but not wanted by {}", self.memory_name());
            self.warn(index, message);
        }
    }

    fn memory_name(&self) -> String {
        format!("{} {}", self.dialect.memory.kind, quoted(&self.memory.name))
    }

    fn warn(&mut self, index: usize, message: String) {
        let pointer = env_pointer(self.container).index(index);
        self.warnings.push(Finding::warn(&POD_ENV_CONFLICT, pointer, message));
    }

    /// The `replace` comes first: the `add`s shift what stands behind them.
    fn carry_out(self, container: &Container<'_>) -> Injection {
        let rewritten = self.rewrite.iter().map(|(_, variable)| variable.name);
        let names: Vec<_> =
            rewritten.chain(self.missing.iter().map(|variable| variable.name)).map(Cow::from).collect();
        let place = if env::refers_to_others(self.dialect, self.memory) { Place::End } else { Place::Front };
        let memory =
            format!("{} {}/{}", self.dialect.memory.kind, self.memory.namespace, self.memory.name).into();
        let origin = |variable: &Variable| variable.origin(&memory);
        let mut edits: Vec<Edit> = Vec::new();
        if let Some((index, variable)) = &self.rewrite {
            edits.push(Edit {
                op: Op::Replace,
                pointer: env_pointer(self.container).index(*index).key("value"),
                value: Value::Text(variable.literal().to_owned()),
                origins: vec![origin(variable)],
            });
        }
        let block = self.missing.iter().map(|variable| (variable.env_var(), origin(variable))).collect();
        edits.extend(insert_env(self.container, container.env.as_deref(), block, place));
        let reason = match (edits.is_empty(), self.given_up || !self.warnings.is_empty()) {
            (false, _) => Reason::Injected,
            (true, true) => Reason::Conflict,
            (true, false) => Reason::Complete,
        };
        let env = if names.is_empty() { Vec::new() } else { vec![(AGENT_CONTAINER.to_owned(), names)] };
        let memory = vec![format!("{}/{}", self.dialect.memory.kind, self.memory.name)];
        let added = Added { memory, env, ..Added::default() };
        Injection { warnings: self.warnings, edits, added, ..Injection::nothing(reason) }
    }
}
