//! One page for a browser, which needs nothing but itself: no network, and no script to read it.
//!
//! The page has a limit of bytes. Each part has a share of it, and says how much it leaves out. Every text of an input goes
//! through [`text()`], and the templates escape it. A Content-Security-Policy in the page allows the one style sheet and
//! the one script that are part of it, by their hashes.

mod budget;

mod excerpt;

mod findings;

mod map;

mod picture;

mod tables;

use std::collections::BTreeSet;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use crate::report::html_data::Page;
use crate::report::{Report, changes, counted};
use memgate_model::finding::Severity;
use memgate_primitives::credential::masked_start;
use memgate_primitives::plain_text::{cut, shown_name};

/// The style sheet.
const STYLE: &str = include_str!("html/style.css");

/// The script, which filters the page, and sorts tables.
const SCRIPT: &str = include_str!("html/script.js");

/// The most characters of one text: the longest message is shorter.
const MAX_CHARS: usize = 1000;

/// A part of the page: its id, its heading, and its content. A part without content is left out.
struct Part {
    id: &'static str,
    title: &'static str,
    /// How many findings it is about, which the heading says.
    number: Option<usize>,
    content: Option<Markup>,
}

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

/// A text as one word of an attribute: in lists of them blanks are between words.
fn word(word: &str) -> String {
    text(word).replace(char::is_whitespace, "_")
}

fn whole(report: &Report<'_>, page: &Page<'_>) -> Markup {
    let (words, verdict) = verdict(report);
    let title = format!("memgate {}", page.command);
    let parts = parts(report, page);
    let parts: Vec<(&Part, &Markup)> =
        parts.iter().filter_map(|part| Some((part, part.content.as_ref()?))).collect();
    let has = |id: &str| parts.iter().any(|(part, _)| part.id == id);
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
                        (words) (whose(report)) "."
                    }
                    p class="quiet" { (read(report, page)) }
                }
                nav aria-label="Parts of this page" {
                    ul { @for (part, _) in &parts { li { a href={ "#" (part.id) } { (part.title) } } } }
                }
                main id="main" {
                    section id="summary" aria-labelledby="summary-title" {
                        h2 id="summary-title" class="unseen" { "Summary" }
                        (tables::tiles(report, page, has))
                    }
                    (form(report, page))
                    @for (part, content) in &parts {
                        section id=(part.id) aria-labelledby={ (part.id) "-title" } {
                            h2 id={ (part.id) "-title" } { (part.title) @if let Some(number) = part.number { ": " (number) } }
                            (content)
                        }
                    }
                }
                footer { p { "Written by memgate " (env!("CARGO_PKG_VERSION")) "." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The filter of the whole page. Without the script, which applies it, the style sheet does not show it.
fn form(report: &Report<'_>, page: &Page<'_>) -> Markup {
    /// With its end, so that the page is XML too, but for elements of the head.
    const INPUT: &str = "<input type=\"search\" name=\"q\"/>";
    /// The most bytes of the names of namespaces. One that is not listed can stand in the address.
    const MOST: usize = 100_000;
    let mut namespaces: BTreeSet<String> = report.causes().flat_map(findings::namespaces).collect();
    let memories = page.map.sets.iter().flat_map(|set| &set.memories);
    namespaces.extend(
        memories.map(|memory| word(&shown_name(&memory.object.namespace))).filter(|it| !it.is_empty()),
    );
    let mut platforms: BTreeSet<&str> =
        report.causes().flat_map(|it| it.object_ref.platforms(it.finding.code.name)).collect();
    platforms.extend(page.map.sets.iter().flat_map(|set| &set.memories).map(|memory| memory.family));
    let namespaces = budget::fitting(MOST, namespaces, |it| html! { option { (it) } });
    let severities = html! { @for it in ["deny", "warn", "note"] { option { (it) } } };
    let select = |name: &str, label: &str, options: &Markup| {
        html! {
            label { (label) " " select name=(name) { option value="" { "all" } (options) } }
        }
    };
    html! {
        form id="filter" role="search" aria-label="Filter of this page" {
            label { "Text " (PreEscaped(INPUT)) }
            (select("namespace", "Namespace", &namespaces.all()))
            (select("platform", "Platform", &html! { @for it in platforms { option { (it) } } }))
            (select("severity", "Severity", &severities))
            button type="reset" { "Show all" }
            p role="status" {}
        }
    }
}

/// Allows the style sheet and the script of the page, and nothing else.
fn security_policy() -> String {
    let [style, script] = [STYLE, SCRIPT].map(|text| STANDARD.encode(digest(&SHA256, text.as_bytes())));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; \
         form-action 'none'"
    )
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

/// The namespaces of what is denied, those with most of it first.
fn whose(report: &Report<'_>) -> String {
    /// The most namespaces that are named.
    const MOST: usize = 3;
    let owners = findings::owners(report);
    match owners.as_slice() {
        _ if report.changes.is_some() => String::new(),
        [] => String::new(),
        [one] => format!(", in namespace {one}"),
        several => format!(", in namespaces {}", findings::first_of(several, MOST)),
    }
}

/// What was read, in one line.
fn read(report: &Report<'_>, page: &Page<'_>) -> String {
    let mut parts = vec![format!("{} judged in {}", report.counted_objects(), counted(report.files, "file"))];
    parts.extend((report.sets > 0).then(|| counted(report.sets, "set")));
    parts.extend(match report.policies {
        0 => None,
        1 => Some("1 policy".to_owned()),
        count => Some(format!("{count} policies")),
    });
    let base = page.base.as_ref();
    parts.extend(
        base.map(|[reference, start]| format!("compared with {}, as of commit {start}", text(reference))),
    );
    let left_out = || format!("{} left out by --ignore", counted(report.left_out, "finding"));
    parts.extend((report.left_out > 0).then(left_out));
    parts.join("; ")
}

/// The paths, the time and the occasion.
fn about(page: &Page<'_>) -> Markup {
    /// The most paths that are listed.
    const MOST: usize = 20;
    let more = page.judged.len().saturating_sub(MOST);
    html! {
        dl class="about" {
            @if !page.judged.is_empty() {
                dt { "Judged" }
                dd {
                    @for (number, path) in page.judged.iter().take(MOST).enumerate() {
                        @if number > 0 { ", " }
                        code { (text(path)) }
                    }
                    @if more > 0 { " and " (more) " more" }
                }
            }
            @if !page.time.is_empty() {
                dt { "Time of the decision" }
                dd { time datetime=(page.time) { (page.time) } }
                dt { "Policies act as" }
                dd { (page.point) }
            }
        }
    }
}

fn parts(report: &Report<'_>, page: &Page<'_>) -> Vec<Part> {
    let part = |id, title, content| Part { id, title, number: None, content };
    let articles = findings::Articles::of(report);
    let of = |id, title, severity, share| {
        let content = findings::of_severity(report, &articles, severity, share);
        Part { id, title, number: Some(report.count(severity)), content }
    };
    let warnings = |share| of("warnings", "Warnings", Severity::Warn, share);
    let notes = |share| of("notes", "Notes", Severity::Note, share);
    let table = page.table.as_ref().or(report.table.as_ref());
    let mut parts = vec![
        part("changes", "Changes", tables::changes(report, page)),
        part("map", "Map", map::section(&page.map)),
        warnings(budget::WARNINGS),
        part("matrix", "Policies by namespace", tables::matrix(&articles)),
        part("timeline", "Dates", tables::timeline(page)),
        part("errors", "Unreadable", findings::errors(report)),
        notes(budget::OTHERS),
        part("policies", "Numbers", table.and_then(tables::policies)),
        part("exemptions", "Exemptions", tables::exemptions(page)),
        part("assumed", "Assumed", tables::assumed(report, page)),
        part("not-judged", "Not judged", tables::not_judged(report)),
        part("codes", "Codes", findings::pages(report)),
        part("about", "Inputs", Some(about(page))),
    ];
    let size = |part: &Part| part.content.as_ref().map_or(0, |content| budget::size(&content.0));
    let left = |parts: &[Part]| budget::ALL.saturating_sub(parts.iter().map(size).sum());
    let at = parts.iter().position(|part| part.id == "map").unwrap_or_default();
    parts.insert(at, of("denials", "Denials", Severity::Deny, left(&parts)));
    // What denials leave is for warnings, then for notes.
    let again: [&dyn Fn(usize) -> Part; 2] = [&warnings, &notes];
    for (id, again) in ["warnings", "notes"].into_iter().zip(again) {
        let room = left(&parts);
        if let Some(part) = parts.iter_mut().find(|part| part.id == id) {
            *part = again(room + size(part));
        }
    }
    parts
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
            let grounds = ["page", "card", "box", "user", "store"];
            let texts = ["text", "quiet", "link", "deny", "warn", "note", "good"];
            let pairs = texts.iter().flat_map(|text| grounds.iter().map(move |ground| (*text, *ground)));
            let shades = ["shade-1", "shade-2", "shade-3", "shade-4"].map(|shade| ("text", shade));
            for (text, ground) in pairs.chain([("mark-text", "mark"), ("link", "mark")]).chain(shades) {
                let contrast = contrast(of(text), of(ground));
                assert!(contrast >= 4.5, "{text} on {ground}: {contrast:.2}");
            }
        }
    }
}
