//! What `check` reports about open files, as diagnostics.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use lsp_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString,
    Position, Range, Uri,
};

use crate::buffers::Buffer;
use crate::positions::Lines;
use crate::uri;
use crate::workspace::{Root, name, path};
use memgate_model::finding::Severity;
use memgate_primitives::credential::masked_keys;
use memgate_workbench::files::judge::Checked;
use memgate_workbench::files::place::report;
use memgate_workbench::report::{FileLocation, InputError, LocatedFinding, Related, page};

/// The source of diagnostics, which editors show beside their code.
const SOURCE: &str = "memgate";

/// The diagnostics of each open file, by its name. What could not be read elsewhere is reported in each of them, since
/// they may be judged otherwise with it.
pub(crate) fn of_files(
    checked: &Checked,
    root: &Root,
    open: &[&Buffer],
) -> BTreeMap<String, Vec<Diagnostic>> {
    let report = report(checked);
    let mut files: BTreeMap<String, Vec<Diagnostic>> =
        open.iter().map(|buffer| (name(root, &buffer.path), Vec::new())).collect();
    let mut places = TextPlaces::new(root);
    for error in &report.errors {
        match error.file.and_then(|file| files.get_mut(file.trim_start_matches("./"))) {
            Some(of_file) => of_file.push(of_error(error, &mut places)),
            None => {
                let message = format!("not everything was read: {}", error.line);
                for of_file in files.values_mut() {
                    of_file.push(about_file(&message));
                }
            }
        }
    }
    for located in report.causes() {
        if let Some(of_file) = files.get_mut(located.location.file) {
            of_file.push(of_finding(located, &mut places));
        }
    }
    files
}

/// The same error for each open file, since none can be judged.
pub(crate) fn not_judged(error: &str, root: &Root, open: &[&Buffer]) -> BTreeMap<String, Vec<Diagnostic>> {
    let diagnostic = about_file(&format!("memgate does not judge this file: {error}"));
    open.iter().map(|buffer| (name(root, &buffer.path), vec![diagnostic.clone()])).collect()
}

/// An error at the start of a file.
fn about_file(message: &str) -> Diagnostic {
    plain(Range::default(), DiagnosticSeverity::ERROR, message)
}

fn plain(range: Range, severity: DiagnosticSeverity, message: &str) -> Diagnostic {
    let (severity, source) = (Some(severity), Some(SOURCE.to_owned()));
    let message = masked_keys(message).into_owned();
    Diagnostic { range, severity, source, message, ..Diagnostic::default() }
}

fn of_error<'r>(error: &'r InputError<'r>, places: &mut TextPlaces<'_, 'r>) -> Diagnostic {
    let range = match &error.location {
        Some(location) => places.range(location),
        None => {
            let (line, _) = error.position.unwrap_or((1, 1));
            let line = Position::new(u32::try_from(line.saturating_sub(1)).unwrap_or(u32::MAX), 0);
            Range::new(line, line)
        }
    };
    Diagnostic {
        code: Some(NumberOrString::String(error.code().to_owned())),
        related_information: related(error.related.iter(), places),
        ..plain(range, DiagnosticSeverity::ERROR, &error.advice())
    }
}

/// The diagnostic of a finding.
pub(crate) fn of_finding<'r>(located: &'r LocatedFinding<'r>, places: &mut TextPlaces<'_, 'r>) -> Diagnostic {
    let finding = located.finding;
    let severity = match finding.severity {
        Severity::Deny => DiagnosticSeverity::ERROR,
        Severity::Warn => DiagnosticSeverity::WARNING,
        Severity::Note => DiagnosticSeverity::INFORMATION,
    };
    let mut message = finding.message().into_owned();
    if let Some(help) = finding.help_text() {
        message += "\nhelp: ";
        message += &help;
    }
    Diagnostic {
        code: Some(NumberOrString::String(masked_keys(finding.code_name()).into_owned())),
        code_description: page::url(finding)
            .and_then(|url| Uri::from_str(&masked_keys(&url)).ok())
            .map(|href| CodeDescription { href }),
        related_information: related(located.related.iter(), places),
        ..plain(places.range(&located.location), severity, &message)
    }
}

fn related<'r>(
    all: impl Iterator<Item = &'r Related<'r>>,
    places: &mut TextPlaces<'_, 'r>,
) -> Option<Vec<DiagnosticRelatedInformation>> {
    let information = |related: &'r Related<'r>| {
        let location = places.location(&related.location)?;
        Some(DiagnosticRelatedInformation { location, message: related.label.clone() })
    };
    let all: Vec<_> = all.filter_map(information).collect();
    (!all.is_empty()).then_some(all)
}

/// Places in files as places of the protocol. Each text is divided into lines once.
pub(crate) struct TextPlaces<'a, 't> {
    root: &'a Root,
    known: BTreeMap<&'t str, Lines<'t>>,
}

impl<'a, 't> TextPlaces<'a, 't> {
    /// No text is known yet.
    pub(crate) const fn new(root: &'a Root) -> Self {
        Self { root, known: BTreeMap::new() }
    }

    fn range(&mut self, location: &FileLocation<'t>) -> Range {
        let FileLocation { file, measured, start, end, .. } = *location;
        let lines = self.known.entry(file).or_insert_with(|| Lines::new(measured));
        lines.range(start, end)
    }

    /// The place, if it is in a file that an editor can open.
    fn location(&mut self, location: &FileLocation<'t>) -> Option<Location> {
        let uri = uri::of_path(&path(self.root, location.file))?;
        Some(Location::new(uri, self.range(location)))
    }
}
