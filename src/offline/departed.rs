//! A note about a line of a platform that ends: one for all inputs, where they or the cluster have the next line.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::offline::check::Decided;
use crate::offline::load::Inputs;
use crate::offline::notices::Notice;
use crate::report::ObjectRef;
use memgate_core::family;
use memgate_manifest::source::{Source, Span};
use memgate_model::family::{DepartedLine, Family};
use memgate_model::finding::{Finding, Severity};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;

/// Whether a notice is such a note.
pub(super) fn is_note(notice: &Notice) -> bool {
    let departed = family::ALL.iter().filter_map(|family| family.definitions.departed.as_ref());
    notice.finding.severity == Severity::Note
        && departed.map(|line| line.code).any(|code| code == notice.finding.code)
}

/// The notes, each at the first object of its line.
pub(super) fn notes(decided: &[Decided], inputs: &Inputs, state: &Snapshot) -> Vec<Notice> {
    let families = &state.settings.families;
    let lines = families.iter().filter_map(|family| Some((*family, family.definitions.departed.as_ref()?)));
    lines.filter_map(|(family, line)| note(family, line, decided, inputs, state)).collect()
}

fn note(
    family: &'static Family,
    line: &DepartedLine,
    decided: &[Decided],
    inputs: &Inputs,
    state: &Snapshot,
) -> Option<Notice> {
    let mut next = line.next.iter().filter_map(|kind| state.kind(kind));
    if !next.any(|kind| kind.is_installed || !kind.is_empty()) {
        return None;
    }
    let judged = decided.iter().map(|it| {
        let place = &it.object.place;
        (&it.object.object_ref, place.source(), place.span())
    });
    let others = &inputs.passed_over;
    let others = others.iter().filter_map(|it| Some((it.object_ref.as_ref()?, &it.source, it.span)));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut first: Option<(&ObjectRef, &Arc<Source>, Span)> = None;
    for found in judged.chain(others).filter(|(object, ..)| is_of(family, line, object)) {
        *counts.entry(&found.0.kind).or_default() += 1;
        first.get_or_insert(found);
    }
    let (_, source, span) = first?;
    let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
    let message = format!("{}: {}", line.message, counts.join(", "));
    let finding = Finding::warn(line.code, Pointer::root(), message);
    Some(Notice::new(source, span, Finding { severity: Severity::Note, ..finding }))
}

/// Whether an object is of the line. One of a version that moved to another group is not.
fn is_of(family: &'static Family, line: &DepartedLine, object: &ObjectRef) -> bool {
    let Some((group, version)) = object.api_version.split_once('/') else { return false };
    let is_moved = family::validated(&[family], group, &object.kind)
        .is_some_and(|(family, kind)| (family.definitions.stand_in.moved)(kind, version).is_some());
    group == line.group && line.kinds.contains(&&*object.kind) && !is_moved
}
