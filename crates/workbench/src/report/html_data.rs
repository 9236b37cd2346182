//! What the page of `-o html` shows beside the findings. A report has it if a page is written.

use std::collections::BTreeSet;

use crate::report::map::MemoryMap;
use crate::report::table::Table;
use memgate_model::finding::Severity;

/// The data of the page.
#[derive(Debug, Default)]
pub struct Page<'a> {
    /// The command.
    pub command: &'static str,
    /// The paths as the user gave them, or the cluster.
    pub judged: Vec<String>,
    /// The point of policies.
    pub point: &'static str,
    /// The time of the decision in seconds, as in RFC 3339.
    pub time: String,
    /// The numbers by policy and namespace, if the report itself does not show them.
    pub table: Option<Table<'a>>,
    /// The map of memory.
    pub map: MemoryMap,
    /// The exemptions, by namespace and name.
    pub exemptions: Vec<ShownExemption>,
    /// The promotions that are to come, by policy.
    pub promotions: Vec<ShownPromotion>,
    /// What is no longer found, if a branch is compared with a commit.
    pub gone: Option<Vec<Gone>>,
    /// The commit that a branch is compared with as the user named it, and the one at which the branch began.
    pub base: Option<[String; 2]>,
    /// What was assumed or is not known, a sentence each.
    pub assumed: Vec<String>,
}

/// A policy that becomes stricter.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShownPromotion {
    /// From when on, as in RFC 3339.
    pub at: String,
    /// In how many days, the last one begun.
    pub days: i64,
    /// The policy.
    pub policy: String,
    /// The rules.
    pub rules: String,
    /// The action at admission from then on.
    pub to: &'static str,
}

/// A finding at the base of a branch that the branch does not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gone {
    /// The severity that it had.
    pub severity: Severity,
    /// The file and the line, as they were there.
    pub place: String,
    /// The object; empty for a finding about a file.
    pub object: String,
    /// The namespace of the object.
    pub namespace: String,
    /// The platforms of the object and the code.
    pub platforms: BTreeSet<&'static str>,
    /// The name of the code.
    pub code: String,
    /// The message.
    pub message: String,
}

/// An exemption of a policy, with credentials in its texts masked.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShownExemption {
    /// Its namespace and name.
    pub name: String,
    /// The policy that it suspends.
    pub policy: String,
    /// The rules that it suspends.
    pub rules: String,
    /// The exempt objects.
    pub target: String,
    /// When it begins, as in RFC 3339.
    pub from: String,
    /// When it ends, as in RFC 3339.
    pub expires_at: String,
    /// In how many days, the last one begun; 0 and less of one that has ended.
    pub days: i64,
    /// The namespaces of the exempt objects.
    pub namespaces: Vec<String>,
    /// Their platforms; empty for all of them.
    pub platforms: Vec<String>,
    /// Whether it is in force.
    pub state: ExemptionState,
    /// The reason, with the ticket and the person who approved it.
    pub reason: String,
}

/// Whether an exemption is in force at the time of the decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExemptionState {
    /// It is in force.
    #[default]
    InForce,
    /// It is in force, and ends within 30 days.
    EndsSoon,
    /// It begins later.
    Later,
    /// It has ended.
    Ended,
}

impl ExemptionState {
    /// The words of the page.
    pub const fn words(self) -> &'static str {
        match self {
            Self::InForce => "in force",
            Self::EndsSoon => "ends within 30 days",
            Self::Later => "not yet in force",
            Self::Ended => "has ended",
        }
    }
}
