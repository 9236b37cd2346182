//! Rewritten manifests as one text that `kubectl apply -f -` reads.

use std::borrow::Cow;

use crate::report::plain;

/// The files, by name and text. A single file stays unchanged; several files get a comment with their name before
/// each.
pub fn text<'f>(files: &[(&'f str, &'f str)]) -> Cow<'f, str> {
    if let [(_, only)] = files {
        return Cow::Borrowed(only);
    }
    let mut stream = String::new();
    for (name, text) in files {
        let text = text.trim_start_matches('\u{feff}');
        stream.push_str("---\n# Source: ");
        stream.push_str(&plain(name));
        stream.push('\n');
        if text.trim_start().starts_with(['{', '[']) {
            // JSON may be indented with tabs, which YAML forbids; within strings JSON has none.
            stream.push_str(&text.replace('\t', "  "));
        } else {
            stream.push_str(text);
        }
        if !stream.ends_with('\n') {
            stream.push('\n');
        }
    }
    stream.into()
}
