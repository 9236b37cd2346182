//! The values that Flux Kustomizations among the inputs put into the files of their path.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::repository::{normal, root_of};
use memgate_manifest::document::{Document, each_value};
use memgate_manifest::source::Source;

/// The group of Kustomizations that Flux applies.
const FLUX: &str = "kustomize.toolkit.fluxcd.io";

/// The values of variables by name; `None` for one that has two.
type Variables = BTreeMap<String, Option<String>>;

/// The variables of Flux Kustomizations, by the directories to which they belong.
#[derive(Debug, Default)]
pub struct Substitutes(BTreeMap<PathBuf, Arc<Variables>>);

/// The variables of a file.
pub(crate) struct Given(Vec<Arc<Variables>>);

impl Given {
    /// The value of a variable. One with two values, of two Kustomizations, is not known.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut values = self.0.iter().filter_map(|variables| variables.get(name));
        let value = values.next()?;
        value.as_deref().filter(|_| values.all(|other| other == value))
    }
}

impl Substitutes {
    /// Adds the Kustomizations of a text.
    pub(crate) fn add(&mut self, source: &Arc<Source>) {
        if ![FLUX, "postBuild"].iter().all(|part| source.text().contains(part)) {
            return;
        }
        let file = normal(Path::new(source.name()));
        let here = normal(Path::new("."));
        let root = file.parent().and_then(root_of).unwrap_or(&here);
        for document in each_value(source).filter_map(Result::ok) {
            let Some(variables) = of_kustomization(&document) else { continue };
            let path = document.value().pointer("/spec/path").and_then(Value::as_str).unwrap_or_default();
            let all = self.0.entry(normal(&root.join(path.trim_start_matches('/')))).or_default();
            let all = Arc::make_mut(all);
            for (name, value) in variables {
                add_value(all, name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
    }

    /// The variables of a file.
    pub(crate) fn of(&self, source: &Source) -> Given {
        if self.0.is_empty() {
            return Given(Vec::new());
        }
        let file = normal(Path::new(source.name()));
        Given(file.ancestors().filter_map(|directory| self.0.get(directory).cloned()).collect())
    }
}

fn add_value(all: &mut Variables, name: &str, value: &str) {
    match all.entry(name.to_owned()) {
        Entry::Vacant(entry) => drop(entry.insert(Some(value.to_owned()))),
        Entry::Occupied(mut entry) if entry.get().as_deref() != Some(value) => drop(entry.insert(None)),
        Entry::Occupied(_) => {}
    }
}

/// The variables of a Kustomization.
fn of_kustomization(document: &Document) -> Option<&serde_json::Map<String, Value>> {
    let is_flux = document.group() == FLUX && document.kind() == "Kustomization";
    document.value().pointer("/spec/postBuild/substitute").filter(|_| is_flux)?.as_object()
}
