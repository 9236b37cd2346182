//! How long the messages of a Query are kept: as long as the Query itself.

/// One second, in nanoseconds. The platform sends whole seconds to the memory service, and the service refuses 0.
pub(crate) const SECOND: i64 = 1_000_000_000;
