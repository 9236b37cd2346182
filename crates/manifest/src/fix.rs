//! Fixes in the user's own text: only the bytes of a key, a value or an element change.
//!
//! A source and fixes of its documents go in, the new text comes out. It is parsed again: a document whose new value is
//! not the expected one keeps its old text. No file is written here.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::document::{RootValue, read_whole};
use crate::place::DocumentPlace;
use crate::rewrite::{Splice, apply_splices, wrong_documents};
use crate::scalar::{Scalar, plain};
use crate::source::{Source, Span};
use memgate_primitives::fix::{Fix, unquoted};
use memgate_primitives::pointer::{Pointer, list_index};

/// A fix and its place in a source.
#[derive(Debug, Clone)]
pub struct TextFix<'f> {
    /// The document.
    pub place: &'f DocumentPlace,
    /// The place in it.
    pub pointer: Pointer,
    /// The fix.
    pub fix: Fix,
}

/// A source with fixes made in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// The new text.
    pub text: String,
    /// For each fix the change of the text, if it was made. A fix behind an alias, in a block of text or overlapping
    /// another is not.
    pub made: Vec<Option<Splice>>,
}

/// Makes fixes in a source.
pub fn fix(source: &Arc<Source>, fixes: &[TextFix<'_>]) -> Fixed {
    let mut changes: Vec<Option<Splice>> = fixes.iter().map(|fix| change(source, fix)).collect();
    drop_overlaps(&mut changes);
    drop_rivals(fixes, &mut changes);
    let (_, before) = read_whole(source);
    // The second round leaves out the documents that the first one got wrong.
    for _ in 0..2 {
        let expected = expected(&before, fixes, &mut changes);
        let Some(text) = apply_splices(source.text(), changes.iter().flatten().cloned().collect()) else {
            break;
        };
        let wrong = wrong_documents(source, &text, &before, &expected);
        if wrong.is_empty() {
            return Fixed { text, made: changes };
        }
        for (change, fix) in changes.iter_mut().zip(fixes) {
            if wrong.contains(&fix.place.index()) {
                *change = None;
            }
        }
    }
    Fixed { text: source.text().to_owned(), made: vec![None; fixes.len()] }
}

/// The expected values of the documents with fixes, by index. The change of a fix that does not fit is dropped.
fn expected(
    before: &[RootValue],
    fixes: &[TextFix<'_>],
    changes: &mut [Option<Splice>],
) -> BTreeMap<usize, Value> {
    let mut expected = BTreeMap::new();
    let mut all: Vec<_> = fixes.iter().zip(changes).filter(|(_, change)| change.is_some()).collect();
    // From the end of the text, so that no fix changes the pointer of a later one.
    all.sort_by_key(|(_, change)| change.as_ref().map(|change| std::cmp::Reverse(change.start)));
    for (fix, change) in all {
        let index = fix.place.index();
        let Some(Ok((_, old))) = before.get(index) else {
            *change = None;
            continue;
        };
        let value = expected.entry(index).or_insert_with(|| old.clone());
        if fix.fix.apply(value, &fix.place.prefix().join(&fix.pointer)).is_none() {
            *change = None;
        }
    }
    expected
}

/// The change of the text for a fix; `None` if it is not a simple one.
fn change(source: &Source, fix: &TextFix<'_>) -> Option<Splice> {
    let found = fix.place.locate(&fix.pointer);
    // Behind an alias all other uses of its anchor would change, too.
    if fix.place.is_in_text() || !found.exact || found.alias.is_some() || found.anchor.is_some() {
        return None;
    }
    let replace = |span: Span, text: String| Some(Splice { start: span.start, end: span.end, text });
    match &fix.fix {
        Fix::Rename(name) => replace(found.key?, as_written(source.slice(found.key?), name)?),
        Fix::Text(text) => replace(found.value, as_written(source.slice(found.value), text)?),
        Fix::Unquote(expected) => {
            let old = source.slice(found.value);
            let inner = ['"', '\''].iter().find_map(|mark| old.strip_prefix(*mark)?.strip_suffix(*mark))?;
            unquoted(inner, expected)?;
            replace(found.value, inner.to_owned())
        }
        Fix::RemoveRepeated => {
            let (list, index) = fix.pointer.as_str().rsplit_once('/')?;
            let before = Pointer::new(list).index(list_index(index)?.checked_sub(1)?);
            let bytes = element(source.text(), fix.place.locate(&before).value, found.value)?;
            Some(Splice { start: bytes.start, end: bytes.end, text: String::new() })
        }
    }
}

/// A word in the quotes of the old text, and in quotes where it would mean something else without; `None` for a block of
/// text.
fn as_written(old: &str, new: &str) -> Option<String> {
    match old.chars().next()? {
        '"' => Some(Value::from(new).to_string()),
        '\'' => Some(format!("'{}'", new.replace('\'', "''"))),
        '|' | '>' => None,
        _ if matches!(plain(new), Scalar::Text(_)) => Some(new.to_owned()),
        _ => Some(Value::from(new).to_string()),
    }
}

/// The bytes to remove for an element of a list: with the comma before it, or its whole lines.
fn element(text: &str, before: Span, own: Span) -> Option<Range<usize>> {
    let between = text.get(before.end..own.start)?;
    let line = text.get(..own.start)?.rfind('\n').map_or(0, |at| at + 1);
    let indent = text.get(line..own.start)?.trim();
    if indent != "-" {
        // In brackets. A comment before or behind the comma must stay.
        let is_simple = between.trim() == "," && !between.contains('#');
        return is_simple.then_some(before.end..own.end);
    }
    let ends_line = text.get(..own.end)?.ends_with('\n');
    let rest =
        if ends_line { 0 } else { text.get(own.end..)?.find('\n').map_or(text.len() - own.end, |at| at + 1) };
    Some(line..own.end + rest)
}

/// Keeps the first of changes that overlap.
fn drop_overlaps(changes: &mut [Option<Splice>]) {
    let mut all: Vec<_> = changes.iter_mut().filter(|change| change.is_some()).collect();
    all.sort_by_key(|change| change.as_ref().map(|change| (change.start, change.end)));
    let mut end = 0;
    for change in all {
        match change {
            Some(splice) if splice.start >= end => end = splice.end,
            _ => *change = None,
        }
    }
}

/// Drops the renames of two keys of one object to the same name: the intended one is ambiguous.
fn drop_rivals(fixes: &[TextFix<'_>], changes: &mut [Option<Splice>]) {
    let target = |fix: &TextFix<'_>| {
        let Fix::Rename(name) = &fix.fix else { return None };
        let at = fix.place.prefix().join(&fix.pointer);
        let holder = at.as_str().rsplit_once('/')?.0.to_owned();
        Some((fix.place.start(), holder, name.clone()))
    };
    let targets: Vec<_> = fixes.iter().map(target).collect();
    let mut counts = BTreeMap::new();
    for target in targets.iter().flatten() {
        *counts.entry(target).or_insert(0) += 1;
    }
    for (change, target) in changes.iter_mut().zip(&targets) {
        if target.as_ref().is_some_and(|target| counts.get(target).is_some_and(|count| *count > 1)) {
            *change = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::embedded::Embedded;
    use crate::document::{Document, values};

    /// The text after fixes of its only document, and which of them were made.
    fn fixed(text: &str, fixes: &[(&str, Fix)]) -> (String, Vec<bool>) {
        let source = Arc::new(Source::new("x", text));
        let documents: Vec<Document> = values(&source, &mut Vec::new());
        let place = documents.first().expect("one").place();
        let fixes: Vec<_> = fixes
            .iter()
            .map(|(at, fix)| TextFix { place, pointer: Pointer::new(*at), fix: fix.clone() })
            .collect();
        let Fixed { text, made } = fix(&source, &fixes);
        (text, made.iter().map(Option::is_some).collect())
    }

    fn rename(name: &str) -> Fix {
        Fix::Rename(name.to_owned())
    }

    #[test]
    fn changes_only_the_bytes_that_are_wrong() {
        let text =
            "# head\nspec:  # of it\n  bakend:   \"rdis\"  # which\n  'prot': '6379'\n  tags: [a, b, a]\n";
        let fixes = [
            ("/spec/bakend", rename("backend")),
            ("/spec/bakend", Fix::Text("redis".to_owned())),
            ("/spec/prot", rename("port")),
            ("/spec/prot", Fix::Unquote("integer")),
            ("/spec/tags/2", Fix::RemoveRepeated),
        ];
        let new = "# head\nspec:  # of it\n  backend:   \"redis\"  # which\n  'port': 6379\n  tags: [a, b]\n";
        assert_eq!(fixed(text, &fixes), (new.to_owned(), vec![true; 5]));
    }

    /// What it means has no indentation, so the bytes of a fix are not those of the text.
    #[test]
    fn leaves_documents_in_a_text_of_another_one() {
        let source =
            Arc::new(Source::new("x", "patches:\n- patch: |-\n    spec:\n      bakend: rdis\n- patch: x\n"));
        let outer = values(&source, &mut Vec::new()).remove(0);
        let inner =
            Embedded::read(&outer, &Pointer::new("/patches/0/patch"), &mut Vec::new()).expect("a text");
        let place = inner.documents.first().expect("one").place();
        let fixes = [TextFix { place, pointer: Pointer::new("/spec/bakend"), fix: rename("backend") }];
        let Fixed { text, made } = fix(&source, &fixes);
        assert_eq!((&*text, made), (source.text(), vec![None]));
    }

    #[test]
    fn removes_elements_with_their_lines() {
        let text = "list:\n- a: 1  # first\n- b\n# about the third\n- a: 1  # again\n- b # more\n- c\n";
        let fixes = [("/list/2", Fix::RemoveRepeated), ("/list/3", Fix::RemoveRepeated)];
        let (new, made) = fixed(text, &fixes);
        assert_eq!(
            (new.as_str(), made),
            ("list:\n- a: 1  # first\n- b\n# about the third\n- c\n", vec![true, true])
        );
        let comments = "list:\n- a  # first, and why\n# before, the second\n- a\n";
        let left = "list:\n- a  # first, and why\n# before, the second\n";
        assert_eq!(fixed(comments, &[("/list/1", Fix::RemoveRepeated)]).0, left);
        let json = "{\"list\": [\n  \"a\",\n  \"a\"\n]}";
        assert_eq!(fixed(json, &[("/list/1", Fix::RemoveRepeated)]).0, "{\"list\": [\n  \"a\"\n]}");
        let last = "list:\n- a\n- a";
        assert_eq!(fixed(last, &[("/list/1", Fix::RemoveRepeated)]).0, "list:\n- a\n");
    }

    #[test]
    fn leaves_text_that_has_no_simple_change() {
        for (text, at, fix) in [
            ("a: &x {bakend: 1}\nb: *x\n", "/b/bakend", rename("backend")),
            ("a: &x \"1\"\nb: *x\n", "/b", Fix::Unquote("integer")),
            ("a: |\n  rdis\n", "/a", Fix::Text("redis".to_owned())),
            ("a: {bakend: 1, backend: 2}\n", "/a/bakend", rename("backend")),
            ("a: [x,  # one, two\n  x]\n", "/a/1", Fix::RemoveRepeated),
            ("a: [x, y]\n", "/a/1", Fix::RemoveRepeated),
            ("a: \"1e3\"\n", "/a", Fix::Unquote("integer")),
            ("a: 1\n", "/b", rename("c")),
        ] {
            assert_eq!(fixed(text, &[(at, fix)]), (text.to_owned(), vec![false]), "{text}");
        }
    }

    #[test]
    fn renames_neither_of_two_keys_to_one_name() {
        let text = "a: {bakend: 1, backnd: 2, redsi: 3}\n";
        let fixes = [
            ("/a/bakend", rename("backend")),
            ("/a/backnd", rename("backend")),
            ("/a/redsi", rename("redis")),
        ];
        let (new, made) = fixed(text, &fixes);
        assert_eq!((new.as_str(), made), ("a: {bakend: 1, backnd: 2, redis: 3}\n", vec![false, false, true]));
    }

    #[test]
    fn changes_nothing_a_second_time() {
        let text = "spec: {bakend: redis, redsi: {prot: \"1\"}}\n";
        let fixes = [("/spec/bakend", rename("backend")), ("/spec/redsi", rename("redis"))];
        let (new, made) = fixed(text, &fixes);
        assert_eq!(
            (new.as_str(), made),
            ("spec: {backend: redis, redis: {prot: \"1\"}}\n", vec![true, true])
        );
        assert_eq!(fixed(&new, &fixes), (new.clone(), vec![false, false]));
    }
}
