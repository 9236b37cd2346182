//! What a command found, as text.
//!
//! A [`Report`] holds findings with their locations in files, and all that more than one format needs;
//! [`format::write`] writes it in one of the formats, of which each has a module. Beside it stand the texts that are
//! not reports: [`diff`] and [`stream`], and what came of case files: [`cases`].
//! Summaries and notes are returned, since they go elsewhere than the report. Nothing in here reads a
//! file or decides anything, and it uses `model` only.

pub mod input_error;

pub mod fingerprint;

pub mod page;

mod path;

mod entry;

mod excerpt;

pub mod text;

pub mod concise;

pub mod json;

pub mod jsonl;

pub mod github;

pub mod gitlab;

pub mod sarif;

mod xml;

pub mod junit;

pub mod format;

pub mod cases;

pub mod diff;

pub mod changes;

pub mod stream;

pub mod patches;

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::model::decision::NotShown;
use crate::model::finding::{Finding, Severity};
use crate::model::pointer::Pointer;
use crate::model::policy_rule::PolicyStatus;
use crate::report::changes::Change;
use crate::report::input_error::InputError;

/// What one run has found.
#[derive(Debug, Default)]
pub struct Report<'a> {
    /// How many files (or streams) were read.
    pub files: usize,
    /// The objects that were checked, in the order of the input.
    pub objects: Vec<JudgedObject<'a>>,
    /// How many of these would be denied.
    pub denied: usize,
    /// What was read and not checked.
    pub passed_over: Vec<PassedOver<'a>>,
    /// What could not be read or parsed.
    pub errors: Vec<InputError<'a>>,
    /// Everything that was found, in the order of the input.
    pub findings: Vec<LocatedFinding<'a>>,
    /// How many policies counted.
    pub policies: usize,
    /// Objects with more findings than are told, and how many more.
    pub untold: Vec<(&'a ObjectRef, NotShown)>,
    /// Objects that the inputs do not hold, as `Kind namespace/name`; nothing was concluded about them.
    pub unknown: Vec<String>,
    /// The objects whose verdict other policies would change, where that was asked.
    pub changes: Option<Vec<Change<'a>>>,
}

/// A finding and its location.
#[derive(Debug)]
pub struct LocatedFinding<'a> {
    /// What is wrong.
    pub finding: &'a Finding,
    /// Where in the object as the file has it; in a workload, the template's pointer comes first.
    pub pointer: Pointer,
    /// The object.
    pub object_ref: &'a ObjectRef,
    /// Where in the file.
    pub location: FileLocation<'a>,
    /// The file that the object was made of, when the text was rendered; its line is not known.
    pub source_file: Option<&'a str>,
    /// The other locations that it is about, the nearest first: where two contradict each other, of which other
    /// objects it speaks, and where the value of an alias stands.
    pub related: Vec<Related<'a>>,
    /// What tells it from all others of the report, the same in every run: see [`fingerprint`].
    pub fingerprint: String,
}

/// An object that was checked, and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct JudgedObject<'a> {
    /// The object.
    pub object_ref: &'a ObjectRef,
    /// The file as the user named it.
    pub file: &'a str,
    /// The line at which it starts, from 1.
    pub line: usize,
}

/// What was read and not checked.
#[derive(Debug)]
pub struct PassedOver<'a> {
    /// The file as the user named it.
    pub file: &'a str,
    /// The line at which it starts, from 1.
    pub line: usize,
    /// The column at which it starts, from 1.
    pub column: usize,
    /// Its name, if it is an object.
    pub object_ref: Option<&'a ObjectRef>,
    /// Why not, in a word for programs.
    pub why: &'static str,
    /// The same for people, behind "it".
    pub words: &'static str,
}

/// Another location, and what is there.
#[derive(Debug)]
pub struct Related<'a> {
    /// Where in the file.
    pub location: FileLocation<'a>,
    /// What is there, in a few words.
    pub label: String,
}

/// The object that a finding is about, as in Kubernetes' ObjectReference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectRef {
    /// Group and version, as in the manifest.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for a cluster-scoped kind.
    pub namespace: String,
    /// `metadata.name`, else `metadata.generateName`; empty without either.
    pub name: String,
}

/// A stretch of a file.
#[derive(Debug, Clone, Copy)]
pub struct FileLocation<'a> {
    /// The file as the user named it; `<stdin>` for standard input.
    pub file: &'a str,
    /// The whole text of the file, each credential in it masked.
    pub text: &'a str,
    /// The byte at which the stretch starts.
    pub start: usize,
    /// The byte behind its end.
    pub end: usize,
    /// The line of the start, from 1.
    pub line: usize,
    /// The column of the start in characters, from 1.
    pub column: usize,
}

/// The columns of the source that text shows where there is no terminal that says how many it has: more than
/// most lines of manifests have, and few enough for a log in a browser.
pub const DEFAULT_WIDTH: usize = 120;

impl Report<'_> {
    /// How many findings are of this severity, told or not.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let told = self.findings.iter().filter(|located| located.finding.severity == severity).count();
        let untold = self.untold.iter().map(|(_, untold)| match severity {
            Severity::Deny => untold.denials,
            Severity::Warn => untold.warnings,
            Severity::Note => 0,
        });
        told + untold.sum::<usize>()
    }

    /// A line about each object with more findings than are told.
    pub fn untold_lines(&self) -> impl Iterator<Item = String> {
        self.untold.iter().map(|(object_ref, untold)| {
            format!(
                "{}: {} and {} more, not shown",
                plain(&object_ref.title()),
                counted(untold.denials, "denial"),
                counted(untold.warnings, "warning"),
            )
        })
    }

    /// The numbers in one line, such as `2 objects checked in 1 file: 1 denied, 1 warning; 3 passed over`.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut line = format!(
            "{} checked in {}: {} denied, {}",
            counted(self.objects.len(), "object"),
            counted(self.files, "file"),
            self.denied,
            counted(self.count(Severity::Warn), "warning"),
        );
        let notes = self.count(Severity::Note);
        if notes > 0 {
            let _ = write!(line, ", {}", counted(notes, "note"));
        }
        if self.policies > 0 {
            let _ = write!(
                line,
                "; {}",
                match self.policies {
                    1 => "1 policy".to_owned(),
                    count => format!("{count} policies"),
                }
            );
            for (status, words) in [(PolicyStatus::Exempt, "exempted"), (PolicyStatus::Unknown, "not judged")]
            {
                let count = self.with_status(status);
                if count > 0 {
                    let _ = write!(line, ", {count} {words}");
                }
            }
        }
        if !self.passed_over.is_empty() {
            let _ = write!(line, "; {} passed over", self.passed_over.len());
        }
        if !self.errors.is_empty() {
            let _ = write!(line, "; {} unreadable", self.errors.len());
        }
        line
    }
}

impl Report<'_> {
    /// How many findings about rules of policies came out like this.
    fn with_status(&self, status: PolicyStatus) -> usize {
        let of_policy = self.findings.iter().filter_map(|located| located.finding.policy.as_ref());
        of_policy.filter(|policy| policy.status == status).count()
    }
}

impl ObjectRef {
    /// Kind, namespace and name: `ArkMemory team-a/notes-short`.
    #[must_use]
    pub fn title(&self) -> String {
        let name = if self.name.is_empty() { "(no name)" } else { &self.name };
        if self.namespace.is_empty() {
            format!("{} {name}", self.kind)
        } else {
            format!("{} {}/{name}", self.kind, self.namespace)
        }
    }
}

impl FileLocation<'_> {
    /// Line and column (in characters, from 1) just behind the end.
    #[must_use]
    pub fn end_position(&self) -> (usize, usize) {
        let stretch = self.text.get(self.start..self.end).unwrap_or_default();
        let lines = stretch.bytes().filter(|byte| *byte == b'\n').count();
        match stretch.rsplit_once('\n') {
            Some((_, last)) => (self.line + lines, last.chars().count() + 1),
            None => (self.line, self.column + stretch.chars().count()),
        }
    }
}

/// A number with its noun, in the plural where the number asks for it.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Text from user input with a blank for each control character, so that it cannot move the cursor,
/// colour the screen or start a new line.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_columns_in_characters() {
        let text = "a: grün\nb: 2\n";
        let location = FileLocation { file: "x", text, start: 3, end: 8, line: 1, column: 4 };
        assert_eq!(location.end_position(), (1, 8));
        let location = FileLocation { end: text.len(), ..location };
        assert_eq!(location.end_position(), (3, 1));
    }

    #[test]
    fn sums_up_in_one_line() {
        let object_ref = ObjectRef::default();
        let object = JudgedObject { object_ref: &object_ref, file: "x", line: 1 };
        let report = Report { files: 1, objects: vec![object; 2], ..Report::default() };
        assert_eq!(report.summary(), "2 objects checked in 1 file: 0 denied, 0 warnings");
    }

    #[test]
    fn counts_what_is_not_told() {
        let object_ref = ObjectRef { kind: "Agent".to_owned(), name: "a".to_owned(), ..ObjectRef::default() };
        let untold = vec![(&object_ref, NotShown { denials: 1, warnings: 2 })];
        let report = Report { untold, ..Report::default() };
        assert_eq!((report.count(Severity::Deny), report.count(Severity::Warn)), (1, 2));
        let lines: Vec<String> = report.untold_lines().collect();
        assert_eq!(lines, ["Agent a: 1 denial and 2 warnings more, not shown"]);
    }

    #[test]
    fn keeps_the_terminal_safe() {
        assert_eq!(plain("a\u{1b}[31mb\n"), "a [31mb ");
    }
}
