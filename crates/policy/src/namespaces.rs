//! The labels of Namespaces, for policies.

use std::collections::BTreeMap;

use memgate_model::kind::NAMESPACE;
use memgate_model::object::{Lookup, Object};
use memgate_model::settings::PolicySettings;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_model::typed_rule::NamespaceLabels;
use memgate_primitives::budget::Budget;

/// The labels by Namespace, as far as they were looked up.
#[derive(Debug)]
pub(super) struct Namespaces<'n> {
    settings: &'n PolicySettings,
    known: BTreeMap<String, Option<BTreeMap<String, String>>>,
}

impl<'n> Namespaces<'n> {
    pub(super) const fn new(settings: &'n PolicySettings) -> Self {
        Self { settings, known: BTreeMap::new() }
    }

    /// Looks up Namespaces. A missing one counts as unknown, because files seldom contain all of them.
    pub(super) fn look_up<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
        state: &mut StateReader<'_>,
    ) {
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            if !self.known.contains_key(name) {
                let found = match state.get(&NAMESPACE, "", name) {
                    Lookup::Found(object) => Some(labels_of(object)),
                    Lookup::Absent | Lookup::Unknown(()) => self.by_pattern(name, state.budget()),
                };
                let found = self.with_given(name, found);
                self.known.insert(name.to_owned(), found);
            }
        }
    }

    /// The labels that the settings give to a Namespace that is not in the state, if a pattern fits its name.
    fn by_pattern(&self, name: &str, budget: &Budget<'_>) -> Option<BTreeMap<String, String>> {
        let all = self.settings.unknown_namespaces.iter();
        let mut fitting = all.filter(|(pattern, _)| pattern.matches(name, budget)).map(|(_, labels)| labels);
        let mut labels = fitting.next()?.clone();
        fitting.for_each(|more| labels.extend(more.clone()));
        Some(labels)
    }

    /// The labels of a Namespace, which are `own` for one that is judged itself, unless the settings hold them.
    pub(super) fn labels<'l>(
        &'l self,
        name: &'l str,
        own: Option<&'l BTreeMap<String, String>>,
    ) -> NamespaceLabels<'l> {
        let known = || self.known.get(name).and_then(Option::as_ref);
        NamespaceLabels { name, labels: self.settings.held_labels.get(name).or(own).or_else(known) }
    }

    /// Adds the labels from the settings, which win over those that were looked up.
    fn with_given(
        &self,
        name: &str,
        found: Option<BTreeMap<String, String>>,
    ) -> Option<BTreeMap<String, String>> {
        let given = self.settings.namespace_labels.get(name);
        if found.is_none() && given.is_none() {
            return None;
        }
        let mut labels = found.unwrap_or_default();
        labels.extend(given.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        Some(labels)
    }
}

fn labels_of(namespace: &Object) -> BTreeMap<String, String> {
    let labels = namespace.tree().at(&["metadata", "labels"]);
    let entries = labels.into_iter().flat_map(Tree::entries);
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
