//! What of stored objects is not judged: what runs once and ends was judged when it was made.

use crate::model::family::Family;
use crate::offline::checked_object::UndecidedObject;
use crate::offline::passed_over::{PassedOver, Why};

/// Moves objects that run once and end to what is passed over; with `pods` also pods and workloads, which no audit
/// judges.
pub fn pass_over(
    objects: &mut Vec<Box<UndecidedObject>>,
    passed_over: &mut Vec<PassedOver>,
    families: &[&'static Family],
    pods: bool,
) {
    for object in std::mem::take(objects) {
        let request = object.request();
        let mut transient = families.iter().flat_map(|family| family.transient);
        let is_transient = transient.any(|kind| kind.is(&request.group, &request.kind));
        if is_transient || (pods && request.is_pod()) {
            let (place, object_ref) = (&object.object.place, object.object.object_ref.clone());
            passed_over.push(PassedOver::object(place, object_ref, Why::AdmissionOnly));
        } else {
            objects.push(object);
        }
    }
}
