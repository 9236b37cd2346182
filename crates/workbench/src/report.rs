//! The results of a command, as text.
//!
//! A [`Report`] holds findings with their locations in files. [`write()`] writes it in one of the formats, each of which
//! has a module. [`diff`], [`stream`] and [`cases`] write other results. Summaries and notes are returned,
//! since they may go elsewhere than the report. This module reads no file and decides nothing.

pub mod fingerprint;

pub mod page;

mod excerpt;

pub mod text;

pub mod concise;

pub mod json;

pub mod github;

pub mod gitlab;

pub mod sarif;

pub mod junit;

pub mod markdown;

pub mod cases;

pub mod rule_counts;

pub mod diff;

pub mod changes;

pub mod notes;

pub mod table;

pub mod stream;

pub mod map;

mod html;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

pub use memgate_primitives::plain_text::plain;

use crate::paths::{normal, root_around};
use crate::report::changes::Change;
use crate::report::fingerprint::Fingerprint;
use crate::report::map::MemoryMap;
use crate::report::table::Table;
use memgate_manifest::later::{is_marked, with_word};
use memgate_model::decision::NotShown;
use memgate_model::finding::{Code, Finding, Relation, Severity};
use memgate_model::policy_rule::{AtAdmission, PolicyStatus};
use memgate_policy::counts::RuleCounts;
use memgate_primitives::named::named;
use memgate_primitives::plain_text::{misleads, plain_except, shown_key, shown_name};
use memgate_primitives::pointer::Pointer;

/// What comes between the message of a denied memory resource and its users.
pub const USED_BY: &str = "; used by ";

/// The results of one run.
#[derive(Debug, Default)]
pub struct Report<'a> {
    /// How many files (or streams) were read.
    pub files: usize,
    /// How many units were built and judged apart.
    pub units: usize,
    /// The programs that built them, with their versions.
    pub tools: Vec<&'a str>,
    /// How many files are only parts, with something of ours, and in no unit.
    pub unreached: usize,
    /// The objects that were checked, in the order of the input.
    pub objects: Vec<JudgedObject<'a>>,
    /// How many of these would be denied.
    pub denied: usize,
    /// The objects and documents that were not checked.
    pub passed_over: Vec<PassedOver<'a>>,
    /// The inputs that could not be read or parsed.
    pub errors: Vec<InputError<'a>>,
    /// The findings, in the order of the input.
    pub findings: Vec<LocatedFinding<'a>>,
    /// The number of policies.
    pub policies: usize,
    /// How many objects each rule of the policies judged.
    pub rules: Option<&'a RuleCounts>,
    /// The objects with more findings than are shown, and the number of the others.
    pub not_shown: Vec<(&'a ObjectRef, NotShown)>,
    /// Objects that are not among the inputs, as `Kind namespace/name`; nothing was concluded about them.
    pub unknown: Vec<String>,
    /// How many objects of state have no name and namespace that can be read.
    pub unreadable_state: usize,
    /// For `what-if`, the objects whose verdict other policies would change.
    pub changes: Option<Vec<Change<'a>>>,
    /// For `what-if` and `audit`, the numbers by policy and namespace.
    pub table: Option<Table<'a>>,
    /// The parts that are written.
    pub shown: Shown,
    /// How many findings depend on labels of Namespaces that are not known.
    pub assumed: usize,
    /// What the page of `-o html` shows beside all this.
    pub page: Option<Page<'a>>,
    /// How many findings `--ignore` left out.
    pub left_out: usize,
}

/// What the page of `-o html` shows beside the findings.
#[derive(Debug, Default)]
pub struct Page<'a> {
    /// The command.
    pub command: &'static str,
    /// The map of memory.
    pub map: MemoryMap,
    /// The numbers by policy and namespace, if the report itself does not show them.
    pub table: Option<Table<'a>>,
    /// The commit with which a branch is compared, as the user named it; empty without one.
    pub base: &'a str,
}

/// The parts of a report that are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shown {
    /// All findings.
    #[default]
    All,
    /// In text, one line for all notes of one rule.
    NotesByRule,
}

/// A finding and its location.
#[derive(Debug)]
pub struct LocatedFinding<'a> {
    /// The finding.
    pub finding: &'a Finding,
    /// The place in the object of the file. For the pod of a workload it begins with the pointer of the template.
    pub pointer: Pointer,
    /// The object.
    pub object_ref: &'a ObjectRef,
    /// The units that have this finding; empty for plain manifests.
    pub units: Vec<&'a str>,
    /// Whether the object is made of a text that may make others too, such as the base of an overlay.
    pub shares_text: bool,
    /// The namespaces of the objects that have this finding, if these are several objects of one text.
    pub namespaces: Vec<&'a str>,
    /// The same in the other objects of that text.
    pub in_others: Vec<Self>,
    /// The place in the file.
    pub location: FileLocation<'a>,
    /// Other locations of the finding, the nearest first: the field that contradicts this one, fields of other objects,
    /// and the anchor of an alias.
    pub related: Vec<Related<'a>>,
    /// Identifies the finding in the report, the same in every run: see [`fingerprint`].
    pub fingerprint: Fingerprint,
}

impl<'a> LocatedFinding<'a> {
    /// A finding at its place; what is known besides is added later.
    pub fn new(finding: &'a Finding, object_ref: &'a ObjectRef, location: FileLocation<'a>) -> Self {
        Self {
            finding,
            pointer: finding.pointer.clone(),
            object_ref,
            units: Vec::new(),
            shares_text: false,
            namespaces: Vec::new(),
            in_others: Vec::new(),
            location,
            related: Vec::new(),
            fingerprint: Fingerprint::default(),
        }
    }

    /// The namespaces of the objects of one text that have it, if these are several.
    pub fn in_namespaces(&self) -> Option<String> {
        let namespaces = self.namespaces.join(", ");
        (!namespaces.is_empty()).then(|| format!("in namespaces {}", plain(&namespaces)))
    }

    /// The message with these namespaces.
    pub fn told(&self) -> String {
        let message = self.finding.message().into_owned();
        self.in_namespaces().map_or_else(|| message.clone(), |it| format!("{message}; {it}"))
    }
}

/// An object that was checked, and its place.
#[derive(Debug, Clone, Copy)]
pub struct JudgedObject<'a> {
    /// The object.
    pub object_ref: &'a ObjectRef,
    /// The file as the user named it.
    pub file: &'a str,
    /// The line at which it starts, from 1.
    pub line: usize,
}

/// An object or document that was not checked.
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
    /// The reason as a keyword, for programs.
    pub why: &'static str,
    /// The reason for people: a predicate such as "has no kind".
    pub reason: &'static str,
}

/// Another location of a finding.
#[derive(Debug)]
pub struct Related<'a> {
    /// The place in the file.
    pub location: FileLocation<'a>,
    /// What it shows, in a few words.
    pub label: String,
}

/// The object that a finding is about, as in Kubernetes' ObjectReference. Its texts are shared: there may be very many.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Group and version, as in the manifest.
    pub api_version: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
    /// The namespace; empty for a cluster-scoped kind.
    pub namespace: Arc<str>,
    /// `metadata.name`, else `metadata.generateName`; empty without either.
    pub name: Arc<str>,
    /// The unit in which it was judged; empty for plain manifests.
    pub unit: Arc<str>,
}

/// A stretch of a file.
#[derive(Debug, Clone, Copy)]
pub struct FileLocation<'a> {
    /// The file as the user named it; `<stdin>` for standard input.
    pub file: &'a str,
    /// The whole text of the file, each credential in it masked; empty for a file that is not shown.
    pub text: &'a str,
    /// The same, also of a file that is not shown: for lines and columns.
    pub measured: &'a str,
    /// The byte at which the stretch starts.
    pub start: usize,
    /// The byte behind its end.
    pub end: usize,
    /// The line of the start, from 1.
    pub line: usize,
    /// The column of the start in characters, from 1.
    pub column: usize,
}

/// The columns of source in the text format without a terminal: more than most lines of manifests have, and few enough
/// for a log in a browser.
pub const DEFAULT_WIDTH: usize = 120;

/// An input, or one document in it, that could not be used.
#[derive(Debug, Default)]
pub struct InputError<'a> {
    /// The error in one line, with the file, line and column as far as they are known.
    pub line: String,
    /// The file as the user named it, for an error of a file.
    pub file: Option<&'a str>,
    /// Line and column, from 1, as far as they are known.
    pub position: Option<(usize, usize)>,
    /// What is wrong, without the place.
    pub message: String,
    /// What to do, unless the message tells.
    pub help: Option<String>,
    /// The stretch of the text, to show the source.
    pub location: Option<FileLocation<'a>>,
    /// The second location, where two contradict each other.
    pub related: Option<Related<'a>>,
}

impl InputError<'_> {
    /// The code: `syntax` for an error in a text, `unreadable` for an input without a text.
    pub const fn code(&self) -> &'static str {
        if self.position.is_some() { "syntax" } else { "unreadable" }
    }

    /// The message and the help, in one line.
    pub fn advice(&self) -> Cow<'_, str> {
        match &self.help {
            Some(help) => Cow::Owned(format!("{}; {help}", self.message)),
            None => Cow::Borrowed(&self.message),
        }
    }
}

named! {
    /// How a report is written, in the order in which help lists the formats.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ReportFormat {
        /// For people: the source with a caret under what is wrong.
        Text = "text",
        /// One line a finding.
        Concise = "concise",
        /// One JSON object.
        Json = "json",
        /// Workflow commands of GitHub Actions.
        Github = "github",
        /// The code quality report of GitLab.
        Gitlab = "gitlab",
        /// SARIF 2.1.0.
        Sarif = "sarif",
        /// JUnit's XML.
        Junit = "junit",
        /// One comment for a pull request.
        Markdown = "markdown",
        /// One page for a browser.
        Html = "html",
    }
}

/// Writes the report in one format. Text has ANSI styles, which the stream removes where they are not wanted, and
/// leaves the errors of inputs to [`text::write_error`], since they may go elsewhere. `width` are the columns of the
/// source that text shows; with `warnings_fail` a warning is a failure in JUnit's XML.
///
/// # Errors
/// Those of the writer.
pub fn write(
    report: &Report<'_>,
    format: ReportFormat,
    width: usize,
    warnings_fail: bool,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    match format {
        ReportFormat::Text => text::write_whole(report, width, out),
        ReportFormat::Concise => concise::write(report, out),
        ReportFormat::Json => json::write(report, out),
        ReportFormat::Github => github::write(report, out),
        ReportFormat::Gitlab => gitlab::write(report, out),
        ReportFormat::Sarif => sarif::write(report, out),
        ReportFormat::Junit => junit::write(report, warnings_fail, out),
        ReportFormat::Markdown => markdown::write(report, out),
        ReportFormat::Html => html::write(report, out),
    }
}

/// A finished output in this format without what [misleads], but for its own line ends and styles, and without
/// commands.
pub fn for_readers(text: &[u8], format: ReportFormat) -> Vec<u8> {
    let hash = match format {
        ReportFormat::Text | ReportFormat::Concise | ReportFormat::Markdown => " #",
        ReportFormat::Json | ReportFormat::Gitlab | ReportFormat::Sarif => "\\u0023",
        ReportFormat::Junit | ReportFormat::Html => "&#35;",
        ReportFormat::Github => "%23",
    };
    let text = String::from_utf8_lossy(text);
    let text = match format {
        ReportFormat::Json | ReportFormat::Gitlab | ReportFormat::Sarif => escaped(&text).into(),
        _ => plain_except(&text, |c| c < '\u{7f}'),
    };
    without_commands(text.as_bytes(), hash)
}

/// JSON with escapes for what [misleads].
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c >= '\u{7f}' && misleads(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a text does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Breaks what CI systems read as a command anywhere in a line: `##[…]` (GitHub), `##vso[…]` (Azure) and
/// `##teamcity[…]`. `hash` stands for the second `#`.
fn without_commands(text: &[u8], hash: &str) -> Vec<u8> {
    let is_command = |at: usize| {
        let behind = text.get(at + 2..).unwrap_or_default();
        text.get(at..).is_some_and(|rest| rest.starts_with(b"##"))
            && behind.iter().find(|byte| !byte.is_ascii_lowercase()) == Some(&b'[')
    };
    let is_broken = |at: usize| at.checked_sub(1).is_some_and(is_command);
    let broken = |(at, byte)| if is_broken(at) { hash.as_bytes() } else { std::slice::from_ref(byte) };
    text.iter().enumerate().flat_map(broken).copied().collect()
}

impl<'a> Report<'a> {
    /// The findings without those that only follow from the denial of another object, which names theirs.
    pub fn causes(&self) -> impl DoubleEndedIterator<Item = &LocatedFinding<'a>> {
        self.findings.iter().filter(|located| located.finding.relation != Relation::Follows)
    }

    /// The same with denials first, then warnings.
    pub fn denials_first(&self) -> Vec<&LocatedFinding<'a>> {
        let mut all: Vec<_> = self.causes().collect();
        all.sort_by_key(|located| Reverse(located.finding.severity));
        all
    }

    /// The number of findings of this severity, listed or not.
    pub fn count(&self, severity: Severity) -> usize {
        self.count_of(self.causes(), severity)
    }

    /// The number of those of this severity, and of those that are not listed.
    fn count_of<'r>(&self, listed: impl Iterator<Item = &'r LocatedFinding<'a>>, severity: Severity) -> usize
    where
        'a: 'r,
    {
        let shown = listed.filter(|located| located.finding.severity == severity).count();
        let not_shown = self.not_shown.iter().map(|(_, counts)| match severity {
            Severity::Deny => counts.denials,
            Severity::Warn => counts.warnings,
            Severity::Note => 0,
        });
        shown + not_shown.sum::<usize>()
    }

    /// The unknown objects that notes name. Namespaces are not among them: every pod looks its Namespace up, and inputs
    /// rarely hold it. A missing claim already has a warning.
    pub fn unknown_objects(&self) -> impl Iterator<Item = &String> {
        let is_left_out = |name: &String| {
            ["Namespace ", "PersistentVolumeClaim "].iter().any(|kind| name.starts_with(kind))
        };
        self.unknown.iter().filter(move |name| !is_left_out(name))
    }

    /// A line about each object with more findings than are shown.
    pub fn not_shown_lines(&self) -> impl Iterator<Item = String> {
        self.not_shown.iter().map(|(object_ref, counts)| {
            format!(
                "{}: {} and {} more, not shown",
                plain(&object_ref.title()),
                counted(counts.denials, "denial"),
                counted(counts.warnings, "warning"),
            )
        })
    }

    /// The numbers in one line, such as `2 objects checked in 1 file: 1 denied (2 denials), 1 warning; 3 passed over`.
    pub fn summary(&self) -> String {
        if self.objects.is_empty() && !self.errors.is_empty() {
            return format!("nothing was checked: {} unreadable", counted(self.errors.len(), "input"));
        }
        let mut line =
            format!("{} checked in {}", counted(self.objects.len(), "object"), counted(self.files, "file"));
        if self.units > 0 {
            let by = format!(" built by {}", self.tools.join(" and "));
            let by = if self.tools.is_empty() { "" } else { &by };
            let _ = write!(line, ", {}{by}", counted(self.units, "unit"));
        }
        let (denied, denials) = (self.denied, self.count(Severity::Deny));
        let more =
            if denials == denied { String::new() } else { format!(" ({})", counted(denials, "denial")) };
        let warnings = counted(self.count(Severity::Warn), "warning");
        let _ = write!(line, ": {denied} denied{more}, {warnings}");
        let notes = self.count(Severity::Note);
        if notes > 0 {
            let _ = write!(line, ", {}", counted(notes, "note"));
        }
        if self.policies > 0 {
            let noun = if self.policies == 1 { "policy" } else { "policies" };
            let _ = write!(line, "; {} {noun}", self.policies);
            let counts = [
                (self.with_status(PolicyStatus::Exempt), "exempted"),
                (self.with_status(PolicyStatus::Unknown), "not judged"),
                (self.assumed, "assumed"),
            ];
            for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
                let _ = write!(line, ", {count} {words}");
            }
        }
        if !self.passed_over.is_empty() {
            let _ = write!(line, "; {} passed over", self.passed_over.len());
        }
        if self.left_out > 0 {
            let _ = write!(line, "; {} left out by --ignore", counted(self.left_out, "finding"));
        }
        if self.unreadable_state > 0 {
            let _ = write!(line, "; {} not looked at", counted(self.unreadable_state, "state object"));
        }
        if !self.errors.is_empty() {
            let _ = write!(line, "; {} unreadable", self.errors.len());
        }
        line
    }

    /// Whether a finding of this code is reported that nothing suppresses.
    pub fn has(&self, code: &Code) -> bool {
        let mut reported = self.findings.iter().filter(|it| it.finding.severity != Severity::Note);
        reported.any(|it| it.finding.code == code)
    }

    /// The number of findings of policies with this status.
    fn with_status(&self, status: PolicyStatus) -> usize {
        let of_policy = self.findings.iter().filter_map(|located| located.finding.policy.as_ref());
        of_policy.filter(|policy| policy.status == status).count()
    }
}

impl LocatedFinding<'_> {
    /// The message without the name of the object and its users, and what to do: equal for findings that are equal but
    /// for their objects.
    pub fn words(&self) -> String {
        let (message, help) = (self.finding.message(), self.finding.help_text().unwrap_or_default());
        let message = message.rsplit_once(USED_BY).map_or(&*message, |(message, _)| message);
        format!("{message}\n{help}").replace(&self.object_ref.title(), "")
    }

    /// The severity of the finding, and in an audit its severity at admission today.
    pub fn effect(&self) -> (Severity, Option<Severity>) {
        let at_admission = self.finding.policy.as_deref().and_then(|policy| policy.at_admission);
        (self.finding.severity, at_admission.map(AtAdmission::severity))
    }
}

impl ObjectRef {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The kind, the namespace and the name as outputs have them: of what cannot be one, the start and the length. The start
    /// of a name and one that a later step fills in are shown.
    pub fn shown(&self) -> [Cow<'_, str>; 3] {
        fn shown(name: &str) -> Cow<'_, str> {
            let start = name.trim_end_matches(['-', '.']);
            let could_be = |text: &str| matches!(shown_name(text), Cow::Borrowed(_));
            let is_later = is_marked(name) && !name.starts_with("ENC[");
            let is_shown = could_be(start) || is_later && with_word(name).is_none_or(|it| could_be(&it));
            if is_shown { name.into() } else { shown_name(name) }
        }
        [shown_key(&self.kind), shown(&self.namespace), shown(&self.name)]
    }

    /// Kind, namespace and name: `ArkMemory team-a/notes-short`.
    pub fn title(&self) -> String {
        let [kind, namespace, name] = self.shown();
        let name = if name.is_empty() { "(no name)".into() } else { name };
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }
}

impl FileLocation<'_> {
    /// The file, the line and the column.
    pub fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    /// The file and the line.
    pub fn line_place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Line and column (in characters, from 1) just behind the end.
    pub fn end_position(&self) -> (usize, usize) {
        let stretch = self.measured.get(self.start..self.end).unwrap_or_default();
        let lines = stretch.bytes().filter(|byte| *byte == b'\n').count();
        match stretch.rsplit_once('\n') {
            Some((_, last)) => (self.line + lines, last.chars().count() + 1),
            None => (self.line, self.column + stretch.chars().count()),
        }
    }
}

/// Findings by severity and code, the strictest first, then the most frequent.
fn by_rule<'f, 'r>(
    findings: impl Iterator<Item = &'f LocatedFinding<'r>>,
) -> Vec<Vec<&'f LocatedFinding<'r>>> {
    let mut by_rule: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for located in findings {
        by_rule.entry((located.finding.severity, located.finding.code_name())).or_default().push(located);
    }
    let mut rules: Vec<_> = by_rule.into_values().collect();
    rules.sort_by_key(|all| (Reverse(all.first().map(|it| it.effect())), Reverse(all.len())));
    rules
}

/// A path or name as it may begin a line: control characters as spaces, and `./` before one that CI systems could read
/// as a command to themselves, such as `::stop-commands::x/a.yaml`.
pub fn at_line_start(text: &str) -> Cow<'_, str> {
    let text = plain(text);
    let is_usual = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '<');
    if text.trim_start().starts_with(is_usual) { text } else { Cow::Owned(format!("./{text}")) }
}

/// A text in an address: letters, digits and `kept` as they are, any other byte in hexadecimal form.
pub fn percent_encoded(text: &str, kept: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte);
    let encoded =
        |byte: u8| if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encoded).collect()
}

/// The path of a file from the root of the repository in which memgate runs, else from the working directory, as services that
/// read reports want it. Of one outside of it the path as it is.
fn relative(file: &str) -> Cow<'_, str> {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| root_around(Path::new(".")));
    relative_to(&ROOT, file)
}

fn relative_to<'f>(root: &Path, file: &'f str) -> Cow<'f, str> {
    match normal(Path::new(file)).strip_prefix(root) {
        Ok(path) if !file.starts_with('<') => path.to_string_lossy().into_owned().into(),
        _ => file.into(),
    }
}

/// A number with its noun, in the plural where the number asks for it.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_from_the_root_of_the_repository() {
        let here = normal(Path::new("."));
        let above = here.parent().expect("a directory");
        let (name, absolute) = (here.join("a.yaml"), format!("{}/a.yaml", here.display()));
        let below = name.strip_prefix(above).expect("below").to_string_lossy();
        for (root, file, expected) in [
            (above, "./a.yaml", &*below),
            (above, &absolute, &below),
            (&*here, "b/../a.yaml", "a.yaml"),
            (&here, "../a.yaml", "../a.yaml"),
            (above, "<stdin>", "<stdin>"),
            (&here, "././/a.yaml", "a.yaml"),
            (&here, "/x/a.yaml", "/x/a.yaml"),
        ] {
            assert_eq!(relative_to(root, file), expected, "{root:?} {file}");
        }
    }

    #[test]
    fn counts_columns_in_characters() {
        let text = "a: grün\nb: 2\n";
        let location = FileLocation { file: "x", text, measured: text, start: 3, end: 8, line: 1, column: 4 };
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
    fn breaks_commands_to_ci_systems() {
        for (text, expected) in [
            ("a ##[stop-commands]x", "a # #[stop-commands]x"),
            ("##vso[task.x] ##teamcity[y] ###[z]", "# #vso[task.x] # #teamcity[y] ## #[z]"),
            ("## A [link] #[x] ##", "## A [link] #[x] ##"),
        ] {
            assert_eq!(without_commands(text.as_bytes(), " #"), expected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn counts_findings_that_are_not_shown() {
        let object_ref = ObjectRef { kind: "Agent".into(), name: "a".into(), ..ObjectRef::default() };
        let not_shown = vec![(&object_ref, NotShown { denials: 1, warnings: 2 })];
        let report = Report { not_shown, ..Report::default() };
        assert_eq!((report.count(Severity::Deny), report.count(Severity::Warn)), (1, 2));
        let lines: Vec<String> = report.not_shown_lines().collect();
        assert_eq!(lines, ["Agent a: 1 denial and 2 warnings more, not shown"]);
    }

    #[test]
    fn keeps_the_terminal_safe() {
        assert_eq!(plain("a\u{1b}[31mb\n"), "a [31mb ");
    }
}
