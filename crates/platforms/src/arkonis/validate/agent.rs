//! Validates an agent's reference to memory.

use crate::arkonis::prelude::*;

use super::first_denial;

pub(super) fn findings(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let agent = subject.object;
    let mut findings = empty_settings(dialect, subject, state.budget());
    let settings = effective_settings(dialect, subject, state);
    let Some(name) = memory_name(dialect, agent) else {
        // A reference of the wrong type has its own finding and still counts as a claim.
        let claims = agent.at(dialect.memory_ref).is_some();
        let settings = settings.filter(|_| !claims);
        findings.extend(settings.and_then(|(at, settings)| without_memory(dialect, at, settings)));
        return findings;
    };
    let pointer = memory_ref_pointer(dialect).key("name");
    if let Some(finding) = unusable_name(dialect, agent, name, &pointer) {
        findings.push(finding);
        return findings;
    }
    if let Lookup::Found(memory) = state.get(&dialect.memory, subject.namespace, name) {
        findings.extend(invalid(dialect, memory, pointer));
        findings.extend(settings.and_then(|(at, settings)| conflict(dialect, at, settings, memory)));
    }
    findings
}

/// Warns about a name that cannot exist: the agent starts without memory.
fn unusable_name(dialect: &Dialect, agent: &Tree, name: &str, pointer: &Pointer) -> Option<Finding> {
    let field = pointer.field();
    let absent = memory_ref(dialect, agent).is_some_and(|reference| reference.get("name").is_none());
    if absent && !dialect.successor {
        return Some(Finding::deny(&MEMORY_REF_NAME, pointer.clone(), format!("{field} is required")));
    }
    let message = match name {
        "" => format!("{field} is empty; the agent runs without memory"),
        name if is_dns_subdomain(name) => return None,
        name => {
            let text = "{bare}: {} is not a valid {bare} name; the agent runs without memory";
            filled(text, [&field, name, dialect.memory.kind])
        }
    };
    Some(Finding::warn(&MEMORY_REF_UNUSABLE, pointer.clone(), message).proposing_name(name))
}

/// Warns about a name of settings that is empty.
fn empty_settings(dialect: &'static Dialect, subject: &Subject<'_>, budget: &Budget<'_>) -> Vec<Finding> {
    let effect = if dialect.successor { "the agent is not reconciled" } else { "the agent runs" };
    let message = move |at: &Pointer| format!("{} is empty; {effect} without it", at.field());
    let empty = settings_references(dialect, subject.object).filter(|(_, name)| name.is_empty());
    let finding =
        |(index, _)| Finding::warn_within(budget, &SETTINGS_NOT_FOUND, settings_pointer(index), message);
    empty.map(finding).collect()
}

fn invalid(dialect: &'static Dialect, memory: &Object, pointer: Pointer) -> Option<Finding> {
    let first = memory.defect(|tree| first_denial(dialect, tree))?;
    let message = format!("{} {} is invalid: {}", dialect.memory.kind, quoted(&memory.name), first.message);
    let finding = Finding::warn(&MEMORY_INVALID, pointer, message);
    Some(finding.elsewhere(memory, first.pointer.clone(), "invalid"))
}

/// The last existing settings, with the pointer to their name.
fn effective_settings<'s>(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'s>,
) -> Option<(Pointer, &'s Object)> {
    settings_names(dialect, subject.object).rev().find_map(|(index, name)| {
        let settings = state.get(&dialect.settings, subject.namespace, name).found()?;
        Some((settings_pointer(index), settings))
    })
}

/// Warns if the pod would get the name of a backend without connection data.
fn without_memory(dialect: &Dialect, pointer: Pointer, settings: &Object) -> Option<Finding> {
    let backend = memory_backend(settings.tree());
    let durable = Backend::named(backend).is_some_and(|backend| backend != Backend::InContext);
    let values = [dialect.settings.kind, &settings.name, backend, &memory_ref_pointer(dialect).field()];
    let text = "{bare} {} sets memoryBackend {} but {bare} is not set";
    let finding = || warning(&SETTINGS_WITHOUT_MEMORY, pointer, text, values);
    durable.then(|| finding().elsewhere(settings, SETTINGS_BACKEND.into(), "set here"))
}

fn conflict(dialect: &Dialect, pointer: Pointer, settings: &Object, memory: &Object) -> Option<Finding> {
    let backend = memory_backend(settings.tree());
    let own = Memory::read(dialect, memory.tree()).backend()?;
    let differs = backend != Backend::InContext.name() && backend != own.name();
    let text = "{bare} {} memoryBackend {} is overridden by {bare} {}";
    let values = [dialect.settings.kind, &settings.name, backend, dialect.memory.kind, &memory.name];
    let finding = || {
        warning(&SETTINGS_CONFLICT, pointer, text, values)
            .elsewhere(settings, SETTINGS_BACKEND.into(), "overridden")
            .elsewhere(memory, BACKEND.into(), "this one counts")
    };
    differs.then(finding)
}
