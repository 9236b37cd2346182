//! Fixes findings with one right answer in the user's own text.
//!
//! A finding carries its fix, and `manifest::fix` makes it. Findings that a comment, a baseline or the base turned into
//! notes are not fixed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::judge::{Checked, Decided};
use memgate_manifest::fix::{Fixed, TextFix, fix};
use memgate_manifest::place::LastSource;
use memgate_manifest::source::Source;
use memgate_model::finding::{Finding, Severity};
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

/// Every file with a fix, in the order of the inputs.
pub fn fix_all(checked: &Checked) -> Vec<FixedFile> {
    let mut by_source: BTreeMap<*const Source, Vec<TextFix<'_>>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for decided in &checked.decided {
        let source = Arc::as_ptr(decided.object.place.source());
        // Two sets may have judged the same object.
        let is_new = |fix: &TextFix<'_>| seen.insert((source, fix.place.start(), fix.pointer.clone()));
        by_source.entry(source).or_default().extend(fixes(decided).filter(is_new));
    }
    let mut last = LastSource::default();
    let fixed = |source: &Arc<Source>| {
        let fixes = by_source.get(&Arc::as_ptr(source))?;
        last.is_now(fixes.first()?.place);
        let Fixed { text, made } = fix(source, fixes);
        let count = made.into_iter().filter(|made| *made).count();
        (count > 0).then(|| FixedFile { source: Arc::clone(source), text, count })
    };
    checked.inputs.sources.iter().filter_map(fixed).collect()
}

/// The file of a source with the fix of one finding, if that can be made.
pub fn fix_one(checked: &Checked, source: &Arc<Source>, finding: &Finding) -> Option<FixedFile> {
    let of_source = checked.decided.iter().filter(|it| Arc::ptr_eq(it.object.place.source(), source));
    let (_, wanted) = of_source.flat_map(fixes_by_finding).find(|(of, _)| std::ptr::eq(*of, finding))?;
    let Fixed { text, made } = fix(source, &[wanted]);
    made.contains(&true).then(|| FixedFile { source: Arc::clone(source), text, count: 1 })
}

/// The fixes of one object.
fn fixes(decided: &Decided) -> impl Iterator<Item = TextFix<'_>> {
    fixes_by_finding(decided).map(|(_, fix)| fix)
}

/// Each finding of one object that has a fix.
fn fixes_by_finding(decided: &Decided) -> impl Iterator<Item = (&Finding, TextFix<'_>)> {
    let object = &decided.object;
    let of_object = decided.admitted.decision.findings.iter();
    let of_object = of_object.map(|finding| (finding, object.in_document(&finding.pointer)));
    let all = of_object.chain(decided.of_form.iter().map(|finding| (finding, finding.pointer.clone())));
    all.filter(|(finding, _)| finding.severity != Severity::Note).filter_map(|(finding, pointer)| {
        let fix = finding.details().into_owned().fix?;
        let pointer = if fix == Fix::RemoveRepeated { element(&pointer) } else { pointer };
        Some((finding, TextFix { place: &object.place, pointer, fix }))
    })
}

/// The element of a list that a pointer leads to, or into.
fn element(pointer: &Pointer) -> Pointer {
    let is_index = pointer.tokens().last().is_some_and(|token| list_index(&token).is_some());
    match pointer.as_str().rsplit_once('/') {
        Some((holder, _)) if !is_index => Pointer::new(holder),
        _ => pointer.clone(),
    }
}
