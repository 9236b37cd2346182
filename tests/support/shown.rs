//! Output as a document shows it: `…` stands for any number of lines, or for any text within a line.

/// Whether the lines shown are those printed.
pub(crate) fn fits(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => {
            (0..=printed.len()).any(|skipped| fits(rest, printed.get(skipped..).unwrap_or_default()))
        }
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, left)| line_fits(line, first) && fits(rest, left))
        }
    }
}

fn line_fits(shown: &str, printed: &str) -> bool {
    match shown.split_once('…') {
        None => shown == printed,
        Some((begin, rest)) => printed.strip_prefix(begin).is_some_and(|printed| {
            printed.char_indices().any(|(at, _)| line_fits(rest, &printed[at..])) || line_fits(rest, "")
        }),
    }
}
