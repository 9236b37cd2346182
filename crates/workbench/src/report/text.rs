//! Text for people: each finding with its source line and a caret, as rustc prints errors.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use crate::report::DEFAULT_WIDTH;
use crate::report::excerpt::Excerpt;
use crate::report::{
    FileLocation, InputError, LocatedFinding, Related, Report, Shown, at_line_start, changes, notes, plain,
    table,
};
use memgate_model::finding::Severity;

/// Placeholders for the names of files. The renderer counts columns in the text that it gets, which may be a part of a
/// line, so [`with_places`] writes the true places afterwards. The renderer passes control characters through in names of
/// files only. No finding has more places.
const FILES: [&str; 6] = ["\u{1}", "\u{2}", "\u{3}", "\u{4}", "\u{5}", "\u{6}"];

/// Writes the parts of a report that are shown: changes or findings, then the table.
///
/// # Errors
/// Those of the writer.
pub fn write_whole(report: &Report<'_>, width: usize, out: &mut impl Write) -> io::Result<()> {
    match &report.changes {
        Some(changes) => changes::write(report, changes, out)?,
        None => write(report, width, out)?,
    }
    if report.table.is_some() && report.causes().next().is_some() {
        writeln!(out)?;
    }
    let table = report.table.as_ref().filter(|_| !report.objects.is_empty());
    table.map_or(Ok(()), |table| table::write(table, out))
}

/// Writes the findings with their source, at most `width` columns of it, the first one of each code with the command that
/// explains it.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, width: usize, out: &mut impl Write) -> io::Result<()> {
    let renderer = renderer(width);
    let is_listed = |it: &&LocatedFinding<'_>| {
        report.shown != Shown::NotesByRule || it.finding.severity != Severity::Note
    };
    let (listed, notes): (Vec<_>, Vec<_>) = report.denials_first().into_iter().partition(is_listed);
    let mut codes = BTreeSet::new();
    for located in listed {
        let group = group(located, codes.insert(located.finding.code_name()), width);
        let text = renderer.render(&[group]);
        writeln!(out, "{}\n", with_places(&text, &located.location, &located.related))?;
    }
    notes::write(notes.into_iter(), "; -v lists them", out)
}

/// One finding without styles.
pub(super) fn plain_finding(located: &LocatedFinding<'_>) -> String {
    let group = group(located, true, DEFAULT_WIDTH);
    let text = Renderer::plain().term_width(DEFAULT_WIDTH).render(&[group]);
    with_places(&text, &located.location, &located.related)
}

/// Writes one error of an input, with its source where the location is known.
///
/// # Errors
/// Those of the writer.
pub fn write_error(error: &InputError<'_>, width: usize, out: &mut impl Write) -> io::Result<()> {
    let Some(location) = &error.location else {
        // Some errors have several lines. The names in them are on one, but for those that an author of files makes up.
        let mut lines = error.line.split('\n').map(one_line);
        let first = lines.next().unwrap_or_default();
        let line = lines.fold(first, |all, line| format!("{all}\n{}", at_line_start(&line)));
        let group = Group::with_title(Level::ERROR.primary_title(line));
        return writeln!(out, "{}", renderer(width).render(&[group]));
    };
    let related = error.related.as_slice();
    let group = Level::ERROR.primary_title(one_line(&error.message)).elements(hidden(location));
    let mut group = group.elements(snippets(location, related, width));
    if let Some(help) = &error.help {
        group = group.element(Level::HELP.message(one_line(help)));
    }
    writeln!(out, "{}\n", with_places(&renderer(width).render(&[group]), location, related))
}

/// A text that cannot begin a line of the output.
fn one_line(text: &str) -> String {
    normalize_untrusted_str(&plain(text))
}

const fn renderer(width: usize) -> Renderer {
    Renderer::styled().term_width(width)
}

fn group<'r>(located: &'r LocatedFinding<'r>, is_first: bool, width: usize) -> Group<'r> {
    let finding = located.finding;
    let level = match finding.severity {
        Severity::Deny => Level::ERROR.with_name("deny"),
        Severity::Warn => Level::WARNING.with_name("warn"),
        Severity::Note => Level::NOTE.with_name("note"),
    };
    let mut group = level
        .primary_title(one_line(&finding.message()))
        .id(finding.code_name())
        .elements(hidden(&located.location))
        .elements(snippets(&located.location, &located.related, width));
    // A finding about a file has no object.
    if !located.object_ref.kind.is_empty() {
        let title = one_line(&located.object_ref.title());
        group = group.element(Level::NOTE.with_name("in").message(title));
    }
    // A place in a file that is not shown.
    let unseen = located.related.iter().filter(|it| it.location.text.is_empty());
    for Related { location, label } in unseen {
        let place = format!("{}:{}: {label}", location.line_place(), location.column);
        group = group.element(Level::NOTE.with_name("see").message(one_line(&place)));
    }
    if !located.units.is_empty() {
        let name = if located.units.len() == 1 { "unit" } else { "units" };
        group = group.element(Level::NOTE.with_name(name).message(one_line(&located.units.join(", "))));
    }
    if !located.namespaces.is_empty() {
        let namespaces = one_line(&located.namespaces.join(", "));
        group = group.element(Level::NOTE.with_name("in namespaces").message(namespaces));
    }
    if let Some(at_admission) = finding.policy.as_ref().and_then(|policy| policy.at_admission) {
        group = group.element(Level::NOTE.with_name("at admission").message(at_admission.words()));
    }
    if let Some(help) = finding.help_text() {
        group = group.element(Level::HELP.message(one_line(&help)));
    }
    if is_first {
        let policy = finding.policy.as_ref().map(|_| " --policy PATH").unwrap_or_default();
        let command = format!("memgate explain {}{policy}", finding.code_name());
        group = group.element(Level::NOTE.with_name("learn more").message(one_line(&command)));
    }
    group
}

/// The place alone, for a file that is not shown.
fn hidden<'r>(location: &FileLocation<'_>) -> Option<Origin<'r>> {
    let [first, ..] = FILES;
    location.text.is_empty().then(|| Origin::path(first))
}

/// The source with its carets: one snippet, and others for locations in another file or far away.
fn snippets<'r>(
    location: &FileLocation<'r>,
    related: &[Related<'r>],
    width: usize,
) -> Vec<Snippet<'r, Annotation<'r>>> {
    let snippet = |excerpt: Excerpt<'r>, file, about: &[Option<&Related<'_>>]| {
        let annotations =
            excerpt.spans.into_iter().zip(about).map(|(span, related)| annotation(span, *related));
        Snippet::source(excerpt.text).line_start(excerpt.line).path(file).annotations(annotations)
    };
    let [first, others @ ..] = FILES;
    let near = related.first().filter(|other| other.location.file == location.file);
    let both = near.and_then(|other| Excerpt::of(&[location, &other.location], width));
    let apart = related.iter().zip(others).skip(usize::from(both.is_some()));
    let both = both.map(|both| snippet(both, first, &[None, near]));
    let own = || Some(snippet(Excerpt::of(&[location], width)?, first, &[None]));
    let others = apart.filter_map(|(other, file)| {
        Some(snippet(Excerpt::of(&[&other.location], width)?, file, &[Some(other)]))
    });
    both.or_else(own).into_iter().chain(others).collect()
}

fn annotation<'r>(span: Range<usize>, related: Option<&Related<'_>>) -> Annotation<'r> {
    match related {
        None => AnnotationKind::Primary.span(span),
        Some(related) => AnnotationKind::Context.span(span).label(one_line(&related.label)),
    }
}

/// The rendered text with each placeholder, and the numbers behind it, replaced by `file:line:column`.
fn with_places(rendered: &str, location: &FileLocation<'_>, related: &[Related<'_>]) -> String {
    let mut text = String::with_capacity(rendered.len());
    let mut rest = rendered;
    let places = std::iter::once(location).chain(related.iter().map(|related| &related.location));
    for (name, place) in FILES.into_iter().zip(places) {
        if let Some((before, behind)) = rest.split_once(name) {
            let _ = write!(text, "{before}{}:{}:{}", plain(place.file), place.line, place.column);
            rest = behind.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ObjectRef;
    use memgate_model::finding::{Cause, Code, Finding};
    use memgate_model::page::Page;
    use memgate_primitives::pointer::Pointer;

    static CODE: Code = Code { name: "test/one", cause: Cause::Invalid, page: Page(|| "") };

    fn location<'a>(file: &'a str, text: &'a str, what: &str) -> FileLocation<'a> {
        let start = text.find(what).expect("is in the text");
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| !matches!(c, '\n' | '\u{feff}')).count() + 1;
        FileLocation { file, text, measured: text, start, end: start + what.len(), line, column }
    }

    const WIDTH: usize = 40;

    fn render<'a>(location: FileLocation<'a>, related: impl IntoIterator<Item = Related<'a>>) -> String {
        let finding = Finding::deny(&CODE, Pointer::new("/b"), "b is wrong").help("write 2");
        let object_ref = ObjectRef { kind: "Thing".into(), name: "one".into(), ..ObjectRef::default() };
        let located = LocatedFinding::new(&finding, &object_ref, location);
        let located = LocatedFinding { related: related.into_iter().collect(), ..located };
        let report = Report { findings: vec![located], ..Report::default() };
        let mut out = Vec::new();
        write(&report, WIDTH, &mut anstream::StripStream::new(&mut out)).expect("writes to memory");
        String::from_utf8(out).expect("is UTF-8")
    }

    #[test]
    fn shows_the_line_with_a_caret() {
        let text = "a: 1\nb: one\nc: 3\n";
        let expected = "\
deny[test/one]: b is wrong
 --> x.yaml:2:4
  |
2 | b: one
  |    ^^^
  |
  = in: Thing one
  = help: write 2
  = learn more: memgate explain test/one

";
        assert_eq!(render(location("x.yaml", text, "one"), None), expected);
    }

    #[test]
    fn shows_the_other_place_of_a_conflict() {
        let text = "a: 1\nb: one\nc: 3\n";
        let related = |file| Some(Related { location: location(file, text, "1"), label: "says 1".into() });
        let same = render(location("x.yaml", text, "one"), related("x.yaml"));
        assert!(same.contains("1 | a: 1\n  |    - says 1\n2 | b: one\n  |    ^^^\n"), "{same}");
        let elsewhere = render(location("x.yaml", text, "one"), related("y.yaml"));
        assert!(elsewhere.contains("::: y.yaml:1:4\n  |\n1 | a: 1\n  |    - says 1\n"), "{elsewhere}");
    }

    #[test]
    fn passes_over_a_byte_order_mark_and_carriage_returns() {
        let shown = render(location("x.yaml", "\u{feff}a: 1\r\n", "1"), None);
        assert!(shown.contains("--> x.yaml:1:4\n  |\n1 | a: 1\n  |    ^\n"), "{shown}");
    }

    #[test]
    fn marks_only_the_first_line_of_a_section() {
        let shown = render(location("x.yaml", "a:\n  b: 1\n  c: 2\n", "b: 1\n  c: 2"), None);
        assert!(shown.contains("2 |   b: 1\n  |   ^^^^\n  |\n"), "{shown}");
    }

    #[test]
    fn cuts_long_lines_and_keeps_their_place() {
        let text = format!("{{a: 1, {}, b: one, {}}}", "x".repeat(500), "y".repeat(500));
        let shown = render(location("x.yaml", &text, "one"), None);
        let expected = "\
 --> x.yaml:1:513
  |
1 | ...xxxxxxxx, b: one, yyyyyyyyyyyy...
  |                 ^^^
";
        assert!(shown.contains(expected), "{shown}");
        let related = Related { location: location("x.yaml", &text, "1"), label: "says 1".into() };
        let shown = render(location("x.yaml", &text, "one"), Some(related));
        let expected = "  |                 ^^^
  |
 ::: x.yaml:1:5
  |
1 | {a: 1, xxxxxxxxxxxxxxxxxxxxxxxxxx...
  |     - says 1
";
        assert!(shown.contains(expected), "{shown}");
    }
}
