//! Reads the fields of a policy or an exemption, and notes all their faults.
//!
//! `null` is absent, as in the Kubernetes API. An unknown field is a fault: an apiserver would drop it, and a
//! misspelt rule would become an empty one.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::codes::INVALID;
use memgate_model::family::Family;
use memgate_model::finding::{Cause, Code, Finding};
use memgate_primitives::budget::Budget;
use memgate_primitives::plain_text::{quoted_key, quoted_text};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};

/// What all readers of one manifest share.
#[derive(Debug)]
pub(super) struct PolicyReading<'v> {
    /// The platforms that the manifest may name.
    families: &'v [&'static Family],
    /// Counts what is wrong; once it has ended, no more is noted.
    budget: &'v Budget<'v>,
    /// What is wrong with the manifest, in the order in which it is read.
    faults: RefCell<Vec<Finding>>,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Reader<'v> {
    value: &'v Value,
    pointer: Pointer,
    reading: &'v PolicyReading<'v>,
}

/// An object and its place.
#[derive(Debug, Clone)]
pub(super) struct Fields<'v> {
    map: &'v Map<String, Value>,
    pointer: Pointer,
    reading: &'v PolicyReading<'v>,
}

impl PolicyReading<'_> {
    /// Reads a manifest, and returns what is wrong with it in the order of its fields.
    pub(super) fn read<T>(
        manifest: &Value,
        families: &[&'static Family],
        budget: &Budget<'_>,
        read: impl FnOnce(&Reader<'_>) -> T,
    ) -> (T, Vec<Finding>) {
        let reading = PolicyReading { families, budget, faults: RefCell::default() };
        let value = read(&Reader { value: manifest, pointer: Pointer::root(), reading: &reading });
        let mut faults = reading.faults.into_inner();
        sort(&mut faults, manifest);
        (value, faults)
    }

    fn note(&self, pointer: Pointer, cause: Cause, message: &str) {
        let text = with_field(&pointer, message);
        self.push(Finding { cause, ..Finding::deny(&INVALID, pointer, text) });
    }

    fn note_at_key(&self, pointer: Pointer, message: &str) {
        let text = with_field(&pointer, message);
        self.push(Finding::deny(&INVALID, pointer, text).at_key());
    }

    fn push(&self, fault: Finding) {
        if self.budget.finding() {
            self.faults.borrow_mut().push(fault);
        }
    }
}

impl<'v> Reader<'v> {
    pub(super) const fn value(&self) -> &'v Value {
        self.value
    }

    /// The platforms that the manifest may name.
    pub(super) const fn families(&self) -> &'v [&'static Family] {
        self.reading.families
    }

    /// Notes that something is wrong here.
    pub(super) fn fault(&self, cause: Cause, message: &str) {
        self.reading.note(self.pointer.clone(), cause, message);
    }

    fn wrong_type(&self, expected: &str) {
        self.fault(Cause::TypeInvalid, &format!("must be {expected}"));
    }

    /// The object here, which may have these fields.
    pub(super) fn fields(&self, known: &[&str]) -> Option<Fields<'v>> {
        let fields = self.any_fields()?;
        fields.refuse_unknown(known);
        Some(fields)
    }

    /// The object here, whatever its fields.
    pub(super) fn any_fields(&self) -> Option<Fields<'v>> {
        let Value::Object(map) = self.value else {
            self.wrong_type("an object");
            return None;
        };
        Some(Fields { map, pointer: self.pointer.clone(), reading: self.reading })
    }

    /// The text here, not empty and of at most so many characters.
    pub(super) fn text(&self, max: usize) -> Option<&'v str> {
        let Value::String(text) = self.value else {
            self.wrong_type("a string");
            return None;
        };
        if text.trim().is_empty() {
            self.fault(Cause::Required, "must not be empty");
            return None;
        }
        if text.chars().nth(max).is_some() {
            self.fault(Cause::Invalid, &format!("must have at most {max} characters"));
            return None;
        }
        Some(text)
    }

    /// The word here, one of a fixed set.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let Value::String(text) = self.value else {
            let is_off = *self.value == Value::Bool(false) && choices.iter().any(|(name, _)| *name == "off");
            self.wrong_type(if is_off {
                "a string; YAML reads off as false, so write \"off\""
            } else {
                "a string"
            });
            return None;
        };
        let found = choices.iter().find(|(name, _)| name == text).map(|(_, choice)| *choice);
        if found.is_none() {
            let names = choices.iter().map(|(name, _)| *name);
            let hint = did_you_mean(nearest(text, names.clone()));
            let names = one_of(&names.collect::<Vec<_>>());
            self.fault(
                Cause::NotSupported,
                &format!("unsupported value {}; use {names}{hint}", quoted_text(text)),
            );
        }
        found
    }

    /// The flag here.
    pub(super) fn flag(&self) -> Option<bool> {
        if let Value::Bool(flag) = self.value {
            return Some(*flag);
        }
        self.wrong_type("true or false");
        None
    }

    /// The integer here, at least `min` and at most `max`.
    pub(super) fn integer(&self, min: i64, max: i64) -> Option<i64> {
        let Some(number) = self.value.as_i64() else {
            self.wrong_type("an integer");
            return None;
        };
        if number < min || number > max {
            self.fault(Cause::Invalid, &format!("must be from {min} to {max}"));
            return None;
        }
        Some(number)
    }

    /// The elements of the list here, at least `min` and at most `max`; further elements are not read.
    pub(super) fn list(&self, min: usize, max: usize) -> Vec<Self> {
        let Value::Array(elements) = self.value else {
            self.wrong_type("a list");
            return Vec::new();
        };
        if elements.len() < min {
            self.fault(Cause::Required, "must not be empty");
        } else if elements.len() > max {
            self.fault(Cause::Invalid, &format!("must have at most {max} entries"));
        }
        let of = |(index, value)| Self { value, pointer: self.pointer.index(index), reading: self.reading };
        elements.iter().take(max).enumerate().map(of).collect()
    }

    /// The texts of the list here, with their places; each once.
    pub(super) fn texts(&self, min: usize, max: usize, max_chars: usize) -> Vec<(&'v str, Self)> {
        let mut seen = std::collections::BTreeSet::new();
        let mut texts = Vec::new();
        for element in self.list(min, max) {
            let Some(text) = element.text(max_chars) else { continue };
            if seen.insert(text) {
                texts.push((text, element));
            } else {
                element.fault(Cause::Duplicate, &format!("{} stands here twice", quoted_text(text)));
            }
        }
        texts
    }

    /// What each text of the list here stands for; one that stands for nothing is a fault.
    pub(super) fn each<T>(
        &self,
        max: usize,
        max_chars: usize,
        find: impl Fn(&'v str) -> Result<T, (Cause, String)>,
    ) -> Vec<T> {
        let found = self.texts(1, max, max_chars).into_iter().map(|(text, element)| {
            find(text).map_err(|(cause, message)| element.fault(cause, &message)).ok()
        });
        found.flatten().collect()
    }
}

impl<'v> Fields<'v> {
    pub(super) const fn pointer(&self) -> &Pointer {
        &self.pointer
    }

    /// Notes that something is wrong with a field, which may be absent.
    pub(super) fn fault(&self, field: &str, cause: Cause, message: &str) {
        self.reading.note(self.pointer.key(field), cause, message);
    }

    /// Notes that the name of a field is wrong.
    pub(super) fn fault_at_key(&self, field: &str, message: &str) {
        self.reading.note_at_key(self.pointer.key(field), message);
    }

    /// Notes that something is wrong with the object as a whole.
    pub(super) fn fault_here(&self, cause: Cause, message: &str) {
        self.reading.note(self.pointer.clone(), cause, message);
    }

    /// Whether a field is present and not null.
    pub(super) fn has(&self, field: &str) -> bool {
        self.map.get(field).is_some_and(|value| !value.is_null())
    }

    /// A field; `None` when it is absent or null.
    pub(super) fn get(&self, field: &str) -> Option<Reader<'v>> {
        let value = self.map.get(field).filter(|value| !value.is_null())?;
        Some(Reader { value, pointer: self.pointer.key(field), reading: self.reading })
    }

    /// A field that must be there.
    pub(super) fn required(&self, field: &str) -> Option<Reader<'v>> {
        let found = self.get(field);
        if found.is_none() {
            self.fault(field, Cause::Required, "is required");
        }
        found
    }

    /// The text of a field.
    pub(super) fn text(&self, field: &str, max: usize) -> Option<&'v str> {
        self.get(field)?.text(max)
    }

    /// The texts of a list.
    pub(super) fn texts(
        &self,
        field: &str,
        max: usize,
        max_chars: usize,
    ) -> Option<Vec<(&'v str, Reader<'v>)>> {
        Some(self.get(field)?.texts(1, max, max_chars))
    }

    /// The word of a field.
    pub(super) fn choice<T: Copy>(&self, field: &str, choices: &[(&str, T)]) -> Option<T> {
        self.get(field)?.choice(choices)
    }

    /// The names of all fields that are not null.
    pub(super) fn names(&self) -> impl Iterator<Item = &'v str> + use<'v> {
        let map: &'v Map<String, Value> = self.map;
        map.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str())
    }

    /// Notes each field that is not among these.
    pub(super) fn refuse_unknown(&self, known: &[&str]) {
        for name in self.map.keys().filter(|name| !known.contains(&name.as_str())) {
            if self.reading.budget.has_ended() {
                return;
            }
            let hint = match nearest(name, known.iter().copied()) {
                None => format!("; use {}", one_of(known)),
                near => did_you_mean(near),
            };
            let message = format!("unknown field {}{hint}", quoted_key(name));
            self.reading.note_at_key(self.pointer.key(name), &message);
        }
    }
}

/// `A`, `A or B`, `one of A, B, C`.
pub(super) fn one_of(names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} or {other}"),
        all => format!("one of {}", all.join(", ")),
    }
}

/// A message with the field in front.
pub(super) fn with_field(pointer: &Pointer, message: &str) -> String {
    let field = pointer.field();
    if field.is_empty() { message.to_owned() } else { format!("{field}: {message}") }
}

/// A warning whose message starts with its field.
pub(super) fn warning(code: &'static Code, pointer: impl Into<Pointer>, message: &str) -> Finding {
    let pointer = pointer.into();
    let message = with_field(&pointer, message);
    Finding::warn(code, pointer, message)
}

/// Sorts findings by the order of their fields in the object.
pub(super) fn sort(findings: &mut [Finding], object: &Value) {
    let mut fields = BTreeMap::new();
    findings.sort_by_cached_key(|finding| position(object, &finding.pointer, &mut fields));
}

/// The position of a pointer in an object, as indexes level by level. `known` caches the fields of objects on the way
/// by pointer: ten thousand findings may be about one object.
fn position<'v>(
    object: &'v Value,
    pointer: &Pointer,
    known: &mut BTreeMap<Pointer, BTreeMap<&'v str, usize>>,
) -> Vec<usize> {
    let (mut here, mut place, mut positions) = (Some(object), Pointer::root(), Vec::new());
    for token in pointer.tokens() {
        let (position, below) = match here {
            Some(Value::Object(fields)) => {
                let number = || fields.keys().map(String::as_str).zip(0..).collect();
                let numbers = known.entry(place.clone()).or_insert_with(number);
                (numbers.get(&*token).copied(), fields.get(&*token))
            }
            Some(Value::Array(elements)) => {
                let index = token.parse::<usize>().ok();
                (index, index.and_then(|index| elements.get(index)))
            }
            _ => (None, None),
        };
        positions.push(position.unwrap_or(usize::MAX));
        (here, place) = (below, place.key(&token));
    }
    positions
}
