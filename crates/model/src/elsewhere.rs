//! Places in objects other than the one under review. A decision knows these objects by name; commands that
//! read files look up their lines.

use crate::object::{Object, Reference};
use memgate_primitives::pointer::Pointer;

/// A place in another object that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The object.
    pub object: Reference,
    /// The place in it; may point at a missing value.
    pub pointer: Pointer,
    /// A short label for the place.
    pub label: &'static str,
}

impl Elsewhere {
    /// A place in an object of the state.
    pub fn of(object: &Object, pointer: Pointer, label: &'static str) -> Self {
        let Object { kind, namespace, name, .. } = object;
        let object = Reference { kind, namespace: namespace.to_string(), name: name.to_string() };
        Self { object, pointer, label }
    }
}
