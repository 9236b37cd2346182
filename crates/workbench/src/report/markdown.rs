//! One comment for a pull request, in the Markdown of GitHub and GitLab: the verdict and a table of findings.
//!
//! Every text of an input is in a span of code (`code`): there it is not a link, a mention, a reference or HTML.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::report::{InputError, LocatedFinding, Report, counted, relative};
use memgate_model::finding::Severity;
use memgate_primitives::credential::masked_start;
use memgate_primitives::plain_text::cut;

/// The most bytes of a comment: GitHub takes 65,536 characters.
const MAX_BYTES: usize = 59_000;

/// The most characters of a text.
const MAX_CHARS: usize = 400;

/// The most characters of the name of a file.
const MAX_FILE_CHARS: usize = 200;

/// Writes the comment.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut text = format!("### memgate: {}\n\n{}.\n", verdict(report), report.summary());
    findings(report, &mut text);
    out.write_all(text.as_bytes())
}

/// A text of an input that Markdown shows as it is, on one line. What ends a span of code or a cell, and the brackets of
/// HTML, are replaced by characters that look alike.
fn code(text: &str, most: usize) -> String {
    let text = cut(&masked_start(text), most).replace(['\u{200b}', '\u{2060}', '\u{feff}'], "");
    // What CI systems read as a command would get a byte more.
    let text = text.replace("##", "#♯");
    let alike = text.chars().map(|c| match c {
        '`' => 'ˋ',
        '|' => '¦',
        '<' => '‹',
        '>' => '›',
        '\\' => '⧵',
        c if c.is_whitespace() => ' ',
        c => c,
    });
    let alike: String = alike.collect();
    match alike.trim() {
        "" => "`-`".to_owned(),
        alike => format!("`{alike}`"),
    }
}

fn verdict(report: &Report<'_>) -> String {
    let (denials, warnings) = (report.count(Severity::Deny), report.count(Severity::Warn));
    let mut words = format!("{}, {}", counted(denials, "denial"), counted(warnings, "warning"));
    match report.errors.len() {
        0 if report.objects.is_empty() => words.push_str("; nothing to check was found"),
        0 if denials == 0 && warnings == 0 => words.push_str("; nothing would be denied"),
        0 => {}
        errors => {
            let _infallible = write!(words, "; {} could not be read", counted(errors, "input"));
        }
    }
    words
}

/// The table of errors and findings, as many as fit, and the number of the others.
fn findings(report: &Report<'_>, text: &mut String) {
    /// Room for the line about the others.
    const REST: usize = 200;
    let mut located = report.denials_first();
    located.sort_by_key(|it| (std::cmp::Reverse(it.finding.severity), it.finding.relation));
    let rows = report.errors.iter().map(of_error).chain(located.into_iter().map(of_finding));
    let (mut left, mut is_full) = (0, false);
    let counts = [Severity::Deny, Severity::Warn, Severity::Note].map(|severity| report.count(severity));
    let all = counts.iter().sum::<usize>() + report.errors.len();
    let mut written = 0;
    for row in rows {
        if written == 0 {
            text.push_str("\n| severity | place | finding | code |\n|---|---|---|---|\n");
        }
        is_full |= text.len() + row.len() + REST > MAX_BYTES;
        if is_full {
            break;
        }
        text.push_str(&row);
        written += 1;
    }
    left += all - written;
    if left > 0 {
        let _infallible =
            write!(text, "\n{} left out here; the log or `-o json` has all.\n", counted(left, "finding"));
    }
}

fn row(severity: &str, (file, line): (&str, Option<usize>), message: &str, code_name: &str) -> String {
    let path = relative(file);
    let file = cut(&path, MAX_FILE_CHARS);
    let place = line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}"));
    let (place, message) = (code(&place, usize::MAX), code(message, MAX_CHARS));
    format!("| {severity} | {place} | {message} | {} |\n", code(code_name, MAX_FILE_CHARS))
}

fn of_error(error: &InputError<'_>) -> String {
    let place = (error.file.unwrap_or("memgate"), error.position.map(|(line, _)| line));
    row("error", place, &error.advice(), error.code())
}

fn of_finding(located: &LocatedFinding<'_>) -> String {
    let (finding, location) = (located.finding, &located.location);
    let place = (location.file, Some(location.line));
    row(finding.severity.name(), place, &located.told(), finding.code_name())
}
