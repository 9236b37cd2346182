//! Workflow commands of GitHub Actions: an annotation at each place of a pull request.
//!
//! GitHub shows the first ten of a kind that a step writes and silently drops the others, so this writes nine and the
//! number of the others. See <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::report::{FileLocation, InputError, LocatedFinding, Report, counted, plain, relative};
use memgate_model::finding::Severity;
use memgate_primitives::plain_text::plain_except;

/// How many annotations of a kind GitHub shows of a step.
const MAX_OF_KIND: usize = 10;

/// The place of an annotation: a stretch of a file, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnnotationPlace<'a> {
    pub file: Option<&'a str>,
    pub start: Option<(usize, usize)>,
    pub end: Option<(usize, usize)>,
}

/// Writes the annotations, kind by kind.
///
/// # Errors
/// Those of the writer.
pub fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let errors = report.errors.iter().map(of_error);
    let of = |severity| report.causes().filter(move |it| it.finding.severity == severity).map(of_finding);
    let not_shown = |severity| report.count(severity) - of(severity).count();
    write_kind(Severity::Deny, errors.chain(of(Severity::Deny)), not_shown(Severity::Deny), out)?;
    write_kind(Severity::Warn, of(Severity::Warn), not_shown(Severity::Warn), out)?;
    write_kind(Severity::Note, of(Severity::Note), not_shown(Severity::Note), out)
}

/// Writes the commands of one kind that GitHub shows; `not_shown` is the number of findings besides these commands.
pub(super) fn write_kind(
    severity: Severity,
    commands: impl Iterator<Item = WorkflowCommand>,
    not_shown: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let kind = kind(severity);
    let commands: Vec<WorkflowCommand> = commands.collect();
    let all = commands.len() + not_shown;
    let shown = if all > MAX_OF_KIND { MAX_OF_KIND - 1 } else { all }.min(commands.len());
    for WorkflowCommand { properties, message } in commands.iter().take(shown) {
        writeln!(out, "::{kind} {properties}::{message}")?;
    }
    let more = all - shown;
    if more > 0 {
        let what = counted(more, kind).replacen(' ', " more ", 1);
        writeln!(out, "::{kind} title=memgate::{what} than GitHub would show")?;
    }
    Ok(())
}

/// The two parts of a command, escaped.
pub(super) struct WorkflowCommand {
    properties: String,
    message: String,
}

impl WorkflowCommand {
    /// A command at a place. Lines of the message are its own, so user input in it must be [`plain`].
    pub(super) fn new(place: AnnotationPlace<'_>, title: &str, message: &str) -> Self {
        let mut properties = String::new();
        let mut add = |name, value: &str| {
            let comma = if properties.is_empty() { "" } else { "," };
            let _infallible = write!(properties, "{comma}{name}={}", escape_property(value));
        };
        if let Some(file) = place.file.filter(|file| !file.starts_with('<')) {
            // Line ends are escaped.
            add("file", &plain_except(&relative(file), |c| c == '\n' || c == '\r'));
            if let Some((line, column)) = place.start {
                add("line", &line.to_string());
                // GitHub refuses columns of a stretch with several lines, and would show its annotation at the end
                // instead of at the key.
                if let Some((_, end_column)) = place.end.filter(|(end_line, _)| *end_line == line) {
                    add("col", &column.to_string());
                    add("endColumn", &end_column.to_string());
                }
            }
        }
        add("title", title);
        Self { properties, message: escape(message) }
    }
}

/// The kind of an annotation for findings of this severity.
const fn kind(severity: Severity) -> &'static str {
    match severity {
        Severity::Deny => "error",
        Severity::Warn => "warning",
        Severity::Note => "notice",
    }
}

pub(super) fn of_error(error: &InputError<'_>) -> WorkflowCommand {
    let end = error.location.as_ref().map(FileLocation::end_position);
    WorkflowCommand::new(
        AnnotationPlace { file: error.file, start: error.position, end },
        error.code(),
        &plain(&error.advice()),
    )
}

fn of_finding(located: &LocatedFinding<'_>) -> WorkflowCommand {
    let (location, finding) = (&located.location, located.finding);
    let mut message = plain(&finding.message()).into_owned();
    if !located.object_ref.kind.is_empty() {
        let _infallible = write!(message, "\nin {}", plain(&located.object_ref.title()));
    }
    if let Some(namespaces) = located.in_namespaces() {
        let _infallible = write!(message, "\n{namespaces}");
    }
    if let Some(help) = finding.help_text() {
        let _infallible = write!(message, "\nhelp: {}", plain(&help));
    }
    let (start, end) = (Some((location.line, location.column)), Some(location.end_position()));
    WorkflowCommand::new(
        AnnotationPlace { file: Some(location.file), start, end },
        finding.code_name(),
        &message,
    )
}

/// Escapes the characters that end a message.
fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the characters that end a property.
fn escape_property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}
