//! For people: each finding with its source line and a caret, as rustc does it.

use std::io::{self, Write};
use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str,
};

use crate::model::finding::Severity;
use crate::report::{FileLocation, InputError, LocatedFinding, Related, Report, plain};

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

/// Writes one error of an input, with its source where the location is known.
///
/// # Errors
/// Those of the writer.
pub fn write_error(error: &InputError<'_>, out: &mut impl Write) -> io::Result<()> {
    let Some(diagnostic) = &error.diagnostic else {
        let group = Group::with_title(Level::ERROR.primary_title(error.line.as_str()));
        return writeln!(out, "{}", Renderer::styled().render(&[group]));
    };
    let mut group = Level::ERROR
        .primary_title(diagnostic.message.as_str())
        .elements(snippets(&diagnostic.location, diagnostic.related.as_ref()));
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    writeln!(out, "{}\n", Renderer::styled().render(&[group]))
}

fn group<'r>(located: &'r LocatedFinding<'_>) -> Group<'r> {
    let finding = located.finding;
    let level = match finding.severity {
        Severity::Deny => Level::ERROR.with_name("deny"),
        Severity::Warn => Level::WARNING.with_name("warn"),
        Severity::Note => Level::NOTE.with_name("note"),
    };
    let mut group = level
        .primary_title(finding.message.as_str())
        .id(finding.code.name)
        .elements(snippets(&located.location, located.related.as_ref()));
    // What is said of a file is about no object.
    if !located.object_ref.kind.is_empty() {
        let title = normalize_untrusted_str(&located.object_ref.title());
        group = group.element(Level::NOTE.with_name("in").message(title));
    }
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    group
}

/// The source with its carets: one snippet, or two when the second location is in another file.
fn snippets<'r>(
    location: &FileLocation<'r>,
    related: Option<&'r Related<'r>>,
) -> Vec<Snippet<'r, Annotation<'r>>> {
    match related {
        None => vec![snippet(location)],
        Some(related) if related.location.file == location.file => vec![joint_snippet(location, related)],
        Some(related) => {
            let excerpt = Excerpt::around(&[&related.location]);
            vec![
                snippet(location),
                excerpt.snippet(related.location.file).annotation(note(&excerpt, related)),
            ]
        }
    }
}

fn snippet<'r>(location: &FileLocation<'r>) -> Snippet<'r, Annotation<'r>> {
    let excerpt = Excerpt::around(&[location]);
    excerpt.snippet(location.file).annotation(AnnotationKind::Primary.span(excerpt.span(location)))
}

/// Both locations in one snippet.
fn joint_snippet<'r>(location: &FileLocation<'r>, related: &'r Related<'r>) -> Snippet<'r, Annotation<'r>> {
    let excerpt = Excerpt::around(&[location, &related.location]);
    excerpt
        .snippet(location.file)
        .annotation(AnnotationKind::Primary.span(excerpt.span(location)))
        .annotation(note(&excerpt, related))
}

fn note<'r>(excerpt: &Excerpt<'_>, related: &'r Related<'r>) -> Annotation<'r> {
    let label = normalize_untrusted_str(&related.label);
    AnnotationKind::Context.span(excerpt.span(&related.location)).label(label)
}

/// The lines of a file that a snippet needs. The renderer takes time in proportion to the text that it
/// gets, for each snippet anew: with the whole file, that is the square of the file's size.
struct Excerpt<'r> {
    text: &'r str,
    start: usize,
    line: usize,
}

impl<'r> Excerpt<'r> {
    fn around(locations: &[&FileLocation<'r>]) -> Self {
        let text = locations.first().map_or("", |location| location.text);
        let first = locations.iter().map(|location| location.start).min().unwrap_or(0);
        let last = locations.iter().map(|location| location.start).max().unwrap_or(0);
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
            line: locations.iter().map(|location| location.line).min().unwrap_or(1),
        }
    }

    fn snippet<T: Clone>(&self, file: &'r str) -> Snippet<'r, T> {
        Snippet::source(self.text).line_start(self.line).path(plain(file))
    }

    /// The range of a location within the excerpt, cut at the end of its first line: carets under a
    /// whole section would hide what is meant.
    fn span(&self, location: &FileLocation<'_>) -> Range<usize> {
        let start = location.start.saturating_sub(self.start).min(self.text.len());
        let end = location.end.saturating_sub(self.start).clamp(start, self.text.len());
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
    use crate::report::ObjectRef;

    static CODE: Code = Code { name: "test/one", cause: Cause::Invalid, page: "" };

    fn location<'a>(file: &'a str, text: &'a str, what: &str) -> FileLocation<'a> {
        let start = text.find(what).expect("is in the text");
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        FileLocation { file, text, start, end: start + what.len(), line, column }
    }

    fn render(location: FileLocation<'_>, related: Option<Related<'_>>) -> String {
        let finding = Finding::deny(&CODE, Pointer::new("/b"), "b is wrong").help("write 2");
        let object_ref = ObjectRef { kind: "Thing".into(), name: "one".into(), ..ObjectRef::default() };
        let pointer = finding.pointer.clone();
        let located =
            LocatedFinding { finding: &finding, pointer, object_ref: &object_ref, location, related };
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
}
