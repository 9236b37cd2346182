//! Hover, go to definition, and references.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use lsp_types::{Hover, HoverContents, Location, MarkupContent, MarkupKind};

use crate::buffers::Buffer;
use crate::mentions::{Mention, Role, mentions};
use crate::objects::{Link, Loaded, Target, Viewed, at_line, load_views, locations};
use crate::positions::{Encoding, Lines};
use crate::workspace::{Root, name};
use memgate_manifest::place::{DocumentPlace, LastSource};
use memgate_manifest::source::{Source, Span};
use memgate_primitives::credential::{masked_keys, masked_value};
use memgate_primitives::plain_text::shown_name;
use memgate_workbench::load::Error;
use memgate_workbench::map::facts;
use memgate_workbench::place::report;
use memgate_workbench::report::{page, plain};
use memgate_workbench::run::{Run, judged_without_ignored};

/// A question about a place or a range in an open file.
pub(crate) struct Question<'q> {
    /// What is read around the file.
    pub(crate) run: Run,
    /// The root of the file.
    pub(crate) root: Root,
    /// The file.
    pub(crate) buffer: &'q Buffer,
    /// The byte in its text at which the place or the range starts.
    pub(crate) start: usize,
    /// The byte behind the range; of a place the same.
    pub(crate) end: usize,
    /// How the client counts columns.
    pub(crate) encoding: Encoding,
}

/// Everything about the place: the pages of findings, and the objects that are referred to.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn hover(question: &Question<'_>) -> Result<Option<Hover>, Error> {
    let file = question.file();
    let checked = judged_without_ignored(&question.run)?;
    let report = report(&checked);
    let mut sections = Vec::new();
    let mut range = None;
    for located in report.causes() {
        let place = &located.location;
        if place.file == file && question.touches(place.start, place.end) {
            let finding = located.finding;
            let (code, message) = (finding.code_name(), finding.message());
            let page = page::text(finding);
            let text = page.trim();
            sections.push(format!("**{}**: {}\n\n{text}", code_span(code), in_markdown(&message)));
            range.get_or_insert((place.start, place.end));
        }
    }
    for loaded in load_views(&question.run, |place| question.is_in(place))? {
        let names = mentions(&loaded.inputs, Some(&file));
        let Links { named, viewed } = question.links(&loaded, &names);
        for link in named.into_iter().chain(viewed) {
            sections.push(about(&link, &loaded));
            range.get_or_insert((link.span.start, link.span.end));
        }
    }
    let lines = Lines::new(&question.buffer.text, question.encoding);
    let (mut seen, mut value) = (BTreeSet::new(), String::new());
    for section in sections.iter().filter(|section| seen.insert(section.as_str())) {
        let divider = if value.is_empty() { "" } else { "\n\n---\n\n" };
        value = value + divider + section;
    }
    let value = masked_keys(&value).into_owned();
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Ok(range.map(|(start, end)| Hover { contents, range: Some(lines.range(start, end)) }))
}

/// Where the object stands to which the place refers.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn definition(question: &Question<'_>) -> Result<Vec<Location>, Error> {
    let (mut found, file) = (Vec::new(), question.file());
    for loaded in load_views(&question.run, |place| question.is_in(place))? {
        let names = mentions(&loaded.inputs, Some(&file));
        let Links { named, viewed } = question.links(&loaded, &names);
        let links = if named.is_empty() { viewed } else { named };
        found.extend(links.iter().filter_map(|link| link.target.find(&loaded.inputs)));
    }
    Ok(question.locations(found))
}

/// Where the object of the place is referred to: the one to which the place refers, else the one around it. With
/// `declares`, also where that object stands.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn references(mut question: Question<'_>, declares: bool) -> Result<Vec<Location>, Error> {
    question.run.plan.checks_only_open = false;
    let mut found = Vec::new();
    for loaded in load_views(&question.run, |_| true)? {
        let names = mentions(&loaded.inputs, None);
        let Some(target) = target(&question, &loaded, &names) else { continue };
        for viewed in &loaded.objects {
            let source = viewed.object.object.place.source();
            let links = viewed.links().into_iter().filter(|link| link.target.is(&target));
            found.extend(links.map(|link| (Arc::clone(source), link.span)));
        }
        let mut last = LastSource::default();
        for name in names.iter().filter(|name| name.is_reference() && Target::of(&name.object).is(&target)) {
            last.is_now(&name.place);
            found.extend(name.span().map(|span| (Arc::clone(name.place.source()), span)));
        }
        found.extend(target.find(&loaded.inputs).filter(|_| declares));
    }
    Ok(question.locations(found))
}

fn target<'l>(question: &Question<'_>, loaded: &'l Loaded, names: &'l [Mention]) -> Option<Target<'l>> {
    let Links { named, viewed } = question.links(loaded, names);
    let link = named.into_iter().chain(viewed).next();
    let is_around = |name: &&Mention| matches!(name.role, Role::Own) && question.is_in(&name.place);
    let around = || names.iter().rfind(is_around).map(|name| Target::of(&name.object));
    link.map(|link| link.target).or_else(around)
}

/// What a place leads to.
struct Links<'l> {
    /// The objects that it names.
    named: Vec<Link<'l>>,
    /// Other objects, such as the memory of an agent that it names.
    viewed: Vec<Link<'l>>,
}

impl Question<'_> {
    /// The name of the file.
    pub(crate) fn file(&self) -> String {
        name(&self.root, &self.buffer.path)
    }

    /// Whether the place, or a part of the range, is in an object.
    pub(crate) fn is_in(&self, place: &DocumentPlace) -> bool {
        place.source().name() == self.file() && self.is_at(place.span())
    }

    /// What the place names, by the tables of references, and what else it leads to, by the views of the objects.
    fn links<'l>(&self, loaded: &'l Loaded, all: &'l [Mention]) -> Links<'l> {
        let around = loaded.objects.iter().filter(|viewed| self.is_in(&viewed.object.object.place));
        let mut viewed: Vec<_> =
            around.flat_map(Viewed::links).filter(|link| self.is_at(link.span)).collect();
        let around = all.iter().filter(|name| name.is_reference() && self.is_in(&name.place));
        let link = |name: &'l Mention| {
            Some(Link { span: name.span()?, target: Target::of(&name.object), view: None })
        };
        let mut named: Vec<_> = around.filter_map(link).filter(|link| self.is_at(link.span)).collect();
        // The views know more of an object.
        let known = viewed.extract_if(.., |link| named.iter().any(|it| it.target.is(&link.target)));
        let known: Vec<_> = known.collect();
        named.retain(|link| !known.iter().any(|it| it.target.is(&link.target)));
        named.extend(known);
        Links { named, viewed }
    }

    /// Whether the place, or a part of the range, is in a stretch of the file.
    pub(crate) fn is_at(&self, span: Span) -> bool {
        self.touches(span.start, span.end)
    }

    /// The same of a stretch between two bytes.
    pub(crate) const fn touches(&self, start: usize, end: usize) -> bool {
        start <= self.end && end >= self.start
    }

    /// The places in files, each once.
    fn locations(&self, found: Vec<(Arc<Source>, Span)>) -> Vec<Location> {
        let mut locations = locations(&self.root, found, self.encoding);
        locations.dedup();
        locations
    }
}

/// The object of a reference in Markdown: its name, where it stands, and what is known of a memory resource.
fn about(link: &Link<'_>, loaded: &Loaded) -> String {
    let Target { kind, namespace, name, .. } = link.target;
    let path = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let mut text = format!("{kind} {}", code_span(&shown_name(&path)));
    match link.target.find(&loaded.inputs) {
        Some((source, span)) => text = text + " at " + &code_span(&at_line(&source, span)),
        None if link.view.is_none() => text += ": not among the files",
        None => {}
    }
    for (label, fact) in link.view.map(facts).unwrap_or_default().labelled() {
        let _infallible = write!(text, "\n- {label}: {}", code_span(&fact.to_string()));
    }
    text
}

/// Text of a manifest as code in Markdown, with credentials masked.
fn code_span(text: &str) -> String {
    let text = plain(&masked_value(text)).replace('`', "'");
    format!("`{text}`")
}

/// A message in Markdown: no part of it is markup.
fn in_markdown(text: &str) -> String {
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
