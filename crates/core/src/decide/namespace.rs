//! The namespace of a pod whose request or manifest may name none.

use crate::family;
use crate::model::family::Family;
use crate::model::pod::Pod;
use crate::model::snapshot::Snapshot;

use super::first_non_empty;

/// The given namespace, else that of the pod's metadata, else the one that the pod declares in its spec. Empty when
/// none is given, or when the settings have one.
pub(super) fn of_pod<'n>(pod: &'n Pod<'_>, given: &'n str, snapshot: &Snapshot) -> &'n str {
    let own = pod.metadata.as_ref().and_then(|metadata| metadata.namespace.as_deref());
    match (first_non_empty([given, own.unwrap_or_default()]), &snapshot.settings.namespace) {
        ("", None) => declared(pod, &snapshot.settings.families).unwrap_or_default(),
        (namespace, _) => namespace,
    }
}

/// The namespace that a pod declares in its spec, for a manifest without one.
fn declared<'p>(pod: &'p Pod<'_>, families: &[&'static Family]) -> Option<&'p str> {
    // The declaration counts whichever families are enabled.
    let all = family::ALL.iter().chain(families);
    all.filter_map(|family| family.namespace_of_pod).find_map(|read_namespace| read_namespace(pod))
}
