//! For people: each finding with its source line and a caret, as rustc does it.

use std::io::{self, Write};
use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use crate::model::finding::Severity;
use crate::report::{Fault, Located, Mark, Place, Report, plain};

/// Writes the findings with their source, then how to learn more about them.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let renderer = Renderer::styled();
    for located in &report.findings {
        writeln!(out, "{}\n", renderer.render(&[group(located)]))?;
    }
    match report.findings.first() {
        Some(first) => writeln!(out, "To learn more, run: memgate explain {}", first.finding.code.name),
        None => Ok(()),
    }
}

/// Writes one fault of an input, with its source when the place is known.
///
/// # Errors
/// Those of the writer.
pub fn write_fault(fault: &Fault<'_>, out: &mut impl Write) -> io::Result<()> {
    let Some(shown) = &fault.shown else {
        let group = Group::with_title(Level::ERROR.primary_title(fault.line.as_str()));
        return writeln!(out, "{}", Renderer::styled().render(&[group]));
    };
    let mut group = Level::ERROR
        .primary_title(shown.message.as_str())
        .elements(snippets(&shown.place, shown.other.as_ref()));
    if let Some(help) = &shown.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    writeln!(out, "{}\n", Renderer::styled().render(&[group]))
}

fn group<'r>(located: &'r Located<'_>) -> Group<'r> {
    let finding = located.finding;
    let level = match finding.severity {
        Severity::Deny => Level::ERROR.with_name("deny"),
        Severity::Warn => Level::WARNING.with_name("warn"),
    };
    let mut group = level
        .primary_title(finding.message.as_str())
        .id(finding.code.name)
        .elements(source(located))
        .element(Level::NOTE.with_name("in").message(normalize_untrusted_str(&located.subject.title())));
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    group
}

/// The place of a finding: the source, or just its line and column where that may hold a secret.
fn source<'r>(located: &'r Located<'_>) -> Vec<Element<'r>> {
    let place = &located.place;
    if located.finding.sensitive {
        return vec![Origin::path(plain(place.file)).line(place.line).char_column(place.column).into()];
    }
    snippets(place, located.other.as_ref()).into_iter().map(Element::from).collect()
}

/// The source with its carets: one snippet, or two when the other place is in another file.
fn snippets<'r>(place: &Place<'r>, other: Option<&'r Mark<'r>>) -> Vec<Snippet<'r, Annotation<'r>>> {
    match other {
        None => vec![snippet(place, None)],
        Some(mark) if mark.place.file == place.file => vec![snippet(place, Some(mark))],
        Some(mark) => {
            let context = AnnotationKind::Context;
            let shown = Window::around(&[&mark.place]);
            let label = normalize_untrusted_str(&mark.label);
            let annotation = context.span(shown.span(&mark.place)).label(label);
            vec![snippet(place, None), shown.snippet(mark.place.file).annotation(annotation)]
        }
    }
}

fn snippet<'r>(place: &Place<'r>, other: Option<&'r Mark<'r>>) -> Snippet<'r, Annotation<'r>> {
    let Some(mark) = other else {
        let shown = Window::around(&[place]);
        return shown.snippet(place.file).annotation(AnnotationKind::Primary.span(shown.span(place)));
    };
    let shown = Window::around(&[place, &mark.place]);
    let label = normalize_untrusted_str(&mark.label);
    shown
        .snippet(place.file)
        .annotation(AnnotationKind::Primary.span(shown.span(place)))
        .annotation(AnnotationKind::Context.span(shown.span(&mark.place)).label(label))
}

/// The lines of a file that a snippet needs. Handing over the whole file would make the work grow
/// with the square of its size.
struct Window<'r> {
    text: &'r str,
    start: usize,
    line: usize,
}

impl<'r> Window<'r> {
    fn around(places: &[&Place<'r>]) -> Self {
        let text = places.first().map_or("", |place| place.text);
        let first = places.iter().map(|place| place.start).min().unwrap_or(0);
        let last = places.iter().map(|place| place.start).max().unwrap_or(0);
        let before = text.get(..first).unwrap_or_default();
        let mut start = before.rfind('\n').map_or(0, |newline| newline + 1);
        if start == 0 && text.starts_with('\u{feff}') {
            start = '\u{feff}'.len_utf8();
        }
        let end =
            text.get(last..).and_then(|rest| rest.find('\n')).map_or(text.len(), |length| last + length);
        Self {
            text: text.get(start..end).unwrap_or_default().trim_end_matches('\r'),
            start,
            line: places.iter().map(|place| place.line).min().unwrap_or(1),
        }
    }

    fn snippet<T: Clone>(&self, file: &'r str) -> Snippet<'r, T> {
        Snippet::source(self.text).line_start(self.line).path(plain(file))
    }

    /// The stretch of a place within the window, cut at the end of its first line: a caret under
    /// a whole section would hide what is meant.
    fn span(&self, place: &Place<'_>) -> Range<usize> {
        let start = place.start.saturating_sub(self.start).min(self.text.len());
        let end = place.end.saturating_sub(self.start).clamp(start, self.text.len());
        let stretch = self.text.get(start..end).unwrap_or_default();
        let first_line = stretch.find('\n').unwrap_or(stretch.len());
        start..start + stretch.get(..first_line).map_or(0, |line| line.trim_end().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::{Cause, Code, Finding};
    use crate::model::pointer::Pointer;
    use crate::report::Subject;

    static CODE: Code = Code { name: "test/one", cause: Cause::Invalid, page: "" };

    fn place<'a>(file: &'a str, text: &'a str, what: &str) -> Place<'a> {
        let start = text.find(what).expect("is in the text");
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Place { file, text, start, end: start + what.len(), line, column }
    }

    fn render(place: Place<'_>, other: Option<Mark<'_>>) -> String {
        let finding = Finding::deny(&CODE, Pointer::new("/b"), "b is wrong").help("write 2");
        let subject = Subject { kind: "Thing".into(), name: "one".into(), ..Subject::default() };
        let pointer = finding.pointer.clone();
        let located = Located { finding: &finding, pointer, subject: &subject, place, other };
        let report = Report { findings: vec![located], ..Report::default() };
        let mut out = Vec::new();
        write(&report, &mut anstream::StripStream::new(&mut out)).expect("writes to memory");
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

To learn more, run: memgate explain test/one
";
        assert_eq!(render(place("x.yaml", text, "one"), None), expected);
    }

    #[test]
    fn shows_the_other_place_of_a_conflict() {
        let text = "a: 1\nb: one\nc: 3\n";
        let mark = |file| Some(Mark { place: place(file, text, "1"), label: "says 1".into() });
        let same = render(place("x.yaml", text, "one"), mark("x.yaml"));
        assert!(same.contains("1 | a: 1\n  |    - says 1\n2 | b: one\n  |    ^^^\n"), "{same}");
        let elsewhere = render(place("x.yaml", text, "one"), mark("y.yaml"));
        assert!(elsewhere.contains("::: y.yaml:1:4\n  |\n1 | a: 1\n  |    - says 1\n"), "{elsewhere}");
    }

    #[test]
    fn passes_over_a_byte_order_mark_and_carriage_returns() {
        let shown = render(place("x.yaml", "\u{feff}a: 1\r\n", "1"), None);
        assert!(shown.contains("--> x.yaml:1:4\n  |\n1 | a: 1\n  |    ^\n"), "{shown}");
    }

    #[test]
    fn marks_only_the_first_line_of_a_section() {
        let shown = render(place("x.yaml", "a:\n  b: 1\n  c: 2\n", "b: 1\n  c: 2"), None);
        assert!(shown.contains("2 |   b: 1\n  |   ^^^^\n  |\n"), "{shown}");
    }
}
