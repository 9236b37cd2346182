//! The way from the root to a value. It becomes a pointer only where something is wrong, to save
//! allocations.

use memgate_primitives::pointer::Pointer;

#[derive(Clone, Copy)]
pub(super) enum Path<'w> {
    Root,
    Key(&'w Self, &'w str),
    Index(&'w Self, usize),
}

impl Path<'_> {
    pub(super) fn pointer(self) -> Pointer {
        match self {
            Self::Root => Pointer::root(),
            Self::Key(above, key) => above.pointer().key(key),
            Self::Index(above, index) => above.pointer().index(index),
        }
    }
}
