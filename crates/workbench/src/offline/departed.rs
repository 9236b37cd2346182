//! A note about a line of a platform that ends: one for all inputs, where they or the cluster have the next line.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::offline::notices::Notice;
use crate::report::ObjectRef;
use memgate_manifest::source::{Source, Span};
use memgate_model::family::{DepartedLine, Family};
use memgate_model::finding::{Finding, Severity};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;

/// Whether a notice is such a note.
pub(super) fn is_note(notice: &Notice) -> bool {
    let departed = memgate_platforms::ALL.iter().filter_map(|family| family.definitions.departed.as_ref());
    notice.finding.severity == Severity::Note
        && departed.map(|line| line.code).any(|code| code == notice.finding.code)
}

/// An object of the inputs, with its place.
pub(super) type Placed<'i> = (&'i ObjectRef, &'i Arc<Source>, Span);

/// The notes, each at the first object of its line.
pub(super) fn notes(objects: &[Placed<'_>], state: &Snapshot) -> Vec<Notice> {
    let families = &state.settings.families;
    let lines = families.iter().filter_map(|family| Some((*family, family.definitions.departed.as_ref()?)));
    lines.filter_map(|(family, line)| note(family, line, objects, state)).collect()
}

fn note(
    family: &'static Family,
    line: &DepartedLine,
    objects: &[Placed<'_>],
    state: &Snapshot,
) -> Option<Notice> {
    let mut next = line.next.iter().filter_map(|kind| state.kind(kind));
    if !next.any(|kind| kind.is_installed || !kind.is_empty()) {
        return None;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut first = None;
    for (object, source, span) in objects.iter().filter(|(object, ..)| is_of(family, line, object)) {
        *counts.entry(&object.kind).or_default() += 1;
        first.get_or_insert((source, span));
    }
    let (source, span) = first?;
    let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
    let finding =
        Finding::warn(line.code, Pointer::root(), format!("{}: {}", line.message, counts.join(", ")));
    Some(Notice::new(source, *span, Finding { severity: Severity::Note, ..finding }))
}

/// Whether an object is of the line. One of a version that moved to another group is not.
fn is_of(family: &'static Family, line: &DepartedLine, object: &ObjectRef) -> bool {
    let Some((group, version)) = object.api_version.split_once('/') else { return false };
    let is_moved = memgate_platforms::validated(&[family], group, &object.kind)
        .is_some_and(|(family, kind)| (family.definitions.stand_in.moved)(kind, version).is_some());
    group == line.group && line.kinds.contains(&&*object.kind) && !is_moved
}
