//! References that a branch broke: their target was there at its base, and is there no longer. Such a finding denies.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use crate::judge::{Checked, Decided, NO_OBJECT_OF_KIND};
use crate::places::Places;
use crate::report::ObjectRef;
use memgate_model::finding::{Finding, Severity};
use memgate_model::object::Reference;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::suggest::nearest;

/// How many new objects of one kind and namespace are compared with a name.
const MAX_COMPARED: usize = 1_000;

/// The objects at the base of a branch.
#[derive(Debug, Default)]
pub struct AtBase(Vec<Places>);

impl AtBase {
    /// Takes them from what was checked there.
    pub fn of(base: &mut Checked) -> Self {
        let of_sets = std::mem::take(&mut base.places_of_sets).into_values();
        Self(iter::once(std::mem::take(&mut base.inputs.places)).chain(of_sets).collect())
    }

    fn has(&self, object: &Reference) -> bool {
        self.0.iter().any(|places| places.has(object))
    }
}

/// Makes a denial of each finding about a missing object that was there at the base.
pub fn mark(checked: &mut Checked, base: &AtBase) {
    for (index, messages) in broken(checked, base) {
        let Some(decided) = checked.decided.get_mut(index) else { continue };
        let findings = &mut Arc::make_mut(&mut decided.admitted).decision.findings;
        for (finding, message) in findings.iter_mut().zip(messages) {
            if let Some(message) = message {
                *finding = finding.clone().with_message(message);
                finding.severity = Severity::Deny;
            }
        }
    }
}

/// The objects with such findings, by their index: the new message of each finding that is one.
fn broken(checked: &Checked, base: &AtBase) -> Vec<(usize, Vec<Option<String>>)> {
    let of_judged = checked.decided.iter().map(|decided| &decided.object.object_ref);
    let of_others = checked.inputs.passed_over.iter().filter_map(|it| it.object_ref.as_ref());
    let now = Now::of(of_judged.chain(of_others));
    let message = |finding: &Finding| {
        let gone = finding.missing.iter().find(|object| base.has(object))?;
        let message = finding.message();
        let message = message.strip_suffix(&format!(" ({NO_OBJECT_OF_KIND})")).unwrap_or(&message);
        Some(format!("{message}; broken by this branch: {}", now.became(gone, base)))
    };
    let of_object = |(index, decided): (usize, &Decided)| {
        let messages: Vec<_> = decided.admitted.decision.findings.iter().map(message).collect();
        messages.iter().any(Option::is_some).then_some((index, messages))
    };
    checked.decided.iter().enumerate().filter_map(of_object).collect()
}

/// The names and namespaces of the branch's objects.
#[derive(Default)]
struct Now<'c> {
    /// The names, by kind and namespace.
    names: BTreeMap<(&'c str, &'c str), BTreeSet<&'c str>>,
    /// The namespaces, by kind and name.
    namespaces: BTreeMap<(&'c str, &'c str), BTreeSet<&'c str>>,
}

impl<'c> Now<'c> {
    fn of(objects: impl Iterator<Item = &'c ObjectRef>) -> Self {
        let mut now = Self::default();
        for object in objects {
            let (kind, namespace, name) = (&*object.kind, &*object.namespace, &*object.name);
            now.names.entry((kind, namespace)).or_default().insert(name);
            now.namespaces.entry((kind, name)).or_default().insert(namespace);
        }
        now
    }

    /// What became of an object of the base: its likely new name, or its new namespace.
    fn became(&self, gone: &Reference, base: &AtBase) -> String {
        let Reference { kind, namespace, name } = gone;
        let is_new = |namespace: &str, name: &str| {
            !base.has(&Reference { kind, namespace: namespace.to_owned(), name: name.to_owned() })
        };
        let names = self.names.get(&(kind.kind, namespace)).into_iter().flatten().copied();
        let names: Vec<&str> = names.filter(|other| is_new(namespace, other)).take(MAX_COMPARED).collect();
        let only = if let [only] = names[..] { Some(only) } else { None };
        let namespaces = self.namespaces.get(&(kind.kind, name)).into_iter().flatten().copied();
        let moved = || namespaces.filter(|other| is_new(other, name)).take(MAX_COMPARED).next();
        let (kind, old) = (kind.kind, quoted(name));
        match only.or_else(|| nearest(name, names.iter().copied())) {
            Some(new) => format!("{kind} {old} is now {}", quoted(new)),
            None => match moved() {
                Some(home) => format!("{kind} {old} is now in namespace {}", quoted(home)),
                None => format!("{kind} {old} is gone"),
            },
        }
    }
}
