//! Output as a document shows it: a line `…` stands for any number of lines.

/// Whether the lines shown are those printed, where `…` stands for any.
pub(crate) fn fits(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => {
            (0..=printed.len()).any(|skipped| fits(rest, printed.get(skipped..).unwrap_or_default()))
        }
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, left)| first == line && fits(rest, left))
        }
    }
}
