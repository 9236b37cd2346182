//! Credentials in a text that is neither YAML nor JSON as a whole: by its lines, since there are no fields.

use std::ops::Range;

use crate::model::credential::is_credential_name;

/// Fields below which any value may be a credential: those of a Secret, of a header and of a variable.
const FIELDS: [&str; 4] = ["value", "data", "stringData", "headers"];

/// Everything behind the key of such a field on its line, and the lines below it that are indented deeper.
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
        } else if let Some((key, value)) = secret_field(line) {
            spans.push(start + value..end);
            // Behind a list's dash the key is where its block begins, elsewhere on a line it is not.
            let first = line.get(..key).is_some_and(|before| before.trim_matches([' ', '-', '"']).is_empty());
            below = Some(if first { key } else { indentation });
        }
        start = end;
    }
    spans
}

/// Where on a line the first key of a credential stands, and where what follows its colon begins.
fn secret_field(line: &str) -> Option<(usize, usize)> {
    line.match_indices(':').find_map(|(colon, _)| {
        let before = line.get(..colon)?.trim_end().trim_end_matches(['"', '\'', '\\']);
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let key = before.trim_end_matches(part).len();
        let name = before.get(key..)?;
        let behind = line.get(colon + 1..)?;
        let value = line.len() - behind.trim_start_matches([' ', '"', '\'']).len();
        (FIELDS.contains(&name) || is_credential_name(name)).then_some((key, value))
    })
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
        ] {
            assert_eq!(hide(text, spans(text)), shown);
        }
    }
}
