//! Credentials in a text that is neither YAML nor JSON as a whole: by its lines, since there are no fields.
//!
//! Only the line of an error is shown of such a text, so it does no harm to hide too much.

use std::ops::Range;

use crate::model::credential::{flag_ends, is_credential_name, spans as credentials};

/// Fields below which any value may be a credential: those of a Secret, of a header and of a variable.
const FIELDS: [&str; 5] = ["value", "data", "stringData", "headers", "last-applied-configuration"];

/// On each line everything behind the first sign of a credential, and the lines below it that are indented
/// deeper.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start = 0;
    let mut below: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let content = line.trim_start_matches([' ', '\t']);
        let indentation = line.len() - content.len();
        if !content.trim().is_empty() {
            below = below.filter(|above| indentation > *above);
        }
        if below.is_some() {
            spans.push(start..end);
        } else if let Some(field) = field(line) {
            spans.push(start + field.value..end);
            // Behind a list's dash the key is where its block begins, elsewhere on a line it is not.
            let first =
                line.get(..field.key).is_some_and(|before| before.trim_matches([' ', '-', '"']).is_empty());
            below = Some(if first { field.key } else { indentation });
        } else if let Some(from) = credential(line) {
            spans.push(start + from..end);
            // The value of a flag may be the next element of a list.
            below = flag(line).map(|_| indentation.saturating_sub(1));
        }
        start = end;
    }
    spans
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
        ] {
            assert_eq!(hide(text, spans(text)), shown);
        }
    }
}
