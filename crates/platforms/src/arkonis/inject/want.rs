//! The variables that an agent's container should have.

use crate::arkonis::api::{self, Backend, Dialect, Field, Memory, PGVECTOR, memory_backend, settings_names};
use crate::arkonis::codes::POD_ENV_CONFLICT;
use crate::arkonis::edges::{REDIS_KEY, VECTOR_KEY};
use crate::inject::env::{self, ExistingEnv, Position, Variable};
use crate::inject::own::MemoryVariableNames;
use crate::inject::{self, Unmet, WantedByContainer, WantedByPod};
use crate::prelude::*;

use super::AgentMemory;

const SUCCESSOR_VARIABLE_COUNT: usize = 3;
const EMBEDDING_VARIABLE_COUNT: usize = 2;

pub(crate) const BACKEND: &str = "AGENT_MEMORY_BACKEND";
pub(crate) const REDIS_URL: &str = "AGENT_MEMORY_REDIS_URL";
pub(crate) const REDIS_TTL: &str = "AGENT_MEMORY_REDIS_TTL";
pub(crate) const MAX_ENTRIES: &str = "AGENT_MEMORY_REDIS_MAX_ENTRIES";
pub(crate) const PROVIDER: &str = "AGENT_MEMORY_VECTOR_STORE_PROVIDER";
pub(crate) const ENDPOINT: &str = "AGENT_MEMORY_VECTOR_STORE_ENDPOINT";
pub(crate) const COLLECTION: &str = "AGENT_MEMORY_VECTOR_STORE_COLLECTION";
pub(crate) const API_KEY: &str = "AGENT_MEMORY_VECTOR_STORE_API_KEY";
pub(crate) const VECTOR_TTL: &str = "AGENT_MEMORY_VECTOR_STORE_TTL";
pub(crate) const VECTOR_URL: &str = "AGENT_VECTOR_STORE_URL";
pub(crate) const EMBEDDING_MODEL: &str = "AGENT_EMBEDDING_MODEL";
pub(crate) const EMBEDDING_PROVIDER: &str = "AGENT_EMBEDDING_PROVIDER";

/// The variables about memory, in order; only the successor has the last three.
const VARIABLES: [&str; 12] = [
    BACKEND, REDIS_URL, REDIS_TTL, MAX_ENTRIES, PROVIDER, ENDPOINT, COLLECTION, API_KEY, VECTOR_TTL,
    VECTOR_URL, EMBEDDING_MODEL, EMBEDDING_PROVIDER,
];

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
    let backend = variables.iter_mut().find(|variable| variable.name == BACKEND);
    if let Some((entry_index, entry)) = existing.get(BACKEND)
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
        api::BACKEND.into(),
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
            api::BACKEND.into(),
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
    let memory = Memory::read(dialect, object.tree());
    let resource = inject::resource_name(dialect.memory.kind, object);
    let origin = |field: Field| inject::field_origin(&resource, field.join("."));
    let literal = |name, text: &str, field| Variable::literal(name, text, origin(field));
    let number = |name, field: (Field, i64)| {
        let number = Some(memory.number(field)).filter(|number| *number > 0);
        number.map(|number| literal(name, &number.to_string(), field.0))
    };
    let secret = |name, secret: &str, key: &'static str, field| {
        let key = KeyRef { name: secret.to_owned(), key: key.into(), optional: None };
        Variable::new(name, EnvSource::Secret(key), origin(field)).ignoring_optional()
    };
    let Some(backend) = memory.backend() else { return Vec::new() };
    let mut variables = vec![literal(BACKEND, backend.name(), api::BACKEND)];
    match backend {
        Backend::Redis if memory.has(api::REDIS) => {
            let name = memory.secret(api::REDIS_SECRET).unwrap_or_default();
            variables.push(secret(REDIS_URL, name, REDIS_KEY, api::REDIS_SECRET).address());
            variables.extend(number(REDIS_TTL, api::REDIS_TTL));
            variables.extend(number(MAX_ENTRIES, api::MAX_ENTRIES));
        }
        Backend::VectorStore if memory.has(api::VECTOR_STORE) => {
            let text = |field| memory.text(field).unwrap_or_default();
            let (provider, endpoint) = (text(api::PROVIDER), text(api::ENDPOINT));
            let (name, is_empty) = (memory.collection().to_owned(), memory.text(api::COLLECTION) == Some(""));
            let collection = literal(COLLECTION, &name, api::COLLECTION);
            // Operators write an empty variable for an empty text.
            let collection = collection.equal_if(move |text| text == name || is_empty && text.is_empty());
            variables.push(literal(PROVIDER, provider, api::PROVIDER));
            variables.push(literal(ENDPOINT, endpoint, api::ENDPOINT).address());
            variables.push(collection);
            let key = memory.secret(api::VECTOR_SECRET);
            variables.extend(key.map(|name| secret(API_KEY, name, VECTOR_KEY, api::VECTOR_SECRET)));
            variables.extend(number(VECTOR_TTL, api::VECTOR_TTL));
            if dialect.successor {
                let url = vector_url(provider, endpoint, memory.collection());
                variables.push(literal(VECTOR_URL, &url, api::ENDPOINT).address());
                if let Some((model, of)) = memory.text(api::EMBEDDING_MODEL).zip(memory.embedding_provider())
                {
                    variables.push(literal(EMBEDDING_MODEL, model, api::EMBEDDING_MODEL));
                    variables.push(literal(EMBEDDING_PROVIDER, of, api::EMBEDDING_PROVIDER));
                }
            }
        }
        Backend::InContext | Backend::Redis | Backend::VectorStore => {}
    }
    variables
}

/// The URL `PROVIDER://ENDPOINT/COLLECTION`, without the endpoint's own scheme. The endpoint of pgvector is
/// a connection string and is used unchanged.
fn vector_url(provider: &str, endpoint: &str, collection: &str) -> String {
    if provider == PGVECTOR {
        return endpoint.to_owned();
    }
    let without_scheme = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    format!("{provider}://{without_scheme}/{collection}")
}

/// Whether a value holds `$(NAME)`, which the kubelet resolves only from entries before it.
fn refers_to_others(found: &AgentMemory<'_>) -> bool {
    let memory = Memory::read(found.dialect, found.memory.tree());
    let mut texts = [api::ENDPOINT, api::COLLECTION].into_iter().filter_map(|field| memory.text(field));
    memory.backend() == Some(Backend::VectorStore) && texts.any(|text| text.contains("$("))
}
