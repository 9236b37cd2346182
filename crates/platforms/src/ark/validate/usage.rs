//! Warns about the DELETE of a Memory that Queries use.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::object::Object;
use memgate_model::state_reader::StateReader;
use memgate_primitives::pointer::Pointer;

use super::super::api::{DEFAULT, STATE_QUERY};
use super::super::codes::MEMORY_DELETE_REFERENCED;

/// How many Queries a message names.
const MAX_NAMES: usize = 3;

/// Warns about a DELETE, and never refuses it. The warning lists the Queries whose messages stay behind.
pub(super) fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let queries = state.everywhere(&STATE_QUERY);
    let users = queries.filter(|query| !query.deleting() && uses(query, subject.namespace, subject.name));
    let mut names: Vec<_> = users.map(|user| user.name_in(subject.namespace)).collect();
    let count = names.len();
    if count > MAX_NAMES {
        names.select_nth_unstable(MAX_NAMES);
        names.truncate(MAX_NAMES);
    }
    names.sort_unstable();
    let more = if count > MAX_NAMES { ", …" } else { "" };
    let (count, verb, whose) = match count {
        0 => return Vec::new(),
        1 => ("1 query".to_owned(), "uses", "its"),
        several => (format!("{several} queries"), "use", "their"),
    };
    let message = format!(
        "{count} {verb} this Memory ({}{more}); {whose} messages will not be cleaned up",
        names.join(", ")
    );
    vec![Finding::warn(&MEMORY_DELETE_REFERENCED, Pointer::root(), message)]
}

/// Whether a Query uses this Memory, by name or by default.
fn uses(query: &Object, namespace: &str, name: &str) -> bool {
    let Some(memory) = query.tree().at(&["spec", "memory"]) else {
        return name == DEFAULT && *query.namespace == *namespace;
    };
    let named = memory.text_at(&["namespace"]).filter(|named| !named.is_empty());
    memory.text_at(&["name"]) == Some(name) && named.unwrap_or(&query.namespace) == namespace
}
