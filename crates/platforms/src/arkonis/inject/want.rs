//! The variables that an agent's container should have.

use std::sync::Arc;

use crate::arkonis::api::{
    API_KEY_KEY, Backend, Dialect, Embedding, Memory, REDIS_URL_KEY, Redis, VectorStore, memory_backend,
    settings_names,
};
use crate::arkonis::codes::POD_ENV_CONFLICT;
use crate::inject::env::{self, ExistingEnv, Position, Variable};
use crate::inject::own::MemoryVariableNames;
use crate::inject::{self, Unmet, WantedByContainer, WantedByPod};
use crate::prelude::*;
use memgate_model::edit::{EnvSource, KeyRef};
use memgate_model::injection::Injection;
use memgate_model::pod::Container;
use memgate_model::reason::Reason;

use super::AgentMemory;

pub(crate) const BACKEND: &str = "AGENT_MEMORY_BACKEND";
pub(crate) const REDIS_URL: &str = "AGENT_MEMORY_REDIS_URL";
pub(crate) const REDIS_TTL: &str = "AGENT_MEMORY_REDIS_TTL";
pub(crate) const REDIS_MAX_ENTRIES: &str = "AGENT_MEMORY_REDIS_MAX_ENTRIES";
pub(crate) const PROVIDER: &str = "AGENT_MEMORY_VECTOR_STORE_PROVIDER";
pub(crate) const ENDPOINT: &str = "AGENT_MEMORY_VECTOR_STORE_ENDPOINT";
pub(crate) const COLLECTION: &str = "AGENT_MEMORY_VECTOR_STORE_COLLECTION";
pub(crate) const API_KEY: &str = "AGENT_MEMORY_VECTOR_STORE_API_KEY";
pub(crate) const VECTOR_TTL: &str = "AGENT_MEMORY_VECTOR_STORE_TTL";
pub(crate) const VECTOR_URL: &str = "AGENT_VECTOR_STORE_URL";
pub(crate) const EMBEDDING_MODEL: &str = "AGENT_EMBEDDING_MODEL";
pub(crate) const EMBEDDING_PROVIDER: &str = "AGENT_EMBEDDING_PROVIDER";

/// The variables about memory, in order; only the successor has the last three.
static MEMORY_VARIABLES: [&str; 12] = [
    BACKEND, REDIS_URL, REDIS_TTL, REDIS_MAX_ENTRIES, PROVIDER, ENDPOINT, COLLECTION, API_KEY, VECTOR_TTL,
    VECTOR_URL, EMBEDDING_MODEL, EMBEDDING_PROVIDER,
];
const SUCCESSOR_VARIABLE_COUNT: usize = 3;
const EMBEDDING_VARIABLE_COUNT: usize = 2;

/// The prefix of all [`MEMORY_VARIABLES`]. Variables of the pod without it are skipped.
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

fn backend_pointer() -> Pointer {
    Pointer::new("/spec/backend")
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
        format!("{BACKEND} is already set {set}; {} wants {}", found.memory_title(), quoted(backend));
    let warning = Finding::warn(&POD_ENV_CONFLICT, env::pointer(container).index(entry), message).elsewhere(
        found.memory,
        backend_pointer(),
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
            backend_pointer(),
            "the backend of the memory",
        )
    };
    there.map(warning).collect()
}

/// The names of the variables about memory.
pub(crate) fn names(of_successor: bool) -> MemoryVariableNames<'static> {
    first_names(MEMORY_VARIABLES.len() - if of_successor { 0 } else { SUCCESSOR_VARIABLE_COUNT })
}

/// The same without those about embeddings.
pub(super) fn names_of_address() -> MemoryVariableNames<'static> {
    first_names(MEMORY_VARIABLES.len() - EMBEDDING_VARIABLE_COUNT)
}

fn first_names(count: usize) -> MemoryVariableNames<'static> {
    let names = MEMORY_VARIABLES.get(..count).unwrap_or_default();
    MemoryVariableNames { prefixes: &[PREFIX], names, open: None }
}

/// Collects variables that come from fields of the memory.
struct BackendVariables {
    memory: Arc<str>,
    variables: Vec<Variable<'static>>,
}

impl BackendVariables {
    fn literal(&mut self, name: &'static str, value: impl Into<String>, field: &'static str) {
        self.variables.push(Variable::literal(name, value, inject::field_origin(&self.memory, field)));
    }

    fn secret(&mut self, name: &'static str, secret: &str, key: &'static str, field: &'static str) {
        let source = EnvSource::Secret(KeyRef { name: secret.to_owned(), key: key.into(), optional: None });
        let variable = Variable::new(name, source, inject::field_origin(&self.memory, field));
        self.variables.push(variable.ignoring_optional());
    }
}

/// The variables of a valid memory, in order.
pub(super) fn variables(dialect: &Dialect, object: &Object) -> Vec<Variable<'static>> {
    let memory = Memory::read(dialect, object.tree());
    let Some(backend) = memory.backend() else { return Vec::new() };
    let resource = inject::resource_name(dialect.memory.kind, object);
    let mut variables = BackendVariables { memory: resource, variables: Vec::new() };
    variables.literal(BACKEND, backend.name(), "spec.backend");
    match (backend, &memory.redis, &memory.vector_store) {
        (Backend::Redis, Some(redis), _) => redis_variables(redis, &mut variables),
        (Backend::VectorStore, _, Some(store)) => {
            vector_store_variables(store, &mut variables);
            if dialect.successor {
                successor_variables(store, memory.embedding.as_ref(), &mut variables);
            }
        }
        _ => {}
    }
    variables.variables
}

fn redis_variables(redis: &Redis<'_>, variables: &mut BackendVariables) {
    let secret = redis.secret_name.unwrap_or_default();
    variables.secret(REDIS_URL, secret, REDIS_URL_KEY, "spec.redis.secretRef.name");
    for (name, number, field) in [
        (REDIS_TTL, redis.ttl(), "spec.redis.ttlSeconds"),
        (REDIS_MAX_ENTRIES, redis.entry_limit(), "spec.redis.maxEntries"),
    ] {
        if let Some(number) = number {
            variables.literal(name, number.to_string(), field);
        }
    }
}

fn vector_store_variables(store: &VectorStore<'_>, variables: &mut BackendVariables) {
    variables.literal(PROVIDER, store.provider.unwrap_or_default(), "spec.vectorStore.provider");
    variables.literal(ENDPOINT, store.endpoint.unwrap_or_default(), "spec.vectorStore.endpoint");
    let origin = inject::field_origin(&variables.memory, "spec.vectorStore.collection");
    let variable = Variable::literal(COLLECTION, store.collection_or_default(), origin);
    // The operator writes an empty variable for an empty collection.
    variables.variables.push(if store.collection == Some("") { variable.or_empty() } else { variable });
    if let Some(secret) = store.secret_name {
        variables.secret(API_KEY, secret, API_KEY_KEY, "spec.vectorStore.secretRef.name");
    }
    if let Some(ttl) = store.ttl() {
        variables.literal(VECTOR_TTL, ttl.to_string(), "spec.vectorStore.ttlSeconds");
    }
}

fn successor_variables(
    store: &VectorStore<'_>,
    embedding: Option<&Embedding<'_>>,
    variables: &mut BackendVariables,
) {
    variables.literal(VECTOR_URL, vector_url(store), "spec.vectorStore.endpoint");
    let named = embedding.and_then(|embedding| Some((embedding, embedding.model?)));
    let Some((embedding, model)) = named else { return };
    variables.literal(EMBEDDING_MODEL, model, "spec.embedding.model");
    variables.literal(
        EMBEDDING_PROVIDER,
        embedding.resolved_provider().unwrap_or_default(),
        "spec.embedding.provider",
    );
}

/// The URL `PROVIDER://ENDPOINT/COLLECTION`, without the endpoint's own scheme. The endpoint of pgvector is
/// a connection string and is used unchanged.
fn vector_url(store: &VectorStore<'_>) -> String {
    let (provider, endpoint) = (store.provider.unwrap_or_default(), store.endpoint.unwrap_or_default());
    if provider == "pgvector" {
        return endpoint.to_owned();
    }
    let without_scheme = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    format!("{provider}://{without_scheme}/{}", store.collection_or_default())
}

/// Whether a value holds `$(NAME)`, which the kubelet resolves only from entries before it.
fn refers_to_others(found: &AgentMemory<'_>) -> bool {
    let memory = Memory::read(found.dialect, found.memory.tree());
    let texts = memory.vector_store.as_ref().map(|store| [store.endpoint, store.collection]);
    let mut texts = texts.into_iter().flatten().flatten();
    memory.backend() == Some(Backend::VectorStore) && texts.any(|text| text.contains("$("))
}
