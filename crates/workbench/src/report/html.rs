//! One page for a browser, which needs nothing but itself: neither a network nor a script.
//!
//! Every text of an input goes through [`text()`], and the templates escape it. A Content-Security-Policy in the page allows
//! the one style sheet that is part of it, by its hash.

mod findings;

mod map;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use crate::report::table::{Row, Table};
use crate::report::{Page, Report, changes, counted};
use memgate_model::finding::Severity;
use memgate_primitives::credential::masked_start;
use memgate_primitives::plain_text::{cut, shown_name};

/// The style sheet.
const STYLE: &str = include_str!("html/style.css");

/// The most characters of one text: the longest message is shorter.
const MAX_CHARS: usize = 1000;

/// The most elements of a list or table.
const MAX_ELEMENTS: usize = 1000;

/// A part of the page: its id, its heading, and its content. A part without content is left out.
type PageSection = (&'static str, String, Option<Markup>);

/// Writes the page.
///
/// # Errors
/// Those of the writer.
pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let none = Page::default();
    let page = report.page.as_ref().unwrap_or(&none);
    writeln!(out, "{}", whole(report, page).into_string())
}

/// A text of an input: on one line, with credentials masked, and cut.
fn text(text: &str) -> String {
    cut(&masked_start(text), MAX_CHARS).into_owned()
}

/// The first elements of a list, and what is written behind it about the others, with what lists them.
fn first<T>(all: impl IntoIterator<Item = T>, elsewhere: &str, render: impl Fn(T) -> Markup) -> [Markup; 2] {
    let mut all = all.into_iter();
    let shown = html! { @for element in all.by_ref().take(MAX_ELEMENTS) { (render(element)) } };
    let more = all.count();
    let rest = html! {
        @if more > 0 { p { strong { (more) " more are not shown in this page" } "; " (elsewhere) " has all of them." } }
    };
    [shown, rest]
}

fn whole(report: &Report<'_>, page: &Page<'_>) -> Markup {
    let (words, verdict) = verdict(report);
    let title = format!("memgate {}", page.command);
    let parts = parts(report, page);
    let parts: Vec<_> =
        parts.iter().filter_map(|(id, title, content)| Some((id, title, content.as_ref()?))).collect();
    let [errors, more_errors] =
        first(&report.errors, "-o json", |error| html! { li { (text(&error.line)) } });
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(security_policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) ": " (words) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#main" { "Skip to the content" }
                header {
                    h1 { (title) }
                    p id="verdict" class={ "verdict " (verdict) } data-verdict=(verdict) {
                        (words) "."
                    }
                    p class="quiet" { (read(report, page)) }
                    @if !report.errors.is_empty() { ul class="deny" { (errors) } }
                    (more_errors)
                }
                nav aria-label="Parts of this page" {
                    ul { @for (id, title, _) in &parts { li { a href={ "#" (id) } { (title) } } } }
                }
                main id="main" {
                    @for (id, title, content) in &parts {
                        section id=(id) aria-labelledby={ (id) "-title" } {
                            h2 id={ (id) "-title" } { (title) }
                            (content)
                        }
                    }
                }
                footer { p { "Written by memgate " (env!("CARGO_PKG_VERSION")) "." } }
            }
        }
    }
}

/// Allows the style sheet of the page, and nothing else.
fn security_policy() -> String {
    let style = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
}

/// The result in words, and as the value of an attribute.
fn verdict(report: &Report<'_>) -> (String, &'static str) {
    let unreadable = match report.errors.len() {
        0 => String::new(),
        count => format!("; {} could not be read", counted(count, "input")),
    };
    let of = |denies: bool, warns: bool| match (denies, warns || !report.errors.is_empty()) {
        (true, _) => "denied",
        (false, true) => "warned",
        (false, false) => "clean",
    };
    if let Some(changes) = &report.changes {
        let denies = changes.iter().any(changes::Change::is_denied);
        return (changes::verdict(report, changes) + &unreadable, of(denies, !changes.is_empty()));
    }
    let (denials, warnings) = (report.count(Severity::Deny), report.count(Severity::Warn));
    let words = match (report.denied, denials, warnings) {
        (0, 0, _) if report.objects.is_empty() => "Nothing to judge was found".to_owned(),
        (0, 0, 0) => "Nothing would be denied".to_owned(),
        (0, 0, warnings) => format!("Nothing would be denied; {}", counted(warnings, "warning")),
        (0, denials, _) => counted(denials, "denial"),
        (denied, _, _) => format!("{} would be denied", counted(denied, "object")),
    };
    (words + &unreadable, of(report.denied + denials > 0, warnings > 0 || report.objects.is_empty()))
}

/// What was read, in one line.
fn read(report: &Report<'_>, page: &Page<'_>) -> String {
    let mut parts = vec![format!(
        "{} judged in {}",
        counted(report.objects.len(), "object"),
        counted(report.files, "file")
    )];
    parts.extend((report.units > 0).then(|| counted(report.units, "unit")));
    parts.extend(match report.policies {
        0 => None,
        1 => Some("1 policy".to_owned()),
        count => Some(format!("{count} policies")),
    });
    parts.extend((!page.base.is_empty()).then(|| format!("compared with {}", text(page.base))));
    let left_out = || format!("{} left out by --ignore", counted(report.left_out, "finding"));
    parts.extend((report.left_out > 0).then(left_out));
    parts.join("; ")
}

fn parts(report: &Report<'_>, page: &Page<'_>) -> [PageSection; 4] {
    let of = |title: &str, severity| {
        (format!("{title}: {}", report.count(severity)), findings::of_severity(report, severity))
    };
    let ((denials, all_denials), (warnings, all_warnings)) =
        (of("Denials", Severity::Deny), of("Warnings", Severity::Warn));
    let table = page.table.as_ref().or(report.table.as_ref());
    [
        ("denials", denials, all_denials),
        ("map", "Map".to_owned(), map::section(&page.map)),
        ("warnings", warnings, all_warnings),
        ("policies", "Policies by namespace".to_owned(), table.and_then(policies)),
    ]
}

/// A table, inside of what scrolls where it is wide.
fn table(caption: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { (caption) }
                thead { tr { @for name in columns { th scope="col" { (name) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// The numbers by policy and namespace; `None` without findings.
fn policies(of: &Table<'_>) -> Option<Markup> {
    const COLUMNS: [&str; 7] =
        ["Policy", "Namespace", "Objects", "Denials", "Warnings", "Exempted", "All findings"];
    let [rows, rest] = first(&of.rows, "-o json", |Row { policy, namespace, numbers }| {
        html! {
            tr {
                th scope="row" { (policy.map_or_else(|| "rules of the platforms".to_owned(), text)) }
                td { @if namespace.is_empty() { "–" } @else { (text(&shown_name(namespace))) } }
                @for number in numbers.cells() { td class="number" { (number) } }
            }
        }
    });
    let caption = "The numbers of each policy in each namespace";
    (!of.rows.is_empty()).then(|| html! { (table(caption, &COLUMNS, &rows)) (rest) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The colours of a block of the style sheet, by name.
    fn colours(block: &str) -> BTreeMap<&str, [f64; 3]> {
        let pairs = block.split(';').filter_map(|pair| pair.trim().split_once(": #"));
        let pairs = pairs.filter_map(|(name, hex)| Some((name.strip_prefix("--")?, hex)));
        let channel = |hex: &str, at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("a number")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        pairs.map(|(name, hex)| (name, [channel(hex, 0), channel(hex, 2), channel(hex, 4)])).collect()
    }

    /// The contrast of two colours as WCAG 2 defines it.
    fn contrast(one: [f64; 3], two: [f64; 3]) -> f64 {
        let luminance = |[red, green, blue]: [f64; 3]| 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        let (one, two) = (luminance(one) + 0.05, luminance(two) + 0.05);
        (one / two).max(two / one)
    }

    #[test]
    fn texts_can_be_read_in_both_schemes() {
        let blocks: Vec<_> = STYLE.split(":root {").skip(1).filter_map(|it| it.split('}').next()).collect();
        assert_eq!(blocks.len(), 2);
        for colours in blocks.into_iter().map(colours) {
            let of = |name: &str| *colours.get(name).unwrap_or_else(|| panic!("no colour {name}"));
            let grounds = ["page", "card"];
            let texts = ["text", "quiet", "link", "deny", "warn", "good"];
            let pairs = texts.iter().flat_map(|text| grounds.iter().map(move |ground| (*text, *ground)));
            for (text, ground) in pairs {
                let contrast = contrast(of(text), of(ground));
                assert!(contrast >= 4.5, "{text} on {ground}: {contrast:.2}");
            }
        }
    }
}
