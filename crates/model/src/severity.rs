//! How bad a finding is.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It appears in reports only, never in an admission response.
    Note,
    /// The request is allowed with a warning.
    Warn,
    /// The request is refused.
    Deny,
}

impl Severity {
    /// The word that users read and machines match on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}
