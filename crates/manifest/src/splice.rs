//! Changes of the bytes of a source, and the check that the new text means what it should. `fix` and `rewrite` find the
//! changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::document::{RootValue, read_whole};
use crate::source::Source;

/// A change: the text takes the place of the bytes from `start` to `end`. Its lines end with `\n`, also in a source with
/// other line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

/// The new text. Of changes at one place the first comes first. `None` when changes overlap.
pub(super) fn apply(old: &str, mut changes: Vec<Splice>) -> Option<String> {
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
