//! Decisions as a report has them: with their place in the files.

use crate::admission::Admitted;
use crate::model::decision::Untold;
use crate::model::finding::Finding;
use crate::model::object::Reference;
use crate::model::reason::Reason;
use crate::offline::check::Checked;
use crate::offline::errors::{input_error, location_in};
use crate::offline::load::CheckedObject;
use crate::report::{LocatedFinding, Related, Report};

/// Everything that was found, in the order of the inputs.
#[must_use]
pub fn report(checked: &Checked) -> Report<'_> {
    let decided = &checked.decided;
    let malformed = decided.iter().filter(|(_, admitted)| admitted.decision.reason == Reason::Malformed);
    let mut unknown: Vec<String> =
        decided.iter().flat_map(|(_, admitted)| &admitted.decision.unknown).map(reference_title).collect();
    unknown.sort();
    unknown.dedup();
    let untold = decided.iter().map(|(object, admitted)| (&object.object_ref, admitted.decision.untold));
    Report {
        files: checked.sources.len(),
        objects: decided.len(),
        denied: decided.iter().filter(|(_, admitted)| !admitted.allowed()).count(),
        passed_over: checked.passed_over.values().sum(),
        errors: checked.errors.iter().map(input_error).collect(),
        malformed: malformed.map(|(object, _)| object.object_ref.title()).collect(),
        findings: decided.iter().flat_map(|(object, admitted)| findings(object, admitted)).collect(),
        untold: untold.filter(|(_, untold)| *untold != Untold::default()).collect(),
        unknown,
    }
}

/// The findings of one object, in the order in which they stand in the file.
fn findings<'r>(object: &'r CheckedObject, admitted: &'r Admitted) -> Vec<LocatedFinding<'r>> {
    let findings = admitted.decision.findings.iter();
    let mut located: Vec<_> = findings.map(|finding| locate(object, finding)).collect();
    located.sort_by_key(|located| located.location.start);
    located
}

fn locate<'r>(object: &'r CheckedObject, finding: &'r Finding) -> LocatedFinding<'r> {
    let document = &object.document;
    let pointer = object.in_document(&finding.pointer);
    let place = document.locate(&pointer);
    let key = place.key.filter(|_| finding.at_key && place.exact);
    let location = location_in(document, key.unwrap_or(place.caret));
    let related = finding.related.as_ref().and_then(|(pointer, label)| {
        let place = document.locate(&object.in_document(pointer));
        let location = location_in(document, place.caret);
        place.exact.then(|| Related { location, label: (*label).to_owned() })
    });
    LocatedFinding { finding, pointer, object_ref: &object.object_ref, location, related }
}

/// The object that a reference names: `Secret team-a/redis`.
fn reference_title(reference: &Reference) -> String {
    let path = [reference.namespace.as_str(), reference.name.as_str()];
    let path = path.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    format!("{} {path}", reference.kind.kind)
}
