//! Edits made in the user's own text.
//!
//! A source and edits of its documents go in, the new text comes out. Each edit changes as few bytes as possible. The
//! new text is then parsed again: a document whose value is not the expected one is written anew from that value,
//! without its comments. No file is written here.
//!
//! ```text
//! edits ──edited──▶ EditedDocument ──block, flow──▶ Splices ──apply_splices──▶ text ──parse again──▶ compare
//! ```

mod block;
mod edited;
mod emit;
mod flow;
mod origins;
mod splice;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::document::{RootValue, read_whole};
use crate::error::Error;
use crate::outline::NodeId;
use crate::place::DocumentPlace;
use crate::rewrite::block::{splices, whole_document};
use crate::rewrite::edited::{EditedDocument, ParsedSource};
use crate::rewrite::splice::Splice;
use crate::source::Source;
use memgate_primitives::pointer::Pointer;

/// One edit of a document, as in RFC 6902.
#[derive(Debug, Clone)]
pub struct TextEdit {
    /// What it does.
    pub action: Action,
    /// The place in the document, valid after the edits before it.
    pub pointer: Pointer,
    /// The new value; ignored for [`Action::Remove`].
    pub value: Value,
    /// The number of origins of the value: one for each element of a list, else one for the whole.
    pub origins: usize,
}

/// What an edit does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Sets a field, also one that exists, or inserts before the list element of that index.
    Add,
    /// Sets a field or list element that exists.
    Replace,
    /// Removes a field.
    Remove,
}

/// A source with edits made to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new text.
    pub text: String,
    /// For each line that is new or changed, its number in the new text (from 1) and the number of its origin (from 0,
    /// counted through all edits in their order). Sorted; a line has several entries if several edits touch it.
    pub origins: Vec<(usize, usize)>,
    /// The documents, by [`DocumentPlace::index`], that were written anew, without their comments and layout,
    /// because of aliases or the like.
    pub reformatted: Vec<usize>,
}

/// A value as a YAML document that every YAML reader reads as this value.
#[must_use]
pub fn yaml(value: &Value) -> String {
    emit::document(value)
}

/// Makes the edits of some of a source's documents in its text. All other bytes stay, comments and line ends
/// included.
///
/// # Errors
/// When an edit does not apply to its document.
pub fn rewrite(source: &Arc<Source>, edits: &[(&DocumentPlace, &[TextEdit])]) -> Result<Rewritten, Error> {
    let (outline, roots) = read_whole(source);
    let parsed = ParsedSource { source, text: source.text(), outline: &outline };
    let edited = edited_documents(parsed, &roots, edits)?;
    let mut reformatted = BTreeSet::new();
    // The first round changes the text in place. The second writes the documents anew that the first got wrong.
    for _ in 0..2 {
        let mut changes = Vec::new();
        for (index, (root, document)) in &edited {
            let spliced = if reformatted.contains(index) { None } else { splices(parsed, *root, document) };
            changes.extend(spliced.unwrap_or_else(|| {
                reformatted.insert(*index);
                vec![whole_document(parsed, *root, document)]
            }));
        }
        if let Some((text, mut origins)) = apply_splices(source.text(), changes) {
            let wrong = wrong_documents(source, &text, &roots, &edited);
            if wrong.is_empty() {
                origins.sort_unstable();
                origins.dedup();
                return Ok(Rewritten { text, origins, reformatted: reformatted.into_iter().collect() });
            }
            reformatted.extend(wrong);
        } else {
            reformatted.extend(edited.keys());
        }
    }
    Err(Error::Rewrite { path: source.name().to_owned() })
}

/// Each document that has edits, by its index, with its root.
type EditedDocuments = BTreeMap<usize, (NodeId, EditedDocument)>;

fn edited_documents(
    parsed: ParsedSource<'_>,
    roots: &[RootValue],
    edits: &[(&DocumentPlace, &[TextEdit])],
) -> Result<EditedDocuments, Error> {
    let (mut documents, mut origins) = (EditedDocuments::new(), 0);
    for (document, edits) in edits.iter().filter(|(_, edits)| !edits.is_empty()) {
        for edit in *edits {
            let does_not_apply = || Error::Edit {
                path: parsed.source.name().to_owned(),
                pointer: edit.pointer.as_str().to_owned(),
            };
            let Some(Ok((root, value))) = roots.get(document.index()) else { return Err(does_not_apply()) };
            let (_, edited) = documents
                .entry(document.index())
                .or_insert_with(|| (*root, EditedDocument::new(*root, value.clone())));
            let pointer = document.prefix().join(&edit.pointer);
            edited.apply(parsed, &pointer, edit, origins).ok_or_else(does_not_apply)?;
            origins += edit.origins;
        }
    }
    Ok(documents)
}

/// The new text, and for each of its changed lines the numbers of origins. `None` when changes
/// overlap.
fn apply_splices(old: &str, mut changes: Vec<Splice>) -> Option<(String, Vec<(usize, usize)>)> {
    changes.sort_by_key(|splice| (splice.start, splice.end));
    let end_of_line = match old.find('\n') {
        Some(at) if old.get(..at)?.ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let mut text = String::with_capacity(old.len() + 256 * changes.len());
    let (mut at, mut line, mut origins) = (0, 1, Vec::new());
    for splice in changes {
        let between = old.get(at..splice.start)?;
        line += between.matches('\n').count();
        text.push_str(between);
        for (index, new) in splice.lines.iter().enumerate() {
            if index > 0 {
                text.push_str(end_of_line);
                line += 1;
            }
            text.push_str(&new.text);
            origins.extend(new.origins.iter().map(|origin| (line, *origin)));
        }
        at = splice.end;
    }
    text.push_str(old.get(at..)?);
    Some((text, origins))
}

/// The edited documents whose value in the new text is not the expected one; all of them when the other documents of
/// the two texts differ.
fn wrong_documents(source: &Source, text: &str, roots: &[RootValue], edited: &EditedDocuments) -> Vec<usize> {
    let (_, found) = read_whole(&Arc::new(Source::new(source.name(), text)));
    let is_right = |index: usize, root: &RootValue| match (found.get(index), root, edited.get(&index)) {
        (Some(Ok((_, found))), _, Some((_, document))) => *found == document.value,
        (Some(Ok((_, found))), Ok((_, value)), None) => found == value,
        (Some(Err(_)), Err(_), None) => true,
        _ => false,
    };
    let wrong: Vec<usize> = roots
        .iter()
        .enumerate()
        .filter(|(index, root)| !is_right(*index, root))
        .map(|(index, _)| index)
        .collect();
    if found.len() != roots.len() || wrong.iter().any(|index| !edited.contains_key(index)) {
        return edited.keys().copied().collect();
    }
    wrong
}
