//! Validates settings that set a memory backend.

use crate::schema_check;
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::object::{Lookup, Object};
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{Backend, Dialect, settings_names, settings_pointer};
use super::super::codes::{DURABLE_BACKEND, MEMORY_BACKEND_UNKNOWN};
use super::SCHEMA_CODES;
use super::memory::unsupported;

pub(super) fn findings(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let mut findings =
        schema_check::check(subject.object, &dialect.settings.schema, SCHEMA_CODES, state.budget());
    let Some(name) = subject.object.text_at(&["spec", "memoryBackend"]) else {
        return findings;
    };
    match Backend::from_name(name) {
        None => {
            let (at, known) = (Pointer::new("/spec/memoryBackend"), Backend::ALL.map(Backend::name));
            findings.push(unsupported(&MEMORY_BACKEND_UNKNOWN, at, name, &known, None));
        }
        Some(Backend::InContext) => {}
        Some(backend) => findings.extend(unconnected_backend(dialect, subject, backend, state)),
    }
    findings
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
