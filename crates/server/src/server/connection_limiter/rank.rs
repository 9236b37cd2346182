//! Which of two connections is closed first.

use std::cmp::Reverse;

use tokio::time::Instant;

/// The classes of those that had a review answered, of which the lowest is closed first.
pub(super) const IDLE: u8 = 2;
pub(super) const IN_HEAD: u8 = 3;

/// How early a connection is closed: whether it is useless, whether its peer has more than half of all, its class,
/// since when it has been in that, its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(
    pub(super) Reverse<bool>,
    pub(super) Reverse<bool>,
    pub(super) u8,
    pub(super) Option<Instant>,
    pub(super) u64,
);

impl Rank {
    /// The number of the connection.
    pub(super) const fn number(self) -> u64 {
        self.4
    }

    /// Whether it had a review answered, and goes on.
    pub(super) const fn is_useful(self) -> bool {
        !self.0.0 && self.2 >= IDLE
    }
}
