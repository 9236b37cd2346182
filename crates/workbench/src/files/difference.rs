//! The difference of two runs: what the base of a branch had, and which references resolved there and do not any more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::plan::Plan;
use crate::files::judge::{Checked, Decided, NO_OBJECT_OF_KIND};
use crate::files::passed_over::Why;
use crate::files::places::ObjectPlaces;
use crate::files::unjudged::{self, Documents, Tree, words};
use crate::paths::normal;
use crate::report::ObjectRef;
use memgate_manifest::later::is_filled_in_later;
use memgate_manifest::source::Location;
use memgate_model::decision::Decision;
use memgate_model::finding::{Cause, DeniedBy, Finding, Severity};
use memgate_model::object::Reference;
use memgate_primitives::plain_text::{plain, quoted};
use memgate_primitives::pointer::Pointer;

/// What the run at the base of a branch has found.
#[derive(Debug)]
pub struct AtBase {
    checked: Checked,
    /// The numbers of its judged objects.
    numbers: BTreeMap<ObjectKey, Vec<usize>>,
    places: Vec<ObjectPlaces>,
    documents: Documents,
    /// Where its files are, and the root of the work tree.
    directory: PathBuf,
    root: PathBuf,
}

/// So many objects of one name are looked at.
const MOST_SAME: usize = 64;

/// The kind, namespace and name of an object. The group does not count: a platform may move its kinds to another one.
type ObjectKey = [Arc<str>; 3];

fn name_of(object: &ObjectRef) -> ObjectKey {
    [&object.kind, &object.namespace, &object.name].map(Arc::clone)
}

impl AtBase {
    /// What a run over the files of this directory has found, and the documents in them.
    pub fn new(mut checked: Checked, documents: Documents, [directory, root]: [PathBuf; 2]) -> Self {
        let of_units = std::mem::take(&mut checked.places_of_units).into_values();
        let places = std::iter::once(std::mem::take(&mut checked.inputs.places)).chain(of_units).collect();
        let mut numbers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (number, decided) in checked.decided.iter().enumerate() {
            numbers.entry(name_of(&decided.object.object_ref)).or_default().push(number);
        }
        Self { checked, numbers, places, documents, directory, root }
    }

    /// The objects that were judged, in the unit of this one if that has it, else in all.
    fn same(&self, object: &ObjectRef) -> Vec<&Decided> {
        let numbers = self.numbers.get(&name_of(object)).into_iter().flatten();
        let all: Vec<_> =
            numbers.take(MOST_SAME).filter_map(|number| self.checked.decided.get(*number)).collect();
        let is_here = |it: &&Decided| it.object.object_ref.unit == object.unit;
        let here: Vec<_> = all.iter().copied().filter(is_here).collect();
        if here.is_empty() { all } else { here }
    }

    /// Where the file of an object is in the work tree; the root for one that a tool printed. `None` without the object.
    fn file_of(&self, object: &Reference) -> Option<PathBuf> {
        let (source, _) = self.places.iter().find_map(|places| places.span(object, &Pointer::root()))?;
        let below = Path::new(source.name()).strip_prefix(&self.directory);
        Some(below.map_or_else(|_| self.root.clone(), |below| self.root.join(below)))
    }

    /// What became of what a finding says to be missing, in words; `None` if it did not resolve before.
    fn fate(&self, finding: &Finding, now: &Decided, before: &[&Decided]) -> Option<Fate> {
        let pointer = &finding.pointer;
        let was_missing =
            |it: &&Decided| it.findings().any(|it| (it.code, &it.pointer) == (finding.code, pointer));
        if before.is_empty() || before.iter().any(was_missing) {
            return None;
        }
        let is_gone = |gone: &Reference| {
            let how = format!("{} {} is gone", gone.kind.kind, quoted(&gone.name));
            Fate { gone: Some(gone.clone()), how }
        };
        if let Some(gone) = finding.missing.iter().find(|it| self.file_of(it).is_some()) {
            return Some(is_gone(gone));
        }
        let text_at = |decided: &Decided, pointer: &Pointer| {
            let place = &decided.object.place;
            let Location { value, exact, .. } = place.locate(pointer);
            exact.then(|| place.source().slice(value).trim_matches(['"', '\'']).to_owned())
        };
        let text = |decided: &Decided| text_at(decided, pointer);
        // What a Kustomization puts in is not in the text.
        if before.iter().all(|it| it.object.is_put_in(pointer)) {
            let kinds: Vec<_> = finding.missing.iter().map(|it| it.kind).collect();
            let is_unknown =
                before.iter().flat_map(|it| &it.decision.unknown).any(|it| kinds.contains(&it.kind));
            return (!is_unknown).then(|| Fate { gone: None, how: "it named another one before".to_owned() });
        }
        let named = before.iter().find_map(|it| text(it)).filter(|it| !is_filled_in_later(it))?;
        let is_unknown = |it: &Reference| it.name == named && !self.checked.inputs.makers.contains_key(it);
        if before.iter().flat_map(|it| &it.decision.unknown).any(is_unknown) {
            return None;
        }
        if text(now)? == named {
            let unnamed = || Fate { gone: None, how: "it was there before".to_owned() };
            return Some(finding.missing.first().map_or_else(unnamed, is_gone));
        }
        // An element of a list may have moved.
        let list = pointer.parent().filter(|_| *pointer != pointer.without_indexes());
        let is_there = list.and_then(|list| text_at(now, &list)).is_some_and(|list| list.contains(&named));
        (!is_there).then(|| Fate { gone: None, how: format!("it named {} before", quoted(&named)) })
    }
}

/// What became of what a reference named.
struct Fate {
    /// The object that is gone.
    gone: Option<Reference>,
    how: String,
}

/// Whether a finding says that an object, or its key, does not exist.
fn is_about_missing(finding: &Finding) -> bool {
    finding.policy.is_none() && (finding.cause == Cause::NotFound || !finding.missing.is_empty())
}

/// Makes denials of what the branch broke, and of what it hides.
pub(crate) fn mark(checked: &mut Checked, base: &AtBase, (tree, plan): (&Tree, &Plan)) {
    mark_broken(checked, base);
    let before = (&base.documents, &*base.checked.inputs.not_built);
    let (notices, removed) = unjudged::hidden(checked, before, (tree, plan));
    checked.inputs.notices.extend(notices);
    checked.inputs.changes.removed = removed;
}

fn mark_broken(checked: &mut Checked, base: &AtBase) {
    let fates = checked.decided.iter().map(|decided| {
        if !decided.findings().any(is_about_missing) {
            return Vec::new();
        }
        let before = base.same(&decided.object.object_ref);
        let fate = |finding| base.fate(finding, decided, &before);
        decided.findings().map(|it| Some(it).filter(|it| is_about_missing(it)).and_then(fate)).collect()
    });
    let fates: Vec<Vec<Option<Fate>>> = fates.collect();
    let (files, words) = unreadable(checked);
    let unread_in = |gone: &Reference| {
        base.file_of(gone).and_then(|own| files.get(&own)).or_else(|| words.get(&gone.name)).cloned()
    };
    for (decided, fates) in checked.decided.iter_mut().zip(fates).filter(|(_, fates)| !fates.is_empty()) {
        let Decision { findings, unknown, .. } = &mut decided.decision;
        for (finding, fate) in findings.iter_mut().zip(fates) {
            let Some(Fate { gone, how }) = fate else { continue };
            tell(finding, &how, gone.as_ref().and_then(unread_in));
            unknown.retain(|it| Some(it) != gone.as_ref());
        }
    }
}

/// Says in a finding what the branch broke. It denies, unless what is gone may be in a file that cannot be read.
fn tell(finding: &mut Finding, how: &str, unread_in: Option<String>) {
    // A denial names its field, however long it is.
    let message = finding.message_at(&finding.pointer);
    let message = message.strip_suffix(&format!(" ({NO_OBJECT_OF_KIND})")).unwrap_or(&message);
    let message = match unread_in {
        Some(file) => format!("{message}; it may be in {}, not all of which can be read now", plain(&file)),
        None => {
            (finding.severity, finding.denied_by) = (Severity::Deny, DeniedBy::Report);
            format!("{message}; broken by this branch: {how}")
        }
    };
    *finding = finding.clone().with_message(message);
}

/// The files not all of which can be read, as the user would write them: by path, and the first of them with each word.
fn unreadable(checked: &Checked) -> (BTreeMap<PathBuf, String>, BTreeMap<String, String>) {
    let inputs = &checked.inputs;
    let faulty = inputs.errors.iter().filter_map(|error| Some(&error.syntax_error()?.source_text));
    let templates = inputs.passed_over.iter().filter(|it| it.why == Why::Template).map(|it| &it.source);
    let (mut files, mut first) = (BTreeMap::new(), BTreeMap::new());
    for source in faulty.chain(templates) {
        let name = source.name().to_owned();
        if files.insert(normal(Path::new(&name)), name.clone()).is_none() {
            for word in words(source.text()) {
                first.entry(word.to_owned()).or_insert_with(|| name.clone());
            }
        }
    }
    (files, first)
}
