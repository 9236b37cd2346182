//! Credentials in a text that cannot be parsed: found line by line, since there are no fields.
//!
//! Reports show only the line of an error from such a text, so hiding too much does no harm.

use std::ops::Range;

use crate::outline::begins_with_marker;
use memgate_primitives::credential::{flag_ends, is_credential_name, spans as credentials};

/// Fields below which any value may be a credential: those of a Secret, of a header and of a variable.
const FIELDS: [&str; 5] = ["value", "data", "stringData", "headers", "last-applied-configuration"];

/// The places of possible credentials in a part of a text: on each line everything behind the first sign of one, then
/// the lines below that are indented deeper, and all later lines that continue a value.
pub(super) fn spans(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
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
            // The block of a key begins at the key if only a list's dash is before it, else at the indentation.
            let first =
                line.get(..field.key).is_some_and(|before| before.trim_matches([' ', '-', '"']).is_empty());
            below = Some(if first { field.key } else { indentation });
        } else if let Some(from) = credential(line) {
            // A line that continues a value is hidden from its beginning.
            let from = if continues_value(content) { indentation } else { from };
            seen = true;
            spans.push(start + from..end);
            // The value of a flag may be the next element of a list.
            below = flag(line).map(|_| indentation.saturating_sub(1));
        } else if seen && continues_value(content) {
            spans.push(start..end);
        }
        // The value of an assignment may be on the next line.
        seen |= line.trim_end().ends_with('=');
        start = end;
    }
    spans
}

/// Whether a line continues a value from above: it begins neither with a key nor as an item, comment or marker, and
/// does more than close brackets.
fn continues_value(content: &str) -> bool {
    let is_marker = begins_with_marker(content, "---") || begins_with_marker(content, "...");
    let begins = content.starts_with("- ") || content.starts_with('#') || is_marker;
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

/// The byte on a line at which a key begins, and the one at which its value begins.
struct FieldPlace {
    key: usize,
    value: usize,
}

/// The first field of a credential on a line, also without its colon.
fn field(line: &str) -> Option<FieldPlace> {
    line.match_indices([':', ' ', ',']).find_map(|(colon, _)| {
        let before = line.get(..colon)?.trim_end().trim_end_matches(['"', '\'', '\\']);
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let key = before.trim_end_matches(part).len();
        let name = before.get(key..)?;
        let behind = line.get(colon + 1..)?;
        let value = line.len() - behind.trim_start_matches([' ', '"', '\'']).len();
        let is_one = FIELDS.contains(&name) || is_credential_name(name) && !name.starts_with("--");
        is_one.then_some(FieldPlace { key, value })
    })
}

/// The byte on a line at which a credential may begin: behind a scheme, behind the first colon of a line with an
/// `@`, behind a flag, or at a text that is one by itself.
fn credential(line: &str) -> Option<usize> {
    let scheme = line.find("://").map(|at| at + "://".len());
    let user = line
        .rfind('@')
        .map(|at| line.get(..at).and_then(|before| before.find(':')).map_or(at, |colon| colon + 1));
    let shown = credentials(line).into_iter().map(|span| span.start).min();
    [scheme, user, flag(line), shown].into_iter().flatten().min()
}

/// The end of a flag such as `--password`.
fn flag(line: &str) -> Option<usize> {
    flag_ends(line).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_primitives::credential::hide;

    #[test]
    fn hides_by_lines() {
        for (text, shown) in [
            ("a: b: c\n  value: x: y\n", "a: b: c\n  value: ****\n"),
            ("{name: x, value: \"a\n  b\n", "{name: x, value: \"*\n  *\n"),
            ("- password: |\n    x\n   y\n- a: [\n", "- password: *\n    *\n   *\n- a: [\n"),
            ("{\"token\": \"x\n", "{\"token\": \"*\n"),
            ("  password x\n", "  password *\n"),
            ("  \"apiKey\"  x\n", "  \"apiKey\"  *\n"),
            ("  - name: DB_PASSWORD\n    value x\n", "  - name: DB_PASSWORD\n    value *\n"),
            ("a: [password, x\n", "a: [password, *\n"),
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
            assert_eq!(hide(text, spans(text, 0..text.len())), shown);
        }
    }
}
