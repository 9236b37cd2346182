//! Fixes findings with one right answer in the user's own text.
//!
//! A finding carries its fix, and `manifest::fix` makes it. Findings that a comment or the base turned into
//! notes are not fixed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::build::origins::FindingSpot;
use crate::files::judge::{Checked, Decided};
use crate::files::load::Error;
use crate::files::run::{Run, judged_without_ignored};
use crate::report::{LocatedFinding, counted, plain};
use memgate_manifest::fix::{Fixed, TextFix, fix};
use memgate_manifest::place::LastSource;
use memgate_manifest::source::Source;
use memgate_model::finding::{Details, Finding, Severity};
use memgate_platforms::message::and_more;
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
            open.text = fixed.text.as_str().into();
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
) -> Result<(FixedTexts, Option<Checked>), Error> {
    let (mut fixed, mut after) = (FixedTexts::default(), None);
    for _ in 0..max_rounds {
        // The tools read the files on disk, so what is built is the same again, and so are the fixes in its files.
        let is_new = |file: &FixedFile| {
            let is_plain = || before.inputs.sources.iter().any(|it| it.name() == file.source.name());
            !fixed.contains_key(file.source.name()) || is_plain()
        };
        let mut round = fix_all(after.as_ref().unwrap_or(before));
        round.retain(is_new);
        if round.is_empty() {
            break;
        }
        add_round(&mut fixed, round);
        after = Some(judged_with(run, &fixed)?);
    }
    Ok((fixed, after))
}

/// Adds the files of a further round. What they were before the first one stays.
pub fn add_round(fixed: &mut FixedTexts, round: impl IntoIterator<Item = FixedFile>) {
    for file in round {
        let file = match fixed.remove(file.source.name()) {
            Some(FixedFile { source, count, .. }) => FixedFile { source, count: count + file.count, ..file },
            None => file,
        };
        fixed.insert(file.source.name().to_owned(), file);
    }
}

/// The most files that are named in the line about corrections.
const MAX_NAMED: usize = 50;

/// The number of corrections in one line, with the files, unless there is `nothing`.
pub fn summary(fixed: &FixedTexts, nothing: &str) -> String {
    let count = fixed.values().map(|file| file.count).sum();
    if count == 0 {
        return nothing.to_owned();
    }
    let files: Vec<String> =
        fixed.iter().map(|(name, file)| format!("{} ({})", plain(name), file.count)).collect();
    let [findings, all] =
        [(count, "finding"), (fixed.len(), "file")].map(|(count, what)| counted(count, what));
    format!("fixed {findings} in {all}: {}", and_more(&files, MAX_NAMED))
}

/// The sources with fixes, each with its new text, in the order of the inputs. Those for built objects are made in the files from
/// which these come.
fn fix_all(checked: &Checked) -> Vec<FixedFile> {
    let (mut by_source, mut seen) = (BTreeMap::<_, Vec<TextFix<'_>>>::new(), BTreeSet::new());
    for (_, fix) in checked.decided.iter().flat_map(|decided| fixes_by_finding(decided, ONLY_ONE)) {
        let source = Arc::as_ptr(fix.place.source());
        // Two units may have objects of the same text.
        if seen.insert((source, fix.place.start(), fix.pointer.clone())) {
            by_source.entry(source).or_default().push(fix);
        }
    }
    let mut last = LastSource::default();
    let fixed = |source: &Arc<Source>| {
        let wanted = by_source.remove(&Arc::as_ptr(source))?;
        last.is_now(wanted.first()?.place);
        let Fixed { text, made } = fix(source, &wanted);
        let (source, count) = (Arc::clone(source), made.iter().flatten().count());
        (text != source.text()).then_some(FixedFile { source, text, count })
    };
    checked.inputs.sources.iter().chain(checked.inputs.origins.traced()).filter_map(fixed).collect()
}

/// The file of a source with one fix of a finding, if that can be made.
pub fn fix_one(
    checked: &Checked,
    source: &Arc<Source>,
    located: &LocatedFinding<'_>,
    choose: ChooseFix,
) -> Option<FixedFile> {
    let mut wanted = checked.decided.iter().flat_map(|decided| fixes_by_finding(decided, choose));
    let (_, wanted) = wanted.find(|(finding, _)| std::ptr::eq(*finding, located.finding))?;
    let Fixed { text, made } = fix(source, &[wanted]);
    made.iter().any(Option::is_some).then(|| FixedFile { source: Arc::clone(source), text, count: 1 })
}

/// Chooses a fix of a finding.
pub type ChooseFix = fn(Details) -> Option<Fix>;

/// The fix with the only correct value.
pub const ONLY_ONE: ChooseFix = |details| details.fix;

/// The fix with the value that may be meant.
pub const MEANT: ChooseFix = |details| details.meant.map(Fix::Text);

/// Each finding of one object that has a fix of this choice, with the fix where a person would make it.
fn fixes_by_finding(decided: &Decided, choose: ChooseFix) -> impl Iterator<Item = (&Finding, TextFix<'_>)> {
    let is_rendered = decided.object.spots.is_some();
    // What put a namespace into a built object is not known for certain: another text would move the object.
    let is_safe = move |it: &&Finding| !is_rendered || it.pointer.as_str() != "/metadata/namespace";
    let all = decided.findings().filter(|finding| finding.severity != Severity::Note);
    all.filter(is_safe).filter_map(move |finding| {
        let fix = choose(finding.details().into_owned())?;
        // Of a rendered object, only a field that a file has by itself can be changed.
        let standing = decided.object.standing(&finding.pointer);
        let FindingSpot::Field(place, standing_at, key) = standing else { return None };
        // The last key of the path of a JSON patch is only a part of a text.
        if key.is_some() && matches!(fix, Fix::Rename(_)) {
            return None;
        }
        let pointer = pointer_of(&fix, standing_at);
        // A fix says what the text is.
        let is_fixed = place.source().is_shown() || is_rendered;
        is_fixed.then_some((finding, TextFix { place, pointer, fix }))
    })
}

/// The place of a fix of what a pointer leads to: for an element of a list that goes, the element that it leads to or into.
fn pointer_of(fix: &Fix, pointer: Pointer) -> Pointer {
    let is_index = pointer.tokens().last().is_some_and(|token| list_index(&token).is_some());
    match pointer.as_str().rsplit_once('/') {
        Some((holder, _)) if *fix == Fix::RemoveRepeated && !is_index => Pointer::new(holder),
        _ => pointer,
    }
}
