//! The rules that deny a memory resource, and those for settings that set a memory backend.

use crate::arkonis::prelude::*;
use crate::message::one_of;
use memgate_primitives::plain_text::quoted_single;
use memgate_primitives::suggest::only_nearest;

/// The rules of the CRD's schema, for every backend.
pub(super) fn schema_rules(dialect: &Dialect, object: &Tree) -> Vec<Finding> {
    if object.get("spec").is_none() {
        return vec![Finding::deny(&BACKEND_REQUIRED, "/spec", "spec is required")];
    }
    let memory = Memory::read(dialect, object);
    let mut findings = Vec::new();
    findings.extend(match memory.text(BACKEND) {
        None => Some(missing(&memory, &BACKEND_REQUIRED, BACKEND, "").fingerprint_value("")),
        Some(name) => unsupported(&BACKEND_UNKNOWN, BACKEND, name, &Backend::NAMES),
    });
    if memory.has(REDIS) && memory.secret(REDIS_SECRET).is_none() {
        findings.push(missing(&memory, &REDIS_SECRET_REQUIRED, REDIS_SECRET, ""));
    }
    if memory.has(VECTOR_STORE) {
        findings.extend(match memory.text(PROVIDER) {
            None => Some(missing(&memory, &PROVIDER_REQUIRED, PROVIDER, "").fingerprint_value("")),
            // Of the successor, only the definition refuses them.
            Some("pinecone" | "weaviate") => None,
            Some(name) => unsupported(&PROVIDER_UNKNOWN, PROVIDER, name, dialect.providers),
        });
        if memory.text(ENDPOINT).is_none() {
            findings.push(missing(&memory, &ENDPOINT_REQUIRED, ENDPOINT, "absent"));
        }
    }
    if memory.at(VECTOR_SECRET_REF).is_some() && memory.secret(VECTOR_SECRET).is_none() {
        findings.push(missing(&memory, &VECTOR_SECRET_NAME, VECTOR_SECRET, ""));
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
        Some(Backend::Redis) if !memory.has(REDIS) => vec![wrong_section(&memory, &REDIS_REQUIRED, REDIS)],
        Some(Backend::VectorStore) if !memory.has(VECTOR_STORE) => {
            vec![wrong_section(&memory, &VECTOR_STORE_REQUIRED, VECTOR_STORE)]
        }
        Some(Backend::Redis) => {
            secret_name(&memory, &REDIS_SECRET_REQUIRED, REDIS_SECRET).into_iter().collect()
        }
        Some(Backend::VectorStore) => {
            let blank = memory.text(ENDPOINT).filter(|text| text.trim().is_empty());
            let blank = blank.map(|text| missing(&memory, &ENDPOINT_REQUIRED, ENDPOINT, text));
            blank.into_iter().chain(secret_name(&memory, &VECTOR_SECRET_NAME, VECTOR_SECRET)).collect()
        }
        Some(Backend::InContext) | None => Vec::new(),
    }
}

/// Refuses a name that no Secret can have.
fn secret_name(memory: &Memory<'_>, required: &'static Code, field: Field) -> Option<Finding> {
    let name = memory.secret(field)?;
    if name.is_empty() {
        return Some(missing(memory, required, field, ""));
    }
    let message = || format!("{}: {} is not a valid Secret name", field.join("."), quoted_single(name));
    let finding = || Finding::deny(&SECRET_NAME_INVALID, field, message()).fingerprint_value(name);
    (!is_dns_subdomain(name)).then(|| finding().proposing_name(name))
}

/// Refuses a value that is not one of the known values.
fn unsupported(code: &'static Code, field: Field, value: &str, known: &[&'static str]) -> Option<Finding> {
    if known.contains(&value) {
        return None;
    }
    let synonym = (field == BACKEND && value == "memory").then_some(Backend::InContext.name());
    let meant = did_you_mean(synonym.or_else(|| nearest(value, known.iter().copied())));
    let fix = synonym.or_else(|| only_nearest(value, known.iter().copied()));
    let (name, shown, known) = (field.join("."), quoted_text(value), one_of(known));
    let message = format!("{name}: unsupported value {shown}; use {known}{meant}");
    let finding = Finding::deny(code, field, message).fingerprint_value(value);
    Some(finding.fix(fix.map(|meant| Fix::Text(meant.to_owned()))))
}

/// Refuses a field without a value.
fn missing(memory: &Memory<'_>, code: &'static Code, field: Field, value: &str) -> Finding {
    let when = if field == VECTOR_SECRET { " when secretRef is set" } else { "" };
    denial(memory, code, field, format!("{} is required{when}", field.join(".")), value)
}

/// A denial that depends on the backend and on a value.
fn denial(memory: &Memory<'_>, code: &'static Code, field: Field, message: String, value: &str) -> Finding {
    let backend = memory.text(BACKEND).unwrap_or_default();
    Finding::deny(code, field, message).fingerprint_value(format!("{backend}: {value}"))
}

/// Relates a finding to the backend that causes it.
pub(super) fn because_of_backend(finding: Finding) -> Finding {
    finding.related(Pointer::from(BACKEND), "because of this backend")
}

/// Refuses an object without a section that its backend needs.
fn section_missing(memory: &Memory<'_>, code: &'static Code, section: Field) -> Finding {
    let backend = memory.text(BACKEND).unwrap_or_default();
    let message = format!("{} is required when backend is \"{backend}\"", section.join("."));
    because_of_backend(denial(memory, code, section, message, "absent"))
}

/// The same with the section that is filled instead.
fn wrong_section(memory: &Memory<'_>, code: &'static Code, section: Field) -> Finding {
    let finding = section_missing(memory, code, section);
    let Some((filled, _)) = memory.unused_sections().next() else { return finding };
    let (backend, filled) = (memory.text(BACKEND).unwrap_or_default(), filled.join("."));
    let message = format!("{}; backend says {backend}, but {filled} is filled", finding.message());
    finding.with_message(message)
}

/// Reports sections that the backend does not use, which the successor's CRD refuses.
fn forbidden_sections(memory: &Memory<'_>) -> impl Iterator<Item = Finding> {
    memory.unused_sections().map(|(section, backend)| {
        let name = section.last().copied().unwrap_or_default();
        let message = format!("{name} config can only be set when backend is {}", backend.name());
        because_of_backend(denial(memory, &SECTION_UNUSED, section, message, ""))
    })
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
    if !needs || memory.has(EMBEDDING) {
        return None;
    }
    let finding = section_missing(&memory, &EMBEDDING_MISSING, EMBEDDING);
    if state.goes_by_bundle(subject.kind) {
        return Some(finding);
    }
    let message = format!("{} by kubeswarm 0.4", finding.message());
    Some(because_of_backend(Finding::warn(&EMBEDDING_MISSING, finding.pointer, message)))
}

pub(super) fn settings_findings(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let Some(name) = subject.object.text_at(SETTINGS_BACKEND) else { return Vec::new() };
    let finding = match unsupported(&MEMORY_BACKEND_UNKNOWN, SETTINGS_BACKEND, name, &Backend::NAMES) {
        None if name != Backend::InContext.name() => unconnected_backend(dialect, subject, name, state),
        unsupported => unsupported,
    };
    finding.into_iter().collect()
}

/// How many agents of a namespace are looked at for one that settings apply to.
const MAX_AGENTS: usize = 500;

/// How many settings of such an agent are looked up, the last first.
const MAX_TRIED: usize = 16;

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
    let last = settings_names(dialect, agent.tree()).rev().take(MAX_TRIED).find(exists);
    last.filter(|(_, name)| *name == subject.name).map(|(index, _)| settings_pointer(index))
}

/// Warns about a backend in settings. Settings have no connection data: an agent without a memory gets a
/// backend that it cannot reach.
fn unconnected_backend(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    backend: &str,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let mut agents = state.list(&dialect.agent, subject.namespace).take(MAX_AGENTS);
    let (user, named) = agents.find_map(|agent| {
        let without_memory = !agent.deleting() && agent.tree().at(dialect.memory_ref).is_none();
        let named = without_memory.then(|| effective_for(dialect, subject, agent, state));
        Some((agent, named??))
    })?;
    let (field, kind) = (dialect.memory_ref.get(1..).unwrap_or_default().join("."), dialect.memory.kind);
    let article = if dialect.successor { "a" } else { "an" };
    let text =
        "spec.memoryBackend \"{bare}\" sets no connection and {bare} {} has no {bare}; use {bare} {bare}";
    let values = [backend, dialect.agent.kind, &user.name, &field, article, kind];
    let finding = warning(&DURABLE_BACKEND, SETTINGS_BACKEND, text, values);
    Some(finding.elsewhere(user, named, "used here"))
}
