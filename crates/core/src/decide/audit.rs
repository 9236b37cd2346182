//! What policies say of an object that is stored: nothing is decided about, and its platform is not asked.

use crate::family;
use crate::model::object::Reference;
use crate::model::request::Request;
use crate::model::snapshot::Snapshot;
use crate::model::tree::Tree;
use crate::model::work::Work;
use crate::policy::judge::Judgement;

use super::{policies, subject};

/// What policies say of a stored object, and what they would have to know besides.
#[derive(Debug, Default)]
pub struct Audit {
    /// What policies say.
    pub judgement: Judgement,
    /// Objects that may change that, and of which it is not known whether they are there.
    pub unknown: Vec<Reference>,
}

/// Judges the object of a request, as it is, by the policies of the snapshot. Of an object that cannot be read, or is
/// larger than what is read, nothing is said.
#[must_use]
pub fn audit(request: &Request<'_>, snapshot: &Snapshot) -> Audit {
    let found = family::validated(&snapshot.settings.families, &request.group, &request.kind);
    let (Some((family, kind)), Some(text)) = (found, request.object) else { return Audit::default() };
    let work = Work::new(request.cancelled).about(text.len());
    let Ok(object) = Tree::parse_within(text, &kind.schema, &work) else { return Audit::default() };
    let (subject, mut state) = subject(kind, request, (&object, None), snapshot, &work);
    let judgement = policies::of_resource(family, &subject, request, snapshot, &mut state);
    let unknown = state.into_unknown();
    if work.has_ended() { Audit::default() } else { Audit { judgement, unknown } }
}
