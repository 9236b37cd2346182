//! The variables that an agent's container should have.

use crate::arkonis::api::{Dialect, memory_backend, settings_names};
use crate::arkonis::codes::POD_ENV_CONFLICT;
use crate::arkonis::fields::{
    BACKEND, COLLECTION, EMBEDDING_MODEL, EMBEDDING_PROVIDER, ENDPOINT, VARIABLES, VECTOR_STORE,
};
use crate::inject::env::{self, ExistingEnv, Position, Variable};
use crate::inject::own::MemoryVariableNames;
use crate::inject::{self, Unmet, WantedByContainer, WantedByPod};
use crate::prelude::*;
use memgate_model::edit::EnvSource;
use memgate_model::injection::Injection;
use memgate_model::pod::Container;
use memgate_model::reason::Reason;

use super::AgentMemory;

const SUCCESSOR_VARIABLE_COUNT: usize = 3;
const EMBEDDING_VARIABLE_COUNT: usize = 2;

/// The prefix of all [`VARIABLES`]. Variables of the pod without it are skipped.
const PREFIX: &str = "AGENT_";

/// What the agent's container should have. The memory's backend replaces a backend from the agent's
/// settings. If the pod sets any other backend, nothing is added, since the variables of two backends would
/// mix.
pub(super) fn want<'s, 'p>(
    (index, container): (usize, &'p Container<'p>),
    found: &AgentMemory<'s>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Result<WantedByPod<'p>, Unmet> {
    let existing = ExistingEnv::read(container, &[PREFIX]);
    let mut variables = variables(found.dialect, found.memory);
    let backend = variables.iter_mut().find(|variable| variable.name == BACKEND.variable);
    if let Some((entry_index, entry)) = existing.get(BACKEND.variable)
        && let Some(variable) = backend.filter(|variable| !variable.equals(entry))
    {
        let literal = entry.literal();
        if literal.is_none() || literal != settings_backend(found, namespace, state) {
            return Err(backend_conflict(index, entry_index, literal, variable, found));
        }
        variable.replaces = true;
    }
    let warnings = unwanted(index, &existing, &variables, found);
    let memory = vec![format!("{}/{}", found.dialect.memory.kind, found.memory.name)];
    let conflict = !warnings.is_empty();
    let position = if refers_to_others(found) { Position::End } else { Position::Front };
    let container = WantedByContainer::variables(index, container, existing, variables);
    let containers = vec![WantedByContainer { position, ..container }];
    Ok(WantedByPod { memory, containers, warnings, conflict, ..WantedByPod::default() })
}

/// The result for a pod that sets another backend on purpose.
fn backend_conflict(
    container: usize,
    entry: usize,
    literal: Option<&str>,
    wanted: &Variable<'_>,
    found: &AgentMemory<'_>,
) -> Unmet {
    let set = literal.map_or_else(|| "from a reference".to_owned(), |text| format!("to {}", quoted(text)));
    let EnvSource::Value(backend) = &wanted.source else {
        return Box::new(Injection::nothing(Reason::Conflict));
    };
    let message =
        format!("{} is already set {set}; {} wants {}", wanted.name, found.memory_title(), quoted(backend));
    let warning = Finding::warn(&POD_ENV_CONFLICT, env::pointer(container).index(entry), message).elsewhere(
        found.memory,
        BACKEND.pointer(),
        "the backend of the memory",
    );
    Box::new(Injection { warnings: vec![warning], ..Injection::nothing(Reason::Conflict) })
}

/// The backend in the agent's settings, if they are known. The last existing settings count. An empty
/// backend counts as absent, since operators do not write a variable for it.
fn settings_backend<'s>(
    found: &AgentMemory<'s>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Option<&'s str> {
    settings_names(found.dialect, found.agent.tree())
        .rev()
        .find_map(|(_, name)| state.get(&found.dialect.settings, namespace, name).found())
        .map(|settings| memory_backend(settings.tree()))
        .filter(|backend| !backend.is_empty())
}

/// Warnings about variables that this memory does not use.
fn unwanted(
    container: usize,
    existing: &ExistingEnv<'_>,
    wanted: &[Variable<'_>],
    found: &AgentMemory<'_>,
) -> Vec<Finding> {
    let differing = names(found.dialect.successor).differing(existing, wanted);
    let there = differing.filter_map(|(name, _, variable)| match variable {
        None => Some((existing.get(name)?.0, name)),
        Some(_) => None,
    });
    let warning = |(entry, name)| {
        let message = format!("{name} is set but not wanted by {}", found.memory_title());
        Finding::warn(&POD_ENV_CONFLICT, env::pointer(container).index(entry), message).elsewhere(
            found.memory,
            BACKEND.pointer(),
            "the backend of the memory",
        )
    };
    there.map(warning).collect()
}

/// The names of the variables about memory.
pub(crate) fn names(of_successor: bool) -> MemoryVariableNames<'static> {
    first_names(VARIABLES.len() - if of_successor { 0 } else { SUCCESSOR_VARIABLE_COUNT })
}

/// The same without those about embeddings.
pub(super) fn names_of_address() -> MemoryVariableNames<'static> {
    first_names(VARIABLES.len() - EMBEDDING_VARIABLE_COUNT)
}

fn first_names(count: usize) -> MemoryVariableNames<'static> {
    let names = VARIABLES.get(..count).unwrap_or_default();
    MemoryVariableNames { prefixes: &[PREFIX], names, open: None }
}

/// The variables of a valid memory, in order. Without a model, the provider of the model does not matter.
pub(super) fn variables(dialect: &Dialect, object: &Object) -> Vec<Variable<'static>> {
    let memory = dialect.fields.of(object.tree());
    let mut variables = memory.variables(&inject::resource_name(dialect.memory.kind, object));
    let has_model = memory.text(&EMBEDDING_MODEL).is_some();
    variables.retain(|variable| has_model || variable.name != EMBEDDING_PROVIDER.variable);
    variables
}

/// Whether a value holds `$(NAME)`, which the kubelet resolves only from entries before it.
fn refers_to_others(found: &AgentMemory<'_>) -> bool {
    let memory = found.dialect.fields.of(found.memory.tree());
    let mut texts = [&ENDPOINT, &COLLECTION].into_iter().filter_map(|field| memory.text(field));
    memory.backend() == Some(&VECTOR_STORE) && texts.any(|text| text.contains("$("))
}
