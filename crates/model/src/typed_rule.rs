//! The input and the result of a typed rule. The rules themselves are in `memgate_policy::rules`.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::cel_view::{CelSide, InCel};
use crate::label_selector::LabelValue;
use crate::memory_view::{MemoryView, Why};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

/// A rule that judges the view of an object.
pub trait TypedRule: fmt::Debug + Send + Sync {
    /// Adds the violations of the object, in the order of the rule's fields.
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome);

    /// Adds the rule in CEL over a view that an apiserver makes, and the parts that CEL cannot express. It is called
    /// for the new object and for the stored one, and adds the same faults in the same order both times.
    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel);

    /// Whether the rule reads labels of Namespaces.
    fn reads_namespaces(&self) -> bool {
        false
    }

    /// Whether the fields that it reads depend on other objects, such as Services.
    fn reads_other_objects(&self) -> bool {
        false
    }
}

/// The view that a rule judges.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'v> {
    /// The view of the object, or of the memory that it uses.
    pub view: &'v MemoryView,
    /// The view of the stored object, on UPDATE.
    pub old: Option<&'v MemoryView>,
    /// The labels of the view's Namespace.
    pub namespace_labels: NamespaceLabels<'v>,
    /// Counts the comparisons of rules. Once it has ended, the decision counts for nothing.
    pub budget: &'v Budget<'v>,
    /// The namespace of the subject. Values from another namespace are not reported.
    pub subject_namespace: &'v str,
    /// The labels of the object; of memory that only a pod names, those of the pod.
    pub labels: &'v BTreeMap<String, String>,
}

impl Judged<'_> {
    /// Whether the view is of an object in another namespace than the subject. Its values are not reported.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        !self.view.namespace.is_empty() && self.view.namespace != self.subject_namespace
    }

    /// Where the value at a path comes from, as messages end.
    #[must_use]
    pub fn remark(&self, path: &str) -> String {
        self.view.remark(path, self.subject_namespace)
    }

    /// Notes that the value at a path is unknown, if it is.
    pub fn note_unknown(&self, path: &str, outcome: &mut RuleOutcome) {
        if let Some(why) = self.view.unknown_at(path) {
            outcome.add_unknown(self.view.pointer(path), why.clone());
        }
    }
}

/// The labels of a Namespace, as far as they are known.
#[derive(Debug, Clone, Copy)]
pub struct NamespaceLabels<'v> {
    /// The name of the Namespace; empty for a cluster-scoped object.
    pub name: &'v str,
    /// The labels; `None` for a Namespace that is not known.
    pub labels: Option<&'v BTreeMap<String, String>>,
}

impl<'v> NamespaceLabels<'v> {
    /// The value of a label. Every Namespace has its name as a label.
    #[must_use]
    pub fn get(&self, key: &str) -> LabelValue<'v> {
        if key == "kubernetes.io/metadata.name" && !self.name.is_empty() {
            return LabelValue::Found(self.name);
        }
        match self.labels {
            None => LabelValue::Unknown,
            Some(labels) => labels.get(key).map_or(LabelValue::Missing, |value| LabelValue::Found(value)),
        }
    }
}

/// The result of judging a view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleOutcome {
    /// The violations.
    pub violations: Vec<RuleViolation>,
    /// The first value that could not be judged.
    pub unknown: Option<Unknown>,
}

/// One violation of a rule. The remark does not tell two of them apart.
#[derive(Debug, Clone)]
pub struct RuleViolation {
    /// The field.
    pub pointer: Pointer,
    /// The message, without field and policy.
    pub message: String,
    /// What the message ends in: where the value comes from.
    pub remark: String,
    /// The value that causes it. A stored object with the same value has the same violation. Never shown.
    pub value: String,
}

impl RuleViolation {
    fn identity(&self) -> (&Pointer, &str, &str) {
        (&self.pointer, &self.message, &self.value)
    }
}

impl PartialEq for RuleViolation {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for RuleViolation {}

impl Hash for RuleViolation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// A value that could not be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The field.
    pub pointer: Pointer,
    /// The reason.
    pub why: Why,
    /// The memory, if the subject is judged by the memory that it uses: ` (Kind "namespace/name")`.
    pub of: String,
    /// A digest of the value, as far as it is written. A stored object with another one has another unknown value.
    pub digest: u64,
}

impl RuleOutcome {
    /// Adds a violation.
    pub fn add(&mut self, pointer: Pointer, message: impl Into<String>, value: impl Into<String>) {
        self.add_remarked(pointer, (message.into(), String::new()), value);
    }

    /// The same with a remark behind the message.
    pub fn add_remarked(
        &mut self,
        pointer: Pointer,
        (message, remark): (String, String),
        value: impl Into<String>,
    ) {
        self.violations.push(RuleViolation { pointer, message, remark, value: value.into() });
    }

    /// Notes a value that could not be judged; only the first one is kept.
    pub fn add_unknown(&mut self, pointer: Pointer, why: Why) {
        self.add_unknown_of(pointer, why, 0);
    }

    /// The same for a value that is written, with its digest.
    pub fn add_unknown_of(&mut self, pointer: Pointer, why: Why, digest: u64) {
        self.unknown.get_or_insert(Unknown { pointer, why, of: String::new(), digest });
    }
}
