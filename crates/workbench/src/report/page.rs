//! The page of a finding code: its address, its text and its first sentence.

use std::borrow::Cow;

use crate::built;
use memgate_model::finding::{Code, Finding};
use memgate_policy::rules;

/// The address of the page; for a rule of a policy the one in the policy, if it has one. `None` if the build does not know
/// where pages are.
pub fn url(finding: &Finding) -> Option<String> {
    match &finding.policy {
        None => built::page(&format!("codes/{}.md", finding.code.name)),
        Some(policy) => {
            let rule = &policy.rule;
            rule.docs.clone().or_else(|| built::page(&format!("rules/{}.md", rule.type_name)))
        }
    }
}

/// The text of the page.
pub fn text(finding: &Finding) -> Cow<'static, str> {
    let rule = finding.policy.as_ref().and_then(|policy| rules::find(policy.rule.type_name));
    match rule {
        Some(rule) => with_links(rule.page.text(), "rules"),
        None => of_code(finding.code),
    }
}

/// The text of a code's page.
pub fn of_code(code: &Code) -> Cow<'static, str> {
    let family = code.name.split('/').next().unwrap_or_default();
    with_links(code.page.text(), &format!("codes/{family}"))
}

/// The page of a folder of `docs` with links that lead somewhere outside of it: to the address of a page, or to what
/// prints it.
pub fn with_links(text: &'static str, folder: &str) -> Cow<'static, str> {
    let mut parts = text.split("](");
    let Some(first) = parts.next().filter(|first| first.len() < text.len()) else { return text.into() };
    let mut linked = first.to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        if target.starts_with("https://") {
            linked.extend(["](", target, ")", rest]);
            continue;
        }
        let path = from_root(folder, target);
        match path.strip_prefix("docs/").and_then(built::page) {
            Some(address) => linked.extend(["](", &address, ")", rest]),
            None => {
                let label = linked.rfind('[').map(|at| linked.split_off(at)).unwrap_or_default();
                linked.push_str(label.trim_start_matches('['));
                linked.extend([" (", &place(&path), ")", rest]);
            }
        }
    }
    linked.into()
}

/// The path in the repository to which a page in a folder of `docs` links.
fn from_root(folder: &str, mut target: &str) -> String {
    let mut folders: Vec<&str> = std::iter::once("docs").chain(folder.split('/')).collect();
    while let Some(rest) = target.strip_prefix("../") {
        folders.pop();
        target = rest;
    }
    folders.push(target);
    folders.join("/")
}

/// What prints a page, in words; of other files the path in a checkout.
fn place(path: &str) -> String {
    let page = path.strip_suffix(".md").unwrap_or_default();
    let name = page.strip_prefix("docs/codes/").map(str::to_owned);
    let name = name.or_else(|| Some(format!("runbook/{}", page.strip_prefix("docs/runbooks/")?)));
    name.map_or_else(|| path.to_owned(), |name| format!("`memgate explain {name}`"))
}

/// What a page says to do, without examples, up to so many characters.
pub fn what_to_do(page: &str, most: usize) -> Option<String> {
    let (_, section) = page.split_once("\n## What to do\n")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    // Every second part is code.
    let prose = section.split("\n```").step_by(2).map(str::trim).collect::<Vec<_>>().join("\n\n");
    let (mut text, mut chars) = (String::new(), 0);
    for paragraph in prose.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        chars += paragraph.chars().count() + 2;
        if chars > most && !text.is_empty() {
            break;
        }
        text = text + paragraph + "\n\n";
    }
    let text: String = text.trim_end().chars().take(most).collect();
    (!text.is_empty()).then_some(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_out_of_the_repository() {
        if built::PAGES.is_some() {
            return;
        }
        for (text, linked) in [
            ("see [Not ready](not-ready.md).", "see Not ready (`memgate explain runbook/not-ready`)."),
            (
                "[a](../operate.md#x) [b](../../deploy) [c](https://d.example)",
                "a (docs/operate.md#x) b (deploy) [c](https://d.example)",
            ),
            (
                "[a](../codes/ark/x.md), [b](y.md",
                "a (`memgate explain ark/x`), b (`memgate explain runbook/y`)",
            ),
            ("nothing", "nothing"),
        ] {
            assert_eq!(with_links(text, "runbooks"), linked);
        }
    }
}
