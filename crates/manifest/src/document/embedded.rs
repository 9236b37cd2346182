//! Documents in a text of another document, such as the patches in a kustomization. Their places are places in the source,
//! unless the text means something else than its bytes: in quotes with escapes, with folded lines, or behind an alias.

use std::ops::Range;
use std::sync::Arc;

use super::{Document, root_values, values};
use crate::error::{Error, SyntaxError};
use crate::outline::{TextPart, begins_with_marker};
use crate::place::{DocumentPlace, Outlines};
use crate::source::{Source, Span};
use memgate_primitives::pointer::Pointer;

/// The documents in one text.
#[derive(Debug)]
pub struct Embedded {
    /// The documents. Those without places in the source have a source of their own.
    pub documents: Vec<Document>,
    /// The whole text in the source.
    pub text: Span,
    /// Whether the documents have places in the source.
    pub is_placed: bool,
    /// Whether some of the text cannot be read.
    pub(crate) is_damaged: bool,
    /// Where the documents are, one in each, if they have places in the source.
    pub(crate) parts: Vec<TextPart>,
    pub(crate) source: Arc<Source>,
}

impl Embedded {
    /// Reads the text of a field; `None` for a field that is not a text. Its errors go to `errors`.
    pub fn read(outer: &Document, pointer: &Pointer, errors: &mut Vec<Error>) -> Option<Self> {
        let (source, found) = (outer.source(), outer.locate(pointer));
        let value = outer.value().pointer(pointer.as_str())?.as_str().filter(|_| found.exact)?;
        let (text, Span { start, end, .. }) = (source.slice(found.value), found.value);
        let content = match text.as_bytes() {
            [b'|' | b'>', ..] => start + text.find('\n').map_or(text.len(), |at| at + 1)..end,
            [b'"', .., b'"'] | [b'\'', .., b'\''] => start + 1..end - 1,
            _ => end..end,
        };
        let mut placed = Self {
            documents: Vec::new(),
            text: found.value,
            is_placed: true,
            is_damaged: false,
            parts: parts(source, content),
            source: Arc::clone(source),
        };
        let faults = placed.read_parts(outer.place().index());
        if text.starts_with('|') && faults.is_empty() {
            return Some(placed);
        }
        let (own, mut own_faults) =
            (Arc::new(Source::new(source.name(), value).shown_as(source)), Vec::new());
        let documents = values(&own, &mut own_faults);
        let is_same = documents.iter().map(Document::value).eq(placed.documents.iter().map(Document::value));
        placed.is_damaged = !own_faults.is_empty();
        if is_same && faults.is_empty() != placed.is_damaged {
            errors.extend(faults);
            return Some(placed);
        }
        let at_text = |error: Error| match error {
            Error::Syntax(it) => Error::Syntax(SyntaxError::new(source, found.caret, it.message).into()),
            other => other,
        };
        errors.extend(own_faults.into_iter().map(at_text));
        Some(Self { documents, is_placed: false, parts: Vec::new(), ..placed })
    }

    /// Reads the documents at their places. Returns the errors.
    fn read_parts(&mut self, index: usize) -> Vec<Error> {
        let mut faults = Vec::new();
        for part in &self.parts {
            let outlines = Arc::new(Outlines::new(&self.source));
            let outline = outlines.read(*part, 0);
            for root in root_values(&self.source, &outline, &mut 0) {
                match root {
                    Ok((_, value)) if value.is_null() => {}
                    Ok((root, value)) => {
                        let place = DocumentPlace::new(&outlines, *part, &outline, root, index);
                        self.documents.push(Document { place: place.in_text().into(), value });
                    }
                    Err(error) => faults.push(Error::Syntax(error)),
                }
            }
            outlines.forget();
        }
        faults
    }
}

/// The stretches between the lines of `---` that are indented as the first line is: to the parser they are not markers.
fn parts(source: &Source, content: Range<usize>) -> Vec<TextPart> {
    let text = source.text().get(content.clone()).unwrap_or_default();
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let first = text.lines().find(|line| !line.trim().is_empty()).map_or(0, indentation);
    let (mut parts, mut begin, mut at) = (Vec::new(), content.start, content.start);
    for line in text.split_inclusive('\n') {
        let is_marker = indentation(line) == first && begins_with_marker(line.trim_start(), "---");
        if is_marker {
            parts.push(TextPart::new(begin, at));
            begin = at + first + "---".len();
        }
        at += line.len();
    }
    parts.push(TextPart::new(begin, content.end));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// What is in the text at `/p`: the values, whether they have places, and the lines of the errors.
    fn read(text: &str) -> Option<(Vec<Value>, bool, Vec<usize>)> {
        let source = Arc::new(Source::new("x", text));
        let outer = values(&source, &mut Vec::new()).pop().expect("one");
        let mut errors = Vec::new();
        let found = Embedded::read(&outer, &Pointer::new("/p"), &mut errors)?;
        let documents = found.documents.iter().map(|it| it.value().clone()).collect();
        let lines = errors.iter().filter_map(|it| it.place()?.1).collect();
        Some((documents, found.is_placed, lines))
    }

    #[test]
    fn reads_each_form_of_a_text() {
        for (text, documents, is_placed, lines) in [
            (
                "p: |\n  a: 1\n  --- # b\n  b: |\n    ---\n    x\n",
                vec![json!({"a": 1}), json!({"b": "---\nx\n"})],
                true,
                vec![],
            ),
            ("p: |2-\n  a: 1\n", vec![json!({"a": 1})], true, vec![]),
            ("p: |\n  a: [\n  ---\n  b: 1\n", vec![json!({"b": 1})], true, vec![2]),
            ("p: |\n  a: 1\n  ...\n", vec![json!({"a": 1})], false, vec![]),
            ("p: '{\"a\": 1}'", vec![json!({"a": 1})], true, vec![]),
            ("p: \"{\\\"a\\\": 1}\"", vec![json!({"a": 1})], false, vec![]),
            ("p: \"a: [\"", vec![], true, vec![1]),
            ("p: \"a: 1\\nb: 2\"", vec![json!({"a": 1, "b": 2})], false, vec![]),
            ("p: >-\n  {\"a\":\n  1}\n", vec![json!({"a": 1})], true, vec![]),
            ("p: >\n  a: 1\n  b: 2\n", vec![], false, vec![1]),
            ("x: &x |\n  a: 1\np: *x\n", vec![json!({"a": 1})], false, vec![]),
            ("p: ''", vec![], true, vec![]),
        ] {
            assert_eq!(read(text), Some((documents, is_placed, lines)), "{text}");
        }
        assert_eq!((read("p: 5"), read("q: x")), (None, None));
    }
}
