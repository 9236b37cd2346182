//! The files with the edits of their objects made in the user's own text.

use std::sync::Arc;

use crate::offline::check::{Checked, Decided};
use crate::report::patches::ObjectPatch;
use memgate_core::patch::Patch;
use memgate_manifest::error::Error;
use memgate_manifest::rewrite::{self, Action, TextEdit};
use memgate_manifest::source::Source;
use memgate_model::edit::{Edit, Op, Origin};

/// A source with the edits of its objects.
#[derive(Debug)]
pub struct Rewritten {
    /// The new text.
    pub text: String,
    /// The lines of the new text that are new or changed, by number (from 1), with their origins. Sorted; a line has
    /// several entries if several edits touch it.
    pub origins: Vec<(usize, Origin)>,
    /// The numbers of the documents that were written anew, without their comments.
    pub reformatted: Vec<usize>,
}

/// Every source, in order, with the edits of its allowed objects.
///
/// # Errors
/// When an edit does not fit its document, which is a bug in memgate.
pub fn rewrite_all(checked: &Checked) -> Result<Vec<(&Source, Rewritten)>, Error> {
    let rewritten = |source| Ok((Arc::as_ref(source), rewrite_source(source, checked)?));
    checked.sources.iter().map(rewritten).collect()
}

fn rewrite_source(source: &Arc<Source>, checked: &Checked) -> Result<Rewritten, Error> {
    let in_source = |decided: &&Decided| Arc::ptr_eq(decided.object.place.source(), source);
    let allowed = checked.decided.iter().filter(in_source).filter(|decided| decided.allowed());
    let (mut origins, mut edits) = (Vec::new(), Vec::new());
    for Decided { object, admitted, .. } in allowed {
        let of_object = object.edits_in_document(&admitted.edits);
        edits.push((&object.place, text_edits(&of_object)));
        origins.extend(of_object.into_iter().flat_map(|edit| edit.origins));
    }
    let edits: Vec<_> = edits.iter().map(|(place, edits)| (*place, edits.as_slice())).collect();
    let rewrite::Rewritten { text, origins: lines, reformatted } = rewrite::rewrite(source, &edits)?;
    let lines = lines.into_iter().filter_map(|(line, number)| Some((line, origins.get(number)?.clone())));
    Ok(Rewritten { text, origins: lines.collect(), reformatted })
}

/// Edits of an object as edits of its text.
#[must_use]
pub fn text_edits(edits: &[Edit]) -> Vec<TextEdit> {
    let text_edit = |edit: &Edit| TextEdit {
        action: match edit.op {
            Op::Add => Action::Add,
            Op::Replace => Action::Replace,
            Op::Remove => Action::Remove,
        },
        pointer: edit.pointer.clone(),
        // Values of edits are always JSON.
        value: serde_json::to_value(&edit.value).unwrap_or_default(),
        origins: edit.origins.len(),
    };
    edits.iter().map(text_edit).collect()
}

/// The changes of each allowed object, in document order; for a workload in its pod template.
pub fn patches(checked: &Checked) -> impl Iterator<Item = ObjectPatch<'_>> {
    let changed = checked.decided.iter().filter(|it| it.allowed() && !it.admitted.edits.is_empty());
    changed.map(|Decided { object, admitted, .. }| ObjectPatch {
        object_ref: &object.object_ref,
        file: object.place.source().name(),
        line: object.place.span().line,
        // Edits are always JSON.
        patch: serde_json::to_value(Patch(&object.edits_in_document(&admitted.edits))).unwrap_or_default(),
    })
}
