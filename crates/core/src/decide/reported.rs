//! Selects the findings that are reported.
//!
//! A denial that the stored object deserves already only warns. What the bundled definition of a kind says does not
//! count where another definition does, and the schema adds nothing where a family has a finding of its own. Of the
//! rest the first ones are reported.

use std::iter::successors;

use memgate_model::decision::NotShown;
use memgate_model::family::{Family, SchemaStandIn, Subject};
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_model::request::{Operation, Request};
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::budget::OverLimit;
use memgate_primitives::members::{ByKey, Members};
use memgate_primitives::pointer::Pointer;
use memgate_schema::Violations;
use memgate_schema::crd::CelRule;
use memgate_schema::violation::{Places, Rule, SchemaViolation};

/// How many findings about one object are reported. More would fill the answer and help no reader.
pub const MAX_REPORTED: usize = 50;

/// Up to this many findings are sorted before they are selected. Of more, the rules find those in front first,
/// and sorting all would take longer than finding them.
const MAX_SORTED: usize = 400;

/// Drops the findings about the effects of a change that is refused.
pub(super) fn drop_when_refused(findings: &mut Vec<Finding>) {
    if findings.iter().any(Finding::is_denial) {
        findings.retain(|finding| !finding.when_allowed);
    }
}

/// Keeps the findings that are reported, in document order: denials before warnings, of each the first ones.
pub(super) fn select(findings: &mut Vec<Finding>, object: &Tree) -> NotShown {
    let sort = |findings: &mut Vec<Finding>| {
        findings.sort_by_cached_key(|finding| object.document_position(&finding.pointer));
    };
    if findings.len() <= MAX_SORTED {
        sort(findings);
        return keep_first(findings);
    }
    let not_shown = keep_first(findings);
    sort(findings);
    not_shown
}

/// Keeps the findings that are reported, in their order: denials before warnings, warnings before notes, of each
/// the first ones. Dropped notes are not counted.
pub(super) fn keep_first(findings: &mut Vec<Finding>) -> NotShown {
    let mut room = MAX_REPORTED;
    let [denials, warnings, _] = [Severity::Deny, Severity::Warn, Severity::Note].map(|severity| {
        let mut dropped = 0;
        let mut left = room;
        findings.retain(|finding| {
            let keep = finding.severity != severity || left > 0;
            if finding.severity == severity {
                left = left.saturating_sub(1);
                dropped += usize::from(!keep);
            }
            keep
        });
        room = left;
        dropped
    });
    NotShown { denials, warnings }
}

/// The sort key of a pointer into an object whose fields are sorted by name, as the apiserver sends them.
pub(super) fn position(pointer: &Pointer) -> Vec<(usize, String)> {
    pointer.tokens().map(|token| (token.parse().unwrap_or(0), token.into_owned())).collect()
}

/// Turns each denial that the stored object already deserves into a warning, so that a stored object can still be
/// labelled, annotated and freed of its finalizers. Returns the limit that the findings about the stored object
/// exceed.
/// Source: Kubernetes documentation, CRD validation ratcheting.
pub(super) fn ratchet(
    family: &Family,
    subject: &Subject<'_>,
    request: &Request<'_>,
    state: &mut StateReader<'_>,
    findings: &mut [Finding],
) -> Option<OverLimit> {
    let (old, budget) = (subject.old?, state.budget());
    if !budget.has_ended() {
        if family.validation.ratchets || !findings.iter().any(Finding::is_denial) {
            return None;
        }
        if old == subject.object {
            warn_of_stored(findings, |_| true);
            return None;
        }
    }
    let stored = Subject { operation: Operation::Create, object: old, old: None, ..*subject };
    let (stored, over) = budget.apart(request.old_object.map_or(0, str::len), || {
        budget.only_denials(|| (family.faces.validate)(&stored, state))
    });
    let known: Members<_> =
        stored.iter().filter(|finding| finding.is_denial()).map(Finding::fingerprint).collect();
    warn_of_stored(findings, |finding| known.contains(&finding.fingerprint()));
    over
}

/// Turns the denials that are stored already into warnings.
fn warn_of_stored(findings: &mut [Finding], is_stored: impl Fn(&Finding) -> bool) {
    for finding in findings.iter_mut().filter(|finding| finding.is_denial()) {
        if is_stored(finding) {
            finding.severity = Severity::Warn;
        }
    }
}

/// Drops findings that only repeat the bundled definition, where another one counts, of which `found` is all that an
/// object violates.
pub(super) fn drop_contradicted(family: &Family, found: &Violations<'_>, own: &mut Vec<Finding>) {
    let repeats = |finding: &Finding| repeats_schema(family, finding);
    let broken: Members<&str> = found.iter().map(|violation| violation.pointer.as_str()).collect();
    own.retain(|finding| {
        !repeats(finding) || up(finding.pointer.as_str()).any(|place| broken.contains(place))
    });
}

/// Drops the findings at or below values of the wrong type, which would only repeat that the value cannot be read, and the
/// warnings about what holds one: it is not yet known what that does.
pub(super) fn drop_around_wrong_types<'v>(
    wrong: impl Iterator<Item = &'v SchemaViolation<'v>>,
    own: &mut Vec<Finding>,
) {
    if own.is_empty() {
        return;
    }
    let wrong: Vec<_> = wrong.collect();
    let places: Members<&str> = wrong.iter().map(|violation| violation.pointer.as_str()).collect();
    let in_order = Places::of(wrong.into_iter());
    own.retain(|finding| {
        let holds_one = || in_order.has_below(&finding.pointer);
        !up(finding.pointer.as_str()).any(|place| places.contains(place))
            && (finding.is_denial() || !holds_one())
    });
}

/// A place and those that hold it, up to the whole object.
fn up(place: &str) -> impl Iterator<Item = &str> {
    successors(Some(place), |place| place.rsplit_once('/').map(|(parent, _)| parent))
}

/// Whether a finding is a denial about the type of a value, or about a fixed set of values, of which the bundled
/// definition says the same, or stands in for a definition that is not bundled.
fn repeats_schema(family: &Family, finding: &Finding) -> bool {
    let SchemaStandIn { code, wrong_type, repeated, .. } = family.definitions.stand_in;
    finding.severity == Severity::Deny
        && ([code, wrong_type].contains(&finding.code) || repeated.contains(&finding.code))
}

/// The causes of a family's warnings about faults that the schema finds too.
const OF_SCHEMA: [Cause; 3] = [Cause::Required, Cause::NotSupported, Cause::TypeInvalid];

/// The places of a family's findings.
pub(super) struct Covered<'f> {
    places: ByKey<&'f str, OwnFindings>,
    /// The places above those where a denial reports a missing value.
    above_missing: Members<&'f str>,
    /// The places above those of denials.
    above_denials: Members<&'f str>,
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
        let (mut above_missing, mut above_denials) = (Members::default(), Members::default());
        for finding in own {
            let here = finding.pointer.as_str();
            let is_missing = finding.is_denial() && finding.code.cause == Cause::Required;
            let of_place = places.entry(here).or_default();
            of_place.is_fault |= finding.is_denial() || OF_SCHEMA.contains(&finding.code.cause);
            of_place.is_missing |= is_missing;
            if finding.is_denial() {
                let _known = up(here).skip(1).find(|above| !above_denials.insert(*above));
            }
            if is_missing {
                // Where one level is known, those above it are too.
                let _known = up(here).skip(1).find(|above| !above_missing.insert(*above));
            }
        }
        Self { places, above_missing, above_denials }
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
        if let Rule::Cel(rule) | Rule::CelError(rule) = violation.rule {
            return self.contains_fault_of(rule, &violation.of_cel(rule));
        }
        if !matches!(violation.rule, Rule::Required(..)) || self.above_missing.is_empty() {
            return false;
        }
        let is_missing = |place: &str| self.places.get(place).is_some_and(|own| own.is_missing);
        self.above_missing.contains(place) || up(place).nth(1).is_some_and(is_missing)
    }

    /// Whether the family denies what a rule in CEL is about: its value, or one in the fields that it reads.
    fn contains_fault_of(&self, rule: &CelRule, node: &Pointer) -> bool {
        let is_fault = |place: &str| self.places.get(place).is_some_and(|own| own.is_fault);
        is_fault(node.as_str())
            || rule
                .reads()
                .iter()
                .filter_map(|read| Some(node.key(&read.place.tokens().next()?)))
                .any(|field| is_fault(field.as_str()) || self.above_denials.contains(field.as_str()))
    }
}
