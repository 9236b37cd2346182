//! The page of a finding code: where it can be read, and how it begins.

use crate::model::finding::Code;

/// Where the pages are: those of the newest version, since codes keep their meaning.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/codes/");

/// What to read about errors of inputs, which have no page of their own.
pub(super) const ERRORS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/commands.md");

/// The address of the page.
#[must_use]
pub fn url(code: &Code) -> String {
    format!("{PAGES}{}.md", code.name)
}

/// The first paragraph of the page, in one line.
#[must_use]
pub fn summary(code: &Code) -> String {
    let lines = code.page.lines().map(str::trim);
    let text = lines.skip_while(|line| line.is_empty() || line.starts_with('#'));
    text.take_while(|line| !line.is_empty()).collect::<Vec<&str>>().join(" ")
}

/// The first sentence of the page, without its full stop.
#[must_use]
pub fn title(code: &Code) -> String {
    let paragraph = summary(code);
    let sentence = paragraph.split(". ").next().unwrap_or_default();
    sentence.trim_end_matches('.').to_owned()
}
