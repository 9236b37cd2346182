//! How bad a finding is.

use memgate_primitives::named::named;

named! {
    /// How bad a finding is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Severity {
        /// It appears in reports only, never in an admission response.
        Note = "note",
        /// The request is allowed with a warning.
        Warn = "warn",
        /// The request is refused.
        Deny = "deny",
    }
}
