//! What outputs may show of a source. The author of a change can name any file that the machine has, as a manifest or as a
//! setting, so lines are shown only of a file in which a manifest was read, and never behind a link out of the repository.

/// The fields at the top of a manifest.
const FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// Whether a document of this text has the fields of a manifest at its top. The rest of it may be unreadable.
pub(super) fn holds_manifest(text: &str) -> bool {
    documents(text).any(is_manifest)
}

/// Whether a text has both fields anywhere, as a file of cases has them in its objects.
pub(super) fn holds_manifest_within(text: &str) -> bool {
    FIELDS.iter().all(|field| text.contains(field))
}

/// The documents of a text, as far as markers divide it.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    let (mut rest, mut at_end) = (text.trim_start_matches('\u{feff}'), false);
    std::iter::from_fn(move || {
        if std::mem::replace(&mut at_end, rest.is_empty()) {
            return None;
        }
        let mut markers = rest.match_indices('\n').map(|(at, _)| at + 1);
        let end = markers.find(|at| rest.get(*at..).is_some_and(begins_document));
        let (document, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind;
        at_end = end.is_none();
        Some(document.strip_prefix("---").unwrap_or(document))
    })
}

fn begins_document(line: &str) -> bool {
    let behind = line.strip_prefix("---");
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(|it: char| it.is_ascii_whitespace()))
}

fn is_manifest(document: &str) -> bool {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with(['#', '%']);
    let mut lines = document.lines().filter(is_content).peekable();
    let Some(first) = lines.peek() else { return false };
    if first.trim_start().starts_with('{') {
        return is_manifest_in_braces(document);
    }
    let indentation = first.len() - first.trim_start().len();
    let mut has = [false; FIELDS.len()];
    for line in lines {
        let Some(line) = line.get(indentation..) else { continue };
        let key = line.split(':').next().filter(|key| key.len() < line.len()).unwrap_or_default();
        note(key.trim_end().trim_matches(['"', '\'']), &mut has);
    }
    has == [true; FIELDS.len()]
}

/// The same for JSON and the like, of which several values may follow each other.
fn is_manifest_in_braces(text: &str) -> bool {
    let (mut depth, mut quote) = (0_usize, None);
    let mut has = [false; FIELDS.len()];
    for (at, byte) in text.bytes().enumerate() {
        if let Some(open) = quote {
            if byte == open && !is_escaped_at(text, at) {
                quote = None;
            }
            continue;
        }
        match byte {
            b'"' | b'\'' => quote = Some(byte),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    has = [false; FIELDS.len()];
                }
            }
            b':' if depth == 1 => {
                let before = text.get(..at).unwrap_or_default().trim_end().trim_end_matches(['"', '\'']);
                let start = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
                note(before.get(start..).unwrap_or_default(), &mut has);
            }
            _ => {}
        }
        if has == [true; FIELDS.len()] {
            return true;
        }
    }
    false
}

/// Whether a byte stands behind an odd number of backslashes.
fn is_escaped_at(text: &str, at: usize) -> bool {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

fn note(key: &str, has: &mut [bool; FIELDS.len()]) {
    for (field, has) in FIELDS.iter().zip(has) {
        *has |= key == *field;
    }
}

/// A message without what it quotes of this text, but for single characters and for what it suggests.
pub(super) fn without_quotes_of(message: &str, text: &str) -> String {
    const SUGGESTS: &str = "did you mean ";
    let mut shown = message.to_owned();
    for quote in ['"', '`', '\''] {
        let mut is_suggested = false;
        let hidden = |(number, part): (usize, &'_ str)| -> String {
            let is_quoted = number % 2 == 1 && part.chars().nth(2).is_some() && text.contains(part);
            let is_hidden = is_quoted && !is_suggested;
            is_suggested = part.ends_with(SUGGESTS);
            if is_hidden { "…".to_owned() } else { part.to_owned() }
        };
        let parts: Vec<String> = shown.split(quote).enumerate().map(hidden).collect();
        shown = parts.join(&quote.to_string());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_manifests_by_the_top_of_a_document() {
        for text in [
            "apiVersion: v1\nkind: A\n",
            "\u{feff}# x\n---\n# y\nkind: A\nspec: [\n\"apiVersion\" : v1\n",
            "a: 1\n---\n  kind: A\n  apiVersion: v1\n",
            "--- # x\nkind: A\napiVersion: v1\n",
            "{\"a\": {\"b\": \"}\\\"\"}, \"apiVersion\": \"v1\", \"kind\": \"A\"",
            "{\"a\": 1}\n{\"kind\": \"A\", \"apiVersion\": \"v1\"}",
            "{kind: A, apiVersion: v1}",
        ] {
            assert!(holds_manifest(text), "{text}");
        }
        for text in [
            "",
            "machine x login y password z",
            "kind: A\n---\napiVersion: v1\n",
            "a:\n  apiVersion: v1\n  kind: A\n",
            "- apiVersion: v1\n  kind: A\n",
            "{\"a\": {\"kind\": \"A\", \"apiVersion\": \"v1\"}}",
            "{\"a\": \"kind: x, apiVersion: y\"}",
            "{\"kind\": 1}{\"apiVersion\": 1}",
            "[default]\nkind: a = b",
            "# apiVersion: v1\n# kind: A\n",
        ] {
            assert!(!holds_manifest(text), "{text}");
        }
    }

    #[test]
    fn leaves_out_what_a_message_quotes() {
        let message = "unknown key \"hunter2\"; keys here are a; did you mean \"paths\" or `b`?";
        let shown = "unknown key \"…\"; keys here are a; did you mean \"paths\" or `b`?";
        assert_eq!(without_quotes_of(message, "hunter2: x"), shown);
    }
}
