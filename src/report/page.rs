//! The page of a finding code: where it can be read, and how it begins.

use crate::model::finding::Finding;

/// Where the pages are: those of the newest version, since codes keep their meaning.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/codes/");

/// Where the pages about the rules of policies are.
const RULE_PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/rules/");

/// What to read about errors of inputs, which have no page of their own.
pub(super) const ERRORS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/commands.md");

/// The address of the page; of a rule of a policy the one that the policy names.
#[must_use]
pub fn url(finding: &Finding) -> String {
    match &finding.policy {
        None => format!("{PAGES}{}.md", finding.code.name),
        Some(policy) => {
            let rule = &policy.rule;
            rule.docs.clone().unwrap_or_else(|| format!("{RULE_PAGES}{}.md", rule.type_name))
        }
    }
}

/// The text of the page.
#[must_use]
pub fn text(finding: &Finding) -> &'static str {
    finding.policy.as_ref().map_or(finding.code.page, |policy| policy.rule.page)
}

/// The first paragraph of a page, in one line.
#[must_use]
pub fn summary(page: &str) -> String {
    let lines = page.lines().map(str::trim);
    let text = lines.skip_while(|line| line.is_empty() || line.starts_with('#'));
    text.take_while(|line| !line.is_empty()).collect::<Vec<&str>>().join(" ")
}

/// The first sentence of a page, without its full stop.
#[must_use]
pub fn title(page: &str) -> String {
    let paragraph = summary(page);
    let sentence = paragraph.split(". ").next().unwrap_or_default();
    sentence.trim_end_matches('.').to_owned()
}
