//! What edits of open files broke in files that are not open: what is wrong with the texts of the editor, and was not with
//! those that it opened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{Diagnostic, DiagnosticRelatedInformation, Location};
use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::buffers::Buffer;
use crate::diagnostics::{MAX_OF_FILE, Places, of_finding};
use crate::positions::{Encoding, Lines};
use crate::symbols::{NamedDocument, named_documents};
use crate::workspace::{Root, name};
use memgate_manifest::document::each_value;
use memgate_manifest::source::Source;
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_primitives::pointer::Pointer;
use memgate_workbench::load::Error;
use memgate_workbench::place::report;
use memgate_workbench::report::{FileLocation, LocatedFinding};
use memgate_workbench::run::{Run, judged_without_ignored};

/// The most closed files with marks: more than an editor shows well.
const MAX_FILES: usize = 200;

/// The most marks in all closed files.
const MAX_MARKS: usize = 1000;

/// The kinds of memory and agents whose whole text others depend on, as they do on that of all other kinds. Of the other
/// memory and agents, in which people type most, they depend on the names.
const BY_TEXT: [&str; 4] = ["Ensemble", "PersonaPack", "SkillPack", "Namespace"];

/// The marks of the closed files of a root, and what they follow from.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    /// The open files; of an edited one what others may depend on in the text that was opened and in that of now. `None` where
    /// the files have to be judged again.
    key: Option<Key>,
    /// The marks, by the names of the files.
    marks: BTreeMap<String, Vec<Mark>>,
}

/// A mark without the edit that it is about.
#[derive(Debug)]
struct Mark {
    diagnostic: Diagnostic,
    /// The names in its message.
    names: Vec<String>,
}

type Key = Vec<(String, Option<[BTreeSet<String>; 2]>)>;

/// An open file whose text differs from the one that was opened.
struct Edited<'b> {
    buffer: &'b Buffer,
    lines: Lines<'b>,
    /// The parts that differ: the bytes of each in the text of now, and its old and new lines.
    parts: Vec<(Range<usize>, String)>,
}

impl Closed {
    /// Has the files judged again, since one on disk may have changed.
    pub(crate) fn forget(&mut self) {
        self.key = None;
    }

    /// The marks of the closed files of a root. While an edited file cannot be read, they stay: what it has is not known then.
    ///
    /// # Errors
    /// When the files cannot be loaded.
    pub(crate) fn update(
        &mut self,
        (root, open): (&Root, &[&Buffer]),
        run: &Run,
        encoding: Encoding,
    ) -> Result<BTreeMap<String, Vec<Diagnostic>>, Error> {
        let is_edited = |it: &&&Buffer| it.opened != it.text;
        if open.iter().filter(is_edited).all(|it| is_read(it)) {
            let both = |it: &&Buffer| [&it.opened, &it.text].map(|text| depended_on(&it.path, text));
            let key: Key =
                open.iter().map(|it| (it.uri.to_string(), is_edited(&it).then(|| both(it)))).collect();
            if self.key.as_ref() != Some(&key) {
                self.key = None;
                let is_changed = key.iter().filter_map(|(_, both)| both.as_ref()).any(|[was, is]| was != is);
                self.marks = if is_changed { judged((root, open), run, encoding)? } else { BTreeMap::new() };
                self.key = Some(key);
            }
        }
        if self.marks.is_empty() {
            return Ok(BTreeMap::new());
        }
        let edited: Vec<Edited<'_>> =
            open.iter().filter(is_edited).map(|buffer| edited(buffer, encoding)).collect();
        let edits = Edits::new(&edited);
        let with_edit = |mark: &Mark| {
            let mut diagnostic = mark.diagnostic.clone();
            diagnostic.related_information.get_or_insert_default().extend(edits.about(&mark.names));
            diagnostic
        };
        // One that was opened since has marks of its own.
        let is_open: BTreeSet<String> = open.iter().map(|it| name(root, &it.path)).collect();
        let closed = self.marks.iter().filter(|(file, _)| !is_open.contains(*file));
        Ok(closed.map(|(file, marks)| (file.clone(), marks.iter().map(with_edit).collect())).collect())
    }
}

/// What other files may depend on in a text: the names of its objects, and the whole text of some.
fn depended_on(file: &Path, text: &Arc<str>) -> BTreeSet<String> {
    // Most kustomizations have no kind.
    if file.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("kustomization")) {
        return BTreeSet::from([text.to_string()]);
    }
    let viewed = memgate_platforms::ALL.iter().flat_map(|family| family.views.kinds);
    let by_name: BTreeSet<&str> =
        viewed.map(|(kind, _)| kind.kind).filter(|kind| !BY_TEXT.contains(kind)).collect();
    let of = |it: NamedDocument| match text.get(it.bytes.clone()) {
        Some(text) if !by_name.contains(&*it.kind) => text.to_owned(),
        _ => format!("{}\n{}\n{}", it.kind, it.namespace, it.name),
    };
    named_documents(text).into_iter().map(of).collect()
}

/// What is wrong in closed files with the texts of now, and was not with those that were opened.
fn judged(
    (root, open): (&Root, &[&Buffer]),
    run: &Run,
    encoding: Encoding,
) -> Result<BTreeMap<String, Vec<Mark>>, Error> {
    let open: BTreeMap<PathBuf, &Arc<str>> =
        open.iter().map(|it| (PathBuf::from(name(root, &it.path)), &it.opened)).collect();
    let mut run = run.clone();
    run.plan.checks_only_open = false;
    let now = judged_without_ignored(&run)?;
    for file in &mut run.plan.open {
        if let Some(opened) = open.get(&file.path) {
            file.text = Some(Arc::clone(opened));
        }
    }
    let (now, before) = (report(&now), judged_without_ignored(&run)?);
    let before = report(&before);
    let known: BTreeSet<_> = before.causes().map(identity).collect();
    let (mut marks, mut places) = (BTreeMap::<String, Vec<Mark>>::new(), Places::new(root, encoding));
    let mut count = 0;
    for located in now.causes().filter(|it| may_be_broken(it.finding)) {
        let file = file_name(located.location.file);
        let is_closed =
            !open.contains_key(Path::new(file)) && (marks.len() < MAX_FILES || marks.contains_key(file));
        if is_closed && count < MAX_MARKS && !known.contains(&identity(located)) {
            let of_file = marks.entry(file.to_owned()).or_default();
            if of_file.len() < MAX_OF_FILE {
                let diagnostic = of_finding(located, &mut places);
                of_file.push(Mark { names: names_in(&diagnostic.message), diagnostic });
                count += 1;
            }
        }
    }
    Ok(marks)
}

/// Whether an edit elsewhere may be what a finding is about. A note is, if it says that an object is missing: with the last
/// object of a kind, a denial becomes a note.
fn may_be_broken(finding: &Finding) -> bool {
    finding.severity != Severity::Note || matches!(finding.cause, Cause::NotFound | Cause::Unavailable)
}

/// What makes a finding the same before and after an edit: file, object, code, place, the text there, and the values that it
/// depends on. Its words may differ: they also say what is like the value.
type Identity<'r> = ((&'r str, String), (&'r str, &'r Pointer), [&'r str; 2]);

fn identity<'r>(located: &'r LocatedFinding<'_>) -> Identity<'r> {
    let FileLocation { file, measured, start, end, .. } = located.location;
    let (finding, text) = (located.finding, measured.get(start..end).unwrap_or_default());
    let place = (finding.code_name(), &located.pointer);
    ((file_name(file), located.object_ref.title()), place, [text, &finding.fingerprint_value])
}

fn file_name(name: &str) -> &str {
    name.trim_start_matches("./")
}

fn edited(buffer: &Buffer, encoding: Encoding) -> Edited<'_> {
    let (old, new): (&str, &str) = (&buffer.opened, &buffer.text);
    let split = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let (old, new) = (split(old), split(new));
    let mut at = 0;
    let mut parts = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let lines = new.get(op.new_range()).unwrap_or_default().concat();
        let start = at;
        at += lines.len();
        if op.tag() != DiffTag::Equal {
            let end = start + lines.trim_end().len();
            let start = start + lines.len() - lines.trim_start().len();
            let both = old.get(op.old_range()).unwrap_or_default().concat() + &lines;
            parts.push((start.min(end)..end, both));
        }
    }
    Edited { buffer, lines: Lines::new(&buffer.text, encoding), parts }
}

fn is_read(buffer: &Buffer) -> bool {
    each_value(&Arc::new(Source::new("<open>", &*buffer.text))).all(|it| it.is_ok())
}

/// The names in quotes in a message, without their namespaces.
fn names_in(message: &str) -> Vec<String> {
    let quoted = message.split('"').skip(1).step_by(2);
    quoted.filter_map(|it| it.rsplit('/').next()).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// The edited parts of all files, with the first one that has each name.
struct Edits<'e, 'b> {
    parts: Vec<(&'e Edited<'b>, &'e Range<usize>)>,
    first: BTreeMap<&'e str, usize>,
}

impl<'e, 'b> Edits<'e, 'b> {
    fn new(edited: &'e [Edited<'b>]) -> Self {
        let (mut parts, mut first) = (Vec::new(), BTreeMap::new());
        let all = edited.iter().flat_map(|it| it.parts.iter().map(move |part| (it, part)));
        for (number, (edited, (bytes, lines))) in all.enumerate() {
            parts.push((edited, bytes));
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            for name in lines.split(|c| !is_of_name(c)) {
                first.entry(name).or_insert(number);
            }
        }
        Self { parts, first }
    }

    /// The edit that a mark is about: the first one with a name of it, else the first one.
    fn about(&self, names: &[String]) -> Option<DiagnosticRelatedInformation> {
        let number = names.iter().filter_map(|name| self.first.get(&**name)).min().copied();
        let (edited, bytes) = self.parts.get(number.unwrap_or_default())?;
        let range = edited.lines.range(bytes.start, bytes.end);
        let location = Location::new(edited.buffer.uri.clone(), range);
        Some(DiagnosticRelatedInformation { location, message: "this edit breaks it".to_owned() })
    }
}
