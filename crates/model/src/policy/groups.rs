//! Policies by their purpose, so that a decision does not look at policies without an effect on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Policy;

/// What a decision needs from policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Findings about an object of a family's own kind.
    Resource,
    /// Findings about a pod.
    Pod,
    /// Defaults for an object.
    Defaults,
}

/// The policies for each question.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    resource: Group,
    pod: Group,
    defaults: Group,
}

impl Groups {
    pub(super) fn insert(&mut self, policy: &Arc<Policy>) {
        self.resource.insert(policy);
        if policy.judges_pods() {
            self.pod.insert(policy);
        }
        if !policy.defaults.is_empty() {
            self.defaults.insert(policy);
        }
    }

    pub(super) fn remove(&mut self, policy: &Arc<Policy>) {
        for group in [&mut self.resource, &mut self.pod, &mut self.defaults] {
            group.remove(policy);
        }
    }

    pub(super) const fn of(&self, question: Question) -> &Group {
        match question {
            Question::Resource => &self.resource,
            Question::Pod => &self.pod,
            Question::Defaults => &self.defaults,
        }
    }
}

/// Policies by the families that they name, in no order.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    of_all: Vec<Arc<Policy>>,
    of_family: BTreeMap<String, Vec<Arc<Policy>>>,
}

impl Group {
    fn insert(&mut self, policy: &Arc<Policy>) {
        let Some(families) = &policy.matching.families else {
            self.of_all.push(Arc::clone(policy));
            return;
        };
        for family in families {
            self.of_family.entry(family.clone()).or_default().push(Arc::clone(policy));
        }
    }

    fn remove(&mut self, policy: &Arc<Policy>) {
        let is_other = |other: &Arc<Policy>| !Arc::ptr_eq(other, policy);
        self.of_all.retain(is_other);
        self.of_family.retain(|_, policies| {
            policies.retain(is_other);
            !policies.is_empty()
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of_all.is_empty() && self.of_family.is_empty()
    }

    pub(super) fn of(&self, family: &str) -> impl Iterator<Item = &Arc<Policy>> {
        self.of_all.iter().chain(self.of_family.get(family).into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Actions, Match, Policies};
    use super::*;

    fn policy(name: &str, families: Option<&[&str]>, invalid: Option<&str>) -> Policy {
        let families = families.map(|families| families.iter().map(|&name| name.to_owned()).collect());
        Policy {
            name: name.to_owned(),
            invalid: invalid.map(str::to_owned),
            matching: Match { families, ..Match::default() },
            actions: Actions::default(),
            promote: None,
            enforces_existing: false,
            rules: Vec::new(),
            defaults: Vec::new(),
            exemptions: None,
        }
    }

    fn asked<'p>(policies: &'p Policies, question: Question, family: &str) -> Vec<&'p str> {
        let mut names: Vec<&str> =
            policies.asked(question, family).map(|policy| policy.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn only_those_are_asked_that_name_the_family_or_none() {
        let mut policies = Policies::default();
        policies.insert(policy("a", Some(&["ark", "orka"]), None));
        policies.insert(policy("b", None, None));
        policies.insert(policy("c", Some(&["orka"]), Some("it is wrong")));
        assert_eq!(asked(&policies, Question::Resource, "ark"), ["a", "b"]);
        assert_eq!(asked(&policies, Question::Resource, "orka"), ["a", "b", "c"]);
        assert_eq!(asked(&policies, Question::Resource, "orloj"), ["b"]);
        assert_eq!(asked(&policies, Question::Pod, "orka"), ["c"]);
        assert_eq!(asked(&policies, Question::Pod, "ark"), [""; 0]);
        assert!(policies.is_silent(Question::Defaults));
    }

    #[test]
    fn what_is_replaced_or_taken_out_is_not_asked() {
        let mut policies = Policies::default();
        policies.insert(policy("a", Some(&["ark"]), Some("it is wrong")));
        policies.insert(policy("b", None, None));
        policies.insert(policy("a", Some(&["orka"]), None));
        assert_eq!(asked(&policies, Question::Resource, "ark"), ["b"]);
        assert_eq!(asked(&policies, Question::Resource, "orka"), ["a", "b"]);
        assert!(policies.is_silent(Question::Pod));
        policies.remove("b");
        assert_eq!(asked(&policies, Question::Resource, "orka"), ["a"]);
        policies.clear();
        assert!(policies.is_silent(Question::Resource));
    }
}
