//! Conditions on the values at a path of the view. The rule `fields` is made of them, and so are the rules about single
//! values: both judge, and are exported, in the same way.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use memgate_model::memory_view::{
    Element, EndpointView, MemoryView, Part, Role, ViewPath, ViewValue, Why, below_endpoint, qualified,
};
use memgate_model::typed_rule::{Judged, RuleOutcome};
use memgate_primitives::budget::Budget;
use memgate_primitives::glob::Glob;
use memgate_primitives::pointer::Pointer;

use super::host_glob::HostGlob;
use super::tenant_glob::fits;
use super::words::Allowed;
use crate::text::{HIDDEN, name, number, value};

/// What a byte is in a quantity.
pub(super) const BYTE: i128 = 1_000_000_000;

/// What looking at one element counts for.
const BYTES_PER_PART: usize = 32;

/// How many violations of one rule cost no more than those of any other rule.
const MAX_ORDINARY: usize = 10_000;

/// One condition on one path.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) path: ViewPath,
    /// The key of a map.
    pub(super) key: Option<String>,
    /// The field of the policy, for which an export gives a reason.
    pub(super) field: String,
    /// The name of the condition. Violations of the same name are compared with those of the stored object.
    pub(super) name: &'static str,
    pub(super) condition: Condition,
    pub(super) says: Says,
}

/// The message about a value.
#[derive(Debug)]
pub(super) struct Says {
    /// Up to the value.
    pub(super) before: String,
    pub(super) shows: Shows,
    /// From the value on.
    pub(super) behind: String,
}

/// How a message shows the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    Nothing,
    Value,
    /// The name of an object.
    Name,
    Number,
    /// Not at all: the name of its key is that of a credential.
    Hidden,
    /// The backend in its place.
    Backend,
}

#[derive(Debug)]
pub(super) enum Condition {
    /// The value is one of these, or none of them.
    In {
        values: BTreeSet<Scalar<'static>>,
        written: Vec<String>,
        wanted: bool,
    },
    /// The word is allowed; case does not count.
    Allowed(Allowed),
    /// The text fits one of these patterns, or none of them.
    Fits {
        globs: Vec<AnyGlob>,
        written: Vec<String>,
        wanted: bool,
    },
    AtLeast(Bound),
    AtMost(Bound),
    NotZero,
    Exists(bool),
}

/// A limit of a number.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) value: i128,
    /// As CEL writes it.
    pub(super) written: String,
    pub(super) zero: Zero,
}

/// What 0 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zero {
    Number,
    /// Above every other number.
    Unlimited,
    /// The same, and a condition of its own forbids it.
    Forbidden,
}

/// A value that can be compared: of a quantity, the billionths.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scalar<'v> {
    Text(Cow<'v, str>),
    Number(i128),
    Flag(bool),
}

#[derive(Debug)]
pub(super) enum AnyGlob {
    Text(Glob),
    Host(HostGlob),
    /// A pattern in which `{tenant}` stands for this tenant.
    OfTenant(Arc<str>, Arc<str>),
}

impl Condition {
    /// Whether a value that is there passes.
    fn holds(&self, found: &Scalar<'_>, budget: &Budget<'_>) -> bool {
        let text = if let Scalar::Text(text) = found { text } else { "" };
        let number = if let Scalar::Number(number) = found { *number } else { 0 };
        match self {
            Self::In { values, wanted, .. } => values.contains(found) == *wanted,
            Self::Allowed(allowed) => allowed.accepts(text),
            Self::Fits { globs, wanted, .. } => {
                let is_fit = |glob: &AnyGlob| match glob {
                    AnyGlob::Text(glob) => glob.matches(text, budget),
                    AnyGlob::Host(glob) => glob.matches(text, budget),
                    AnyGlob::OfTenant(pattern, tenant) => fits(pattern, tenant, text, budget),
                };
                globs.iter().any(is_fit) == *wanted
            }
            Self::AtLeast(bound) => number >= bound.value || bound.zero != Zero::Number && number <= 0,
            Self::AtMost(bound) => number <= bound.value,
            Self::NotZero => number != 0,
            Self::Exists(exists) => *exists,
        }
    }

    /// Whether no value passes both, as far as the budget goes.
    pub(super) fn contradicts(&self, other: &Self, budget: &Budget<'_>) -> bool {
        match (self, other) {
            (Self::AtLeast(min), Self::AtMost(max)) => min.value > max.value,
            (Self::Exists(one), Self::Exists(two)) => one != two,
            (_, Self::Exists(_)) => false,
            (Self::Fits { written, wanted: true, .. }, Self::Fits { written: others, wanted: false, .. }) => {
                // On hosts and repositories `*` is not any text.
                let none_is_left = || !other.holds(&Scalar::Text("/".into()), budget);
                let is_denied = |pattern: &String| {
                    budget.steps(others.len().try_into().unwrap_or(u32::MAX)) && others.contains(pattern)
                };
                written.iter().all(is_denied) || others.iter().any(|pattern| pattern == "*") && none_is_left()
            }
            (Self::In { values, wanted: true, .. }, other) => {
                !values.iter().any(|value| !budget.step() || other.holds(value, budget))
                    && !budget.has_ended()
            }
            _ => false,
        }
    }
}

impl Check {
    /// A condition of a typed rule on a path that every platform's views have.
    pub(super) fn new(
        path: &'static str,
        field: &str,
        name: &'static str,
        condition: Condition,
        (before, shows, behind): (&str, Shows, String),
    ) -> Self {
        let says = Says { before: before.to_owned(), shows, behind };
        Self { path: ViewPath::known(path), key: None, field: field.to_owned(), name, condition, says }
    }

    /// Whether the path is one of this view: of the object itself, or of the memory that it uses.
    pub(super) fn is_of(&self, judged: &Judged<'_>) -> bool {
        let roles: &[Role] = if judged.user.is_none() { self.path.own } else { self.path.by_sources };
        roles.contains(&judged.role())
    }

    pub(super) fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
        let (view, path) = (judged.view, self.path.path);
        let place = || self.keyed(view.pointer(path.split("[]").next().unwrap_or_default()));
        let (is_each, is_endpoint) = (self.path.is_each(), below_endpoint(path).is_some());
        let endpoint = view.endpoint_at(path).or(view.endpoint.as_ref());
        let digest = endpoint.map_or(0, |endpoint| endpoint.digest);
        if self.says.shows == Shows::Backend && view.text("backend").is_none() {
            return judged.note_unknown("backend", outcome);
        }
        let why = view.why_unknown(path).filter(|_| !self.is_known_all_the_same(view));
        let is_unknown = why.is_some();
        if let Some(why) = why {
            outcome.add_unknown_of(place(), why, digest);
            // Of another value what is known of it is judged.
            if is_endpoint {
                return;
            }
        }
        let must_exist = matches!(self.condition, Condition::Exists(true));
        // A host that clients read in two ways is never among those that are allowed.
        let is_never = below_endpoint(path) == Some(".host")
            && !matches!(self.condition, Condition::Exists(_))
            && is_ambiguous(view, path);
        let (mut is_absent, mut first) = (true, true);
        for (part, index) in self.path.parts(view).zip(0_usize..) {
            let at = || part.element.map_or_else(place, |it| self.keyed(self.path.place(it)));
            if let Some(why) = self.unknown_part(index, &part, judged) {
                outcome.add_unknown(at(), why);
                continue;
            }
            let found = self.found(&part);
            is_absent &= found.is_none();
            let length = if let Some(Scalar::Text(text)) = &found { text.len() } else { 0 };
            // Of exact values a set is searched, and a pattern counts for itself.
            if !judged.budget.bytes(BYTES_PER_PART + length) {
                return;
            }
            let passes = |found| !is_never && self.condition.holds(found, judged.budget);
            if found.as_ref().map_or(!(is_each && must_exist), passes) {
                continue;
            }
            let (amount, shown) = match (&found, &part.value) {
                _ if self.says.shows == Shows::Backend => {
                    (0, view.text("backend").unwrap_or_default().to_owned())
                }
                (Some(Scalar::Number(number)), Some(ViewValue::Bytes(_, text))) => {
                    (*number, text.to_string())
                }
                (Some(Scalar::Number(number)), _) => (*number, number.to_string()),
                (Some(Scalar::Text(text)), _) => (0, text.to_string()),
                // Of an object or a map all that it holds is compared; an element is compared as a whole below.
                _ if is_each => (0, String::new()),
                _ => (0, view.value(path).unwrap_or_default().to_string()),
            };
            let (whole, excess) = match &self.condition {
                Condition::NotZero => (String::new(), i128::MAX),
                Condition::AtLeast(_) if !is_endpoint => (String::new(), -amount),
                Condition::AtMost(_) if !is_endpoint => (String::new(), amount),
                _ if is_each => (part.element.map(Element::whole).unwrap_or_default(), 0),
                _ if is_endpoint => (format!("{digest:x} {shown}"), 0),
                _ => (shown.clone(), 0),
            };
            let remark = if std::mem::take(&mut first) { judged.remark(path) } else { String::new() };
            // Where the backend does not decide, its place is not that of the fault.
            let by_backend = self.says.shows == Shows::Backend && remark.is_empty();
            let at = if by_backend { view.pointer("backend") } else { at() };
            let whole = format!("{} {} {whole}", self.field, self.name);
            outcome.add_number(at, (self.message(judged, &shown), remark), whole, excess);
            if outcome.violations.len() > MAX_ORDINARY && !judged.budget.finding() {
                return;
            }
        }
        if is_absent && !is_unknown && !is_each && must_exist && judged.can_have(path) {
            outcome.add(place(), self.message(judged, ""), &self.field);
        }
    }

    fn keyed(&self, pointer: Pointer) -> Pointer {
        match &self.key {
            Some(key) => pointer.key(key),
            None => pointer,
        }
    }

    /// Whether the condition can be judged although the value is unknown: that there is an endpoint is known, and whether a
    /// host that clients read in two ways is allowed.
    fn is_known_all_the_same(&self, view: &MemoryView) -> bool {
        let path = self.path.path;
        let Some(below) = below_endpoint(path).filter(|_| view.unknown_at(path).is_none()) else {
            return false;
        };
        match (below, &self.condition) {
            ("", _) => true,
            (".scheme", _) | (".host", Condition::Exists(_)) => is_ambiguous(view, path),
            (".host", Condition::In { wanted, .. } | Condition::Fits { wanted, .. }) => {
                is_ambiguous(view, path) && *wanted
            }
            _ => false,
        }
    }

    /// Why the value of one element is unknown: whether an object exists may be, and in another namespace that something is
    /// missing there is not reported.
    fn unknown_part(&self, index: usize, part: &Part<'_>, judged: &Judged<'_>) -> Option<Why> {
        let is_secret = part.value == Some(ViewValue::Flag(false)) && judged.is_foreign();
        let reference = judged.view.references.get(index)?;
        (self.path.path == "references[].found" && (part.value.is_none() || is_secret)).then(|| {
            let path = qualified(&reference.namespace, &reference.name);
            Why::Object(format!("{} {}", reference.kind, name(judged, &path)))
        })
    }

    /// The value that is compared; of a list or an object, that it is there.
    fn found<'v>(&self, part: &'v Part<'v>) -> Option<Scalar<'v>> {
        Some(match (part.value.as_ref()?, &self.key) {
            (ViewValue::Map(map), Some(key)) => Scalar::Text(map.get(key)?.into()),
            (ViewValue::Text(text), _) => Scalar::Text((&**text).into()),
            (ViewValue::Integer(number), _) => Scalar::Number((*number).into()),
            (ViewValue::Bytes(bytes, _), _) => Scalar::Number(bytes.saturating_mul(BYTE)),
            (ViewValue::Flag(flag), _) => Scalar::Flag(*flag),
            (ViewValue::Map(_) | ViewValue::List | ViewValue::Object | ViewValue::Views(_), _) => {
                Scalar::Flag(true)
            }
        })
    }

    fn message(&self, judged: &Judged<'_>, found: &str) -> String {
        let Says { before, shows, behind } = &self.says;
        let shown = match shows {
            Shows::Nothing => String::new(),
            Shows::Value | Shows::Backend => value(judged, found),
            Shows::Name => name(judged, found),
            Shows::Number => number(judged, found),
            Shows::Hidden => HIDDEN.to_owned(),
        };
        format!("{before}{shown}{behind}")
    }
}

/// Whether clients read the host of the endpoint at a path in different ways. Then it differs from every host that they
/// agree on.
pub(super) fn is_ambiguous(view: &MemoryView, path: &str) -> bool {
    view.endpoint_at(path).is_some_and(EndpointView::is_ambiguous)
}
