//! The annotation by which an object claims an Orloj namespace, and whether it may.

use memgate_model::object::is_deleting;
use memgate_model::platform_settings::{Orloj, PlatformSettings};
use memgate_model::tree::Tree;

/// The annotation that puts an object into another Orloj namespace than its Kubernetes namespace.
pub(crate) const TARGET_NAMESPACE: &str = "orloj.dev/target-namespace";

/// The Orloj namespace of a reference that does not name one.
pub(super) const DEFAULT: &str = "default";

/// The Orloj namespace that an object's annotation names; `None` without one.
pub(super) fn annotated(object: &Tree) -> Option<&str> {
    let text = annotation(object).filter(|text| !text.is_empty())?;
    Some(or_default(text.trim()))
}

/// The annotation, unparsed.
pub(super) fn annotation(object: &Tree) -> Option<&str> {
    object.text_at(&["metadata", "annotations", TARGET_NAMESPACE])
}

/// The Orloj namespace of an object in this Kubernetes namespace.
pub(super) fn effective<'t>(object: &'t Tree, kubernetes: &'t str) -> &'t str {
    annotated(object).unwrap_or_else(|| or_default(kubernetes))
}

/// Whether an object of the state counts: it does not claim another Orloj namespace, or it may and is not being deleted.
pub(super) fn counts(object: &Tree, kubernetes: &str, settings: &PlatformSettings) -> bool {
    !leads_elsewhere(object, kubernetes) || settings.orloj.may_claim(kubernetes) && !is_deleting(object)
}

/// Whether an object claims another Orloj namespace although the settings do not allow that in its Kubernetes
/// namespace.
pub(super) fn is_ignored(object: &Tree, kubernetes: &str, settings: &Orloj) -> bool {
    leads_elsewhere(object, kubernetes) && !settings.may_claim(kubernetes)
}

/// Whether an object claims another Orloj namespace than that of its Kubernetes namespace.
fn leads_elsewhere(object: &Tree, kubernetes: &str) -> bool {
    annotated(object).is_some_and(|namespace| namespace != or_default(kubernetes))
}

/// The Orloj namespace of a text that may be empty.
pub(super) fn or_default(namespace: &str) -> &str {
    if namespace.is_empty() { DEFAULT } else { namespace }
}
