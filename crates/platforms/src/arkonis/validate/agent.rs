//! Validates an agent's reference to memory.

use crate::arkonis::api::{
    Backend, Dialect, Memory, memory_backend, memory_name, memory_ref, memory_ref_pointer, settings_names,
    settings_pointer, settings_references,
};
use crate::arkonis::codes::{
    MEMORY_INVALID, MEMORY_NOT_FOUND, MEMORY_REF_NAME, MEMORY_REF_UNUSABLE, SETTINGS_CONFLICT,
    SETTINGS_NOT_FOUND, SETTINGS_WITHOUT_MEMORY,
};
use crate::prelude::*;
use memgate_model::elsewhere::Elsewhere;
use memgate_model::finding::excerpt;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::suggest::{did_you_mean, nearest};

use super::first_denial;

/// How many existing names a missing name is compared with.
const MAX_COMPARED: usize = 1_000;

pub(super) fn findings(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let agent = subject.object;
    let mut findings = missing_settings(dialect, subject, state);
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
    match state.get(&dialect.memory, subject.namespace, name) {
        Lookup::Unknown(()) => {}
        Lookup::Absent => findings.push(not_found(dialect, subject.namespace, name, pointer, state)),
        Lookup::Found(memory) => {
            findings.extend(invalid(dialect, memory, pointer));
            findings.extend(settings.and_then(|(at, settings)| conflict(dialect, at, settings, memory)));
        }
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
        name => format!(
            "{field}: {} is not a valid {} name; the agent runs without memory",
            quoted(name),
            dialect.memory.kind
        ),
    };
    Some(Finding::warn(&MEMORY_REF_UNUSABLE, pointer.clone(), message))
}

fn not_found(
    dialect: &'static Dialect,
    namespace: &str,
    name: &str,
    pointer: Pointer,
    state: &mut StateReader<'_>,
) -> Finding {
    let kind = &dialect.memory;
    let hint = hint(kind, (namespace, name), (&mut Vec::new(), MAX_COMPARED), state);
    let message =
        format!("{} {} not found in namespace {}{hint}", kind.kind, quoted(name), quoted(namespace));
    let finding = Finding::warn(&MEMORY_NOT_FOUND, pointer, message);
    finding.and_elsewhere(|| in_another_namespace(kind, namespace, name, state))
}

/// What a message about a missing object says of others: that one of its name is in another namespace, or that one of its
/// namespace has a similar name. `names` are those of the namespace, once they are known.
fn hint<'s>(
    kind: &'static Kind,
    (namespace, name): (&str, &str),
    (names, max_compared): (&mut Vec<&'s str>, usize),
    state: &mut StateReader<'s>,
) -> String {
    if let Some(home) = state.elsewhere(kind, namespace, name) {
        return format!(" (exists in {}; references are same-namespace)", quoted(home));
    }
    if names.is_empty() {
        names.extend(state.list(kind, namespace).map(|object| &*object.name).take(MAX_COMPARED));
    }
    did_you_mean(nearest(name, names.iter().copied().take(max_compared)))
}

/// The place of an object with this name in another namespace.
fn in_another_namespace(
    kind: &Kind,
    namespace: &str,
    name: &str,
    state: &StateReader<'_>,
) -> Option<Elsewhere> {
    let object = state.peek(kind, state.elsewhere(kind, namespace, name)?, name)?;
    Some(Elsewhere::of(object, Pointer::new("/metadata/namespace"), "it is in this namespace"))
}

/// Warns about settings that do not exist. The successor does not reconcile an agent without them; the older operators
/// only log that they are missing.
fn missing_settings(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let (kind, namespace, budget) = (&dialect.settings, subject.namespace, state.budget());
    if !budget.wants_warnings() {
        return Vec::new();
    }
    let effect = if dialect.successor { "the agent is not reconciled" } else { "the agent runs" };
    let references: Vec<_> = settings_references(dialect, subject.object).collect();
    // Names are compared with as many others in all as one name.
    let max_compared = MAX_COMPARED / references.len().max(1);
    let (mut names, mut findings) = (Vec::new(), Vec::new());
    for (index, name) in references {
        let missing = match name {
            "" => None,
            name if state.is_missing(kind, namespace, name) => {
                let hint = hint(kind, (namespace, name), (&mut names, max_compared), state);
                Some((excerpt(name), hint))
            }
            _ => continue,
        };
        let home = excerpt(namespace);
        let message = move |at: &Pointer| match &missing {
            None => format!("{} is empty; {effect} without it", at.field()),
            Some((name, hint)) => {
                let (name, home) = (quoted(name), quoted(&home));
                format!("{} {name} not found in namespace {home}; {effect} without it{hint}", kind.kind)
            }
        };
        let mut finding = Finding::warn_within(budget, &SETTINGS_NOT_FOUND, settings_pointer(index), message);
        if dialect.successor {
            finding = finding.help("kubeswarm does not start this agent until it exists");
        }
        findings.push(finding.and_elsewhere(|| in_another_namespace(kind, namespace, name, state)));
    }
    findings
}

fn invalid(dialect: &'static Dialect, memory: &Object, pointer: Pointer) -> Option<Finding> {
    let first = memory.defect(|tree| first_denial(dialect, tree))?;
    let message = format!("{} {} is invalid: {}", dialect.memory.kind, quoted(&memory.name), first.message);
    let finding = Finding::warn(&MEMORY_INVALID, pointer, message);
    Some(finding.elsewhere(memory, first.pointer.clone(), "invalid"))
}

/// The pointer to the backend in settings.
fn memory_backend_pointer() -> Pointer {
    Pointer::new("/spec/memoryBackend")
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
    let durable = Backend::from_name(backend).is_some_and(|backend| backend != Backend::InContext);
    let message = format!(
        "{} {} sets memoryBackend {} but {} is not set",
        dialect.settings.kind,
        quoted(&settings.name),
        quoted(backend),
        memory_ref_pointer(dialect).field()
    );
    let finding = || Finding::warn(&SETTINGS_WITHOUT_MEMORY, pointer, message);
    durable.then(|| finding().elsewhere(settings, memory_backend_pointer(), "set here"))
}

fn conflict(dialect: &Dialect, pointer: Pointer, settings: &Object, memory: &Object) -> Option<Finding> {
    let backend = memory_backend(settings.tree());
    let differs = backend != Backend::InContext.name()
        && backend != Memory::read(dialect, memory.tree()).backend()?.name();
    let message = format!(
        "{} {} memoryBackend {} is overridden by {} {}",
        dialect.settings.kind,
        quoted(&settings.name),
        quoted(backend),
        dialect.memory.kind,
        quoted(&memory.name)
    );
    let finding = || {
        Finding::warn(&SETTINGS_CONFLICT, pointer, message)
            .elsewhere(settings, memory_backend_pointer(), "overridden")
            .elsewhere(memory, Pointer::new("/spec/backend"), "this one counts")
    };
    differs.then(finding)
}
