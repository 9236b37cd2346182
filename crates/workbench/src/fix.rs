//! Fixes findings with one right answer in the user's own text.
//!
//! A finding carries its fix, and `manifest::fix` makes it. Findings that a comment, a baseline or the base turned into
//! notes are not fixed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use crate::judge::{Checked, Decided};
use crate::load::Error;
use crate::report::counted;
use crate::report::diff::{self, FileDiff};
use crate::run::{Run, judged_without_ignored};
use memgate_manifest::fix::{Fixed, TextFix, fix};
use memgate_manifest::mask;
use memgate_manifest::place::LastSource;
use memgate_manifest::source::Source;
use memgate_model::finding::{Details, Finding, Severity};
use memgate_primitives::fix::Fix;
use memgate_primitives::pointer::{Pointer, list_index};

/// A file whose text changes.
#[derive(Debug)]
pub struct FixedFile {
    /// The file as it was read.
    pub source: Arc<Source>,
    /// Its new text.
    pub text: String,
    /// How many fixes were made.
    pub count: usize,
}

/// The corrected files by the names of their sources.
pub type FixedTexts = BTreeMap<String, FixedFile>;

/// Judges the files of a run, with the corrected texts in place of their own.
///
/// # Errors
/// When the files cannot be loaded.
pub fn judged_with(run: &mut Run, fixed: &FixedTexts) -> Result<Checked, Error> {
    run.plan.instead = fixed.iter().map(|(name, fixed)| (name.clone(), fixed.text.clone())).collect();
    for open in &mut run.plan.open {
        if let Some(fixed) = fixed.get(&*open.path.to_string_lossy()) {
            open.text = Some(fixed.text.as_str().into());
        }
    }
    judged_without_ignored(run)
}

/// Makes all fixes of the chosen files, and judges the result again, up to this number of times: below a corrected field
/// others show up. Returns the corrected files, and the judged objects of the last round with a fix, if there is one.
///
/// # Errors
/// When the files cannot be loaded.
pub fn fix_in_rounds(
    run: &mut Run,
    before: &Checked,
    max_rounds: usize,
    is_chosen: impl Fn(&FixedFile) -> bool,
) -> Result<(FixedTexts, Option<Checked>), Error> {
    let (mut fixed, mut after) = (FixedTexts::default(), None);
    for _ in 0..max_rounds {
        let mut round = fix_all(after.as_ref().unwrap_or(before));
        round.retain(&is_chosen);
        if round.is_empty() {
            break;
        }
        for file in round {
            let before = fixed.remove(file.source.name());
            let count = file.count + before.as_ref().map_or(0, |before| before.count);
            let source = before.map_or(file.source, |before| before.source);
            fixed.insert(source.name().to_owned(), FixedFile { source, count, ..file });
        }
        after = Some(judged_with(run, &fixed)?);
    }
    Ok((fixed, after))
}

/// The corrections as a diff, with masked credentials.
///
/// # Errors
/// When the diff cannot be made, which is a fault of memgate.
pub fn diffs(fixed: &FixedTexts) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (name, FixedFile { source, text, .. }) in fixed {
        let after = Arc::new(Source::new(name.as_str(), text.as_str()));
        let (before, after) = (mask::shown(source), mask::shown(&after));
        diff::write(&FileDiff { name, before, after, removed: &[], origins: &[] }, &mut bytes)?;
    }
    Ok(bytes)
}

/// The number of corrections in one line, after the word `done`, unless there is `nothing`.
pub fn summary(done: &str, fixed: &FixedTexts, nothing: &str) -> String {
    let count = fixed.values().map(|file| file.count).sum();
    if count == 0 {
        return nothing.to_owned();
    }
    format!("{done} {} in {}", counted(count, "finding"), counted(fixed.len(), "file"))
}

/// Every file with a fix, in the order of the inputs.
fn fix_all(checked: &Checked) -> Vec<FixedFile> {
    let mut by_source: BTreeMap<*const Source, Vec<TextFix<'_>>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for decided in &checked.decided {
        let source = Arc::as_ptr(decided.object.place.source());
        // Two sets may have judged the same object.
        let is_new = |fix: &TextFix<'_>| seen.insert((source, fix.place.start(), fix.pointer.clone()));
        let fixes = fixes_by_finding(decided, ONLY_ONE).map(|(_, fix)| fix);
        by_source.entry(source).or_default().extend(fixes.filter(is_new));
    }
    let mut last = LastSource::default();
    let fixed = |source: &Arc<Source>| {
        let fixes = by_source.get(&Arc::as_ptr(source))?;
        last.is_now(fixes.first()?.place);
        let Fixed { text, made } = fix(source, fixes);
        let count = made.into_iter().flatten().count();
        (count > 0).then(|| FixedFile { source: Arc::clone(source), text, count })
    };
    checked.inputs.sources.iter().filter_map(fixed).collect()
}

/// The file of a source with one fix of a finding, if that can be made.
pub fn fix_one(
    checked: &Checked,
    source: &Arc<Source>,
    finding: &Finding,
    choose: ChooseFix,
) -> Option<FixedFile> {
    let of_source = checked.decided.iter().filter(|it| Arc::ptr_eq(it.object.place.source(), source));
    let mut wanted = of_source.flat_map(|decided| fixes_by_finding(decided, choose));
    let (_, wanted) = wanted.find(|(of, _)| std::ptr::eq(*of, finding))?;
    let Fixed { text, made } = fix(source, &[wanted]);
    (!made.contains(&None)).then(|| FixedFile { source: Arc::clone(source), text, count: 1 })
}

/// Chooses a fix of a finding.
pub type ChooseFix = fn(Details) -> Option<Fix>;

/// The fix with the only correct value.
pub const ONLY_ONE: ChooseFix = |details| details.fix;

/// The fix with the value that may be meant.
pub const MEANT: ChooseFix = |details| details.meant.map(Fix::Text);

/// Each finding of one object that has a fix of this choice.
fn fixes_by_finding(decided: &Decided, choose: ChooseFix) -> impl Iterator<Item = (&Finding, TextFix<'_>)> {
    let object = &decided.object;
    // A fix says what the text is.
    let is_shown = object.place.source().is_shown();
    let all = decided.located_findings();
    all.filter(move |(finding, _)| is_shown && finding.severity != Severity::Note).filter_map(
        move |(finding, pointer)| {
            let fix = choose(finding.details().into_owned())?;
            let pointer = if fix == Fix::RemoveRepeated { element(&pointer) } else { pointer };
            Some((finding, TextFix { place: &object.place, pointer, fix }))
        },
    )
}

/// The element of a list that a pointer leads to, or into.
fn element(pointer: &Pointer) -> Pointer {
    let is_index = pointer.tokens().last().is_some_and(|token| list_index(&token).is_some());
    match pointer.as_str().rsplit_once('/') {
        Some((holder, _)) if !is_index => Pointer::new(holder),
        _ => pointer.clone(),
    }
}
