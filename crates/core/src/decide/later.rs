//! Findings about scalars that a later step fills in.

use memgate_manifest::later::{has_below, is_filled_in_later};
use memgate_model::finding::Finding;
use memgate_model::request::Request;
use memgate_primitives::pointer::Pointer;
use memgate_schema::violation::{Rule, SchemaViolation};

/// Whether a finding is about what a later step fills in.
pub(super) fn is_about(request: &Request<'_>, finding: &Finding) -> bool {
    is_at(request, &finding.pointer, finding.at_key)
}

/// Whether a violation is. A rule on a whole value may look at anything in it.
pub(super) fn violates(request: &Request<'_>, violation: &SchemaViolation<'_>) -> bool {
    let pointer = &violation.pointer;
    let is_of_whole = matches!(
        violation.rule,
        Rule::Cel(_) | Rule::CelError(_) | Rule::NotEvaluated(..) | Rule::AnyOf | Rule::OneOf(_) | Rule::Not
    );
    is_at(request, pointer, violation.at_key())
        || is_of_whole && request.occasion.later.is_some_and(|later| has_below(later, pointer))
}

/// A finding about a key is not about the value there.
fn is_at(request: &Request<'_>, pointer: &Pointer, at_key: bool) -> bool {
    let is_later_key = || pointer.tokens().last().is_some_and(|key| is_filled_in_later(&key));
    request.occasion.fills_in_later(pointer) && (!at_key || is_later_key())
}
