//! The rules that deny a memory resource, and those for settings that set a memory backend.

use crate::arkonis::api::{Backend, Dialect, Memory, VectorStore, settings_names, settings_pointer};
use crate::arkonis::codes::{
    BACKEND_REQUIRED, BACKEND_UNKNOWN, DURABLE_BACKEND, EMBEDDING_MISSING, ENDPOINT_REQUIRED,
    MEMORY_BACKEND_UNKNOWN, PROVIDER_REQUIRED, PROVIDER_UNKNOWN, REDIS_REQUIRED, REDIS_SECRET_REQUIRED,
    SECRET_NAME_INVALID, SECTION_UNUSED, VECTOR_SECRET_NAME, VECTOR_STORE_REQUIRED,
};
use crate::prelude::*;
use memgate_model::finding::Code;
use memgate_primitives::fix::Fix;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::suggest::{did_you_mean, nearest, only_nearest};

const REDIS_SECRET: &str = "/spec/redis/secretRef/name";
const ENDPOINT: &str = "/spec/vectorStore/endpoint";
const VECTOR_SECRET: &str = "/spec/vectorStore/secretRef/name";

/// The rules of the CRD's schema, for every backend.
pub(super) fn schema_rules(dialect: &Dialect, object: &Tree) -> Vec<Finding> {
    let memory = Memory::read(dialect, object);
    let mut findings: Vec<Finding> = backend(&memory, object).into_iter().collect();
    if memory.redis.as_ref().is_some_and(|redis| redis.secret_name.is_none()) {
        findings.push(redis_secret_required(&memory));
    }
    if let Some(store) = &memory.vector_store {
        findings.extend(vector_store_schema(dialect, &memory, store));
    }
    if dialect.successor {
        findings.extend(forbidden_sections(&memory));
    }
    findings
}

/// The rules of the backend. Without this check the agent would run without its memory.
pub(super) fn conditional_rules(dialect: &Dialect, object: &Tree) -> Vec<Finding> {
    let memory = Memory::read(dialect, object);
    match memory.backend() {
        Some(Backend::Redis) => redis_in_use(&memory).into_iter().collect(),
        Some(Backend::VectorStore) => vector_store_in_use(&memory),
        Some(Backend::InContext) | None => Vec::new(),
    }
}

fn backend(memory: &Memory<'_>, object: &Tree) -> Option<Finding> {
    if object.get("spec").is_none() {
        return Some(Finding::deny(&BACKEND_REQUIRED, Pointer::new("/spec"), "spec is required"));
    }
    let pointer = Pointer::new("/spec/backend");
    let Some(name) = memory.backend_name else {
        return Some(Finding::deny(&BACKEND_REQUIRED, pointer, "spec.backend is required"));
    };
    if memory.backend().is_some() {
        return None;
    }
    let synonym = (name == "memory").then_some(Backend::InContext.name());
    Some(unsupported(&BACKEND_UNKNOWN, pointer, name, &Backend::ALL.map(Backend::name), synonym))
}

fn vector_store_schema(dialect: &Dialect, memory: &Memory<'_>, store: &VectorStore<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = provider(dialect, store).into_iter().collect();
    if store.endpoint.is_none() {
        findings.push(endpoint_required(memory, "absent"));
    }
    if store.has_secret_ref && store.secret_name.is_none() {
        findings.push(vector_secret_name(memory));
    }
    findings
}

fn provider(dialect: &Dialect, store: &VectorStore<'_>) -> Option<Finding> {
    let pointer = Pointer::new("/spec/vectorStore/provider");
    let Some(provider) = store.provider else {
        return Some(Finding::deny(&PROVIDER_REQUIRED, pointer, "spec.vectorStore.provider is required"));
    };
    if dialect.providers.iter().chain(dialect.older_providers).any(|known| *known == provider) {
        return None;
    }
    Some(unsupported(&PROVIDER_UNKNOWN, pointer, provider, dialect.providers, None))
}

/// Refuses a value that is not one of the known values; `synonym` is the value that is certainly meant.
pub(super) fn unsupported(
    code: &'static Code,
    pointer: Pointer,
    value: &str,
    known: &[&'static str],
    synonym: Option<&'static str>,
) -> Finding {
    let known_values = || known.iter().copied();
    let meant = synonym.or_else(|| nearest(value, known_values()));
    let fix = synonym.or_else(|| only_nearest(value, known_values()));
    let (field, value_text) = (pointer.field(), quoted(value));
    let (known, meant) = (one_of(known), did_you_mean(meant));
    let message = format!("{field}: unsupported value {value_text}; use {known}{meant}");
    Finding::deny(code, pointer, message)
        .fingerprint_value(value)
        .fix(fix.map(|meant| Fix::Text(meant.to_owned())))
}

/// Reports sections that the backend does not use, which the successor's CRD refuses.
fn forbidden_sections(memory: &Memory<'_>) -> Vec<Finding> {
    let sections = [
        (memory.redis.is_some(), "redis", Backend::Redis),
        (memory.vector_store.is_some(), "vectorStore", Backend::VectorStore),
    ];
    let forbidden = |(present, _, backend): &(bool, &str, Backend)| {
        *present && memory.backend().is_some_and(|chosen| chosen != *backend)
    };
    let finding = |(_, section, backend): (bool, &str, Backend)| {
        let message = format!("{section} config can only be set when backend is {}", backend.name());
        for_backend(denial(memory, &SECTION_UNUSED, &format!("/spec/{section}"), message, ""))
    };
    sections.into_iter().filter(forbidden).map(finding).collect()
}

fn redis_in_use(memory: &Memory<'_>) -> Option<Finding> {
    let Some(redis) = &memory.redis else {
        let message = "spec.redis is required when backend is \"redis\"";
        return Some(for_backend(denial(memory, &REDIS_REQUIRED, "/spec/redis", message, "absent")));
    };
    match redis.secret_name? {
        "" => Some(redis_secret_required(memory)),
        name => secret_name_invalid(REDIS_SECRET, name),
    }
}

fn vector_store_in_use(memory: &Memory<'_>) -> Vec<Finding> {
    let Some(store) = &memory.vector_store else {
        let message = "spec.vectorStore is required when backend is \"vector-store\"";
        let finding = denial(memory, &VECTOR_STORE_REQUIRED, "/spec/vectorStore", message, "absent");
        return vec![for_backend(finding)];
    };
    let endpoint = store.endpoint.filter(|endpoint| endpoint.trim().is_empty());
    let endpoint = endpoint.map(|endpoint| endpoint_required(memory, endpoint));
    let secret = store.secret_name.and_then(|name| match name {
        "" => Some(vector_secret_name(memory)),
        name => secret_name_invalid(VECTOR_SECRET, name),
    });
    endpoint.into_iter().chain(secret).collect()
}

/// The embedding model of a vector store. The successor's chart refuses a memory without, and the definition of its
/// operator repository takes it.
pub(super) fn embedding_missing(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &StateReader<'_>,
) -> Option<Finding> {
    let memory = Memory::read(dialect, subject.object);
    let needs = dialect.successor && memory.backend() == Some(Backend::VectorStore);
    if !needs || memory.embedding.is_some() {
        return None;
    }
    let message = "spec.embedding is required when backend is \"vector-store\"";
    let finding = denial(&memory, &EMBEDDING_MISSING, "/spec/embedding", message, "absent");
    if state.goes_by_bundle(subject.kind) {
        return Some(for_backend(finding));
    }
    let message = format!("{message} by kubeswarm 0.4");
    Some(for_backend(Finding::warn(&EMBEDDING_MISSING, finding.pointer, message)))
}

/// A denial that depends on the backend and on a value.
fn denial(
    memory: &Memory<'_>,
    code: &'static Code,
    pointer: &str,
    message: impl Into<String>,
    value: &str,
) -> Finding {
    let backend = memory.backend_name.unwrap_or_default();
    Finding::deny(code, Pointer::new(pointer), message).fingerprint_value(format!("{backend}: {value}"))
}

fn redis_secret_required(memory: &Memory<'_>) -> Finding {
    denial(memory, &REDIS_SECRET_REQUIRED, REDIS_SECRET, "spec.redis.secretRef.name is required", "")
}

fn endpoint_required(memory: &Memory<'_>, value: &str) -> Finding {
    denial(memory, &ENDPOINT_REQUIRED, ENDPOINT, "spec.vectorStore.endpoint is required", value)
}

fn vector_secret_name(memory: &Memory<'_>) -> Finding {
    let message = "spec.vectorStore.secretRef.name is required when secretRef is set";
    denial(memory, &VECTOR_SECRET_NAME, VECTOR_SECRET, message, "")
}

fn secret_name_invalid(pointer: &str, name: &str) -> Option<Finding> {
    if is_dns_subdomain(name) {
        return None;
    }
    let pointer = Pointer::new(pointer);
    let message = format!("{}: {} is not a valid Secret name", pointer.field(), quoted(name));
    Some(Finding::deny(&SECRET_NAME_INVALID, pointer, message).fingerprint_value(name))
}

/// Relates a finding to the backend that causes it.
pub(super) fn for_backend(finding: Finding) -> Finding {
    finding.related(Pointer::new("/spec/backend"), "because of this backend")
}

/// `"a", "b" or "c"`.
pub(super) fn one_of(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.join(""),
    }
}

pub(super) fn settings_findings(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let Some(name) = subject.object.text_at(&["spec", "memoryBackend"]) else { return Vec::new() };
    match Backend::from_name(name) {
        None => {
            let (at, known) = (Pointer::new("/spec/memoryBackend"), Backend::ALL.map(Backend::name));
            vec![unsupported(&MEMORY_BACKEND_UNKNOWN, at, name, &known, None)]
        }
        Some(Backend::InContext) => Vec::new(),
        Some(backend) => unconnected_backend(dialect, subject, backend, state).into_iter().collect(),
    }
}

/// Where an agent names these settings, if they apply to it. Settings apply if they are the last existing
/// ones that the agent names.
fn effective_for(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    agent: &Object,
    state: &mut StateReader<'_>,
) -> Option<Pointer> {
    let exists = |(_, name): &(Option<usize>, &str)| {
        *name == subject.name
            || matches!(state.get(&dialect.settings, subject.namespace, name), Lookup::Found(_))
    };
    let last = settings_names(dialect, agent.tree()).rev().find(exists);
    last.filter(|(_, name)| *name == subject.name).map(|(index, _)| settings_pointer(index))
}

/// Warns about a backend in settings. Settings have no connection data: an agent without a memory gets a
/// backend that it cannot reach.
fn unconnected_backend(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    backend: Backend,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let mut agents = state.list(&dialect.agent, subject.namespace);
    let (user, named) = agents.find_map(|agent| {
        let without_memory = !agent.deleting() && agent.tree().at(dialect.memory_ref).is_none();
        let named = without_memory.then(|| effective_for(dialect, subject, agent, state));
        Some((agent, named??))
    })?;
    let message = format!(
        "spec.memoryBackend \"{}\" sets no connection and {} {} has no {}; use {} {}",
        backend.name(),
        dialect.agent.kind,
        quoted(&user.name),
        dialect.memory_ref.get(1..).unwrap_or_default().join("."),
        if dialect.successor { "a" } else { "an" },
        dialect.memory.kind
    );
    let finding = Finding::warn(&DURABLE_BACKEND, Pointer::new("/spec/memoryBackend"), message);
    Some(finding.elsewhere(user, named, "used here"))
}
