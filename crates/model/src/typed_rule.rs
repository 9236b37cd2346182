//! The input and the result of a typed rule. The rules themselves are in `memgate_policy::rules`.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::label_selector::LabelValue;
use crate::memory_view::{MemoryView, Role, Why};
use crate::possible::Possible;
use crate::view_table::ViewTable;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

/// A rule that judges the view of an object.
pub trait TypedRule: fmt::Debug + Send + Sync {
    /// Adds the violations of the object, in the order of the rule's fields.
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome);

    /// The paths of views that the rule judges as it is written. It applies to an object that can have one of them.
    fn paths(&self) -> Vec<&str>;

    /// Whether the rule applies to this view: a platform may have no such thing.
    fn applies(&self, judged: &JudgedView<'_>) -> bool {
        self.paths().iter().any(|path| judged.can_have(path))
    }

    /// The roles that the rule judges, where they depend on how it is written and not on its type alone.
    fn roles(&self) -> Option<RuleRoles> {
        None
    }

    /// The parts of the rule that contradict each other: a JSON pointer in the rule, and the words. When the budget has
    /// ended, there are no more.
    fn contradictions(&self, _budget: &Budget<'_>) -> Vec<(Pointer, String)> {
        Vec::new()
    }

    /// Whether the rule reads labels of Namespaces.
    fn reads_namespaces(&self) -> bool {
        false
    }

    /// Whether the rule compares the object with the stored one, and so also judges memory that is taken away.
    fn compares(&self) -> bool {
        false
    }

    /// Whether the rule asks what the author of the object wrote.
    fn reads_written(&self) -> bool {
        false
    }

    /// Whether the fields that it reads depend on other objects, such as Services, the workloads behind them, and what
    /// counts for a Query without a TTL.
    fn reads_other_objects(&self) -> bool {
        let others = ["durable", "ttlSeconds", "endpoint", "references", "environment"];
        self.paths().iter().any(|path| others.contains(path))
    }
}

/// The conditions under which a rule applies. All of them must hold.
pub trait Conditions: fmt::Debug + Send + Sync + Any {
    /// Whether they hold for what a rule judges. A path of the object itself is read there, every other in the view that is
    /// judged. An absent value holds only where it is asked for.
    fn hold(&self, judged: &JudgedView<'_>) -> Applies;

    /// The paths that they read.
    fn paths(&self) -> Vec<&str>;

    /// The conditions in words, each `PATH …`, and whether it says of an absent value what that means.
    fn words(&self) -> Vec<(String, bool)>;

    /// The pairs that no value meets: the JSON pointer of the later one in `when`, and the words.
    fn contradictions(&self, budget: &Budget<'_>) -> Vec<(Pointer, String)>;

    /// Whether all of them can hold for views like this, of objects like `own`.
    fn can_hold(&self, possible: &Possible, own: &[Possible]) -> bool;

    /// Whether what they read depends on other objects than the judged one.
    fn read_other_objects(&self) -> bool;

    /// Whether one of them asks what the author of the object wrote.
    fn read_written(&self) -> bool;
}

/// Whether a rule applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applies {
    /// It does, by these values: `PATH is "VALUE"` for each condition.
    Yes(Vec<String>),
    /// It does not.
    No,
    /// A condition is about a value that is not known.
    Unknown(Box<Unknown>),
}

/// The fields of an object as it was sent.
pub trait Sent: fmt::Debug {
    /// Whether a field stands in it, and was not added by memgate.
    fn has(&self, place: &Pointer) -> bool;

    /// The same for a field that holds a text, a number or a flag.
    fn has_value(&self, place: &Pointer) -> bool;
}

/// The roles of the objects that a rule judges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleRoles {
    /// Those of a rule that does not name its roles.
    pub default: Vec<Role>,
    /// Those whose objects are judged by their own view.
    pub own: Vec<Role>,
    /// Those whose objects are judged by the memory that they use.
    pub by_sources: Vec<Role>,
}

impl RuleRoles {
    /// The roles that a rule may name.
    pub fn possible(&self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(|role| self.own.contains(role) || self.by_sources.contains(role))
    }

    /// The same without other roles than these.
    #[must_use]
    pub fn only(mut self, roles: &[Role]) -> Self {
        for own in [&mut self.default, &mut self.own, &mut self.by_sources] {
            own.retain(|role| roles.contains(role));
        }
        self
    }
}

/// The view that a rule judges.
#[derive(Debug, Clone, Copy)]
pub struct JudgedView<'v> {
    /// The view of the object, or of the memory that it uses.
    pub view: &'v MemoryView,
    /// The object itself, if the view is of the memory that it uses.
    pub user: Option<&'v Self>,
    /// What views of the platform can have; empty for rules that do not ask for it.
    pub tables: &'static [ViewTable],
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
    /// The fields of the object as it was sent; `None` for memory that the object uses.
    pub sent: Option<&'v dyn Sent>,
}

impl JudgedView<'_> {
    /// Whether the view is of an object in another namespace than the subject. Its values are not reported.
    pub fn is_foreign(&self) -> bool {
        self.view.reads_elsewhere
            || !self.view.namespace.is_empty() && self.view.namespace != self.subject_namespace
    }

    /// The role of the object itself.
    pub fn role(&self) -> Role {
        self.user.unwrap_or(self).view.role
    }

    /// Whether an object of this kind, with this backend, can have a value at a path.
    pub fn can_have(&self, path: &str) -> bool {
        let view = self.view;
        view.has_value(path)
            || view.why_unknown(path).is_some()
            || self.tables.iter().any(|table| table.can_have(view, path))
    }

    /// Whether the author of such an object can write a value at a path.
    pub fn can_be_written(&self, path: &str) -> bool {
        self.can_have(path) && !self.tables.iter().any(|table| table.derives(self.view, path))
    }

    /// Where the value at a path comes from, as messages end.
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
    /// The values that could not be judged.
    pub unknowns: Vec<Unknown>,
    /// Whether variables that the pod itself sets are part of all of them, wherever they stand.
    pub is_of_pod: bool,
    /// The values by which the rule applies: `PATH is "VALUE"` for each condition of `when`.
    pub applies: Vec<String>,
}

/// A sentence that may be made when it is read: an object can have ten thousand violations, of which few are reported.
#[derive(Clone)]
pub struct Sentence {
    /// The sentence, or what it says about a value.
    text: Cow<'static, str>,
    make: Option<Arc<dyn Fn() -> String + Send + Sync>>,
}

impl Sentence {
    /// One that is made when it is read. `about` tells it from other sentences of its rule about the same value.
    pub fn later(about: &'static str, make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { text: about.into(), make: Some(Arc::new(make)) }
    }

    /// The sentence.
    pub fn text(&self) -> Cow<'_, str> {
        self.make.as_ref().map_or_else(|| (&*self.text).into(), |make| make().into())
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Sentence {
    fn from(text: T) -> Self {
        Self { text: text.into(), make: None }
    }
}

impl fmt::Debug for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

impl PartialEq for Sentence {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Sentence {}

/// One violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleViolation {
    /// The field.
    pub pointer: Pointer,
    /// The message, without field and policy.
    pub message: Sentence,
    /// What the message ends in: where the value comes from.
    pub remark: String,
    /// Everything that the rule judged for it. A stored object with the same value in the same field has the same
    /// violation, in whichever place of a list. Never shown.
    pub value: String,
    /// Of a number how far it is on the forbidden side, where a stored object with more has the same violation; else 0.
    pub excess: i128,
    /// The violations that count together with it: a stored object has it if it has all of them.
    pub others: Vec<Self>,
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

impl RuleViolation {
    /// The message with its end.
    pub fn told(&self) -> String {
        self.message.text().into_owned() + &self.remark
    }

    /// What tells it from other violations of its rule at the same place, without a sentence that is not made yet.
    pub fn distinction(&self) -> ([&str; 3], i128) {
        let Self { message: Sentence { text, make }, remark, value, excess, .. } = self;
        let (value, excess) = if make.is_some() { (&**value, *excess) } else { ("", 0) };
        ([text, remark, value], excess)
    }

    /// The value, with those of the violations that count together with it, and how far their numbers are.
    pub fn values(&self) -> String {
        let mut all = self.value.clone();
        for Self { pointer, value, excess, .. } in &self.others {
            // Writing to a text never fails.
            let _ = write!(all, "\n{} {value} {excess}", pointer.without_indexes().as_str());
        }
        all
    }
}

impl RuleOutcome {
    /// Whether there is anything to report.
    pub const fn fires(&self) -> bool {
        !self.violations.is_empty() || !self.unknowns.is_empty()
    }

    /// Adds a violation.
    pub fn add(&mut self, pointer: Pointer, message: impl Into<Sentence>, value: impl Into<String>) {
        self.add_number(pointer, (message.into(), String::new()), value.into(), 0);
    }

    /// Adds a violation by a number, which is this far on the forbidden side. `value` names what the number exceeds.
    pub fn add_number(
        &mut self,
        pointer: Pointer,
        (message, remark): (Sentence, String),
        value: String,
        excess: i128,
    ) {
        let others = Vec::new();
        self.violations.push(RuleViolation { pointer, message, remark, value, excess, others });
    }

    /// Notes a value that could not be judged. The first one is reported.
    pub fn add_unknown(&mut self, pointer: Pointer, why: Why) {
        self.add_unknown_of(pointer, why, 0);
    }

    /// The same for a value that is written, with its digest.
    pub fn add_unknown_of(&mut self, pointer: Pointer, why: Why, digest: u64) {
        self.unknowns.push(Unknown { pointer, why, of: String::new(), digest });
    }
}
