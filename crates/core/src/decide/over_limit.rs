//! Decisions about objects that are larger than memgate reads.

use memgate_model::decision::Decision;
use memgate_model::finding::{Finding, Severity};
use memgate_model::reason::Reason;
use memgate_model::request::{Operation, Request};
use memgate_platforms::common::OVER_LIMIT;
use memgate_primitives::budget::{Limit, OverLimit, Stop};
use memgate_primitives::pointer::Pointer;

/// The decision about a resource that ended early. An update of a stored object that exceeds the same limit only
/// gets a warning, so that it can still be repaired, labelled and deleted; so does an update that changes nothing.
pub(super) fn resource(request: &Request<'_>, stop: Stop, stored: &[OverLimit], unchanged: bool) -> Decision {
    let over = match stop {
        Stop::Cancelled => return Decision::pass(Reason::Cancelled),
        Stop::OverLimit(over) => over,
    };
    let is_stored = unchanged || stored.iter().any(|stored| stored.limit == over.limit);
    let severity = if is_stored { Severity::Warn } else { Severity::Deny };
    let findings = match request.operation {
        Operation::Delete | Operation::Connect => Vec::new(),
        Operation::Create | Operation::Update => vec![Finding { severity, ..too_large(&over) }],
    };
    Decision { findings, ..Decision::pass(Reason::OverLimit) }
}

fn too_large(over: &OverLimit) -> Finding {
    let message = format!("{}: memgate reads {} at most", place(over), over.limit.at_most());
    Finding::deny(&OVER_LIMIT, over.pointer.clone(), message).help("make it smaller")
}

/// The warning about an object that is too large to be compared with its schema to the end. Only files are
/// compared, and the family's own rules judge such an object as in a cluster.
pub(super) fn of_schema(over: &OverLimit) -> Finding {
    Finding { severity: Severity::Warn, ..too_large(over) }
}

/// The warning about an object whose defaults would make too large a patch.
pub(super) fn no_defaults() -> Finding {
    let message = format!("the object: its defaults need more than {}; it gets none", Limit::Patch.at_most());
    Finding::warn(&OVER_LIMIT, Pointer::root(), message).on_rewrite()
}

/// The decision about a pod that exceeds a limit. `None` if neither a family recognises the pod (`known`) nor the pod
/// asks to be refused rather than started without its memory (`required`).
pub(super) fn pod(over: &OverLimit, known: bool, required: bool) -> Option<Decision> {
    if !known && !required {
        return None;
    }
    let (place, most) = (place(over), over.limit.at_most());
    let message = match over.limit {
        Limit::Patch => format!("{place}: its memory needs more than {most}; it gets nothing"),
        _ => format!("{place}: memgate reads {most} at most; the pod gets no memory"),
    };
    let severity = if required { Severity::Deny } else { Severity::Warn };
    let findings = vec![Finding { severity, ..Finding::warn(&OVER_LIMIT, over.pointer.clone(), message) }];
    Some(Decision { findings, required, ..Decision::pass(Reason::OverLimit) })
}

fn place(over: &OverLimit) -> String {
    over.pointer.field_or("the object")
}
