//! What is known of an object of which a later step fills in some scalars: what is found and added whatever they say.

use std::collections::{BTreeMap, BTreeSet};

use memgate_manifest::later::{any_field, has_below, is_filled_in_later};
use memgate_model::decision::Decision;
use memgate_model::edit::Edit;
use memgate_model::elsewhere::Elsewhere;
use memgate_model::finding::{Cause, Code, Finding};
use memgate_model::object::Reference;
use memgate_model::policy_rule::PolicyStatus;
use memgate_model::reason::Reason;
use memgate_model::request::Request;
use memgate_primitives::pointer::Pointer;
use memgate_primitives::review_path::Phase;
use memgate_schema::crd::Read;
use memgate_schema::violation::{Rule, SchemaViolation};

use super::unknown_fields::path;

/// Leaves what is found and added with the text of what a later step fills in, and also without it: nothing else is known.
/// A finding about such a scalar, or that reads one, is not, whether it is in the object or, as `others` have them, in
/// another one. The edits are those of both webhook calls.
pub fn keep_known(
    request: &Request<'_>,
    others: &BTreeMap<Reference, BTreeSet<Pointer>>,
    (decision, edits): (&mut Decision, &mut Vec<Edit>),
    (without, edits_without): (&Decision, &[Edit]),
) {
    // A policy names the nearest place that exists.
    let key = |it: &Finding| (it.code_name().to_owned(), it.policy.is_none().then(|| it.pointer.clone()));
    let common: BTreeSet<_> = without.findings.iter().map(key).collect();
    let unknown: BTreeSet<String> = request.occasion.later.into_iter().flatten().map(path).collect();
    let is_of_other = |Elsewhere { object, pointer, .. }: &Elsewhere| {
        let Some(later) = others.get(object) else { return false };
        // A finding at a whole section is about what it lacks.
        let is_section = pointer.tokens().nth(1).is_none();
        !is_section && has_below(later, pointer)
            || from_here_up(pointer).any(|it| later.contains(&it) || later.contains(&any_field(&it)))
    };
    let is_known = |it: &Finding| match &it.policy {
        Some(policy) => policy.status == PolicyStatus::Unknown || common.contains(&key(it)),
        None => {
            common.contains(&key(it))
                && !is_about(request, it)
                && !reads_any(it.code, &unknown)
                && !it.elsewhere.iter().any(is_of_other)
        }
    };
    decision.findings.retain(is_known);
    let (own, other) = (&mut decision.not_shown, &without.not_shown);
    own.denials = own.denials.min(other.denials);
    own.warnings = own.warnings.min(other.warnings);
    if decision.allowed() && matches!(decision.reason, Reason::Invalid | Reason::PolicyDenied) {
        decision.reason = Reason::Valid;
    }
    // What is added to a pod belongs together.
    if decision.phase == Phase::Mutate {
        if *edits != edits_without {
            edits.clear();
        }
        return;
    }
    let by_place: BTreeMap<_, _> = edits_without.iter().map(|edit| (&edit.pointer, edit)).collect();
    edits.retain(|edit| by_place.get(&edit.pointer) == Some(&edit));
}

/// Whether findings of a code read one of the fields with these paths besides that at which they stand.
fn reads_any(code: &Code, unknown: &BTreeSet<String>) -> bool {
    let mut fields = memgate_platforms::ALL.iter().filter_map(|family| family.read_besides(code)).flatten();
    fields.any(|field| unknown.contains(field))
}

/// Whether a finding is about what a later step fills in.
pub(super) fn is_about(request: &Request<'_>, finding: &Finding) -> bool {
    is_at(request, &finding.pointer, finding.at_key)
        || finding.cause == Cause::Required && may_be_there(request, &finding.pointer)
}

/// Whether a later step may fill in the key of a field that an object lacks.
fn may_be_there(request: &Request<'_>, pointer: &Pointer) -> bool {
    let Some(later) = request.occasion.later else { return false };
    from_here_up(pointer).any(|holder| later.contains(&any_field(&holder)))
}

/// A place, what holds it, and so on.
fn from_here_up(pointer: &Pointer) -> impl Iterator<Item = Pointer> {
    std::iter::successors(Some(pointer.clone()), Pointer::parent)
}

/// Whether a violation is, or its rule reads such a scalar, or what a part of an object lacks.
pub(super) fn violates(request: &Request<'_>, violation: &SchemaViolation<'_>) -> bool {
    let pointer = &violation.pointer;
    if request.occasion.is_part && violation.is_of_whole() {
        return true;
    }
    let Some(later) = request.occasion.later else { return false };
    let reads = || match violation.rule {
        Rule::Cel(rule) | Rule::CelError(rule) => {
            let value = violation.of_cel(rule);
            rule.reads().iter().any(|read| is_read(later, &value, read))
        }
        Rule::Required(..) => may_be_there(request, pointer),
        Rule::NotEvaluated(..) | Rule::AnyOf | Rule::OneOf(_) | Rule::Not => has_below(later, pointer),
        _ => false,
    };
    is_at(request, pointer, violation.at_key()) || reads()
}

/// Whether what a rule about `value` reads is one of these places, is in one, or has one in it.
fn is_read(later: &BTreeSet<Pointer>, value: &Pointer, read: &Read) -> bool {
    let mut place = value.clone();
    let mut is_in = |token: &str| {
        place = place.key(token);
        later.contains(&place)
    };
    later.contains(value)
        || read.place.tokens().any(|token| is_in(&token))
        || !read.only_exists && has_below(later, &place)
}

/// A finding about a key is not about the value there.
fn is_at(request: &Request<'_>, pointer: &Pointer, at_key: bool) -> bool {
    let is_later_key = || pointer.tokens().last().is_some_and(|key| is_filled_in_later(&key));
    let mut places = from_here_up(pointer).take(if at_key { 1 } else { usize::MAX });
    request.occasion.later.is_some()
        && places.any(|place| request.occasion.fills_in_later(&place))
        && (!at_key || is_later_key())
}
