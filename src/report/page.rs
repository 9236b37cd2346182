//! The page of a finding code: its address, its text and its first sentence.

use memgate_model::finding::Finding;
use memgate_policy::rules;

/// The address of the pages of the newest version, since codes keep their meaning.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/codes/");

/// The address of the pages about rules of policies.
const RULE_PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/rules/");

/// The page about errors of inputs.
pub(super) const ERRORS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/commands.md");

/// The address of the page; for a rule of a policy the one in the policy, if it has one.
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
pub fn text(finding: &Finding) -> &'static str {
    let rule = finding.policy.as_ref().and_then(|policy| rules::find(policy.rule.type_name));
    rule.map_or(finding.code.page, |rule| rule.page).text()
}

/// The first paragraph of a page, in one line.
pub fn summary(page: &str) -> String {
    let lines = page.lines().map(str::trim);
    let text = lines.skip_while(|line| line.is_empty() || line.starts_with('#'));
    text.take_while(|line| !line.is_empty()).collect::<Vec<&str>>().join(" ")
}

/// The first sentence of a page, without its full stop.
pub fn title(page: &str) -> String {
    let paragraph = summary(page);
    let sentence = paragraph.split(". ").next().unwrap_or_default();
    sentence.trim_end_matches('.').to_owned()
}
