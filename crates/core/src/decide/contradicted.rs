//! Drops findings of a family that repeat the bundled definition of a kind, where another definition counts.

use std::iter::successors;

use memgate_model::cel::NotInCel;
use memgate_model::family::Family;
use memgate_model::finding::{Cause, Finding, Severity};
use memgate_primitives::members::Members;
use memgate_primitives::pointer::{Pointer, list_index};
use memgate_schema::Violations;
use memgate_schema::crd::{CrdVersion, SchemaNode};

/// Drops findings that only repeat the bundled definition, where `given`, the definition that counts, differs.
pub(super) fn drop_contradicted(
    family: &Family,
    given: Option<&CrdVersion>,
    found: &Violations<'_>,
    own: &mut Vec<Finding>,
) {
    let Some(version) = given else { return };
    let repeats = |finding: &Finding| repeats_schema(family, finding);
    let broken: Members<&str> = found.iter().map(|violation| violation.pointer.as_str()).collect();
    own.retain(|finding| {
        if family.definitions.stand_in.unknown_field == Some(finding.code) {
            return !declares(&version.schema, &finding.pointer);
        }
        !repeats(finding) || up(&finding.pointer).any(|place| broken.contains(place))
    });
}

/// A place and those that hold it, up to the whole object.
fn up(pointer: &Pointer) -> impl Iterator<Item = &str> {
    successors(Some(pointer.as_str()), |place| place.rsplit_once('/').map(|(parent, _)| parent))
}

/// Whether a finding is a denial about the type of a value, or about a fixed set of values, of which the bundled
/// definition says the same, or stands in for a definition that is not bundled.
fn repeats_schema(family: &Family, finding: &Finding) -> bool {
    finding.severity == Severity::Deny
        && (matches!(finding.code.cause, Cause::TypeInvalid | Cause::NotSupported)
            || family.definitions.stand_in.code == finding.code)
        && family.in_cel.missing.contains(&(finding.code, NotInCel::Schema))
}

/// Whether a schema declares a field.
fn declares(schema: &SchemaNode, field: &Pointer) -> bool {
    let mut here = schema;
    for token in field.tokens() {
        let items = here.list.items.as_deref().filter(|_| list_index(&token).is_some());
        match items.or_else(|| here.object.field(&token)) {
            Some(below) => here = below,
            None => return false,
        }
    }
    true
}
