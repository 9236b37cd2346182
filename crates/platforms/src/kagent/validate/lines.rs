//! What one line of kagent does not read: older kinds and lists.

use crate::kagent::api::{AGENT, MEMORY};
use crate::kagent::block::pointer;
use crate::kagent::codes::{AGENT_MEMORY_UNREAD, MEMORY_KIND_UNREAD};
use crate::prelude::*;

/// The list of Memories in an Agent of the oldest version. The place has no meaning in later versions.
const MEMORIES: [&str; 2] = ["spec", "memory"];

/// The findings about what no kagent reads any more.
pub(super) fn findings(subject: &Subject<'_>) -> Vec<Finding> {
    unread_kind(subject).into_iter().chain(unread_list(subject)).collect()
}

fn unread_kind(subject: &Subject<'_>) -> Option<Finding> {
    let message = "no kagent since 0.7 reads Memory; use spec.declarative.memory, in 1.0 the Harness";
    let finding = || Finding::warn(&MEMORY_KIND_UNREAD, Pointer::new("/spec"), message);
    (*subject.kind == MEMORY).then(finding)
}

fn unread_list(subject: &Subject<'_>) -> Option<Finding> {
    let message = "spec.memory is read by no kagent since 0.7; use v1alpha2 spec.declarative.memory";
    let is_unread = has_memories(subject) && !subject.object.list_at(&MEMORIES).is_empty();
    is_unread.then(|| Finding::warn(&AGENT_MEMORY_UNREAD, pointer(&MEMORIES), message))
}

/// Whether the subject is of the version in which Agents have a list of Memories.
fn has_memories(subject: &Subject<'_>) -> bool {
    *subject.kind == AGENT && subject.object.text_at(&["apiVersion"]) == Some("kagent.dev/v1alpha1")
}
