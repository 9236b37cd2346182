//! Where a check is in an object: the value there, and the value of the stored object in its place.

use std::cell::Cell;

use crate::node::Node;
use memgate_primitives::pointer::Path;

/// A value on the way from the root down, as a chain on the stack.
pub(super) struct Place<'p, 'd> {
    above: Option<&'p Self>,
    /// The way to the value.
    pub(super) path: Path<'p>,
    /// The value.
    pub(super) value: &'d Node<'d>,
    /// What the stored object has there.
    pub(super) old: Option<&'d Node<'d>>,
    /// Whether both are the same, once that was asked.
    is_same: Cell<Option<bool>>,
}

impl<'p, 'd> Place<'p, 'd> {
    /// The whole object.
    pub(super) const fn root(value: &'d Node<'d>, old: Option<&'d Node<'d>>) -> Self {
        Self { above: None, path: Path::Root, value, old, is_same: Cell::new(None) }
    }

    /// Whether this is the whole object.
    pub(super) const fn is_root(&self) -> bool {
        self.above.is_none()
    }

    /// A field.
    pub(super) const fn key(&'p self, key: &'p str, value: &'d Node<'d>, old: Option<&'d Node<'d>>) -> Self {
        Self { above: Some(self), path: Path::Key(&self.path, key), value, old, is_same: Cell::new(None) }
    }

    /// An element.
    pub(super) const fn index(
        &'p self,
        index: usize,
        value: &'d Node<'d>,
        old: Option<&'d Node<'d>>,
    ) -> Self {
        Self { above: Some(self), path: Path::Index(&self.path, index), value, old, is_same: Cell::new(None) }
    }

    /// The same place, with another form of its path.
    pub(super) fn along(self, path: Path<'p>) -> Self {
        Self { path, ..self }
    }

    /// Whether the stored object has the same value here, or above.
    pub(super) fn is_stored(&self) -> bool {
        let is_same = self.is_same.get().unwrap_or_else(|| {
            self.old.is_some_and(|old| self.value == old) || self.above.is_some_and(Self::is_stored)
        });
        self.is_same.set(Some(is_same));
        is_same
    }
}
