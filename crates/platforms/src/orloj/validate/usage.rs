//! Warns about the DELETE of a Memory or ModelEndpoint that is in use.
//!
//! A DELETE is never refused. The warning lists the users of the object.

use std::collections::BTreeSet;

use crate::message::first_of;
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{AGENT, MEMORY, MODEL_ENDPOINT, claimed_memory, text};
use super::super::codes::{MEMORY_IN_USE, MODELENDPOINT_IN_USE};
use super::super::message::{fit_message, truncate};
use super::super::namespace::{self, NamespacedName};

pub(super) fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let (code, users, user_kinds) = if *subject.kind == MEMORY {
        (&MEMORY_IN_USE, agents(subject, state), "Agent(s)")
    } else if *subject.kind == MODEL_ENDPOINT {
        (&MODELENDPOINT_IN_USE, memories(subject, state), "Memory(s)")
    } else {
        return Vec::new();
    };
    if users.is_empty() {
        return Vec::new();
    }
    let message = fit_message(|limit| {
        let name = quoted(&truncate(subject.name, limit));
        format!("{} {name} is used by {user_kinds}: {}", subject.kind.kind, join_names(&users, limit))
    });
    vec![Finding::warn(code, Pointer::new("/metadata/name"), message)]
}

/// The names of the Agents of the Memory's Orloj namespace that claim it.
fn agents(subject: &Subject<'_>, state: &mut StateReader<'_>) -> BTreeSet<String> {
    let home = namespace::effective(subject.object, subject.namespace);
    let settings = &state.settings().orloj;
    let agents = state.everywhere(&AGENT).filter(|agent| {
        let claims = || claimed_memory(agent.tree()) == Some(subject.name);
        claims() && !agent.deleting() && namespace::is_in(agent, home, settings)
    });
    agents.map(|agent| agent.name.to_string()).collect()
}

/// The Memories, with their Kubernetes namespaces, whose embeddings come from the ModelEndpoint.
fn memories(subject: &Subject<'_>, state: &mut StateReader<'_>) -> BTreeSet<String> {
    let home = namespace::effective(subject.object, subject.namespace);
    let itself = NamespacedName { namespace: home, name: subject.name };
    let settings = &state.settings().orloj;
    let memories = state.everywhere(&MEMORY).filter(|memory| {
        let text = text(memory.tree(), &["spec", "embedding_model"]);
        let points_here = |text| NamespacedName::read(text, namespace::object_namespace(memory)) == itself;
        let ignored = || namespace::is_ignored(memory.tree(), &memory.namespace, settings);
        text.is_some_and(points_here) && !memory.deleting() && !ignored()
    });
    memories.map(|memory| format!("{}/{}", memory.namespace, memory.name)).collect()
}

/// `a, b, c, d, e and 2 more`, each name truncated at `limit`.
fn join_names(users: &BTreeSet<String>, limit: usize) -> String {
    /// How many users a message names.
    const MAX_NAMES: usize = 5;
    let names: Vec<String> = users.iter().take(MAX_NAMES).map(|name| truncate(name, limit)).collect();
    first_of(&names, users.len())
}
