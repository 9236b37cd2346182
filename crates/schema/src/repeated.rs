//! Keys that stand in an object more than once, of which the last one counts.

use std::collections::BTreeSet;

use crate::cursor::Cursor;
use crate::document::{Document, Item, Span};

/// How many keys are compared with each other one by one.
const MAX_COMPARED_KEYS: usize = 8;

/// Marks each key that a later one repeats: the last of them counts. How many fields are not there, for that
/// or because they are `null`.
pub(super) fn replace_repeated(document: &mut Document<'_>, start: usize, count: usize) -> usize {
    if count > MAX_COMPARED_KEYS {
        let keys: Vec<_> = keys_from(document, start + 1).collect();
        let mut seen = BTreeSet::new();
        let mut repeated = keys;
        repeated.reverse();
        repeated.retain(|(_, span)| !seen.insert(document.string(*span)));
        for (at, span) in repeated {
            document.set(at, Item::Replaced(span));
        }
    } else {
        let mut next = start + 1;
        loop {
            let Some((at, span)) = keys_from(document, next).next() else { break };
            next = document.behind(at + 1);
            let key = document.string(span);
            let is_repeated = keys_from(document, next).any(|(_, later)| document.string(later) == key);
            if is_repeated {
                document.set(at, Item::Replaced(span));
            }
        }
    }
    count - Cursor::root(document).moved(start).fields().count()
}

/// The keys of an object whose reading has just ended, from one of them on.
fn keys_from(document: &Document<'_>, mut next: usize) -> impl Iterator<Item = (usize, Span)> {
    std::iter::from_fn(move || match document.item(next) {
        Item::Key(span) if next < document.len() => {
            let at = next;
            next = document.behind(at + 1);
            Some((at, span))
        }
        _ => None,
    })
}
