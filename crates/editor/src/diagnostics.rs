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
use memgate_workbench::judge::Checked;
use memgate_workbench::paths::PROJECT_FILE;
use memgate_workbench::place::report;
use memgate_workbench::report::{FileLocation, InputError, LocatedFinding, Related, page};

/// The source of diagnostics, which editors show beside their code.
const SOURCE: &str = "memgate";

/// The most diagnostics of one file: more than a person reads, and few enough for any editor.
pub(crate) const MAX_OF_FILE: usize = 500;

/// The diagnostics of each open file, by its name. What could not be read elsewhere is reported in each of them, since
/// they may be judged otherwise with it.
pub(crate) fn of_files(
    checked: &Checked,
    root: &Root,
    open: &[&Buffer],
) -> BTreeMap<String, Vec<Diagnostic>> {
    let report = report(checked);
    let mut files: BTreeMap<String, OfFile> =
        open.iter().map(|buffer| (name(root, &buffer.path), OfFile::default())).collect();
    let mut places = Places::new(root);
    for error in &report.errors {
        let own = error.file.and_then(|file| files.get_mut(file.trim_start_matches("./")));
        match own {
            Some(of_file) => of_file.add(|| of_error(error, &mut places)),
            None => {
                for of_file in files.values_mut() {
                    let message = format!("not everything was read: {}", error.line);
                    of_file.add(|| plain(Range::default(), DiagnosticSeverity::ERROR, &message));
                }
            }
        }
    }
    for located in report.causes() {
        if let Some(of_file) = files.get_mut(located.location.file) {
            of_file.add(|| of_finding(located, &mut places));
        }
    }
    files.into_iter().map(|(name, of_file)| (name, of_file.finish())).collect()
}

/// The diagnostics of one file, up to a limit.
#[derive(Default)]
struct OfFile {
    diagnostics: Vec<Diagnostic>,
    more: usize,
}

impl OfFile {
    fn add(&mut self, make: impl FnOnce() -> Diagnostic) {
        if self.diagnostics.len() < MAX_OF_FILE {
            self.diagnostics.push(make());
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<Diagnostic> {
        if self.more > 0 {
            let message = format!("{} more findings in this file; memgate check lists them", self.more);
            self.diagnostics.push(plain(Range::default(), DiagnosticSeverity::WARNING, &message));
        }
        self.diagnostics
    }
}

/// The same error for each open file, since none can be judged. In the file with the choices of the repository an error
/// about that file has its own place.
pub(crate) fn not_judged(error: &str, root: &Root, open: &[&Buffer]) -> BTreeMap<String, Vec<Diagnostic>> {
    let diagnostic = |buffer: &&Buffer| {
        let name = name(root, &buffer.path);
        let own = error.strip_prefix(&name).filter(|_| name.ends_with(PROJECT_FILE)).and_then(place_in_error);
        let (range, message) = own.map_or_else(
            || (Range::default(), format!("memgate does not judge this file: {error}")),
            |(range, message)| (range, message.to_owned()),
        );
        (name, vec![plain(range, DiagnosticSeverity::ERROR, &message)])
    };
    open.iter().map(diagnostic).collect()
}

/// The place and the message of `:3:1: message`.
fn place_in_error(error: &str) -> Option<(Range, &str)> {
    let mut parts = error.strip_prefix(':')?.splitn(3, ':');
    let mut number = || parts.next()?.parse::<u32>().ok()?.checked_sub(1);
    let place = Position::new(number()?, number()?);
    Some((Range::new(place, place), parts.next()?.trim_start()))
}

fn plain(range: Range, severity: DiagnosticSeverity, message: &str) -> Diagnostic {
    let (severity, source) = (Some(severity), Some(SOURCE.to_owned()));
    let message = masked_keys(message).into_owned();
    Diagnostic { range, severity, source, message, ..Diagnostic::default() }
}

fn of_error<'r>(error: &'r InputError<'r>, places: &mut Places<'_, 'r>) -> Diagnostic {
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
pub(crate) fn of_finding<'r>(located: &'r LocatedFinding<'r>, places: &mut Places<'_, 'r>) -> Diagnostic {
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
    places: &mut Places<'_, 'r>,
) -> Option<Vec<DiagnosticRelatedInformation>> {
    let information = |related: &'r Related<'r>| {
        let location = places.location(&related.location)?;
        Some(DiagnosticRelatedInformation { location, message: related.label.clone() })
    };
    let all: Vec<_> = all.filter_map(information).collect();
    (!all.is_empty()).then_some(all)
}

/// Places in files as places of the protocol. Each text is divided into lines once.
pub(crate) struct Places<'a, 't> {
    root: &'a Root,
    known: BTreeMap<&'t str, Lines<'t>>,
}

impl<'a, 't> Places<'a, 't> {
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
