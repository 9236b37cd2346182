//! What findings and reports say of a rule of a policy.

use std::sync::Arc;

use jiff::Timestamp;

use crate::model::pointer::Pointer;

/// What findings and reports say of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// `policy/POLICY/RULE`.
    pub code: String,
    /// The name of the policy.
    pub policy: String,
    /// The id of the rule.
    pub id: String,
    /// Where the rule stands in the policy.
    pub pointer: Pointer,
    /// The advice of the policy.
    pub hint: Option<String>,
    /// Where to read on.
    pub docs: Option<String>,
    /// How bad a violation is, for reports.
    pub severity: &'static str,
    /// The name of the typed rule.
    pub type_name: &'static str,
    /// The page about the typed rule.
    pub page: &'static str,
}

/// Which rule of a policy a finding is about, and how it came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFinding {
    /// The rule.
    pub rule: Arc<PolicyRule>,
    /// How it came out.
    pub status: PolicyStatus,
    /// Of an audit: what admission would make of it, if the object were made anew.
    pub at_admission: Option<AtAdmission>,
    /// What it is exempt by.
    pub exemption: Option<ExemptBy>,
}

impl PolicyFinding {
    /// Whether the rule is broken, and no exemption counts.
    #[must_use]
    pub fn is_violation(&self) -> bool {
        self.status == PolicyStatus::Violated
    }
}

/// The exemption that counts for a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExemptBy {
    /// Its namespace and name.
    pub name: String,
    /// When it ends.
    pub until: Timestamp,
}

/// What admission makes of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtAdmission {
    /// It refuses.
    Denies,
    /// It warns or lets the object pass, and refuses from this time on.
    DeniesFrom {
        /// From when on.
        at: Timestamp,
        /// Whether it warns until then.
        warns: bool,
    },
    /// It warns.
    Warns,
    /// It lets the object pass.
    Allows,
}

impl AtAdmission {
    /// The text behind "at admission: ".
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Denies => "denied".to_owned(),
            Self::DeniesFrom { at, warns } => {
                let until = if warns { "warned about" } else { "allowed" };
                format!("{until}, denied from {}", at.strftime("%Y-%m-%d"))
            }
            Self::Warns => "warned about".to_owned(),
            Self::Allows => "allowed".to_owned(),
        }
    }

    /// The word of reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Denies => "deny",
            Self::DeniesFrom { warns: true, .. } | Self::Warns => "warn",
            Self::DeniesFrom { warns: false, .. } | Self::Allows => "allow",
        }
    }
}

/// How a rule came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyStatus {
    /// It is broken.
    Violated,
    /// It is broken, and an exemption counts.
    Exempt,
    /// It cannot be judged.
    Unknown,
}

impl PolicyStatus {
    /// The word of reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Violated => "violated",
            Self::Exempt => "exempt",
            Self::Unknown => "unknown",
        }
    }
}
