//! Joins what was read for several sets of files.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::load::Inputs;

/// Adds what was read for another set, without its objects and its state.
pub(crate) fn join_inputs(to: &mut Inputs, from: Inputs) {
    to.sources.extend(from.sources);
    to.passed_over.extend(from.passed_over);
    to.notices.extend(from.notices);
    to.errors.extend(from.errors);
    to.origins.extend(from.origins);
    // These count the files of all sets that were read before.
    to.unread.switched_off.clone_from(&from.unread.switched_off);
    to.unread.unused_excludes.clone_from(&from.unread.unused_excludes);
    to.unread.extend(from.unread);
}

/// Leaves what was read several times once.
pub(crate) fn deduplicate(inputs: &mut Inputs) {
    once(&mut inputs.sources, Arc::as_ptr);
    once(&mut inputs.passed_over, |it| (Arc::as_ptr(&it.source), it.span.start));
    once(&mut inputs.errors, ToString::to_string);
    once(&mut inputs.unread.empty, Clone::clone);
    once(&mut inputs.unread.files, Clone::clone);
    once(&mut inputs.unread.unrendered, |it| it.unit.clone());
}

fn once<T, K: Ord>(all: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert(key(one)));
}
