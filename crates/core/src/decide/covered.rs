//! The places about which a family reports a finding of its own: the schema adds none there.

use memgate_model::finding::{Cause, Finding};
use memgate_primitives::members::{ByKey, Members};
use memgate_schema::violation::{Rule, SchemaViolation};

/// The causes of a family's warnings about faults that the schema finds too.
const OF_SCHEMA: [Cause; 3] = [Cause::Required, Cause::NotSupported, Cause::TypeInvalid];

/// The places of a family's findings.
pub(super) struct Covered<'f> {
    places: ByKey<&'f str, OwnFindings>,
    /// The places above those where a denial reports a missing value.
    above_missing: Members<&'f str>,
}

/// What the family reports about a place.
#[derive(Debug, Default, Clone, Copy)]
struct OwnFindings {
    /// A denial, or a warning about a fault of the schema.
    is_fault: bool,
    /// A denial for a missing value.
    is_missing: bool,
}

impl<'f> Covered<'f> {
    /// Collects the places of these findings.
    pub(super) fn by(own: &'f [Finding]) -> Self {
        let mut places: ByKey<_, OwnFindings> = ByKey::with_capacity(own.len());
        let mut above_missing = Members::default();
        for finding in own {
            let here = finding.pointer.as_str();
            let is_missing = finding.is_denial() && finding.code.cause == Cause::Required;
            let of_place = places.or_default(here);
            of_place.is_fault |= finding.is_denial() || OF_SCHEMA.contains(&finding.code.cause);
            of_place.is_missing |= is_missing;
            if is_missing {
                // Where one level is known, those above it are too.
                let _known = holders(here).find(|above| !above_missing.insert(*above));
            }
        }
        Self { places, above_missing }
    }

    /// Whether the family reports a finding about the place of a violation. For a missing value, one about a field
    /// below it or about its parent counts too.
    pub(super) fn contains(&self, violation: &SchemaViolation<'_>) -> bool {
        let place = violation.pointer.as_str();
        if self.places.is_empty() {
            return false;
        }
        let here = self.places.get(place);
        if here.is_some_and(|own| own.is_fault || violation.stored) {
            return true;
        }
        if !matches!(violation.rule, Rule::Required(..)) || self.above_missing.is_empty() {
            return false;
        }
        let is_missing = |place: &str| self.places.get(place).is_some_and(|own| own.is_missing);
        self.above_missing.contains(place) || holders(place).next().is_some_and(is_missing)
    }
}

/// The places that hold a place, from its parent up to the whole object.
fn holders(place: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(place), |place| place.rsplit_once('/').map(|(holder, _)| holder)).skip(1)
}
