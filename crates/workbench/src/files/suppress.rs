//! Turns known findings into notes: those that a comment above them ignores ([`ignore`](crate::files::ignore)), and those that the
//! base has already.
//!
//! A note has the message of the finding and the reason why it does not count. The decision stays: a cluster still
//! denies the object, and the note says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::build::origins::FindingSpot;
use crate::build::rules::change;
use crate::files::judge::{Checked, Decided};
use crate::files::notices::Notice;
use crate::report::ObjectRef;
use memgate_manifest::place::LastSource;
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::{Finding, Relation, Severity};
use memgate_primitives::pointer::Pointer;

/// The code of the findings of an object that are counted but not shown.
const NOT_SHOWN: &str = "not-shown";

/// Identifies a finding, as it was before it became a note. Sorted by object, then place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The object, without its version.
    pub object_ref: ObjectRef,
    /// The place in the object of the file, in lists wherever it is.
    pub pointer: Pointer,
    /// The name of the code.
    pub code: String,
    /// Its severity: a known warning does not make a denial known.
    pub severity: Severity,
    /// What was judged: one violation cannot be exchanged for another one.
    judged: String,
    /// Of a number how far it is on the forbidden side: one that is nearer to the limit is known too.
    excess: i128,
}

/// An object without its version, a place in it, and the name of a code.
pub type Spot = (ObjectRef, Pointer, String);

impl Identity {
    /// The identity of a finding about this value.
    pub(crate) fn new(
        object_ref: &ObjectRef,
        pointer: &Pointer,
        code: &str,
        severity: Severity,
        value: &str,
    ) -> Self {
        let group = object_ref.group();
        let api_version = if group.is_empty() { Arc::default() } else { format!("{group}/").into() };
        let object_ref = ObjectRef { api_version, ..object_ref.clone() };
        let (pointer, code, judged) = (pointer.without_indexes(), code.to_owned(), value.to_owned());
        Self { object_ref, pointer, code, severity, judged, excess: 0 }
    }

    /// The same finding about a number that is so far on the forbidden side.
    fn with_excess(&self, excess: i128) -> Self {
        Self { excess, ..self.clone() }
    }

    /// What it is about, whatever was judged.
    pub fn spot(&self) -> Spot {
        (self.object_ref.clone(), self.pointer.clone(), self.code.clone())
    }
}

/// Known findings, each with the number of times that it is known.
#[derive(Debug, Default)]
pub struct KnownFindings(BTreeMap<Identity, usize>);

impl KnownFindings {
    /// Adds a finding that is known so many times.
    fn add(&mut self, identity: Identity, count: usize) {
        *self.0.entry(identity).or_default() += count;
    }

    /// Removes a finding up to `wanted` times, and returns how many times it was known with this value: first with the
    /// number that is nearest.
    fn take(&mut self, identity: &Identity, wanted: usize) -> usize {
        let most = identity.with_excess(i128::MAX);
        let mut taken = 0;
        for known in self.0.range_mut(identity..=&most).map(|(_, known)| known) {
            let more = (wanted - taken).min(*known);
            *known -= more;
            taken += more;
        }
        taken
    }
}

/// The place of a finding.
pub(crate) struct FindingPlace<'c> {
    pub(crate) source: &'c Arc<Source>,
    object_ref: &'c ObjectRef,
    pointer: Pointer,
    at: FindingSpot<'c>,
}

impl FindingPlace<'_> {
    /// The stretch of the caret.
    pub(crate) fn span(&self, finding: &Finding) -> Span {
        self.at.carets(finding.at_key).0
    }

    pub(crate) fn identity(&self, finding: &Finding) -> Identity {
        let (code, value) = (finding.code_name(), &finding.fingerprint_value);
        let excess = finding.policy.as_ref().map_or(0, |policy| policy.excess);
        Identity::new(self.object_ref, &self.pointer, code, finding.severity, value).with_excess(excess)
    }
}

/// Visits every finding that is shown: those about objects first, then those about files.
pub(crate) fn each(checked: &mut Checked, mut visit: impl FnMut(&FindingPlace<'_>, &mut Finding)) {
    let mut last = LastSource::default();
    for Decided { object, decision, .. } in &mut checked.decided {
        last.is_now(&object.place);
        for finding in &mut decision.findings {
            let pointer = finding.pointer.clone();
            let at = object.standing(&pointer);
            visit(
                &FindingPlace { source: at.source(), object_ref: &object.object_ref, pointer, at },
                finding,
            );
        }
    }
    for Notice { finding, object_ref, source, span, .. } in &mut checked.inputs.notices {
        let pointer = finding.pointer.clone();
        visit(&FindingPlace { source, object_ref, pointer, at: FindingSpot::Text(source, *span) }, finding);
    }
}

/// The identity of each finding, in the order of [`each`].
pub(crate) fn identify(checked: &mut Checked) -> Vec<Identity> {
    let mut identities = Vec::new();
    each(checked, |place, finding| identities.push(place.identity(finding)));
    identities
}

/// The findings that are counted but not shown, of objects with very many, with their numbers.
fn not_shown(checked: &Checked) -> Vec<(Identity, usize)> {
    let of_object = |decided: &Decided| {
        let counts = decided.decision.not_shown;
        [(Severity::Deny, counts.denials), (Severity::Warn, counts.warnings)]
            .map(|(severity, count)| (not_shown_of(&decided.object.object_ref, severity), count))
    };
    checked.decided.iter().flat_map(of_object).filter(|(_, count)| *count > 0).collect()
}

fn not_shown_of(object_ref: &ObjectRef, severity: Severity) -> Identity {
    Identity::new(object_ref, &Pointer::root(), NOT_SHOWN, severity, "")
}

/// All findings as known ones.
pub fn known(checked: &Checked, identities: &[Identity]) -> KnownFindings {
    let mut known = KnownFindings::default();
    for identity in identities.iter().filter(|identity| identity.severity != Severity::Note) {
        known.add(identity.clone(), 1);
    }
    for (identity, count) in not_shown(checked) {
        known.add(identity, count);
    }
    known
}

/// Turns each known finding into a note for this reason, and removes it from `known`. `identities` are those of the
/// findings before any of them became a note.
pub fn suppress(checked: &mut Checked, identities: &[Identity], known: &mut KnownFindings, reason: &str) {
    let mut identities = identities.iter();
    each(checked, |_, finding| {
        let Some(identity) = identities.next() else { return };
        if known.take(identity, 1) == 1 {
            change(finding, Severity::Note, reason);
            finding.relation = Relation::Known;
        }
    });
    for decided in &mut checked.decided {
        let (object_ref, counts) = (&decided.object.object_ref, &mut decided.decision.not_shown);
        for (severity, count) in
            [(Severity::Deny, &mut counts.denials), (Severity::Warn, &mut counts.warnings)]
        {
            let identity = not_shown_of(object_ref, severity);
            *count -= known.take(&identity, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_known_findings_by_severity() {
        let object_ref = ObjectRef { kind: "Agent".into(), ..ObjectRef::default() };
        let denied = Identity::new(&object_ref, &Pointer::new("/spec"), "a/b", Severity::Deny, "");
        let warned = Identity { severity: Severity::Warn, ..denied.clone() };
        let mut known = KnownFindings::default();
        known.add(warned.clone(), 1);
        known.add(warned.clone(), 1);
        assert_eq!(known.take(&denied, 1), 0);
        assert_eq!(known.take(&warned, 3), 2);
        assert_eq!(known.take(&warned, 1), 0);
    }

    /// A number is known if it is as far on the forbidden side or less, another value only as it is.
    #[test]
    fn counts_known_findings_by_value() {
        let of = |value: &str| {
            let (object_ref, pointer) = (ObjectRef::default(), Pointer::new("/spec"));
            Identity::new(&object_ref, &pointer, "a/b", Severity::Deny, value)
        };
        let number = |excess| of("days").with_excess(excess);
        let mut known = KnownFindings::default();
        for identity in [of("a"), number(400), number(90)] {
            known.add(identity, 1);
        }
        let rows = [
            (of("b"), 0),
            (of("a"), 1),
            (of("a"), 0),
            (number(401), 0),
            (number(80), 1),
            (number(400), 1),
            (number(1), 0),
        ];
        for (identity, expected) in rows {
            assert_eq!(known.take(&identity, 1), expected, "{identity:?}");
        }
    }
}
