//! Which findings become notes, because somebody has said that they are known: in a comment above them
//! ([`ignore`](crate::offline::ignore)), in a baseline, or because the base has them already.
//!
//! A note says what was found and why it counts no longer. The decision stays as it is: what a cluster denies, it
//! denies as ever, and the note says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::manifest::place::{DocumentPlace, LastSource};
use crate::manifest::source::{Source, Span};
use crate::model::finding::{Finding, Severity};
use crate::model::pointer::Pointer;
use crate::offline::check::{Checked, Decided};
use crate::offline::findings::caret;
use crate::offline::notices::Notice;
use crate::report::{ObjectRef, fingerprint};

/// What stands for the findings of an object that are counted only, in place of a code.
pub const UNTOLD: &str = "untold";

/// What tells a finding from others, as it was before it became a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the code.
    pub code: String,
    /// Its severity: what was only a warning is not known as a denial.
    pub severity: Severity,
    /// The object. Of its `apiVersion` only the group counts.
    pub object_ref: ObjectRef,
    /// Where in the object as the file has it.
    pub pointer: Pointer,
}

impl Identity {
    /// The fingerprint, which does not have the severity.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint::of(&self.code, &self.object_ref, &self.pointer)
    }
}

/// Findings that are known, each as often as it is.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<(String, Severity), usize>);

impl Known {
    /// Adds a finding.
    pub fn add(&mut self, identity: &Identity, count: usize) {
        let known = self.0.entry((identity.fingerprint(), identity.severity)).or_default();
        *known = known.saturating_add(count);
    }

    /// Takes a finding out, up to so many times; how often it was known.
    pub fn take(&mut self, identity: &Identity, wanted: usize) -> usize {
        let Some(known) = self.0.get_mut(&(identity.fingerprint(), identity.severity)) else { return 0 };
        let taken = wanted.min(*known);
        *known -= taken;
        taken
    }
}

/// Where a finding is.
pub(super) struct Place<'c> {
    pub(super) source: &'c Arc<Source>,
    object_ref: &'c ObjectRef,
    pointer: Pointer,
    at: At<'c>,
}

enum At<'c> {
    Object(&'c DocumentPlace),
    File(Span),
}

impl Place<'_> {
    /// Where the caret is.
    pub(super) fn span(&self, finding: &Finding) -> Span {
        match self.at {
            At::Object(document) => caret(document, &self.pointer, finding.at_key),
            At::File(span) => span,
        }
    }

    fn identity(&self, finding: &Finding) -> Identity {
        Identity {
            code: finding.code_name().to_owned(),
            severity: finding.severity,
            object_ref: self.object_ref.clone(),
            pointer: self.pointer.clone(),
        }
    }
}

/// Visits every finding that is told: those about objects first, then those about files.
pub(super) fn each(checked: &mut Checked, mut visit: impl FnMut(&Place<'_>, &mut Finding)) {
    let mut last = LastSource::default();
    for Decided { object, admitted, of_form, .. } in &mut checked.decided {
        let object = &*object;
        let (document, object_ref) = (&object.place, &object.object_ref);
        last.is_now(document);
        let place =
            |pointer| Place { source: document.source(), object_ref, pointer, at: At::Object(document) };
        for finding in &mut admitted.decision.findings {
            visit(&place(object.in_document(&finding.pointer)), finding);
        }
        for finding in of_form {
            visit(&place(finding.pointer.clone()), finding);
        }
    }
    for Notice { finding, object_ref, source, span, .. } in &mut checked.notices {
        let pointer = finding.pointer.clone();
        visit(&Place { source, object_ref, pointer, at: At::File(*span) }, finding);
    }
}

/// What each finding is now, in the order of [`each`].
pub(super) fn identify(checked: &mut Checked) -> Vec<Identity> {
    let mut identities = Vec::new();
    each(checked, |place, finding| identities.push(place.identity(finding)));
    identities
}

/// The findings of objects with very many that are counted only, with how many there are.
#[must_use]
pub fn untold(checked: &Checked) -> Vec<(Identity, usize)> {
    let of_object = |decided: &Decided| {
        let untold = decided.admitted.decision.not_shown;
        [(Severity::Deny, untold.denials), (Severity::Warn, untold.warnings)]
            .map(|(severity, count)| (untold_of(&decided.object.object_ref, severity), count))
    };
    checked.decided.iter().flat_map(of_object).filter(|(_, count)| *count > 0).collect()
}

fn untold_of(object_ref: &ObjectRef, severity: Severity) -> Identity {
    let (code, object_ref) = (UNTOLD.to_owned(), object_ref.clone());
    Identity { code, severity, object_ref, pointer: Pointer::root() }
}

/// Everything that was found, as what is known from then on.
#[must_use]
pub fn known(checked: &Checked, identities: &[Identity]) -> Known {
    let mut known = Known::default();
    for identity in identities.iter().filter(|identity| identity.severity != Severity::Note) {
        known.add(identity, 1);
    }
    for (identity, count) in untold(checked) {
        known.add(&identity, count);
    }
    known
}

/// Makes a note of each finding that is known, and takes it from what is known; `identities` say what the findings
/// were before any of them became a note, and `words` why this one did.
pub fn suppress(checked: &mut Checked, identities: &[Identity], known: &mut Known, words: &str) {
    let mut identities = identities.iter();
    each(checked, |_, finding| {
        let Some(identity) = identities.next() else { return };
        if known.take(identity, 1) == 1 {
            make_note(finding, words);
        }
    });
    for decided in &mut checked.decided {
        let object_ref = &decided.object.object_ref;
        let untold = &mut decided.admitted.decision.not_shown;
        untold.denials -= known.take(&untold_of(object_ref, Severity::Deny), untold.denials);
        untold.warnings -= known.take(&untold_of(object_ref, Severity::Warn), untold.warnings);
    }
}

/// Makes a note of a finding that is none yet.
pub(super) fn make_note(finding: &mut Finding, words: &str) {
    let as_ever = match finding.severity {
        Severity::Deny => "; the cluster still denies it",
        Severity::Warn => "",
        Severity::Note => return,
    };
    let message = format!("{} ({words}{as_ever})", finding.message());
    // A new finding, since the words are a user's: no credential and no control character of them is shown.
    *finding = finding.clone().with_message(message);
    finding.severity = Severity::Note;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_a_finding_as_often_and_as_bad_as_it_was() {
        let object_ref = ObjectRef { kind: "Agent".to_owned(), ..ObjectRef::default() };
        let (code, pointer) = ("a/b".to_owned(), Pointer::new("/spec"));
        let denied = Identity { code, severity: Severity::Deny, object_ref, pointer };
        let warned = Identity { severity: Severity::Warn, ..denied.clone() };
        let mut known = Known::default();
        known.add(&warned, 1);
        known.add(&warned, 1);
        assert_eq!(known.take(&denied, 1), 0);
        assert_eq!(known.take(&warned, 3), 2);
        assert_eq!(known.take(&warned, 1), 0);
    }
}
