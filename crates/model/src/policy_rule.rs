//! The parts of a policy's rule that findings and reports show.

use std::sync::Arc;

use jiff::Timestamp;

use crate::severity::Severity;
use memgate_primitives::named::named;
use memgate_primitives::pointer::Pointer;

/// The parts of a rule that findings and reports show.
#[derive(Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// `policy/POLICY/RULE`.
    pub code: String,
    /// The name of the policy.
    pub policy: String,
    /// The id of the rule.
    pub id: String,
    /// The place of the rule in the policy.
    pub pointer: Pointer,
    /// The policy's advice on what to do.
    pub hint: Option<String>,
    /// The address of a page about it.
    pub docs: Option<String>,
    /// The severity of a violation, for reports.
    pub severity: &'static str,
    /// The name of the typed rule.
    pub type_name: &'static str,
    /// The conditions under which it applies, in words.
    pub when: Option<String>,
}

impl PolicyRule {
    /// What every message about the rule ends in: ` (memgate policy NAME/RULE)`, with the time from which it denies, if it
    /// does not deny yet.
    pub fn ending(&self, denied_from: Option<Timestamp>) -> String {
        let opening = self.opening();
        match denied_from {
            None => format!("{opening})"),
            Some(at) => format!("{opening}, denied from {})", at.strftime("%Y-%m-%d")),
        }
    }

    /// `only where CONDITIONS`, for a rule with conditions.
    pub fn only_where(&self) -> Option<String> {
        self.when.as_ref().map(|when| format!("only where {when}"))
    }

    /// The part of the ending that is always the same.
    pub fn opening(&self) -> String {
        format!(" (memgate policy {}/{}", self.policy, self.id)
    }
}

/// The rule of a policy that a finding is about, and the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFinding {
    /// The rule.
    pub rule: Arc<PolicyRule>,
    /// The result.
    pub status: PolicyStatus,
    /// In an audit: the action of admission if the object were created now.
    pub at_admission: Option<AtAdmission>,
    /// The exemption that counts.
    pub exemption: Option<ExemptBy>,
    /// Whether it would warn or deny with other labels of a Namespace that is not known.
    pub is_assumed: bool,
    /// Of a number how far it is on the forbidden side; else 0.
    pub excess: i128,
}

impl PolicyFinding {
    /// Whether the rule is broken, and no exemption counts.
    pub fn is_violation(&self) -> bool {
        self.status == PolicyStatus::Violated
    }
}

/// What a rule made of an object to which it applies. Later variants win where it judges an object more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleResult {
    /// Nothing is wrong.
    Passed,
    /// It could not be judged.
    Unknown,
    /// The object violates it, exempt or not.
    Fired,
}

/// The number of findings of a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Violations, without those that are exempt.
    pub violations: usize,
    /// Exempt findings: violations and those that cannot be judged.
    pub exempted: usize,
    /// Findings that cannot be judged.
    pub unknown: usize,
    /// Findings that depend on labels of an unknown Namespace.
    pub assumed: usize,
    /// Findings that refuse the object; in an audit those that admission refuses today.
    pub denials: usize,
    /// Findings that warn; in an audit those that admission warns about today.
    pub warnings: usize,
    /// In an audit: the violations that admission refuses today.
    pub denied: usize,
    /// In an audit: the violations that admission is going to refuse.
    pub denied_later: usize,
    /// In an audit: all findings that admission is going to refuse, with those that are exempt until then and those that
    /// cannot be judged.
    pub at_risk: usize,
}

impl Counts {
    /// Adds the counts of another object.
    pub fn add(&mut self, other: Self) {
        self.violations += other.violations;
        self.exempted += other.exempted;
        self.unknown += other.unknown;
        self.assumed += other.assumed;
        self.denials += other.denials;
        self.warnings += other.warnings;
        self.denied += other.denied;
        self.denied_later += other.denied_later;
        self.at_risk += other.at_risk;
    }

    /// Counts a finding.
    pub fn count(&mut self, severity: Severity, finding: &PolicyFinding) {
        let at_admission = finding.at_admission.map(AtAdmission::severity);
        match at_admission.map_or(severity, |it| it.max(severity)) {
            Severity::Deny => self.denials += 1,
            Severity::Warn => self.warnings += 1,
            Severity::Note => {}
        }
        let is_denied_later = matches!(finding.at_admission, Some(AtAdmission::DeniesFrom { .. }));
        self.at_risk += usize::from(is_denied_later);
        self.assumed += usize::from(finding.is_assumed);
        match finding.status {
            PolicyStatus::Exempt => self.exempted += 1,
            PolicyStatus::Unknown => self.unknown += 1,
            PolicyStatus::Violated => {
                self.violations += 1;
                self.denied += usize::from(finding.at_admission == Some(AtAdmission::Denies));
                self.denied_later += usize::from(is_denied_later);
            }
        }
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

/// The action of admission for a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtAdmission {
    /// It refuses.
    Denies,
    /// It warns or lets the object pass, and refuses from this time on.
    DeniesFrom {
        /// The time from which it refuses.
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
    /// The text after "at admission: ".
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

    /// The word that reports use.
    pub const fn name(self) -> &'static str {
        match self.severity() {
            Severity::Note => "allow",
            severity => severity.name(),
        }
    }

    /// The severity of the finding at admission today.
    pub const fn severity(self) -> Severity {
        match self {
            Self::Denies => Severity::Deny,
            Self::DeniesFrom { warns: true, .. } | Self::Warns => Severity::Warn,
            Self::DeniesFrom { warns: false, .. } | Self::Allows => Severity::Note,
        }
    }
}

named! {
    /// The result of a rule.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PolicyStatus {
        /// The object violates it.
        Violated = "violated",
        /// The object violates it, and an exemption counts.
        Exempt = "exempt",
        /// It cannot be judged.
        Unknown = "unknown",
    }
}
