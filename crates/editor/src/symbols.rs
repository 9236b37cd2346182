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
    let keys = keys(own);
    let field = |path: &[&str]| written(&keys, path);
    let kind = field(&["kind"]);
    let head = kind.map_or(0, |key| key.start);
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
                .map(|found| found.map(|key| key.value.to_owned()).unwrap_or_default())
        }
    };
    let [kind, namespace, name] = texts;
    Some(NamedDocument { kind, namespace, name, bytes, head })
}

/// A key in a text that may be written by half.
struct Key<'t> {
    /// How many braces and brackets are open around it.
    depth: usize,
    /// The column of its line; 0 in braces, where columns mean nothing.
    indent: usize,
    start: usize,
    name: &'t str,
    /// The text behind its colon in the same line; empty for a mapping or a list.
    value: &'t str,
}

impl Key<'_> {
    /// How deep it is: in fewer braces, or else farther left.
    const fn level(&self) -> (usize, usize) {
        (self.depth, self.indent)
    }
}

/// The key with a path.
fn written<'k, 't>(keys: &'k [Key<'t>], path: &[&str]) -> Option<&'k Key<'t>> {
    let (name, above) = path.split_last()?;
    let mut inside = keys;
    let find = |inside: &'k [Key<'t>], name: &str| {
        let level = inside.iter().map(Key::level).min()?;
        let at = inside.iter().position(|key| key.level() == level && key.name == name)?;
        Some((at, inside.get(at)?))
    };
    for name in above {
        let (at, key) = find(inside, name)?;
        let below = inside.get(at + 1..)?;
        inside = below.get(..below.iter().take_while(|it| it.level() > key.level()).count())?;
    }
    Some(find(inside, name)?.1)
}

/// The keys of a text, in their order.
fn keys(text: &str) -> Vec<Key<'_>> {
    let mut keys = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    // The column of the line in which the outermost brace is open; `None` for one around the whole text.
    let mut opened = None;
    let mut is_first = true;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end();
        let mut rest = body.trim_start();
        while let Some(element) = rest.strip_prefix("- ") {
            rest = element.trim_start();
        }
        let indent = body.len() - rest.len();
        if rest.is_empty() || rest.starts_with('#') {
            start += line.len();
            continue;
        }
        // A brace that is not closed yet ends where the text goes on beside or left of its line.
        if opened.is_some_and(|column| indent <= column) && !rest.starts_with(['}', ']']) {
            depth = 0;
        }
        let mut may_start = true;
        while let Some(c) = rest.chars().next() {
            if rest.starts_with("{{") {
                rest = after(rest, action(rest));
                may_start = false;
            } else if c.is_whitespace() {
                rest = rest.trim_start();
                if rest.starts_with('#') {
                    break;
                }
            } else if may_start && matches!(c, '{' | '[') {
                if depth == 0 {
                    opened = (!is_first).then_some(indent);
                }
                depth += 1;
                rest = after(rest, 1);
            } else if depth > 0 && matches!(c, '}' | ']' | ',') {
                depth -= usize::from(c != ',');
                may_start = c == ',';
                rest = after(rest, 1);
            } else if may_start {
                let length = scalar(rest, depth > 0);
                let (own, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
                let name = unquoted(own);
                let colon = behind.trim_start_matches(' ').strip_prefix(':');
                let is_key = |it: &&str| {
                    it.is_empty() || it.starts_with(char::is_whitespace) || name.len() < own.len()
                };
                may_start = false;
                let at = start + body.len() - rest.len();
                rest = behind;
                if let Some(behind) = colon.filter(is_key) {
                    let value = behind.trim_start();
                    let is_nested = value.starts_with(['{', '[', '#']) && !value.starts_with("{{");
                    let value = value.get(..scalar(value, depth > 0)).filter(|_| !is_nested);
                    let value = unquoted(value.unwrap_or_default());
                    let indent = if depth == 0 { indent } else { 0 };
                    keys.push(Key { depth, indent, start: at, name, value });
                    (rest, may_start) = (behind, true);
                }
            } else {
                rest = after(rest, c.len_utf8());
            }
            is_first = false;
        }
        start += line.len();
    }
    keys
}

fn after(text: &str, length: usize) -> &str {
    text.get(length..).unwrap_or_default()
}

/// The length of an action of a template at the start of a text.
fn action(text: &str) -> usize {
    text.find("}}").map_or(text.len(), |at| at + 2)
}

/// The length of the key or value at the start of a line's rest.
fn scalar(text: &str, in_braces: bool) -> usize {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        return after(text, 1).find(quote).map_or(text.len(), |at| at + 2);
    }
    let mut at = 0;
    while let Some(c) = after(text, at).chars().next() {
        let rest = after(text, at);
        let next = after(rest, c.len_utf8());
        let ends = match c {
            ':' => next.is_empty() || next.starts_with(char::is_whitespace),
            _ if c.is_whitespace() => next.starts_with('#'),
            ',' | '}' | ']' | '{' | '[' => in_braces && !rest.starts_with("{{"),
            _ => false,
        };
        if ends {
            break;
        }
        at += if rest.starts_with("{{") { action(rest) } else { c.len_utf8() };
    }
    text.get(..at).unwrap_or_default().trim_end().len()
}

fn unquoted(text: &str) -> &str {
    let quote = ['"', '\''].into_iter().find_map(|quote| Some((quote, text.strip_prefix(quote)?)));
    quote.map_or(text, |(quote, inner)| inner.strip_suffix(quote).unwrap_or(inner))
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
            ["Pod /a \"kind\": \"Pod\","]
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
            ("kind: A\nmetadata:\n  labels: {name: x}\n  name: n\n  x: [", "A /n"),
            ("kind: A\nmetadata:\n  labels: {name: x}\n  x: [", "A / kind"),
            ("kind: A\nmetadata: {labels: {name: x}, name: n", "A /n"),
            ("kind: A\nmetadata:\n  x: [\n  name: a#b,c} # d\n", "A /a#b,c} kind"),
            ("kind: A\nmetadata: {name: a#b, x: [", "A /a#b kind"),
            (
                "kind: A\nmetadata:\n  name: {{ include \"x, y\" . }}-m\n  x: [",
                "A /{{ include \"x, y\" . }}-m kind",
            ),
            ("kind: A\nmetadata:\n  name: {{ .x }}\n{{- end }}\n", "A /{{ .x }} kind"),
            ("kind: List\nitems:\n- kind: A\n  metadata: {name: a}\n- kind: [", "List / kind"),
            ("spec:\n  kind: X\n  a: [", " / spec"),
            ("kind: A\nmetadata: {\n  name: n\n}\nspec: [", "A /n kind"),
            (
                "kind: A\nspec:\n  prompt: |\n    kind: B\n    {\n    name: b\nmetadata:\n  name: n\n  x: [",
                "A /n kind",
            ),
            ("\"kind\":\"A\",\n\"metadata\": {\"name\":'n'", "A /n"),
        ] {
            let text = format!("{half}{second}");
            let found = names(&text);
            assert!(found.len() == 2 && found[0].starts_with(expected), "{half}: {found:?}");
            assert_eq!(found[1], "Pod /p kind: Pod", "{half}");
        }
    }
}
