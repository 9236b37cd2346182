//! Conditions on the values at a path of the view. The rule `fields` is made of them, and so are the rules about single
//! values: both judge in the same way.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use memgate_model::memory_view::{
    Element, EndpointView, Holds, MemoryView, Role, ViewPart, ViewPath, ViewValue, Why, below_endpoint,
    qualified,
};
use memgate_model::possible::{Held, Possible};
use memgate_model::typed_rule::{Applies, JudgedView, RuleOutcome, Sentence, Unknown};
use memgate_primitives::budget::Budget;
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::glob::Glob;
use memgate_primitives::pointer::Pointer;

use super::host_glob::HostGlob;
use super::words::Allowed;
use crate::text::{HIDDEN, Shown, a_or_b, name, value};

/// The conditions of a rule, in order.
#[derive(Debug)]
pub(super) struct When {
    pub(super) all: Vec<Check>,
}

/// What is before the path of an entry of `fields` in the name of its field.
pub(super) const FIELD: &str = "fields ";

/// What a byte is in a quantity.
const BYTE: i128 = 1_000_000_000;

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
    /// The field of the policy. Violations of the same field are compared with those of the stored object.
    pub(super) field: String,
    /// The name of the condition. Violations of the same name are compared with those of the stored object.
    pub(super) name: &'static str,
    pub(super) condition: Condition,
    pub(super) says: Says,
}

/// The message about a value.
#[derive(Debug, Clone)]
pub(super) struct Says {
    /// Up to the value.
    pub(super) before: Arc<str>,
    pub(super) shows: Shows,
    /// From the value on.
    pub(super) behind: Arc<str>,
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
    /// It stands in the object as its author sent it.
    Written(bool),
}

/// A limit of a number.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) value: i128,
    /// The number as the words of the rule have it.
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
}

impl AnyGlob {
    /// Whether it fits every text. Of hosts none does: one that clients read in two ways is never among those that fit.
    pub(super) fn is_anything(&self) -> bool {
        matches!(self, Self::Text(glob) if glob.is_anything())
    }
}

impl Condition {
    /// Whether a value that is there passes.
    pub(super) fn holds(&self, found: &Scalar<'_>, budget: &Budget<'_>) -> bool {
        let text = if let Scalar::Text(text) = found { text } else { "" };
        let number = if let Scalar::Number(number) = found { *number } else { 0 };
        match self {
            Self::In { values, wanted, .. } => values.contains(found) == *wanted,
            Self::Allowed(allowed) => allowed.accepts(text),
            Self::Fits { globs, wanted, .. } => {
                let is_fit = |glob: &AnyGlob| match glob {
                    AnyGlob::Text(glob) => glob.matches(text, budget),
                    AnyGlob::Host(glob) => glob.matches(text, budget),
                };
                globs.iter().any(is_fit) == *wanted
            }
            Self::AtLeast(bound) => number >= bound.value || bound.zero != Zero::Number && number <= 0,
            Self::AtMost(bound) => number <= bound.value,
            Self::NotZero => number != 0,
            Self::Exists(wanted) | Self::Written(wanted) => *wanted,
        }
    }

    /// Whether it is about the object as it was sent, and not about a value.
    pub(super) const fn is_about_presence(&self) -> bool {
        matches!(self, Self::Exists(_) | Self::Written(_))
    }

    /// Whether a value that may be anything can meet it. Numbers are not negative.
    fn can_be_met(&self) -> bool {
        match self {
            Self::Fits { globs, wanted, .. } => *wanted || !globs.iter().any(AnyGlob::is_anything),
            Self::AtMost(bound) => bound.value >= 0,
            _ => true,
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
        let says = Says { before: before.into(), shows, behind: behind.into() };
        Self { path: ViewPath::known(path), key: None, field: field.to_owned(), name, condition, says }
    }

    /// The path as a rule `fields` writes it.
    pub(super) fn written_path(&self) -> &str {
        self.field.trim_start_matches(FIELD)
    }

    /// Whether the path is one of this view: of the object itself, or of the memory that it uses.
    pub(super) fn is_of(&self, judged: &JudgedView<'_>) -> bool {
        let roles: &[Role] = if judged.user.is_none() { self.path.own } else { self.path.by_sources };
        roles.contains(&judged.role())
    }

    /// Judges the value at the path, or each of several.
    pub(super) fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        if let Condition::Written(wanted) = self.condition {
            return self.judge_written(wanted, judged, outcome);
        }
        if self.says.shows == Shows::Backend && judged.view.text("backend").is_none() {
            return judged.note_unknown("backend", outcome);
        }
        let is_known = self.note_unknown(judged, outcome);
        // Of a value that is not known, but for an address, what is known of it is judged.
        if !is_known && self.is_of_endpoint() {
            return;
        }
        let has_value = self.judge_values(judged, outcome);
        if is_known && !has_value {
            self.judge_absence(judged, outcome);
        }
    }

    /// Notes why the value is not known. Returns whether it is.
    fn note_unknown(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) -> bool {
        let why = self.why_unknown(judged.view);
        if let Some(why) = &why {
            let digest = address(judged.view, self.path.path).map_or(0, |it| it.digest);
            outcome.add_unknown_of(self.place(judged.view), why.clone(), digest);
        }
        why.is_none()
    }

    /// Judges what stands at the path. Returns whether there is a value.
    fn judge_values(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) -> bool {
        let (mut has_value, before) = (false, outcome.violations.len());
        for (part, place, why) in self.values(judged) {
            let found = self.found(&part);
            has_value |= found.is_some() || why.is_some();
            if let Some(why) = why {
                outcome.add_unknown(place, why);
            } else if !self.accepts(found.as_ref(), judged) {
                let is_first = outcome.violations.len() == before;
                self.add_violation((&part, place, found), is_first, judged, outcome);
                if outcome.violations.len() > MAX_ORDINARY && !judged.budget.finding() {
                    break;
                }
            }
        }
        has_value
    }

    /// The values at the path, each with its place, and why it is not known. Each counts for the budget.
    fn values<'v>(
        &'v self,
        judged: &'v JudgedView<'_>,
    ) -> impl Iterator<Item = (ViewPart<'v>, Pointer, Option<Why>)> {
        let place = self.place(judged.view);
        let values = self.path.parts(judged.view).zip(0_usize..).map(move |(part, index)| {
            let at = part.element.map_or_else(|| place.clone(), |it| self.keyed(self.path.place(it)));
            let why = self.unknown_part(index, &part, judged);
            (part, at, why)
        });
        // Of exact values a set is searched, and a pattern counts for itself.
        values.take_while(|(part, ..)| {
            let length = if let Some(Scalar::Text(text)) = self.found(part) { text.len() } else { 0 };
            judged.budget.bytes(BYTES_PER_PART + length)
        })
    }

    /// Whether a value meets the condition. What is absent meets it, but in an element that must have it.
    fn accepts(&self, found: Option<&Scalar<'_>>, judged: &JudgedView<'_>) -> bool {
        let Some(found) = found else { return !(self.path.is_each() && self.must_exist()) };
        // A host that clients read in two ways is never among those that are allowed.
        let path = self.path.path;
        let is_never = below_endpoint(path) == Some(".host")
            && !self.condition.is_about_presence()
            && is_ambiguous(judged.view, path);
        !is_never && self.condition.holds(found, judged.budget)
    }

    fn add_violation(
        &self,
        (part, place, found): (&ViewPart<'_>, Pointer, Option<Scalar<'_>>),
        is_first: bool,
        judged: &JudgedView<'_>,
        outcome: &mut RuleOutcome,
    ) {
        let (view, path) = (judged.view, self.path.path);
        let is_by_backend = self.says.shows == Shows::Backend;
        let shown = match self.shown(part) {
            _ if is_by_backend => view.text("backend").unwrap_or_default().to_owned(),
            Some(shown) => shown,
            // Of an object or a map all that it holds is compared; an element is compared as a whole.
            None if self.path.is_each() => String::new(),
            None => view.value(path).unwrap_or_default().to_string(),
        };
        let number = if let Some(Scalar::Number(number)) = found { number } else { 0 };
        let (whole, excess) = match &self.condition {
            Condition::NotZero => (String::new(), i128::MAX),
            Condition::AtLeast(_) if !self.is_of_endpoint() => (String::new(), -number),
            Condition::AtMost(_) if !self.is_of_endpoint() => (String::new(), number),
            _ if self.path.is_each() => (part.element.map(Element::whole).unwrap_or_default(), 0),
            _ if self.is_of_endpoint() => {
                (format!("{:x} {shown}", address(view, path).map_or(0, |it| it.digest)), 0)
            }
            _ => (shown.clone(), 0),
        };
        let remark = if is_first { judged.remark(path) } else { String::new() };
        // Where the backend does not decide, its place is not that of the fault.
        let place = if is_by_backend && remark.is_empty() { view.pointer("backend") } else { place };
        let whole = format!("{} {} {whole}", self.field, self.name);
        outcome.add_number(place, (self.message(judged, &shown), remark), whole, excess);
    }

    /// What has to be there, and is not, although objects like this can have it.
    fn judge_absence(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        if self.must_exist() && !self.path.is_each() && judged.can_have(self.path.path) {
            outcome.add(self.place(judged.view), self.message(judged, ""), &self.field);
        }
    }

    const fn must_exist(&self) -> bool {
        matches!(self.condition, Condition::Exists(true))
    }

    fn is_of_endpoint(&self) -> bool {
        below_endpoint(self.path.path).is_some()
    }

    /// Whether the author of the object wrote the value: of a list each element.
    fn judge_written(&self, wanted: bool, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        let (view, path) = (judged.view, self.path.path);
        if !self.path.is_each() {
            if judged.can_be_written(path) && self.is_written(judged) != wanted {
                outcome.add(self.place(view), self.message(judged, ""), &self.field);
            }
            return;
        }
        for (element, place, is_written) in self.elements(judged) {
            if is_written != wanted {
                outcome.add(place, self.message(judged, ""), format!("{} {}", self.field, element.whole()));
            }
        }
    }

    /// The elements of a list, each with the place of its value, and whether the author of the object wrote that.
    fn elements<'j>(
        &'j self,
        judged: &'j JudgedView<'_>,
    ) -> impl Iterator<Item = (&'j dyn Element, Pointer, bool)> {
        let is_added = |index: usize| judged.view.containers.get(index).is_none_or(|it| it.added);
        let elements = self.path.parts(judged.view).map_while(|part| part.element);
        let elements = elements.take_while(|_| judged.budget.bytes(BYTES_PER_PART));
        elements.zip(0_usize..).map(move |(element, index)| {
            let place = self.keyed(self.path.place(element));
            let is_written = if self.path.path.starts_with("containers") {
                !is_added(index)
            } else {
                judged.sent.is_some_and(|sent| sent.has(&place))
            };
            (element, place, is_written)
        })
    }

    /// Whether the value stands in the object as its author sent it. Where no field holds the value, its place is that of the
    /// map around it, or of all that memgate reads a list from.
    fn is_written(&self, judged: &JudgedView<'_>) -> bool {
        let (view, path) = (judged.view, self.path.path);
        let Some(sent) = judged.sent else { return false };
        let place = self.place(view);
        let is_sent = || sent.has(&place);
        match self.path.holds {
            _ if below_endpoint(path).is_some() || self.key.is_some() => is_sent(),
            Holds::List | Holds::Map => {
                let is_there = |part: ViewPart<'_>| match part.value {
                    Some(ViewValue::Map(map)) => !map.is_empty(),
                    value => value.is_some(),
                };
                self.path.parts(view).any(is_there) && is_sent()
            }
            Holds::Text | Holds::Integer | Holds::Quantity | Holds::Flag => sent.has_value(&place),
            Holds::Texts | Holds::Object => is_sent(),
        }
    }

    fn place(&self, view: &MemoryView) -> Pointer {
        self.keyed(view.pointer(self.path.path.split("[]").next().unwrap_or_default()))
    }

    /// Whether the condition holds for what a rule judges, as a condition of that rule.
    pub(super) fn hold(&self, judged: &JudgedView<'_>) -> Applies {
        let (role, path) = (judged.role(), self.path.path);
        let object = judged.user.unwrap_or(judged);
        let is_of_both = self.path.by_sources.contains(&role);
        let is_own = self.path.own.contains(&role) && (!is_of_both || object.can_have(path));
        let is_there = is_own || judged.user.is_some();
        match self.condition {
            // A condition on memory is not about the object itself.
            _ if !is_there && is_of_both => Applies::No,
            Condition::Exists(false) if !is_there => self.met_by("is not set"),
            Condition::Written(_) if !is_own && is_of_both && judged.can_be_written(path) => {
                unknown(self.place(judged.view), Why::Author)
            }
            Condition::Written(wanted) => self.hold_written(wanted, is_own.then_some(object)),
            _ if !is_there => Applies::No,
            _ => self.hold_value(if is_own { object } else { judged }),
        }
    }

    /// Of a list one element is enough; of none nothing is written.
    fn hold_written(&self, wanted: bool, own: Option<&JudgedView<'_>>) -> Applies {
        let is_written = |own: &JudgedView<'_>| own.can_be_written(self.path.path) && self.is_written(own);
        let is_met = match own.filter(|_| self.path.is_each()) {
            Some(own) => {
                let mut elements = self.elements(own).peekable();
                let is_empty = elements.peek().is_none();
                is_empty && !wanted || elements.any(|(.., is_written)| is_written == wanted)
            }
            None => wanted == own.is_some_and(is_written),
        };
        match (is_met, wanted) {
            (false, _) => Applies::No,
            (true, true) => self.met_by("is written"),
            (true, false) => self.met_by("is not written"),
        }
    }

    /// Whether a value meets it; one that is not known may do so.
    fn hold_value(&self, judged: &JudgedView<'_>) -> Applies {
        if let Some(why) = self.why_unknown(judged.view) {
            return unknown(self.place(judged.view), why);
        }
        let (mut is_absent, mut first_unknown) = (true, None);
        for (part, place, why) in self.values(judged) {
            let found = self.found(&part);
            is_absent &= found.is_none();
            if let Some(why) = why {
                first_unknown.get_or_insert_with(|| unknown(place, why));
            } else if found.is_some_and(|found| self.condition.holds(&found, judged.budget)) {
                return self.met_by_value(self.shown(&part), judged);
            }
        }
        match first_unknown {
            Some(unknown) => unknown,
            None if is_absent && matches!(self.condition, Condition::Exists(false)) => {
                self.met_by("is not set")
            }
            None => Applies::No,
        }
    }

    fn met_by(&self, words: &str) -> Applies {
        Applies::Yes(vec![format!("{} {words}", self.written_path())])
    }

    fn met_by_value(&self, shown: Option<String>, judged: &JudgedView<'_>) -> Applies {
        let is_hidden =
            self.says.shows == Shows::Hidden || self.key.as_deref().is_some_and(is_credential_name);
        match shown {
            None => self.met_by("is set"),
            Some(_) if is_hidden => self.met_by(&format!("is {HIDDEN}")),
            Some(shown) => self.met_by(&format!("is {}", value(judged, &shown))),
        }
    }

    /// What views like these can hold at the path; `None` if a rule does not read it there, or they never have it.
    fn held(&self, possible: &Possible) -> Option<Held> {
        let roles = if possible.is_own { self.path.own } else { self.path.by_sources };
        let is_derived = matches!(self.condition, Condition::Written(_)) && possible.derives(self.path.path);
        let held = possible.at(self.path.path).filter(|_| roles.contains(&possible.user) && !is_derived)?;
        Some(if self.key.is_some() { Held::ANYTHING } else { held })
    }

    /// Whether a value at the path can meet the condition.
    fn can_be_met(&self, held: &Held) -> bool {
        let passes = |word: &&str| self.condition.holds(&self.scalar(word), &Budget::default());
        match (&self.condition, &held.values) {
            (Condition::Exists(true) | Condition::Written(_), _) => true,
            (Condition::Exists(false), _) => held.may_be_absent,
            (_, Some(values)) => values.iter().any(passes),
            (condition, None) => condition.can_be_met(),
        }
    }

    /// A word of a table.
    fn scalar<'t>(&self, word: &'t str) -> Scalar<'t> {
        if self.path.holds == Holds::Flag { Scalar::Flag(word == "true") } else { Scalar::Text(word.into()) }
    }

    /// The condition in words.
    pub(super) fn words(&self) -> String {
        let path = self.written_path();
        let condition = match &self.condition {
            Condition::In { written, wanted, .. } if *wanted => format!("is {}", a_or_b(written)),
            Condition::In { written, .. } => format!("is not {}", a_or_b(written)),
            Condition::Allowed(allowed) => {
                let allow = allowed.allow.as_ref().map(|allow| a_or_b(&allow.texts));
                format!("is {}", allow.unwrap_or_default())
            }
            Condition::Fits { written, wanted, .. } if *wanted => format!("fits {}", a_or_b(written)),
            Condition::Fits { written, .. } => format!("does not fit {}", a_or_b(written)),
            Condition::AtLeast(bound) => format!("is at least {}", bound.written),
            Condition::AtMost(bound) => format!("is at most {}", bound.written),
            Condition::NotZero => "is not 0".to_owned(),
            Condition::Exists(true) => "is set".to_owned(),
            Condition::Exists(false) => "is not set".to_owned(),
            Condition::Written(true) => "is written".to_owned(),
            Condition::Written(false) => "is not written".to_owned(),
        };
        format!("{path} {condition}")
    }

    /// Whether the condition can hold for views like these, as one of a rule.
    pub(super) fn can_hold(&self, possible: &Possible) -> bool {
        let of_absent = matches!(self.condition, Condition::Exists(false) | Condition::Written(false));
        self.held(possible).map_or(of_absent, |held| self.can_be_met(&held))
    }

    fn keyed(&self, pointer: Pointer) -> Pointer {
        match &self.key {
            Some(key) => pointer.key(key),
            None => pointer,
        }
    }

    fn why_unknown(&self, view: &MemoryView) -> Option<Why> {
        view.why_unknown(self.path.path).filter(|_| !self.is_known_all_the_same(view))
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
    fn unknown_part(&self, index: usize, part: &ViewPart<'_>, judged: &JudgedView<'_>) -> Option<Why> {
        let is_secret = part.value == Some(ViewValue::Flag(false)) && judged.is_foreign();
        let reference = judged.view.references.get(index)?;
        (self.path.path == "references[].found" && (part.value.is_none() || is_secret)).then(|| {
            let path = qualified(&reference.namespace, &reference.name);
            Why::Object(format!("{} {}", reference.kind, name(judged, &path)))
        })
    }

    /// The value that is compared; of a list or an object, that it is there.
    fn found<'v>(&self, part: &'v ViewPart<'v>) -> Option<Scalar<'v>> {
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

    /// The text of a value, by which it is shown and compared; `None` for a list, an object and a whole map.
    fn shown(&self, part: &ViewPart<'_>) -> Option<String> {
        match (part.value.as_ref()?, &self.key) {
            (ViewValue::Text(text) | ViewValue::Bytes(_, text), _) => Some(text.to_string()),
            (ViewValue::Integer(number), _) => Some(number.to_string()),
            (ViewValue::Flag(flag), _) => Some(flag.to_string()),
            (ViewValue::Map(map), Some(key)) => map.get(key).cloned(),
            (ViewValue::Map(_) | ViewValue::List | ViewValue::Object | ViewValue::Views(_), _) => None,
        }
    }

    fn message(&self, judged: &JudgedView<'_>, found: &str) -> Sentence {
        let (Says { before, shows, behind }, found) = (self.says.clone(), Shown::of(judged, found));
        Sentence::later(self.name, move || {
            let shown = match shows {
                Shows::Nothing => String::new(),
                Shows::Value | Shows::Backend => found.value(),
                Shows::Name => found.name(),
                Shows::Number => found.number(),
                Shows::Hidden => HIDDEN.to_owned(),
            };
            format!("{before}{shown}{behind}")
        })
    }
}

fn unknown(pointer: Pointer, why: Why) -> Applies {
    Applies::Unknown(Box::new(Unknown { pointer, why, of: String::new(), digest: 0 }))
}

/// The address at a path, or that of the memory.
pub(super) fn address<'v>(view: &'v MemoryView, path: &str) -> Option<&'v EndpointView> {
    view.endpoint_at(path).or(view.endpoint.as_ref())
}

/// Whether clients read the host of the endpoint at a path in different ways. Then it differs from every host that they
/// agree on.
pub(super) fn is_ambiguous(view: &MemoryView, path: &str) -> bool {
    view.endpoint_at(path).is_some_and(EndpointView::is_ambiguous)
}
