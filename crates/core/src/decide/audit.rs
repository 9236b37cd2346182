//! Judges a stored object by the policies; its platform's own rules do not run.
use memgate_model::object::Reference;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_model::tree::Tree;
use memgate_policy::judge::Judgement;
use memgate_primitives::budget::Budget;

use super::{policies, subject};

/// The findings of policies about a stored object.
#[derive(Debug, Default)]
pub struct Audit {
    /// The findings.
    pub judgement: Judgement,
    /// Objects that could change them and are not known.
    pub unknown: Vec<Reference>,
    /// Whether the object could be read within the limits. Otherwise nothing is reported about it.
    pub is_read: bool,
}

/// Judges the object of a request, as it is, by the policies of the snapshot. An object that cannot be read, or
/// exceeds the limits, gives no findings.
pub fn audit(request: &Request<'_>, snapshot: &Snapshot) -> Audit {
    let found = memgate_platforms::validated(&snapshot.settings.families, &request.group, &request.kind);
    let (Some((family, kind)), Some(text)) = (found, request.object) else { return Audit::default() };
    let budget = Budget::new(request.cancelled, text.len());
    let Ok(object) = Tree::parse_within(text, &kind.schema, &budget) else { return Audit::default() };
    let (subject, mut state) = subject(kind, request, (&object, None), snapshot, &budget);
    let judgement =
        policies::of_resource(family, &subject, &policies::Asked::of(request), snapshot, &mut state);
    let unknown = state.into_unknown();
    if budget.has_ended() { Audit::default() } else { Audit { judgement, unknown, is_read: true } }
}
