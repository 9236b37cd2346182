//! What edits of open files broke in files that are not open: what is wrong with the texts of the editor, and was not with
//! those that it opened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{Diagnostic, DiagnosticRelatedInformation, Location};
use regex::Regex;
use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::buffers::Buffer;
use crate::diagnostics::{MAX_OF_FILE, Places, of_finding};
use crate::positions::{Encoding, Lines};
use crate::symbols::{NamedDocument, named_documents};
use crate::workspace::{Root, name};
use memgate_manifest::document::each_value;
use memgate_manifest::source::Source;
use memgate_model::finding::Severity;
use memgate_workbench::load::Error;
use memgate_workbench::place::report;
use memgate_workbench::report::LocatedFinding;
use memgate_workbench::run::{Run, judged_without_ignored};

/// The most closed files with marks: more than an editor shows well.
const MAX_FILES: usize = 200;

/// The kinds whose whole text others depend on; of other objects they depend on the names.
const BY_TEXT: [&str; 5] = ["Secret", "ConfigMap", "Namespace", "MemoryPolicy", "MemoryPolicyExemption"];

/// The marks of the closed files of a root, and what they follow from.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    /// The open files, with what others may depend on in the text that was opened and in that of now; `None` where the files
    /// have to be judged again.
    key: Option<Key>,
    /// The marks, by the names of the files, without the edits.
    marks: BTreeMap<String, Vec<Diagnostic>>,
}

type Key = Vec<(String, [BTreeSet<String>; 2])>;

/// An open file whose text differs from the one that was opened.
struct Edited<'b> {
    buffer: &'b Buffer,
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
        let edited: Vec<Edited<'_>> = open.iter().filter_map(|buffer| edited(buffer)).collect();
        if edited.iter().all(|it| is_read(it.buffer)) {
            let key: Key =
                open.iter().map(|it| (it.uri.to_string(), [&it.opened, &it.text].map(depended_on))).collect();
            if self.key.as_ref() != Some(&key) {
                self.key = None;
                let is_changed = key.iter().any(|(_, [before, now])| before != now);
                self.marks = if is_changed { judged((root, open), run, encoding)? } else { BTreeMap::new() };
                self.key = Some(key);
            }
        }
        let mut marks = self.marks.clone();
        for mark in marks.values_mut().flatten() {
            let edit = place_of_edit(&edited, &mark.message, encoding);
            mark.related_information.get_or_insert_default().extend(edit);
        }
        Ok(marks)
    }
}

/// What other files may depend on in a text: the names of its objects, and the whole text of some.
fn depended_on(text: &Arc<str>) -> BTreeSet<String> {
    let of = |it: NamedDocument| match text.get(it.bytes.clone()) {
        Some(text) if BY_TEXT.contains(&&*it.kind) => text.to_owned(),
        _ => format!("{}\n{}\n{}", it.kind, it.namespace, it.name),
    };
    named_documents(text).into_iter().map(of).collect()
}

/// What is wrong in closed files with the texts of now, and was not with those that were opened.
fn judged(
    (root, open): (&Root, &[&Buffer]),
    run: &Run,
    encoding: Encoding,
) -> Result<BTreeMap<String, Vec<Diagnostic>>, Error> {
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
    let (mut marks, mut places) = (BTreeMap::<String, Vec<Diagnostic>>::new(), Places::new(root, encoding));
    for located in now.causes().filter(|it| it.finding.severity != Severity::Note) {
        let file = file_name(located.location.file);
        let is_closed =
            !open.contains_key(Path::new(file)) && (marks.len() < MAX_FILES || marks.contains_key(file));
        if is_closed && !known.contains(&identity(located)) {
            let of_file = marks.entry(file.to_owned()).or_default();
            if of_file.len() < MAX_OF_FILE {
                of_file.push(of_finding(located, &mut places));
            }
        }
    }
    Ok(marks)
}

/// What makes a finding the same before and after an edit.
fn identity<'r>(located: &'r LocatedFinding<'_>) -> (&'r str, &'r str, String, String) {
    let (file, code) = (file_name(located.location.file), located.finding.code_name());
    (file, code, located.object_ref.title(), located.words())
}

fn file_name(name: &str) -> &str {
    name.trim_start_matches("./")
}

fn edited(buffer: &Buffer) -> Option<Edited<'_>> {
    let (old, new): (&str, &str) = (&buffer.opened, &buffer.text);
    if old == new {
        return None;
    }
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
    Some(Edited { buffer, parts })
}

fn is_read(buffer: &Buffer) -> bool {
    each_value(&Arc::new(Source::new("<open>", &*buffer.text))).all(|it| it.is_ok())
}

/// The edit that a message is about: the first one with a name in the message, else the first one.
fn place_of_edit(
    edited: &[Edited<'_>],
    message: &str,
    encoding: Encoding,
) -> Option<DiagnosticRelatedInformation> {
    let names: Vec<String> = message
        .split('"')
        .skip(1)
        .step_by(2)
        .filter_map(|it| it.rsplit('/').next())
        .map(regex::escape)
        .collect();
    let is_named = Regex::new(&format!("\\b({})\\b", names.join("|"))).ok().filter(|_| !names.is_empty());
    let parts = || edited.iter().flat_map(|it| it.parts.iter().map(|part| (it.buffer, part)));
    let meant = parts().find(|(_, (_, lines))| is_named.as_ref().is_some_and(|it| it.is_match(lines)));
    let (buffer, (bytes, _)) = meant.or_else(|| parts().next())?;
    let range = Lines::new(&buffer.text, encoding).range(bytes.start, bytes.end);
    let location = Location::new(buffer.uri.clone(), range);
    Some(DiagnosticRelatedInformation { location, message: "this edit breaks it".to_owned() })
}
