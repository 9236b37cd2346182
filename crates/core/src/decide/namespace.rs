//! The namespace of an object whose request or manifest may not name one.
use memgate_model::family::Family;
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::pod::Pod;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;

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
    let all = memgate_platforms::ALL.iter().chain(families);
    all.filter_map(|family| family.pods.declared_namespace).find_map(|read_namespace| read_namespace(pod))
}

/// The namespace of an object, given the one of its request or metadata. Without one, that of the settings
/// counts, then `default`; the reader then knows that it is an assumption.
pub(super) fn resolve_namespace<'n>(
    namespace: &'n str,
    snapshot: &'n Snapshot,
    budget: &'n Budget<'n>,
) -> (&'n str, StateReader<'n>) {
    match (namespace, &snapshot.settings.namespace) {
        ("", Some(given)) => (given, StateReader::new(snapshot, budget)),
        ("", None) => (DEFAULT_NAMESPACE, StateReader::without_namespace(snapshot, budget)),
        (namespace, _) => (namespace, StateReader::new(snapshot, budget)),
    }
}

/// The first text that is not empty. Callers put the request before the object's own metadata.
pub(super) fn first_non_empty<const N: usize>(texts: [&str; N]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}
