//! The outline of a file: one symbol for each document, with kind and name, also where it cannot be read yet.

use std::ops::Range;
use std::sync::Arc;

use lsp_types::{DocumentSymbol, SymbolKind};

use crate::positions::{Encoding, Lines};
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_primitives::plain_text::cut;

/// The most characters of a kind or name.
const MAX_SHOWN: usize = 253;

/// The symbols of a text, one for each object in it.
pub(crate) fn symbols(text: &str, encoding: Encoding) -> Vec<DocumentSymbol> {
    let lines = Lines::new(text, encoding);
    let symbol = |document: NamedDocument| {
        let NamedDocument { kind, namespace, name, bytes, head } = document;
        let [kind, namespace, name] = [kind, namespace, name].map(|text| cut(&text, MAX_SHOWN).into_owned());
        let kind = if kind.is_empty() { "(no kind)".to_owned() } else { kind };
        #[expect(deprecated, reason = "the field has no default")]
        DocumentSymbol {
            name: format!("{kind} {name}").trim_end().to_owned(),
            detail: Some(namespace).filter(|namespace| !namespace.is_empty()),
            kind: SymbolKind::OBJECT,
            tags: None,
            deprecated: None,
            range: lines.range(bytes.start, bytes.end),
            selection_range: lines.range(head.start, head.end),
            children: None,
        }
    };
    named_documents(text).into_iter().map(symbol).collect()
}

/// A document of a text, with what names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedDocument {
    /// The kind; empty if it is not written yet.
    pub(crate) kind: String,
    /// The namespace; empty without one.
    pub(crate) namespace: String,
    /// The name; empty without one.
    pub(crate) name: String,
    /// The bytes of the document.
    pub(crate) bytes: Range<usize>,
    /// The bytes of the line with the kind, else of its first line.
    pub(crate) head: Range<usize>,
}

/// The documents of a text that have or begin an object. What cannot be read is searched for the fields that name it.
pub(crate) fn named_documents(text: &str) -> Vec<NamedDocument> {
    parts(text).into_iter().filter_map(|bytes| named(text, bytes)).collect()
}

/// The documents between the lines that part them, without the blanks around them.
fn parts(text: &str) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n'])) {
            parts.push(start..at);
            // A document may begin in the line of its marker.
            start = at + 3;
        }
        at += line.len();
    }
    parts.push(start..at);
    let trimmed = |part: Range<usize>| {
        let own = text.get(part.clone()).unwrap_or_default();
        let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
        let start = part.start + own.len() - own.trim_start_matches(is_blank).len();
        start..(part.start + own.trim_end().len()).max(start)
    };
    parts.into_iter().map(trimmed).filter(|part| !part.is_empty()).collect()
}

fn named(text: &str, bytes: Range<usize>) -> Option<NamedDocument> {
    let own = text.get(bytes.clone())?;
    let field = |path: &[&str]| written(own, path);
    let kind = field(&["kind"]);
    let head = kind.as_ref().map_or(0, |(_, at)| *at);
    let head_line = own.get(head..)?.lines().next().unwrap_or_default().trim_end().len();
    let head = bytes.start + head..bytes.start + head + head_line;
    let mut errors = Vec::new();
    let read = values(&Arc::new(Source::new("<open>", own)), &mut errors);
    let whole = read.first().filter(|document| errors.is_empty() && document.value().is_object());
    let texts = match whole {
        Some(document) => {
            let is_object =
                ["kind", "apiVersion", "metadata"].iter().any(|key| document.value().get(key).is_some());
            is_object.then_some(())?;
            [document.kind(), document.namespace().unwrap_or_default(), document.name()].map(str::to_owned)
        }
        None => {
            // Of comments alone there is no object.
            let is_begun =
                own.lines().any(|line| !line.trim_start().is_empty() && !line.trim_start().starts_with('#'));
            is_begun.then_some(())?;
            let name = field(&["metadata", "name"]).or_else(|| field(&["metadata", "generateName"]));
            [kind, field(&["metadata", "namespace"]), name]
                .map(|found| found.map(|(text, _)| text).unwrap_or_default())
        }
    };
    let [kind, namespace, name] = texts;
    Some(NamedDocument { kind, namespace, name, bytes, head })
}

/// The text of a field in a document that may be written by half, and where its key is. Of several keys of that name, the one
/// that is indented least counts.
fn written(text: &str, path: &[&str]) -> Option<(String, usize)> {
    let (key, above) = path.split_last()?;
    let start = match above {
        [] => 0,
        _ => keys(text, above.last()?).min_by_key(|it| (it.indent, it.start))?.behind,
    };
    let section = text.get(start..)?;
    // A section ends where a line begins at the left again, if it is not in braces.
    let is_inline = section.trim_start_matches([' ', '"']).starts_with('{');
    let end = section.match_indices('\n').find(|(at, _)| {
        section.get(at + 1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    });
    let end = if above.is_empty() || is_inline { None } else { end };
    let section = section.get(..end.map_or(section.len(), |(at, _)| at))?;
    let found = keys(section, key).min_by_key(|it| (it.indent, it.start))?;
    let value = section.get(found.behind..)?.lines().next().unwrap_or_default().trim_start();
    let value = match value.strip_prefix(['"', '\'']) {
        Some(quoted) => quoted.split(['"', '\'']).next(),
        None => value.split([',', '}', '#']).next().map(str::trim_end),
    };
    Some((value.unwrap_or_default().to_owned(), start + found.start))
}

/// A key in a text.
struct Key {
    indent: usize,
    start: usize,
    /// The byte behind its colon.
    behind: usize,
}

fn keys<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = Key> + 't {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    });
    lines.flat_map(move |(start, line)| {
        let indent = line.len() - line.trim_start().len();
        let quotes = ['"', '\''];
        line.match_indices(name).filter_map(move |(at, _)| {
            let before = line.get(..at)?.trim_end_matches(quotes).trim_end();
            let rest = line.get(at + name.len()..)?;
            let colon = rest.trim_start_matches(quotes).trim_start_matches(' ');
            let is_key = (before.is_empty() || before.ends_with(['{', ','])) && colon.starts_with(':');
            let behind = start + line.len() - colon.len() + 1;
            is_key.then_some(Key { indent, start: start + at, behind })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let all = named_documents(text).into_iter();
        all.map(|it| format!("{} {}/{} {}", it.kind, it.namespace, it.name, &text[it.head])).collect()
    }

    #[test]
    fn each_document_has_its_kind_and_name() {
        let text = "\u{feff}# one\napiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n---\n\n---\n# none\n--- {kind: Pod, metadata: {name: c}}\n...\na: 1\n---\r\nkind: \"List\"\r\nitems: []\r\n";
        assert_eq!(
            names(text),
            ["Secret b/a kind: Secret", "Pod /c kind: Pod, metadata: {name: c}}", "List / kind: \"List\""]
        );
        assert_eq!(
            names("{\"kind\": \"Pod\",\n \"metadata\": {\"name\": \"a\"}}"),
            ["Pod /a kind\": \"Pod\","]
        );
        assert_eq!(names(""), Vec::<String>::new());
    }

    #[test]
    fn a_document_that_is_half_typed_has_them_too() {
        let second = "\n---\nkind: Pod\nmetadata: {name: p}\n";
        for (half, expected) in [
            (
                "kind: ArkMemory\nmetadata:\n  labels:\n    name: x\n  name: notes\n  namespace: team\nspec:\n  backend: [",
                "ArkMemory team/notes",
            ),
            ("spec:\n  kind: X\nkind: ArkMemory # it\nmetadata:\n  na", "ArkMemory /"),
            ("kin", " /"),
            ("kind: A\nmetadata: {name: \"n\", namespace: t\nspec: {", "A t/n"),
            (
                "{\n  \"kind\": \"A\",\n  \"metadata\": {\n    \"name\": \"n\"\n  },\n  \"spec\": {\"a\": ",
                "A /n",
            ),
            ("kind: A\nspec: {a: \"x}\nmetadata:\n  name: n", "A /n"),
        ] {
            let text = format!("{half}{second}");
            let found = names(&text);
            assert!(found.len() == 2 && found[0].starts_with(expected), "{half}: {found:?}");
            assert_eq!(found[1], "Pod /p kind: Pod", "{half}");
        }
    }
}
