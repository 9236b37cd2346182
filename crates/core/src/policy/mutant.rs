//! Policies with one rule that was changed on purpose, to see whether a case notices.

use serde_json::Value;

use crate::model::cel_view::{CelSide, InCel};
use crate::model::family::Family;
use crate::model::pointer::Pointer;
use crate::model::policy::Policy;
use crate::model::typed_rule::{Judged, RuleOutcome, TypedRule};

use super::read;

/// What is done to a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// It never fires.
    Dropped,
    /// It fires where it did not, and the other way round; what it cannot judge stays so.
    Inverted,
}

impl Mutation {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Dropped, Self::Inverted];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Inverted => "inverted",
        }
    }
}

/// A policy in which the rule of this id was changed; `None` if there is none.
#[must_use]
pub fn policy(
    manifest: &Value,
    families: &[&'static Family],
    id: &str,
    mutation: Mutation,
) -> Option<Policy> {
    let (mut policy, _) = read::policy(manifest, families);
    let rule = policy.rules.iter_mut().find(|rule| rule.about.id == id)?;
    let check = std::mem::replace(&mut rule.check, Box::new(Silent));
    if mutation == Mutation::Inverted {
        rule.check = Box::new(Inverted(check));
    }
    Some(policy)
}

/// A rule that never fires.
#[derive(Debug)]
struct Silent;

impl TypedRule for Silent {
    fn judge(&self, _: &Judged<'_>) -> RuleOutcome {
        RuleOutcome::default()
    }

    fn in_cel(&self, _: &CelSide<'_>) -> InCel {
        InCel::default()
    }
}

/// A rule that fires where another one does not.
#[derive(Debug)]
struct Inverted(Box<dyn TypedRule>);

impl TypedRule for Inverted {
    fn judge(&self, judged: &Judged<'_>) -> RuleOutcome {
        let mut outcome = self.0.judge(judged);
        if outcome.unknown.is_some() {
            return outcome;
        }
        if outcome.violations.is_empty() {
            outcome.add(Pointer::root(), "was inverted", "");
        } else {
            outcome.violations.clear();
        }
        outcome
    }

    fn in_cel(&self, _: &CelSide<'_>) -> InCel {
        let mut said = InCel::default();
        said.leave_out("", "it was inverted for a test");
        said
    }

    fn reads_namespaces(&self) -> bool {
        self.0.reads_namespaces()
    }

    fn reads_other_objects(&self) -> bool {
        self.0.reads_other_objects()
    }
}
