//! The rules that an object breaks, a few bytes each, since there may be very many. Their texts are made only for
//! breaches that are reported.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem::discriminant;

use crate::cursor::Cursor;
use crate::document::Document;
use crate::equal;
use crate::metadata_fault::Fault;
use crate::place::{Place, PointerText, Step, Ways};
use crate::rule::Rule;
use crate::violation::{Broken, BrokenKind, BrokenRule, SchemaViolation};
use memgate_primitives::budget::Budget;
use memgate_primitives::members::Members;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

/// A rule that an object breaks somewhere.
#[derive(Clone, Copy)]
pub struct Breach<'d> {
    way: u32,
    /// The item, or that of the object in which one is missing.
    at: usize,
    rule: Rule<'d>,
    /// Whether the stored object breaks it with the same value.
    pub stored: bool,
}

/// Everything that was found about one object, in the order in which it was found.
pub struct Breaches<'d> {
    /// What counts; `None` where it only matters whether there is any.
    budget: Option<&'d Budget<'d>>,
    object: Cursor<'d>,
    ways: Ways<'d>,
    found: Vec<Breach<'d>>,
    has_any: bool,
}

impl<'d> Breaches<'d> {
    /// Nothing found yet.
    #[must_use]
    pub fn new(object: &'d Document<'d>, budget: &'d Budget<'d>) -> Self {
        Self::with(Some(budget), Cursor::root(object))
    }

    /// Takes no notes.
    pub(super) fn whether_any(object: Cursor<'d>) -> Self {
        Self::with(None, object)
    }

    fn with(budget: Option<&'d Budget<'d>>, object: Cursor<'d>) -> Self {
        Self { budget, object, ways: Ways::default(), found: Vec::new(), has_any: false }
    }

    /// Whether nothing was found.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.has_any
    }

    /// How much was found.
    #[must_use]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// What was found.
    pub fn iter(&self) -> impl Iterator<Item = &Breach<'d>> {
        self.found.iter()
    }

    /// The budget of the decision.
    pub(super) const fn budget(&self) -> Option<&'d Budget<'d>> {
        self.budget
    }

    /// Whether to look no further.
    pub(super) fn is_over(&self) -> bool {
        self.budget.map_or(self.has_any, Budget::has_ended)
    }

    /// Notes a rule that the value of a place breaks.
    pub(super) fn push(&mut self, place: &Place<'_, 'd>, rule: Rule<'d>) {
        self.has_any = true;
        if self.budget.is_none_or(|budget| !budget.finding()) {
            return;
        }
        let here = self.ways.to(place);
        let way = rule.missing_field().map_or(here, |name| self.ways.add(here, Step::Key(name)));
        self.found.push(Breach { way, at: place.value.at(), rule, stored: place.is_stored() });
    }

    /// Says of everything from an entry on whether it is stored.
    pub(super) fn mark(&mut self, from: usize, is_stored: impl Fn(u64) -> bool) {
        for index in from..self.found.len() {
            let Some(breach) = self.found.get(index).copied() else { return };
            let stored = is_stored(self.fingerprint(&breach));
            if let Some(breach) = self.found.get_mut(index) {
                breach.stored = stored;
            }
        }
    }

    /// Says the same of everything from an entry on.
    pub(super) fn mark_all(&mut self, from: usize, stored: bool) {
        for breach in self.found.iter_mut().skip(from) {
            breach.stored = stored;
        }
    }

    /// The fingerprints of all entries, in order.
    pub(super) fn fingerprints(&self) -> Vec<u64> {
        let mut all: Vec<_> = self.found.iter().map(|breach| self.fingerprint(breach)).collect();
        all.sort_unstable();
        all
    }

    /// A number that two breaches share only when they have the same message.
    fn fingerprint(&self, breach: &Breach<'d>) -> u64 {
        let mut hasher = DefaultHasher::new();
        for step in self.ways.steps(breach.way) {
            match step {
                Step::Root => {}
                Step::Key(key) => key.hash(&mut hasher),
                Step::Index(index) => index.hash(&mut hasher),
            }
        }
        discriminant(&breach.rule).hash(&mut hasher);
        match breach.rule {
            Rule::Type { expected, got } => (expected, got).hash(&mut hasher),
            Rule::Required(..) | Rule::TooLong(_) => {}
            Rule::MetadataKey(fault)
            | Rule::MetadataField(_, fault)
            | Rule::Metadata(fault @ Fault::Controllers) => {
                fault.hash(&mut hasher);
            }
            Rule::Metadata(fault) => {
                fault.hash(&mut hasher);
                equal::hash(self.object.moved(breach.at)).hash(&mut hasher);
            }
            _ => equal::hash(self.object.moved(breach.at)).hash(&mut hasher),
        }
        hasher.finish()
    }

    /// What a family may want to know of a breach; its pointer is written to `written`.
    pub fn describe<'p>(&self, breach: &Breach<'d>, written: &'p mut PointerText) -> Broken<'p> {
        self.ways.write(breach.way, written);
        let kind = match breach.rule {
            Rule::Required(..) => BrokenKind::Required,
            Rule::Type { got, .. } => BrokenKind::Type { got },
            _ => BrokenKind::Other,
        };
        Broken { pointer: written.as_str(), kind }
    }

    /// The breach with its texts.
    #[must_use]
    pub fn violation(&self, breach: &Breach<'d>) -> SchemaViolation {
        let mut written = PointerText::default();
        self.ways.write(breach.way, &mut written);
        let pointer = Pointer::new(written.as_str());
        let value = self.object.moved(breach.at);
        let at_key = matches!(breach.rule, Rule::MetadataKey(_));
        let rule = match (breach.rule, self.ways.steps(breach.way).next()) {
            (Rule::MetadataKey(fault), Some(Step::Key(key))) => {
                BrokenRule::Invalid { value: quoted(key), detail: fault.words(), about_field: false }
            }
            (rule, _) => rule.broken(value, &pointer),
        };
        SchemaViolation { stored: breach.stored, at_key, ..SchemaViolation::new(pointer, rule) }
    }
}

/// The places with a reported breach.
#[derive(Default)]
pub struct ReportedPlaces<'d> {
    /// By item.
    values: Vec<bool>,
    missing: Members<(usize, &'d str)>,
}

impl<'d> ReportedPlaces<'d> {
    /// Whether this is the first breach at its place; from now on no other one is.
    pub fn is_first(&mut self, breach: &Breach<'d>) -> bool {
        match breach.rule.missing_field() {
            Some(name) => self.missing.insert((breach.at, name)),
            None => {
                if self.values.len() <= breach.at {
                    self.values.resize(breach.at + 1, false);
                }
                self.values
                    .get_mut(breach.at)
                    .is_some_and(|is_reported| !std::mem::replace(is_reported, true))
            }
        }
    }
}
