//! Edits made to the user's own text.
//!
//! In go a source and edits of its documents; out comes the new text. Each edit changes only the bytes it
//! must. The new text is then read again: a document whose value is not the edited one is written anew
//! from that value, without its comments. No file is written here.
//!
//! ```text
//! edits ──edited──▶ EditedDocument ──block, flow──▶ Splices ──apply_splices──▶ text ──read again──▶ done
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

use crate::manifest::error::Error;
use crate::manifest::outline::NodeId;
use crate::manifest::place::DocumentPlace;
use crate::manifest::read::{RootValue, read};
use crate::manifest::rewrite::block::{splices, whole_document};
use crate::manifest::rewrite::edited::{EditedDocument, ParsedSource};
use crate::manifest::rewrite::splice::Splice;
use crate::manifest::source::Source;
use crate::model::edit::{Edit, Origin};

/// A source with edits made to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new text.
    pub text: String,
    /// For each line that is new or changed, its number in the new text (from 1) and where it comes
    /// from; by line, several for a line that several edits touch.
    pub origins: Vec<(usize, Origin)>,
    /// The documents, by [`DocumentPlace::index`], that had to be written anew, without their comments
    /// and their form, because of aliases or the like.
    pub reformatted: Vec<usize>,
}

/// A value as a document of YAML that every reader takes for this value.
#[must_use]
pub fn yaml(value: &Value) -> String {
    emit::document(value)
}

/// Makes the edits of some of a source's documents in its text. What no edit touches stays as it
/// is, comments and line ends included.
///
/// # Errors
/// When an edit does not apply to its document.
pub fn rewrite(source: &Arc<Source>, edits: &[(&DocumentPlace, &[Edit])]) -> Result<Rewritten, Error> {
    let (outline, roots) = read(source);
    let parsed = ParsedSource { source, text: source.text(), outline: &outline };
    let mut origins = Vec::new();
    let edited = edited_documents(source, parsed, &roots, edits, &mut origins)?;
    let mut reformatted = BTreeSet::new();
    // The first round changes the text in place; the second writes anew what the first got wrong, which
    // no comment or alias of the old text can spoil.
    for _ in 0..2 {
        let mut changes = Vec::new();
        for (index, (root, document)) in &edited {
            let spliced = if reformatted.contains(index) { None } else { splices(parsed, *root, document) };
            changes.extend(spliced.unwrap_or_else(|| {
                reformatted.insert(*index);
                vec![whole_document(parsed, *root, document)]
            }));
        }
        if let Some((text, lines)) = apply_splices(source.text(), changes) {
            let wrong = wrong_documents(source, &text, &roots, &edited);
            if wrong.is_empty() {
                return Ok(with_origins(text, lines, &origins, reformatted));
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
    source: &Source,
    parsed: ParsedSource<'_>,
    roots: &[RootValue],
    edits: &[(&DocumentPlace, &[Edit])],
    origins: &mut Vec<Origin>,
) -> Result<EditedDocuments, Error> {
    let mut documents = EditedDocuments::new();
    for (document, edits) in edits.iter().filter(|(_, edits)| !edits.is_empty()) {
        for edit in *edits {
            let does_not_apply =
                || Error::Edit { path: source.name().to_owned(), pointer: edit.pointer.as_str().to_owned() };
            let Some(Ok((root, value))) = roots.get(document.index()) else { return Err(does_not_apply()) };
            let (_, edited) = documents
                .entry(document.index())
                .or_insert_with(|| (*root, EditedDocument::new(*root, value.clone())));
            let pointer = document.prefix().join(&edit.pointer);
            edited.apply(parsed, &pointer, edit, origins).ok_or_else(does_not_apply)?;
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

/// The edited documents whose value in the new text is not the one it should be; all of them when the
/// documents of the two texts do not even match.
fn wrong_documents(source: &Source, text: &str, roots: &[RootValue], edited: &EditedDocuments) -> Vec<usize> {
    let (_, found) = read(&Arc::new(Source::new(source.name(), text)));
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

fn with_origins(
    text: String,
    mut lines: Vec<(usize, usize)>,
    origins: &[Origin],
    reformatted: BTreeSet<usize>,
) -> Rewritten {
    lines.sort_unstable();
    lines.dedup();
    let origins =
        lines.iter().filter_map(|(line, number)| Some((*line, origins.get(*number)?.clone()))).collect();
    Rewritten { text, origins, reformatted: reformatted.into_iter().collect() }
}
