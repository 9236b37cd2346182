//! The rules that deny a memory resource, and those for settings that set a memory backend.

use crate::arkonis::api::{Dialect, settings_names, settings_pointer};
use crate::arkonis::codes::{DURABLE_BACKEND, EMBEDDING_MISSING, SECTION_UNUSED};
use crate::arkonis::fields::{IN_CONTEXT, SETTINGS_BACKEND, VECTOR_STORE};
use crate::prelude::*;

/// The rules of the CRD's schema, for every backend.
pub(super) fn schema_rules(dialect: &Dialect, object: &Tree) -> Vec<Finding> {
    let mut findings = dialect.fields.of(object).schema_findings();
    if dialect.successor {
        findings.extend(forbidden_sections(dialect, object));
    }
    findings
}

/// The rules of the backend. Without this check the agent would run without its memory.
pub(super) fn conditional_rules(dialect: &Dialect, object: &Tree) -> Vec<Finding> {
    dialect.fields.of(object).backend_findings()
}

/// Reports sections that the backend does not use, which the successor's CRD refuses.
fn forbidden_sections(dialect: &Dialect, object: &Tree) -> Vec<Finding> {
    let memory = dialect.fields.of(object);
    let forbidden = memory.unused_sections().map(|(section, backend)| {
        let name = section.trim_start_matches("/spec/");
        let message = format!("{name} config can only be set when backend is {}", backend.name);
        memory.because(memory.denial(&SECTION_UNUSED, section, message, ""))
    });
    forbidden.collect()
}

/// The embedding model of a vector store. The successor's chart refuses a memory without, and the definition of its
/// operator repository takes it.
pub(super) fn embedding_missing(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &StateReader<'_>,
) -> Option<Finding> {
    let memory = dialect.fields.of(subject.object);
    let needs = dialect.successor && memory.backend() == Some(&VECTOR_STORE);
    if !needs || memory.has("/spec/embedding") {
        return None;
    }
    let finding = memory.section_missing("/spec/embedding", &EMBEDDING_MISSING);
    if state.goes_by_bundle(subject.kind) {
        return Some(finding);
    }
    let message = format!("{} by kubeswarm 0.4", finding.message());
    Some(memory.because(Finding::warn(&EMBEDDING_MISSING, finding.pointer, message)))
}

pub(super) fn settings_findings(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let Some(name) = dialect.fields.of(subject.object).text(&SETTINGS_BACKEND) else { return Vec::new() };
    let finding = match SETTINGS_BACKEND.unsupported(name) {
        None if name != IN_CONTEXT.name => unconnected_backend(dialect, subject, name, state),
        unsupported => unsupported,
    };
    finding.into_iter().collect()
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
    backend: &str,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let mut agents = state.list(&dialect.agent, subject.namespace);
    let (user, named) = agents.find_map(|agent| {
        let without_memory = !agent.deleting() && agent.tree().at(dialect.memory_ref).is_none();
        let named = without_memory.then(|| effective_for(dialect, subject, agent, state));
        Some((agent, named??))
    })?;
    let message = format!(
        "spec.memoryBackend \"{backend}\" sets no connection and {} {} has no {}; use {} {}",
        dialect.agent.kind,
        quoted(&user.name),
        dialect.memory_ref.get(1..).unwrap_or_default().join("."),
        if dialect.successor { "a" } else { "an" },
        dialect.memory.kind
    );
    let finding = Finding::warn(&DURABLE_BACKEND, SETTINGS_BACKEND.pointer(), message);
    Some(finding.elsewhere(user, named, "used here"))
}
