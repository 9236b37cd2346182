//! The places about which a family speaks by itself: of those the schema says nothing more.

use crate::model::finding::{Cause, Finding, Severity};
use crate::model::members::{ByKey, Members};
use crate::model::violation::{Broken, BrokenKind};

/// The places of a family's findings.
pub(super) struct Spoken<'f> {
    /// How the family speaks of a place.
    places: ByKey<&'f str, Speech>,
    /// What holds a place of which a denial says that a value is missing.
    above_missing: Members<&'f str>,
}

/// How a family speaks of a place.
#[derive(Debug, Default, Clone, Copy)]
struct Speech {
    /// With a denial, or advice about the same kind of fault.
    is_fault: bool,
    /// With a denial for a missing value.
    is_missing: bool,
}

impl<'f> Spoken<'f> {
    pub(super) fn of(own: &'f [Finding]) -> Self {
        let mut places: ByKey<_, Speech> = ByKey::default();
        let mut above_missing = Members::default();
        for finding in own {
            let here = finding.pointer.as_str();
            let denies = finding.severity == Severity::Deny;
            let of_schema = [Cause::Required, Cause::NotSupported, Cause::TypeInvalid];
            let speech = places.or_default(here);
            speech.is_fault |= denies || of_schema.contains(&finding.code.cause);
            if denies && finding.code.cause == Cause::Required && !speech.is_missing {
                speech.is_missing = true;
                // Where one level is known, those above it are too.
                let mut above = here;
                while let Some((parent, _)) = above.rsplit_once('/')
                    && above_missing.insert(parent)
                {
                    above = parent;
                }
            }
        }
        Self { places, above_missing }
    }

    /// Whether the family says nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether the family speaks about the place of a breach; about a missing value also if it names a field
    /// in it, or what should hold it.
    pub(super) fn covers(&self, broken: Broken<'_>, stored: bool) -> bool {
        let here = self.places.get(broken.pointer);
        if here.is_some_and(|speech| speech.is_fault || stored) {
            return true;
        }
        if broken.kind != BrokenKind::Required || self.above_missing.is_empty() {
            return false;
        }
        let is_missing = |place: &str| self.places.get(place).is_some_and(|speech| speech.is_missing);
        let parent = broken.pointer.rsplit_once('/');
        self.above_missing.contains(broken.pointer) || parent.is_some_and(|(parent, _)| is_missing(parent))
    }
}
