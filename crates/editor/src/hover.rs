//! What is shown under the pointer: findings and what to do, the objects behind them, and the pages of the findings last.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};

use crate::markdown::{code_span, in_markdown};
use crate::names::names;
use crate::navigation::{Question, find};
use crate::positions::Lines;
use memgate_model::finding::Finding;
use memgate_model::object::Reference;
use memgate_primitives::credential::masked_keys;
use memgate_primitives::plain_text::{cut, shown_name};
use memgate_workbench::files::inputs::Inputs;
use memgate_workbench::files::load::Error;
use memgate_workbench::files::place::report;
use memgate_workbench::files::run::judged_without_ignored;
use memgate_workbench::report::{LocatedFinding, page};

/// The most characters of a message, of advice and of a description.
const MAX_PART: usize = 500;

/// The most places, values and names in one list.
const MAX_LISTED: usize = 10;

/// Everything about the place.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn hover(question: &Question<'_>) -> Result<Option<Hover>, Error> {
    let file = question.file();
    let checked = judged_without_ignored(&question.run)?;
    let mut card = Card::default();
    for located in report(&checked).causes() {
        let place = &located.location;
        if place.file == file && question.touches(place.start, place.end) {
            card.add(&about_finding(located), (place.start, place.end));
            card.pages.insert(page_of(located.finding));
        }
    }
    for (object, span) in question.named(&names(&checked.inputs, Some(&file))) {
        card.add(&about(object, &checked.inputs), (span.start, span.end));
    }
    let lines = Lines::new(&question.buffer.text);
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: card.text() });
    Ok(card.range.map(|(start, end)| Hover { contents, range: Some(lines.range(start, end)) }))
}

/// What is shown, section by section.
#[derive(Default)]
struct Card {
    sections: Vec<String>,
    pages: BTreeSet<String>,
    /// The first and the last byte of what it is about.
    range: Option<(usize, usize)>,
}

impl Card {
    fn add(&mut self, text: &str, range: (usize, usize)) {
        self.range.get_or_insert(range);
        self.sections.push(masked_keys(text).into_owned());
    }

    /// All of it, each section once, the pages last.
    fn text(&self) -> String {
        let mut seen = BTreeSet::new();
        let sections = self.sections.iter().map(String::as_str).filter(|section| seen.insert(*section));
        let pages: Vec<&str> = self.pages.iter().map(String::as_str).collect();
        let text = sections.collect::<Vec<_>>().join("\n\n---\n\n") + "\n\n" + &pages.join(" · ");
        text.trim_end().to_owned()
    }
}

/// The message, what to do, and the places behind it.
fn about_finding(located: &LocatedFinding<'_>) -> String {
    let finding = located.finding;
    let mut text = format!("**{}**", in_markdown(&cut(&finding.message(), MAX_PART)));
    let help = finding.help_text().map(|help| in_markdown(&cut(&help, MAX_PART)));
    let advice = help.or_else(|| page::what_to_do(&page::text(finding), MAX_PART));
    text.extend(advice.into_iter().flat_map(|advice| ["\n\n".to_owned(), advice]));
    for related in located.related.iter().take(MAX_LISTED) {
        let place = related.location.line_place();
        let place = code_span(place.trim_start_matches("./"));
        let _infallible = write!(text, "\n- {}: {place}", in_markdown(&cut(&related.label, MAX_PART)));
    }
    text
}

/// The link to the page of a finding; where pages have no address, the command that prints it.
fn page_of(finding: &Finding) -> String {
    let code = masked_keys(finding.code_name());
    match page::url(finding) {
        Some(url) => format!("[{}]({url})", in_markdown(&code)),
        None => code_span(&format!("memgate explain {code}")),
    }
}

/// The object of a reference: its name, and where it stands.
fn about(object: &Reference, inputs: &Inputs) -> String {
    let Reference { kind, namespace, name } = object;
    let path = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let place = match find(object, inputs) {
        Some((source, span)) => {
            let file = source.name().trim_start_matches("./");
            format!(" at {}", code_span(&format!("{file}:{}", span.line)))
        }
        None => ": not among the files".to_owned(),
    };
    format!("{} {}{place}", kind.kind, code_span(&shown_name(&path)))
}
