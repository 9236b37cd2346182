//! Policies and exemptions, ready to judge: compiled once when they are loaded, then shared and never changed.
//!
//! Reading them from manifests, and judging, is done in the crate `memgate-policy`; each typed rule is a [`TypedRule`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::finding::Severity;
use crate::label_selector::LabelSelector;
use crate::memory_view::{Role, USERS};
use crate::policy_rule::PolicyRule;
use crate::request::{Operation, Point};
use crate::typed_rule::{Conditions, TypedRule};
use memgate_primitives::glob::Glob;
use memgate_primitives::named::named;
use memgate_primitives::pointer::Pointer;

/// All policies and exemptions that decisions read.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    by_name: BTreeMap<String, Arc<Policy>>,
    /// Those about which every decision asks, so that it does not go through all policies.
    groups: BTreeMap<Group, BTreeMap<String, Arc<Policy>>>,
    exemptions: BTreeMap<(String, String), Arc<Exemption>>,
    /// The exemptions of each policy, by its name.
    by_policy: BTreeMap<String, Vec<Arc<Exemption>>>,
}

impl Policies {
    /// Adds a policy, or replaces the policy of the same name.
    pub fn insert(&mut self, policy: impl Into<Arc<Policy>>) {
        let policy = policy.into();
        self.remove(&policy.name);
        for group in Group::ALL.into_iter().filter(|group| group.has(&policy)) {
            self.groups.entry(group).or_default().insert(policy.name.clone(), Arc::clone(&policy));
        }
        self.by_name.insert(policy.name.clone(), policy);
    }

    /// Removes all policies.
    pub fn clear(&mut self) {
        self.by_name.clear();
        self.groups.clear();
    }

    /// Removes all exemptions.
    pub fn clear_exemptions(&mut self) {
        self.exemptions.clear();
        self.by_policy.clear();
    }

    /// Removes a policy.
    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
        self.groups.values_mut().for_each(|group| drop(group.remove(name)));
    }

    /// Adds an exemption, or replaces the exemption of the same name.
    pub fn insert_exemption(&mut self, exemption: impl Into<Arc<Exemption>>) {
        let exemption = exemption.into();
        self.remove_exemption(&exemption.namespace, &exemption.name);
        self.by_policy.entry(exemption.policy.clone()).or_default().push(Arc::clone(&exemption));
        self.exemptions.insert((exemption.namespace.clone(), exemption.name.clone()), exemption);
    }

    /// Removes an exemption.
    pub fn remove_exemption(&mut self, namespace: &str, name: &str) {
        let Some(gone) = self.exemptions.remove(&(namespace.to_owned(), name.to_owned())) else { return };
        if let Some(others) = self.by_policy.get_mut(&gone.policy) {
            others.retain(|other| !Arc::ptr_eq(other, &gone));
            if others.is_empty() {
                self.by_policy.remove(&gone.policy);
            }
        }
    }

    /// The policies, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.by_name.values()
    }

    /// The policies that may judge objects of a family, by name.
    pub fn asked(&self, question: Question, family: &str) -> impl Iterator<Item = &Arc<Policy>> {
        self.of(question).filter(move |policy| {
            let families = policy.matching.families.as_ref();
            families.is_none_or(|names| names.iter().any(|name| name == family))
        })
    }

    /// Whether no policy judges this, for any family.
    pub fn is_silent(&self, question: Question) -> bool {
        self.of(question).next().is_none()
    }

    fn of(&self, question: Question) -> impl Iterator<Item = &Arc<Policy>> {
        let group = match question {
            Question::Pod => Some(Group::Pods),
            Question::PodWithUnseen => Some(Group::PodsWithUnseen),
            Question::Defaults => Some(Group::Defaults),
            Question::Resource | Question::Users => None,
        };
        let policies = group.map_or(Some(&self.by_name), |group| self.groups.get(&group));
        policies.into_iter().flat_map(BTreeMap::values)
    }

    /// Whether a policy is in this group.
    pub fn has_any(&self, group: Group) -> bool {
        self.groups.get(&group).is_some_and(|policies| !policies.is_empty())
    }

    /// Whether what they say depends on the time.
    pub fn hold_dates(&self) -> bool {
        let is_dated = |rule: &Rule| rule.during != During::default();
        let mut all = self.iter();
        !self.exemptions.is_empty() || all.any(|it| it.promote.is_some() || it.rules.iter().any(is_dated))
    }

    /// A policy by name.
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.by_name.get(name)
    }

    /// The exemptions, by namespace and name.
    pub fn exemptions(&self) -> impl Iterator<Item = &Arc<Exemption>> {
        self.exemptions.values()
    }

    /// An exemption by namespace and name.
    pub fn exemption(&self, namespace: &str, name: &str) -> Option<&Arc<Exemption>> {
        self.exemptions.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// The exemptions that name this policy, in no order.
    pub fn exemptions_of(&self, policy: &str) -> &[Arc<Exemption>] {
        self.by_policy.get(policy).map_or(&[], Vec::as_slice)
    }

    /// Whether there is no policy.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// The kind of result that a decision needs from policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Findings about an object of a family's own kind.
    Resource,
    /// Findings about a pod.
    Pod,
    /// Findings about a pod of a platform whose memory has values from objects that no apiserver sends.
    PodWithUnseen,
    /// Findings about objects of which only the family and the namespace are known.
    Users,
    /// Defaults for an object.
    Defaults,
}

/// The policies that ask for something special.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Those that may have findings about pods. An invalid policy counts, since decisions report it with a note.
    Pods,
    /// The same for platforms whose memory has values from objects that no apiserver sends.
    PodsWithUnseen,
    /// Those that judge referrers by the memory that they use.
    Referrers,
    /// Those that read how many agents use a memory, which is seldom counted.
    Users,
    /// Those that ask which fields the author of an object wrote.
    Written,
    /// Those that read annotations of pods.
    Annotations,
    /// Those with defaults.
    Defaults,
}

impl Group {
    const ALL: [Self; 7] = [
        Self::Pods,
        Self::PodsWithUnseen,
        Self::Referrers,
        Self::Users,
        Self::Written,
        Self::Annotations,
        Self::Defaults,
    ];

    fn has(self, policy: &Policy) -> bool {
        let any = |is: &dyn Fn(&Rule) -> bool| policy.rules.iter().any(is);
        let judges_pods = || policy.invalid.is_some() || any(&|rule| rule.roles.contains(&Role::Pod));
        match self {
            Self::Pods => judges_pods(),
            Self::PodsWithUnseen => judges_pods() || any(&|rule| rule.own.contains(&Role::Memory)),
            Self::Referrers => any(&|rule| rule.by_sources.contains(&Role::Referrer)),
            Self::Users => any(&|rule| rule.paths().contains(&USERS)),
            Self::Written => any(&Rule::reads_written),
            // Conditions are about the pod also where a rule is about its memory.
            Self::Annotations => any(&|rule| {
                (rule.roles.contains(&Role::Pod) || rule.when.is_some()) && rule.reads_annotations()
            }),
            Self::Defaults => !policy.defaults.is_empty(),
        }
    }
}

/// A policy.
#[derive(Debug, Default)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Its first fault, if it has any. An invalid policy is not in force and has no rules and defaults.
    pub invalid: Option<String>,
    /// Which objects it judges.
    pub matching: Match,
    /// The action for a finding, by point.
    pub actions: Actions,
    /// When its action at admission becomes stricter.
    pub promote: Option<Promotion>,
    /// Whether a violation that the stored object already has is judged like a new one.
    pub enforces_existing: bool,
    /// Its rules, in their order.
    pub rules: Vec<Rule>,
    /// Its defaults, in their order.
    pub defaults: Vec<PolicyDefault>,
    /// The terms for exemptions; without them exemptions are not accepted.
    pub exemptions: Option<ExemptionTerms>,
}

impl Policy {
    /// Whether audits judge a rule of it.
    pub fn is_audited(&self, rule: &Rule) -> bool {
        let asks = self.matching.operations.as_ref().is_none_or(|all| all.contains(&Operation::Create));
        let action = rule.action.audit.unwrap_or(self.actions.audit);
        asks && action != Action::None && !rule.is_for_pods()
    }
}

/// Which objects a policy judges.
#[derive(Debug, Default)]
pub struct Match {
    /// The names of the families; all when absent.
    pub families: Option<Vec<String>>,
    /// The kinds; all when absent.
    pub kinds: Option<Vec<String>>,
    /// The namespaces; all when absent.
    pub namespaces: Option<Vec<Glob>>,
    /// The namespaces that are left out.
    pub exclude_namespaces: Vec<Glob>,
    /// The labels that the Namespace must have.
    pub namespace_selector: Option<LabelSelector>,
    /// The labels that the object must have.
    pub object_selector: Option<LabelSelector>,
    /// The names; all when absent.
    pub names: Option<Vec<Glob>>,
    /// Users whose requests are not judged.
    pub exclude_users: Vec<String>,
    /// Groups whose requests are not judged.
    pub exclude_groups: Vec<String>,
    /// The operations; CREATE and UPDATE when absent.
    pub operations: Option<Vec<Operation>>,
}

named! {
    /// What happens with a finding.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Action {
        /// It is dropped.
        None = "none",
        /// It becomes a note.
        Report = "report",
        /// It warns.
        Warn = "warn",
        /// It refuses.
        Deny = "deny",
    }
}

impl Action {
    /// The severity of a finding with this action; `None` for a dropped one.
    pub const fn severity(self) -> Option<Severity> {
        match self {
            Self::None => None,
            Self::Report => Some(Severity::Note),
            Self::Warn => Some(Severity::Warn),
            Self::Deny => Some(Severity::Deny),
        }
    }
}

/// A value for each point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByPoint<T> {
    /// At admission.
    pub admission: T,
    /// In CI.
    pub ci: T,
    /// In an audit.
    pub audit: T,
}

impl<T: Copy> ByPoint<T> {
    /// The value at a point.
    pub const fn at(self, point: Point) -> T {
        match point {
            Point::Admission => self.admission,
            Point::Ci => self.ci,
            Point::Audit => self.audit,
        }
    }
}

/// The action at each point.
pub type Actions = ByPoint<Action>;

impl Default for Actions {
    fn default() -> Self {
        Self { admission: Action::Warn, ci: Action::Deny, audit: Action::Report }
    }
}

/// The actions of one rule, where they differ from those of its policy.
pub type ActionOverrides = ByPoint<Option<Action>>;

/// When the action at admission becomes stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promotion {
    /// From this moment on.
    pub at: Timestamp,
    /// The stricter action.
    pub to: Action,
}

/// Where exemptions from a policy are granted, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExemptionTerms {
    /// The namespaces in which exemptions count.
    pub namespaces: BTreeSet<String>,
    /// The longest time from `from` to `expiresAt`, in nanoseconds.
    pub max_age: i128,
}

/// One rule of a policy.
#[derive(Debug)]
pub struct Rule {
    /// Its id, texts and severity for findings.
    pub about: Arc<PolicyRule>,
    /// The roles of the objects that it judges.
    pub roles: Vec<Role>,
    /// The roles whose objects are judged by their own view.
    pub own: Vec<Role>,
    /// The roles whose objects are judged by the memory that they use.
    pub by_sources: Vec<Role>,
    /// The conditions under which it applies; always when absent.
    pub when: Option<Box<dyn Conditions>>,
    /// When it applies.
    pub during: During,
    /// The rule itself.
    pub check: Box<dyn TypedRule>,
    /// Its actions, where they differ from the policy's.
    pub action: ActionOverrides,
    /// The message of findings in place of the rule's own.
    pub message: Option<String>,
    /// The strictest action for an object that cannot be judged because a value is unknown.
    pub on_unknown: Action,
    /// Whether exemptions count.
    pub exemptable: bool,
}

/// A span of time; without any end for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct During {
    /// Its first moment.
    pub from: Option<Timestamp>,
    /// The first moment after it.
    pub until: Option<Timestamp>,
    /// The days of the week, in UTC; all when absent.
    pub weekdays: Option<Weekdays>,
}

/// Days of the week.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weekdays(u8);

/// The days in words, from the first of the week on.
pub const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

impl Weekdays {
    /// These and the day of this number, from 0 on.
    #[must_use]
    pub const fn and(self, day: u8) -> Self {
        Self(self.0 | 1 << (day & 7))
    }

    /// Their words.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        WEEKDAYS.into_iter().zip(0_u8..).filter(move |(_, day)| self.0 >> day & 1 == 1).map(|(word, _)| word)
    }

    /// Whether this moment is on one of them.
    fn has(self, now: Timestamp) -> bool {
        let day = now.to_zoned(TimeZone::UTC).weekday().to_monday_zero_offset();
        u8::try_from(day).is_ok_and(|day| self.0 >> day & 1 == 1)
    }
}

impl During {
    /// Whether it has this moment.
    pub fn has(self, now: Timestamp) -> bool {
        self.spans(now) && self.weekdays.is_none_or(|days| days.has(now))
    }

    /// Whether this moment is between its ends, on whichever day.
    pub fn spans(self, now: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= now) && self.until.is_none_or(|until| now < until)
    }
}

impl Rule {
    /// The paths of views that it reads, those of its conditions first.
    pub fn paths(&self) -> Vec<&str> {
        let when = self.when.as_ref().map(|when| when.paths()).unwrap_or_default();
        when.into_iter().chain(self.check.paths()).collect()
    }

    /// Whether it reads annotations of the object, most of which the state does not keep.
    pub fn reads_annotations(&self) -> bool {
        self.reads_written() || self.paths().contains(&"annotations")
    }

    /// Whether it asks which fields the author of an object wrote.
    pub fn reads_written(&self) -> bool {
        self.check.reads_written() || self.when.as_ref().is_some_and(|when| when.read_written())
    }
}

impl Rule {
    /// Whether it judges pods alone, which audits skip.
    pub fn is_for_pods(&self) -> bool {
        self.roles.iter().all(|role| *role == Role::Pod)
    }
}

/// A field that a policy fills where it is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyDefault {
    /// The name of the family.
    pub family: String,
    /// The kind.
    pub kind: String,
    /// The field.
    pub field: Pointer,
    /// The value.
    pub value: serde_json::Value,
}

/// An exemption.
#[derive(Debug, PartialEq)]
pub struct Exemption {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The policy that it suspends.
    pub policy: String,
    /// The rules that it suspends.
    pub rules: Vec<String>,
    /// The exempt objects.
    pub target: Target,
    /// When it begins.
    pub from: Timestamp,
    /// When it ends: from this moment on it does not count.
    pub expires_at: Timestamp,
    /// Why.
    pub reason: String,
    /// The ticket behind it.
    pub ticket: Option<String>,
    /// The person or team that approved it.
    pub approved_by: Option<String>,
}

impl Exemption {
    /// Its namespace and name, in the form that judgements use.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The exempt objects; an object must match all given parts.
#[derive(Debug, Default, PartialEq)]
pub struct Target {
    /// The namespaces; a Namespace matches by its own name.
    pub namespaces: Vec<String>,
    /// The names of families.
    pub families: Option<Vec<String>>,
    /// The kinds.
    pub kinds: Option<Vec<String>>,
    /// The names.
    pub names: Option<Vec<Glob>>,
    /// The labels.
    pub selector: Option<LabelSelector>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, families: Option<&[&str]>, invalid: Option<&str>) -> Policy {
        let families = families.map(|families| families.iter().map(|&name| name.to_owned()).collect());
        Policy {
            name: name.to_owned(),
            invalid: invalid.map(str::to_owned),
            matching: Match { families, ..Match::default() },
            ..Policy::default()
        }
    }

    fn asked<'p>(policies: &'p Policies, question: Question, family: &str) -> Vec<&'p str> {
        policies.asked(question, family).map(|policy| policy.name.as_str()).collect()
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
