//! The files with the edits of their objects made in the user's own text.

use std::sync::Arc;

use serde::Serialize;

use crate::manifest::error::Error;
use crate::manifest::rewrite::{Rewritten, rewrite};
use crate::manifest::source::Source;
use crate::model::edit::Edit;
use crate::offline::check::{Checked, Decided};
use crate::patch::Patch;
use crate::report::patches::ObjectPatch;

/// Every source, in order, with the edits of those of its objects that are allowed.
///
/// # Errors
/// When an edit does not fit its document, which is a fault of memgate's own.
pub fn rewrite_all(checked: &Checked) -> Result<Vec<(&Source, Rewritten)>, Error> {
    let rewritten = |source| Ok((Arc::as_ref(source), rewrite_source(source, checked)?));
    checked.sources.iter().map(rewritten).collect()
}

fn rewrite_source(source: &Arc<Source>, checked: &Checked) -> Result<Rewritten, Error> {
    let in_source = |decided: &&Decided| Arc::ptr_eq(decided.object.place.source(), source);
    let allowed = checked.decided.iter().filter(in_source).filter(|decided| decided.allowed());
    let edits: Vec<_> = allowed
        .map(|decided| (&decided.object.place, decided.object.edits_in_document(&decided.admitted.edits)))
        .collect();
    let edits: Vec<_> = edits.iter().map(|(place, edits)| (*place, edits.as_slice())).collect();
    rewrite(source, &edits)
}

/// The edits of one object.
#[derive(Debug)]
pub struct Edits(Vec<Edit>);

impl Serialize for Edits {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Patch(&self.0).serialize(serializer)
    }
}

/// What changes in each object that is allowed, in document order; a workload in its pod template.
pub fn patches(checked: &Checked) -> impl Iterator<Item = ObjectPatch<'_, Edits>> {
    let changed = checked.decided.iter().filter(|it| it.allowed() && !it.admitted.edits.is_empty());
    changed.map(|Decided { object, admitted, .. }| ObjectPatch {
        object_ref: &object.object_ref,
        file: object.place.source().name(),
        line: object.place.span().line,
        patch: Edits(object.edits_in_document(&admitted.edits)),
    })
}
