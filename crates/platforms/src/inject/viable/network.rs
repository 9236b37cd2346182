//! The order of init containers: which of them have a network.

use super::Surroundings;

/// Where init containers are inserted: before the existing one of this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// Of what others wait for: the memory server, and the wait for the private memory.
    pub(crate) front: usize,
    /// Of the wait for the shared memory.
    pub(crate) end: usize,
}

impl Surroundings<'_> {
    /// Where init containers have a network.
    pub(crate) fn places(&self) -> Places {
        Places { front: 0, end: self.parts.init_containers().len() }
    }
}
