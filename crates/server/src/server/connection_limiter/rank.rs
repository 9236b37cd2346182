//! Which of two connections is closed first.

use std::cmp::Reverse;

use tokio::time::Instant;

/// The classes of those that had a review answered, of which the lowest is closed first.
pub(super) const IDLE: u8 = 2;
pub(super) const IN_HEAD: u8 = 3;

/// How early a connection is closed; the lowest is closed first. The order of the fields is that of the module
/// documentation above; `Reverse` puts what is true first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Whether it is useless.
    pub(super) useless: Reverse<bool>,
    /// Whether its address has more than half of all connections.
    pub(super) crowd: Reverse<bool>,
    /// Its class among those that may be closed.
    pub(super) class: u8,
    /// Since when it has been in that.
    pub(super) since: Option<Instant>,
    /// Its number.
    pub(super) number: u64,
}

impl Rank {
    /// Whether it had a review answered, and goes on.
    pub(super) const fn is_useful(self) -> bool {
        !self.useless.0 && self.class >= IDLE
    }
}
