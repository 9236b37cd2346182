//! The files with the edits of their objects made in the user's own text, and the origin of each new line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::iter::successors;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::files::judge::{Checked, Decided};
use crate::files::objects::CheckedObject;
use crate::report::diff::{self, FileDiff};
use memgate_core::patch::Patch;
use memgate_manifest::document::{Document, values};
use memgate_manifest::error::Error;
use memgate_manifest::rewrite::{Rewritten, rewrite};
use memgate_manifest::source::Source;
use memgate_model::edit::{Edit, Op, Origin};
use memgate_primitives::members::Members;
use memgate_primitives::pointer::{Pointer, list_index};
use serde_json::Value;

/// The allowed objects of a source that have edits, with these.
type Changes<'c> = Vec<(&'c CheckedObject, &'c [Edit])>;

/// Lines, by number (from 1), each with an origin.
type LineOrigins = Vec<(usize, Origin)>;

/// A source with the edits of its allowed objects.
#[derive(Debug)]
pub struct RewrittenFile<'c> {
    /// The source as it was read.
    pub source: &'c Arc<Source>,
    /// Its new text.
    pub new: Rewritten,
    /// The file of the chart or overlay that memgate rendered as this source.
    rendered_from: Option<String>,
    changes: Changes<'c>,
}

/// Every source that may be shown, in order.
///
/// # Errors
/// When an edit does not fit its document, which is a bug in memgate.
pub fn rewrite_all(checked: &Checked) -> Result<Vec<RewrittenFile<'_>>, Error> {
    let mut by_source = BTreeMap::<_, Changes<'_>>::new();
    for change in changed(checked) {
        by_source.entry(Arc::as_ptr(change.0.place.source())).or_default().push(change);
    }
    let rewritten = |source| {
        let changes = by_source.get(&Arc::as_ptr(source)).cloned().unwrap_or_default();
        let patch = |(object, edits): &(&CheckedObject, &[Edit])| json(&object.edits_in_document(edits));
        let patches: Vec<_> = changes.iter().map(|change| (&*change.0.place, patch(change))).collect();
        let unit = checked.inputs.origins.rendered.get(source.name());
        let rendered_from = unit.map(|it| it.unit.marker.to_string_lossy().into_owned());
        Ok(RewrittenFile { source, new: rewrite(source, &patches)?, rendered_from, changes })
    };
    checked.inputs.sources.iter().filter(|source| source.is_shown()).map(rewritten).collect()
}

/// The allowed objects with edits, of files that may be shown. An object of which one template is denied is not allowed.
fn changed(checked: &Checked) -> impl Iterator<Item = (&CheckedObject, &[Edit])> {
    let is_shown = |it: &&Decided| it.object.place.source().is_shown();
    let denied = checked.decided.iter().filter(|it| !it.allowed());
    let denied: BTreeSet<_> = denied.map(|it| place(&it.object)).collect();
    let is_changed =
        move |it: &&Decided| !it.decision.edits.is_empty() && !denied.contains(&place(&it.object));
    let changed = checked.decided.iter().filter(is_changed);
    let changed = changed.filter(is_shown);
    changed.map(|decided| (&*decided.object, decided.decision.edits.as_slice()))
}

/// Edits as a patch. They are always JSON.
fn json(edits: &[Edit]) -> Value {
    serde_json::to_value(Patch(edits)).unwrap_or_default()
}

/// Where an object is.
fn place(object: &CheckedObject) -> (*const Source, usize) {
    (Arc::as_ptr(object.place.source()), object.place.start())
}

impl RewrittenFile<'_> {
    /// The file that is named for the text.
    pub fn name(&self) -> &str {
        self.rendered_from.as_deref().unwrap_or_else(|| self.source.name())
    }

    /// Writes a unified diff, with or without the origins of the new lines.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn write_diff(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let new = Arc::new(Source::new(self.source.name(), &self.new.text));
        let origins = self.line_origins(&new);
        // No program that applies a diff shall take the lines of a rendered text for those of a file.
        let rendered = self.rendered_from.as_ref().map(|file| format!("{file} (rendered)"));
        let name = rendered.as_deref().unwrap_or_else(|| self.source.name());
        let (before, after) = (self.source.text(), self.new.text.as_str());
        diff::write(&FileDiff { name, before, after, origins: &origins }, out)
    }

    /// The lines of the new text that the edits wrote, by number (from 1), with their origins. Sorted; a line has several
    /// entries if several edits touch it.
    fn line_origins(&self, text: &Arc<Source>) -> LineOrigins {
        let documents = values(text, &mut Vec::new());
        let documents: BTreeMap<usize, &Document> =
            documents.iter().map(|it| (it.place().index(), it)).collect();
        let mut origins = Vec::new();
        for (object, edits) in &self.changes {
            if let Some(document) = documents.get(&object.place.index()) {
                let edits = object.edits_in_document(edits);
                origins.extend(lines_of_object(document, &object.place.prefix(), edits));
            }
        }
        origins.sort_by_key(|(line, _)| *line);
        origins
    }
}

/// The lines of a place in a document; `None` if it is not there.
fn lines_at(document: &Document, pointer: &Pointer) -> Option<RangeInclusive<usize>> {
    let place = document.locate(pointer);
    let span = place.whole();
    let more = document.source().slice(span).matches('\n').count();
    place.exact.then_some(span.line..=span.line + more)
}

/// The lines of one object, whose pointer in the document is `prefix`. A line has the origins of the innermost parts that
/// have it.
fn lines_of_object(document: &Document, prefix: &Pointer, edits: Vec<Edit>) -> LineOrigins {
    let parts = written_parts(edits);
    let mut inner_first: Vec<usize> = (0..parts.len()).collect();
    inner_first
        .sort_by_key(|number| parts.get(*number).map(|(pointer, _)| Reverse(pointer.tokens().count())));
    // For each line the places that hold one of its parts, and the numbers and origins of its parts.
    let mut of_lines = BTreeMap::<usize, (Members<&str>, Vec<_>)>::new();
    for number in inner_first {
        let Some((pointer, origin)) = parts.get(number) else { continue };
        for line in lines_at(document, &prefix.join(pointer)).into_iter().flatten() {
            let (holders, here) = of_lines.entry(line).or_default();
            if !holders.contains(pointer.as_str()) {
                here.push((number, origin));
                // Where one level is known, those above it are too.
                let mut up =
                    successors(Some(pointer.as_str()), |at| at.rsplit_once('/').map(|(holder, _)| holder));
                let _known = up.find(|at| !holders.insert(at));
            }
        }
    }
    let mut origins = Vec::new();
    for (line, (_, mut here)) in of_lines {
        here.sort_by_key(|(number, _)| *number);
        origins.extend(here.into_iter().map(|(_, origin)| (line, origin.clone())));
    }
    origins
}

/// The parts of the object that edits wrote, as pointers after all edits: each element of a list that has an origin for
/// each, and the value itself.
fn written_parts(edits: Vec<Edit>) -> Vec<(Pointer, Origin)> {
    let mut parts: Vec<(Pointer, Origin)> = Vec::new();
    for Edit { op, pointer, origins, .. } in edits {
        let is_element = pointer.tokens().last().is_some_and(|token| list_index(&token).is_some());
        if !(op == Op::Add && is_element) {
            parts.retain(|(at, _)| !pointer.holds(at));
        }
        if is_element && op != Op::Replace {
            for (at, _) in &mut parts {
                if let Some(moved) = moved(at, &pointer, op == Op::Remove) {
                    *at = moved;
                }
            }
        }
        if op == Op::Remove {
            continue;
        }
        let Some(first) = origins.first().cloned() else { continue };
        if origins.len() > 1 {
            parts.extend(
                origins.into_iter().enumerate().map(|(index, origin)| (pointer.index(index), origin)),
            );
        }
        parts.push((pointer, first));
    }
    parts
}

/// The pointer to a place in a list after an element was inserted into it or removed from it; `None` if the place has not
/// moved.
fn moved(at: &Pointer, element: &Pointer, is_removed: bool) -> Option<Pointer> {
    let (list, index) = element.as_str().rsplit_once('/')?;
    let below = at.as_str().strip_prefix(list)?.strip_prefix('/')?;
    let (own, rest) = below.split_at(below.find('/').unwrap_or(below.len()));
    let own = list_index(own).filter(|own| Some(*own) >= list_index(index))?;
    let own = if is_removed { own.checked_sub(1)? } else { own + 1 };
    Some(Pointer::new(list).index(own).join(&Pointer::new(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_manifest::document::parse;
    use memgate_model::edit::{self, EnvSource, EnvVar};

    fn edit(op: Op, pointer: &str, value: Value, rules: &[&'static str]) -> Edit {
        let origin = |rule: &&'static str| Origin { resource: "".into(), field: "".into(), rule };
        let (pointer, origins) = (Pointer::new(pointer), rules.iter().map(origin).collect());
        Edit { op, pointer, value: edit::Value::Tree(value), origins }
    }

    fn variable(name: &str) -> Value {
        let source = EnvSource::Value("1".to_owned());
        serde_json::to_value(EnvVar { name: name.to_owned().into(), source }).expect("JSON")
    }

    #[test]
    fn names_the_origin_of_each_new_line() {
        let both =
            || edit(Op::Add, "/spec/env", Value::from(vec![variable("A"), variable("B")]), &["a", "b"]);
        for (text, edits, expected) in [
            (
                "spec:\n  x: 1\n",
                vec![both(), edit(Op::Add, "/metadata", serde_json::json!({"n": "m"}), &["m"])],
                vec![(5, "a"), (6, "a"), (7, "a"), (8, "b"), (9, "b"), (10, "m"), (11, "m")],
            ),
            (
                "spec:\n  x: 1\n",
                vec![both(), edit(Op::Add, "/spec/env/1", variable("C"), &["c"])],
                vec![(5, "a"), (6, "a"), (7, "a"), (8, "c"), (9, "c"), (10, "b"), (11, "b")],
            ),
            ("spec: {x: 1}\n", vec![both()], vec![(3, "a"), (3, "b")]),
            (
                "spec:\n  x:\n  - name: A\n  - name: B\n  - name: C\n",
                vec![
                    edit(Op::Replace, "/spec/x/2/name", "D".into(), &["r"]),
                    edit(Op::Remove, "/spec/x/0", Value::Null, &["gone"]),
                ],
                vec![(6, "r")],
            ),
            (
                "spec:\n  env: # mine\n  - name: A\n",
                vec![
                    edit(Op::Add, "/spec/env/1", variable("X"), &["x"]),
                    edit(Op::Replace, "/spec/env/0/name", "B".into(), &["r"]),
                ],
                vec![(5, "r"), (6, "x"), (7, "x")],
            ),
        ] {
            let source = Arc::new(Source::new("a.yaml", format!("apiVersion: v1\nkind: Pod\n{text}")));
            let documents = parse(&source).documents;
            let place = documents[0].place();
            let new = rewrite(&source, &[(place, json(&edits))]).expect("applies").text;
            let new = Arc::new(Source::new("a.yaml", new));
            let document = values(&new, &mut Vec::new()).remove(0);
            let lines = lines_of_object(&document, &place.prefix(), edits);
            let lines: Vec<_> = lines.iter().map(|(line, origin)| (*line, origin.rule)).collect();
            assert_eq!(lines, expected, "{}", new.text());
        }
    }
}
