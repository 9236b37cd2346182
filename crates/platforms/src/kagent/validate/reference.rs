//! Looks up the ModelConfigs that an object names.

use super::super::api::{Line, is_moved};
use super::super::message::{shown, with_names};
use crate::message::MAX_NAME_CHARS;
use memgate_model::elsewhere::Elsewhere;
use memgate_model::family::Subject;
use memgate_model::finding::{Code, Finding};
use memgate_model::kind::Kind;
use memgate_model::object::index::BY_NAME;
use memgate_model::object::{Lookup, Object};
use memgate_model::state_reader::StateReader;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::nearest;

/// How many existing names a missing name is compared with.
const MAX_COMPARED: usize = 1_000;

/// The ModelConfig of this name: in the namespace of the subject, and in the group of its line. An object of a version that
/// moved to another group may name one of either.
pub(super) fn find<'s>(subject: &Subject<'_>, name: &str, state: &mut StateReader<'s>) -> Lookup<'s> {
    let line = Line::of(subject.kind);
    match state.get(line.model_config(), subject.namespace, name) {
        Lookup::Absent if is_moved(subject.kind, subject.object) => {
            state.get(line.other().model_config(), subject.namespace, name)
        }
        found_or_unknown => found_or_unknown,
    }
}

/// Warns about a name that no ModelConfig has. An empty or invalid name is the concern of another rule.
pub(super) fn missing(
    code: &'static Code,
    subject: &Subject<'_>,
    (pointer, name): (Pointer, &str),
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    if !is_dns_subdomain(name) || find(subject, name, state) != Lookup::Absent {
        return None;
    }
    let kind = Line::of(subject.kind).model_config();
    let home = in_another_namespace(kind, subject.namespace, name, state);
    let hint = hint(subject, name, home, state);
    let message = with_names([name, subject.namespace], |[name, namespace]| {
        format!("ModelConfig {name} not found in namespace {namespace}{hint}")
    });
    let elsewhere =
        |home| Elsewhere::of(home, Pointer::new("/metadata/namespace"), "it is in this namespace");
    let finding = Finding::warn(code, pointer, message).help("the whole agent waits for it");
    Some(finding.and_elsewhere(|| home.map(elsewhere)))
}

/// What the message about a missing ModelConfig says of others: of its name in another namespace or group, or of a similar
/// name.
fn hint(subject: &Subject<'_>, name: &str, home: Option<&Object>, state: &mut StateReader<'_>) -> String {
    if let Some(home) = home {
        return format!(
            " (exists in {}; references are same-namespace)",
            shown(&home.namespace, MAX_NAME_CHARS)
        );
    }
    let (own, other) = (Line::of(subject.kind).model_config(), Line::of(subject.kind).other().model_config());
    if state.peek(other, subject.namespace, name).is_some_and(|object| !object.deleting()) {
        return format!(" (exists only in {})", other.group);
    }
    let known = state.list(own, subject.namespace).filter(|object| !object.deleting());
    let nearest = nearest(name, known.map(|object| &*object.name).take(MAX_COMPARED));
    nearest.map(|name| format!("; did you mean {}?", shown(name, MAX_NAME_CHARS))).unwrap_or_default()
}

/// The first object of this name in another namespace.
fn in_another_namespace<'s>(
    kind: &Kind,
    namespace: &str,
    name: &str,
    state: &StateReader<'s>,
) -> Option<&'s Object> {
    let mut found = state.peek_indexed(kind, &BY_NAME, name);
    found.find(|object| *object.namespace != *namespace && !object.deleting())
}
