//! What an apiserver checks before it asks anybody: an object against the schema of its kind, and its
//! metadata. For files, where no apiserver stands in front.
//!
//! ```text
//! CRD ──parse──▶ Crd          JSON ──normalize──▶ as it would be stored ──check──▶ violations
//! ```
//!
//! Read from: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", and the
//! behaviour of k8s.io/apiextensions-apiserver and k8s.io/kube-openapi 1.36. Rules in CEL
//! (`x-kubernetes-validations`) are not evaluated.

mod check;
mod equal;
mod formats;
mod lists;
mod metadata;
mod normalize;
mod parse;
mod path;
mod pattern;
mod scalar;
mod url;

use serde_json::Value;

use crate::model::crd::{Crd, CrdVersion};
use crate::model::violation::Violation;

/// An object that does not exist yet: its name and namespace are still to be judged.
#[derive(Debug, Clone, Copy)]
pub struct NewObject<'n> {
    /// The name in the request, if the object itself has none.
    pub name: &'n str,
    /// Whether objects of the kind live in namespaces.
    pub namespaced: bool,
    /// Whether the name is a part of host names, without dots, as that of a Namespace is.
    pub name_is_label: bool,
}

/// Reads a CustomResourceDefinition.
///
/// # Errors
/// With what is wrong in words, when it has no group, no kind or no version with a schema.
pub fn read(value: &Value) -> Result<Crd, String> {
    parse::crd(value)
}

/// The status, where a version has a subresource for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// What users write there is dropped.
    Dropped,
    /// What users write there is judged.
    Judged,
}

/// Everything that the schema of a version refuses in an object, in document order. `old` is the stored
/// object of an update. Both become what would be stored.
#[must_use]
pub fn violations(
    version: &CrdVersion,
    status: Status,
    object: &mut Value,
    old: Option<&mut Value>,
) -> Vec<Violation> {
    let store = |object: &mut Value| {
        normalize::normalize(object, &version.schema);
        if version.has_status && status == Status::Dropped {
            normalize::remove(object, "status");
        }
    };
    store(object);
    let old = old.map(|old| {
        store(old);
        &*old
    });
    let mut violations = check::check(object, &version.schema, old);
    violations.extend(lists::check(object, &version.schema, old));
    if let Some(way) = &version.replicas {
        violations.extend(scalar::replicas(object, way));
    }
    violations
}

/// Everything that the apiserver refuses in the metadata of a new object, or of an update.
#[must_use]
pub fn metadata_violations(object: &Value, new: Option<NewObject<'_>>) -> Vec<Violation> {
    metadata::check(object, new)
}

#[cfg(test)]
mod tests;
