//! Warns about the DELETE of a Memory that Queries use.

use crate::model::family::Subject;
use crate::model::finding::Finding;
use crate::model::object::Object;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::api::{DEFAULT, QUERY};
use super::super::codes::MEMORY_DELETE_REFERENCED;

/// How many Queries a message names.
const MAX_NAMES: usize = 3;

/// A DELETE is never refused; the warning lists the Queries whose messages stay behind.
pub(super) fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let queries = state.everywhere(&QUERY);
    let users = queries.filter(|query| !query.deleting() && uses(query, subject.namespace, subject.name));
    let mut names: Vec<String> = users.map(|query| name(query, subject.namespace)).collect();
    names.sort();
    let (count, verb, whose) = match names.len() {
        0 => return Vec::new(),
        1 => ("1 query".to_owned(), "uses", "its"),
        several => (format!("{several} queries"), "use", "their"),
    };
    let more = if names.len() > MAX_NAMES { ", …" } else { "" };
    names.truncate(MAX_NAMES);
    let message = format!(
        "{count} {verb} this Memory ({}{more}); {whose} messages will not be cleaned up",
        names.join(", ")
    );
    vec![Finding::warn(&MEMORY_DELETE_REFERENCED, Pointer::root(), message)]
}

/// Whether a Query uses this Memory, by name or by default.
fn uses(query: &Object, namespace: &str, name: &str) -> bool {
    let Some(memory) = query.tree.at(&["spec", "memory"]) else {
        return name == DEFAULT && query.namespace == namespace;
    };
    let named = memory.get("namespace").and_then(Tree::text).filter(|named| !named.is_empty());
    memory.get("name").and_then(Tree::text) == Some(name) && named.unwrap_or(&query.namespace) == namespace
}

fn name(query: &Object, namespace: &str) -> String {
    if query.namespace == namespace {
        query.name.clone()
    } else {
        format!("{}/{}", query.namespace, query.name)
    }
}
