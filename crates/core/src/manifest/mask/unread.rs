//! Credentials in a text that is neither YAML nor JSON as a whole: by its lines, since there are no fields.
//!
//! Only the line of an error is shown of such a text, so it does no harm to hide too much.

use std::ops::Range;

use crate::manifest::parts::begins_with_marker;
use crate::model::credential::{flag_ends, is_credential_name, spans as credentials};

/// Fields below which any value may be a credential: those of a Secret, of a header and of a variable.
const FIELDS: [&str; 5] = ["value", "data", "stringData", "headers", "last-applied-configuration"];

/// Where credentials may stand in the documents of a text of which none of the collections `read`, in their
/// order, is the whole.
pub(super) fn spans(text: &str, read: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    // A marker may stand within quotes that were meant to go on: documents that follow each other are one text.
    let mut unread: Vec<Range<usize>> = Vec::new();
    let mut read = read.peekable();
    for document in documents(text) {
        while read.next_if(|root| root.start < document.start).is_some() {}
        if read.peek().is_some_and(|root| is_whole(text, &document, root)) {
            continue;
        }
        match unread.last_mut() {
            Some(last) if last.end == document.start => last.end = document.end,
            _ => unread.push(document),
        }
    }
    unread.into_iter().flat_map(|part| spans_of_lines(text, part)).collect()
}

/// The documents of a text: a marker at the begin of a line ends whatever is open.
fn documents(text: &str) -> Vec<Range<usize>> {
    let mut documents = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if is_marker(line) && at > start {
            documents.push(start..at);
            start = at;
        }
        at += line.len();
    }
    documents.push(start..at);
    documents
}

fn is_marker(line: &str) -> bool {
    begins_with_marker(line, "---") || begins_with_marker(line, "...")
}

/// Whether there is nothing in a document but this collection, markers and comments.
fn is_whole(text: &str, document: &Range<usize>, root: &Range<usize>) -> bool {
    let says_nothing = |part: Option<&str>| {
        part.is_some_and(|part| {
            let mut lines = part.lines().map(|line| line.trim_start_matches(['-', '.', '\u{feff}']).trim());
            lines.all(|line| line.is_empty() || line.starts_with('#'))
        })
    };
    says_nothing(text.get(document.start..root.start)) && says_nothing(text.get(root.end..document.end))
}

/// On each line everything behind the first sign of a credential, the lines below it that are indented
/// deeper, and all later ones that go on with a value.
fn spans_of_lines(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start = part.start;
    let mut below: Option<usize> = None;
    let mut seen = false;
    for line in text.get(part).unwrap_or_default().split_inclusive('\n') {
        let end = start + line.len();
        let content = line.trim_start_matches([' ', '\t']);
        let indentation = line.len() - content.len();
        if !content.trim().is_empty() {
            let item = content.starts_with("- ");
            below = below.filter(|above| indentation > *above || (item && indentation == *above));
        }
        if below.is_some() {
            spans.push(start..end);
        } else if let Some(field) = field(line) {
            seen = true;
            spans.push(start + field.value..end);
            // Behind a list's dash the key is where its block begins, elsewhere on a line it is not.
            let first =
                line.get(..field.key).is_some_and(|before| before.trim_matches([' ', '-', '"']).is_empty());
            below = Some(if first { field.key } else { indentation });
        } else if let Some(from) = credential(line) {
            // What goes on with a value has it from its begin.
            let from = if goes_on(content) { indentation } else { from };
            seen = true;
            spans.push(start + from..end);
            // The value of a flag may be the next element of a list.
            below = flag(line).map(|_| indentation.saturating_sub(1));
        } else if seen && goes_on(content) {
            spans.push(start..end);
        }
        // The value of an assignment may be on the next line.
        seen |= line.trim_end().ends_with('=');
        start = end;
    }
    spans
}

/// Whether a line goes on with a value that began above: it is no key, no item, no comment and no marker, and
/// does more than to close brackets.
fn goes_on(content: &str) -> bool {
    let begins = content.starts_with("- ") || content.starts_with('#') || is_marker(content);
    let closes = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | '{' | '}' | ',' | '-');
    !begins && !has_key(content) && !content.trim_start_matches(closes).is_empty()
}

/// Whether a line begins with a key, in brackets or not.
fn has_key(content: &str) -> bool {
    let content = content.trim_start_matches(['{', '[', ' ']);
    let quoted = content.starts_with(['"', '\'']);
    let content = content.trim_start_matches(['"', '\'']);
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '<');
    let behind = content.trim_start_matches(part);
    let behind = if quoted { behind.trim_start_matches(['"', '\'', ' ']) } else { behind };
    let value = behind.strip_prefix(':');
    value.is_some_and(|value| quoted || value.is_empty() || value.starts_with(char::is_whitespace))
}

/// Where on a line a key stands, and where its value begins.
struct FieldPlace {
    key: usize,
    value: usize,
}

/// The first field of a credential on a line.
fn field(line: &str) -> Option<FieldPlace> {
    line.match_indices(':').find_map(|(colon, _)| {
        let before = line.get(..colon)?.trim_end().trim_end_matches(['"', '\'', '\\']);
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let key = before.trim_end_matches(part).len();
        let name = before.get(key..)?;
        let behind = line.get(colon + 1..)?;
        let value = line.len() - behind.trim_start_matches([' ', '"', '\'']).len();
        (FIELDS.contains(&name) || is_credential_name(name)).then_some(FieldPlace { key, value })
    })
}

/// Where on a line a credential may begin: what is behind a scheme, behind the first colon of a line with an
/// `@`, behind a flag, and what shows it by itself.
fn credential(line: &str) -> Option<usize> {
    let scheme = line.find("://").map(|at| at + "://".len());
    let user = line
        .rfind('@')
        .map(|at| line.get(..at).and_then(|before| before.find(':')).map_or(at, |colon| colon + 1));
    let shown = credentials(line).into_iter().map(|span| span.start).min();
    [scheme, user, flag(line), shown].into_iter().flatten().min()
}

/// What is behind a flag such as `--password`.
fn flag(line: &str) -> Option<usize> {
    flag_ends(line).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::credential::hide;

    #[test]
    fn hides_by_lines() {
        for (text, shown) in [
            ("a: b: c\n  value: x: y\n", "a: b: c\n  value: ****\n"),
            ("{name: x, value: \"a\n  b\n", "{name: x, value: \"*\n  *\n"),
            ("- password: |\n    x\n   y\n- a: [\n", "- password: *\n    *\n   *\n- a: [\n"),
            ("{\"token\": \"x\n", "{\"token\": \"*\n"),
            ("a: http://u: p@h\n", "a:**************\n"),
            ("a: [--token, x\n", "a: [--token***\n"),
            ("stringData:\n  a: -----BEGIN\nx/y==\n", "stringData:\n  *************\n*****\n"),
            ("stringData:\r\n  a: |\r\nx\r\n", "stringData:\r\n  ****\r\n*\r\n"),
            ("  password:\nx\nb: y\n", "  password:\n*\nb: y\n"),
            ("  password: |\nx\n\n# c\ny\n- z\n", "  password: *\n*\n\n# c\n*\n- z\n"),
            ("password:\n- x\na:\n- y\n", "password:\n***\na:\n- y\n"),
            ("{\"token\": \"\nx\n\"a\":1\n}]\n", "{\"token\": \"\n*\n\"a\":1\n}]\n"),
            ("a: http://u:\nx@h\n", "a: http://**\n***\n"),
            ("a: u:\nx@h\nb: password=\nx\n", "a: u:\n***\nb: password=\n*\n"),
            ("password: x\n---\ny\n", "password: *\n---\n*\n"),
            ("x\ny: z\n", "x\ny: z\n"),
        ] {
            assert_eq!(hide(text, spans(text, std::iter::empty())), shown);
        }
    }
}
