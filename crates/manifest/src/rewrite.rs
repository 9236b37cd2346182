//! Edits made in the user's own text. `fix` makes other changes with the same splices, and the same check of the new text.
//!
//! A source and patches of its objects go in, the new text comes out. Each edit changes as few bytes as possible. The
//! new text is then parsed again: a document whose value is not the expected one is written anew from that value,
//! without its comments. No file is written here.
//!
//! ```text
//! patches ──▶ new values ──splicer (block, flow)──▶ splices ──apply──▶ text ──parse again──▶ compare
//! ```

mod block;
mod emit;
mod flow;
mod splicer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::document::{RootValue, read_whole};
use crate::error::Error;
use crate::place::DocumentPlace;
use crate::rewrite::splicer::{splices, whole_document};
use crate::source::Source;

/// A source with edits made to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new text.
    pub text: String,
    /// The documents, by [`DocumentPlace::index`], that were written anew, without their comments and layout,
    /// because of merge keys or the like.
    pub reformatted: Vec<usize>,
}

/// A value as a YAML document that every YAML reader reads as this value.
pub fn yaml(value: &Value) -> String {
    emit::document(value)
}

/// Applies a patch (RFC 6902, as JSON) to each of these objects, in the text of their source. All other bytes stay,
/// comments and line ends included.
///
/// # Errors
/// When a patch does not apply to its object.
pub fn rewrite(source: &Arc<Source>, patches: &[(&DocumentPlace, Value)]) -> Result<Rewritten, Error> {
    let (outline, before) = read_whole(source);
    let expected = new_values(source, &before, patches)?;
    let mut reformatted = BTreeSet::new();
    // The first round changes the text in place. The second writes the documents anew that the first got wrong.
    for _ in 0..2 {
        let mut changes = Vec::new();
        for (index, new) in &expected {
            let Some(Ok((root, old))) = before.get(*index) else { continue };
            let in_place =
                if reformatted.contains(index) { None } else { splices(source, &outline, *root, old, new) };
            changes.extend(in_place.unwrap_or_else(|| {
                reformatted.insert(*index);
                vec![whole_document(source, outline.node(*root), new)]
            }));
        }
        if let Some(text) = apply_splices(source.text(), changes) {
            let wrong = wrong_documents(source, &text, &before, &expected);
            if wrong.is_empty() {
                return Ok(Rewritten { text, reformatted: reformatted.into_iter().collect() });
            }
            reformatted.extend(wrong);
        } else {
            reformatted.extend(expected.keys());
        }
    }
    let message = "the edits cannot be written into this file; write the document in another form";
    Err(Error::of_input(source.name(), message))
}

/// The new value of each document with a patch, by index.
fn new_values(
    source: &Source,
    before: &[RootValue],
    patches: &[(&DocumentPlace, Value)],
) -> Result<BTreeMap<usize, Value>, Error> {
    let mut values = BTreeMap::new();
    for (place, patch) in patches {
        // It would be a bug of memgate.
        let failed =
            |pointer: String| Error::of_input(source.name(), format!("the edit at {pointer} does not apply"));
        let Some(Ok((_, old))) = before.get(place.index()) else { return Err(failed(String::new())) };
        let document = values.entry(place.index()).or_insert_with(|| old.clone());
        let object = document.pointer_mut(place.prefix().as_str()).ok_or_else(|| failed(String::new()))?;
        let patch: json_patch::Patch =
            serde_json::from_value(patch.clone()).map_err(|_| failed(String::new()))?;
        json_patch::patch(object, &patch).map_err(|error| failed(error.path.to_string()))?;
    }
    Ok(values)
}

/// A change: the text takes the place of the bytes from `start` to `end`. Its lines end with `\n`, also in a source with
/// other line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last one.
    pub end: usize,
    /// The text.
    pub text: String,
}

/// The new text. Of changes at one place the first comes first. `None` when changes overlap.
pub(super) fn apply_splices(old: &str, mut changes: Vec<Splice>) -> Option<String> {
    changes.sort_by_key(|splice| (splice.start, splice.end));
    let end_of_line = match old.find('\n') {
        Some(at) if old.get(..at)?.ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let (mut text, mut at) = (String::with_capacity(old.len() + 256 * changes.len()), 0);
    for splice in changes {
        text.push_str(old.get(at..splice.start)?);
        text.push_str(&splice.text.replace('\n', end_of_line));
        at = splice.end;
    }
    text.push_str(old.get(at..)?);
    Some(text)
}

/// The documents whose value in the new text is not the expected one, by index; all of those with an expected value when
/// any other document has changed too. `before` has the documents of the source.
pub(super) fn wrong_documents(
    source: &Source,
    text: &str,
    before: &[RootValue],
    expected: &BTreeMap<usize, Value>,
) -> BTreeSet<usize> {
    let (_, found) = read_whole(&Arc::new(Source::new(source.name(), text)));
    let is_wrong = |(index, old): (usize, &RootValue)| {
        let expected = expected.get(&index).or_else(|| old.as_ref().ok().map(|(_, value)| value));
        let found = found.get(index).map(|root| root.as_ref().ok().map(|(_, value)| value));
        (found != Some(expected)).then_some(index)
    };
    let wrong: BTreeSet<usize> = before.iter().enumerate().filter_map(is_wrong).collect();
    if found.len() != before.len() || wrong.iter().any(|index| !expected.contains_key(index)) {
        return expected.keys().copied().collect();
    }
    wrong
}
