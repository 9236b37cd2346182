//! The places about which a family speaks by itself: of those the schema says nothing more.

use crate::model::finding::{Cause, Finding, Severity};
use crate::model::members::{ByKey, Members};
use crate::model::violation::{Broken, BrokenKind};

/// The causes with which a family also advises about a fault that the schema finds.
const OF_SCHEMA: [Cause; 3] = [Cause::Required, Cause::NotSupported, Cause::TypeInvalid];

/// A family's findings, asked about one place after the other. It mostly finds things in the order of the schema,
/// and two in step need no search.
pub(super) struct InStep<'f> {
    own: &'f [Finding],
    next: usize,
}

impl<'f> InStep<'f> {
    pub(super) const fn of(own: &'f [Finding]) -> Self {
        Self { own, next: 0 }
    }

    /// Whether one of the next findings speaks about the place of a breach. Where none does, another one may.
    pub(super) fn covers(&mut self, broken: Broken<'_>, stored: bool) -> bool {
        /// How many findings may be about something else.
        const MAX_BETWEEN: usize = 3;
        let from = self.next.saturating_sub(1);
        let near = self.own.iter().enumerate().skip(from).take(2 + MAX_BETWEEN);
        let speaks = |own: &Finding| own.pointer.as_str() == broken.pointer && (stored || is_fault(own));
        let found = near.into_iter().find(|(_, own)| speaks(own)).map(|(index, _)| index);
        self.next = found.map_or(self.next, |index| index + 1);
        found.is_some()
    }
}

/// What holds the places that are asked for. Most stand in one list.
#[derive(Default)]
pub(super) struct Around {
    holders: Members<String>,
    added: usize,
}

impl Around {
    /// After how many places all are taken: to tell them apart would cost as much as it saves.
    const MAX: usize = 1_000;

    /// Adds a place.
    pub(super) fn add(&mut self, place: &str) {
        self.added += 1;
        if self.added > Self::MAX {
            return;
        }
        for holder in holders(place).take(2) {
            if !self.holders.contains(holder) {
                self.holders.insert(holder.to_owned());
            }
        }
    }

    fn holds_in(&self, holder: Option<&str>) -> bool {
        self.added > Self::MAX || holder.is_none_or(|holder| self.holders.contains(holder))
    }
}

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
    /// What these findings say of the places that are asked for, and of what holds those.
    pub(super) fn of(own: &'f [Finding], asked: &Around) -> Self {
        let mut places: ByKey<_, Speech> = ByKey::default();
        let mut above_missing = Members::default();
        let mut last = (None, false);
        for finding in own {
            let here = finding.pointer.as_str();
            let is_missing = is_denial(finding) && finding.code.cause == Cause::Required;
            let holder = holders(here).next();
            if last.0 != Some(holder) {
                last = (Some(holder), asked.holds_in(holder));
            }
            if last.1 {
                let speech = places.or_default(here);
                speech.is_fault |= is_fault(finding);
                speech.is_missing |= is_missing;
            }
            if is_missing {
                // Where one level is known, those above it are too.
                let _known = holders(here).find(|above| !above_missing.insert(*above));
            }
        }
        Self { places, above_missing }
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
        self.above_missing.contains(broken.pointer) || holders(broken.pointer).next().is_some_and(is_missing)
    }
}

/// What holds a place, from its own holder up to the whole object.
fn holders(place: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(place), |place| place.rsplit_once('/').map(|(holder, _)| holder)).skip(1)
}

fn is_denial(finding: &Finding) -> bool {
    finding.severity == Severity::Deny
}

/// Whether the schema need not repeat it.
fn is_fault(finding: &Finding) -> bool {
    is_denial(finding) || OF_SCHEMA.contains(&finding.code.cause)
}
