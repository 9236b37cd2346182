//! What no release of kagent serves, or not the one that is installed.

use super::super::api::{Line, NEWER_GROUP, NEWER_KINDS, OLDER_GROUP, moved};
use super::super::block::Block;
use super::super::codes::{GROUP_MOVED, LINE_REMOVED};
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;
use memgate_primitives::pointer::Pointer;

/// Warns about a version that has moved to another group, and about memory of 0.x where 1.x is.
pub(super) fn findings(subject: &Subject<'_>, state: &StateReader<'_>) -> Vec<Finding> {
    group_moved(subject).into_iter().chain(line_removed(subject, state)).collect()
}

fn group_moved(subject: &Subject<'_>) -> Option<Finding> {
    let (group, version) = subject.object.text_at(&["apiVersion"])?.split_once('/')?;
    moved(subject.kind, version).filter(|_| group == OLDER_GROUP)?;
    let message = format!("\"{group}/{version}\" is in no release; use \"{NEWER_GROUP}/{version}\"");
    Some(Finding::warn(&GROUP_MOVED, Pointer::new("/apiVersion"), message))
}

fn line_removed(subject: &Subject<'_>, state: &StateReader<'_>) -> Option<Finding> {
    let block = Block::of(subject.kind, subject.object)?;
    let is_read = block.line == Line::Older && !block.is_ignored;
    let is_newer = || NEWER_KINDS.iter().any(|kind| state.is_installed(kind) || state.holds_any(kind));
    (is_read && is_newer()).then(|| {
        let message =
            "kagent 1.0 does not read kagent.dev Agents; set memory on a Harness (spec.kagent.memory)";
        Finding::warn(&LINE_REMOVED, block.pointer(), message)
    })
}
