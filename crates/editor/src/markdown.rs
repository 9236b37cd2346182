//! Texts of manifests and messages in Markdown, in which no part of them is markup.

use memgate_primitives::credential::masked_value;
use memgate_workbench::report::plain;

/// Text of a manifest as code in Markdown, with credentials masked.
pub(crate) fn code_span(text: &str) -> String {
    let text = plain(&masked_value(text)).replace('`', "'");
    format!("`{text}`")
}

/// A message in Markdown: no part of it is markup.
pub(crate) fn in_markdown(text: &str) -> String {
    let has_meaning = |c: char| c.is_ascii_punctuation() && !".,:;\"'/()?".contains(c);
    text.chars().flat_map(|c| has_meaning(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_manifests_are_not_markup() {
        assert_eq!(code_span("a`b`\n# c"), "`a'b' # c`");
        assert_eq!(code_span("redis://u:hunter2@h"), "`redis://*********@h`");
        assert_eq!(in_markdown("[a](b) <i> *c* `d`"), "\\[a\\](b) \\<i\\> \\*c\\* \\`d\\`");
    }
}
