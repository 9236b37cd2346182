//! Stored objects that are not judged again: those that run once and end, and policies, were judged when they were
//! created.

use crate::offline::checked_object::UndecidedObject;
use crate::offline::passed_over::{PassedOver, Why};
use memgate_model::family::Family;

/// Moves objects that run once and end, and policies, to those that are passed over; with `pods` also pods and workloads,
/// which audits do not judge.
pub fn pass_over(
    objects: &mut Vec<Box<UndecidedObject>>,
    passed_over: &mut Vec<PassedOver>,
    families: &[&'static Family],
    pods: bool,
) {
    for object in std::mem::take(objects) {
        let request = object.request();
        let mut transient = families.iter().flat_map(|family| family.views.transient);
        let is_transient = transient.any(|kind| kind.is(&request.group, &request.kind));
        let is_policy = memgate_policy::resource::kind(&request.group, &request.kind).is_some();
        if is_transient || is_policy || (pods && request.is_pod()) {
            let (place, object_ref) = (&object.object.place, object.object.object_ref.clone());
            passed_over.push(PassedOver::object(place, object_ref, Why::AdmissionOnly));
        } else {
            objects.push(object);
        }
    }
}
