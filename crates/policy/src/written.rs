//! The name and the labels of an object, which every policy may ask for and families do not read.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use memgate_model::memory_view::MemoryView;
use memgate_model::view::{self, view};

view! {
    /// What is read of any object to match it.
    Named {
        /// Its metadata.
        metadata: NamedMetadata<'a> = "metadata",
    }
}

view! {
    /// The name and the labels of an object.
    NamedMetadata {
        /// The name, unread.
        name: &'a RawValue = "name",
        /// The prefix of a name that is not generated yet, unread.
        generate_name: &'a RawValue = "generateName",
        /// All labels, unread.
        labels: &'a RawValue = "labels",
    }
}

/// An object as it was written. Its name and its labels are read once, for all families and policies.
#[derive(Debug)]
pub struct Written<'s> {
    /// The JSON.
    pub text: &'s str,
    identity: OnceCell<Identity>,
}

/// What is of the wrong type is absent.
#[derive(Debug)]
struct Identity {
    name: String,
    labels: Arc<BTreeMap<String, String>>,
}

impl<'s> Written<'s> {
    /// The object with this JSON.
    #[must_use]
    pub const fn new(text: &'s str) -> Self {
        Self { text, identity: OnceCell::new() }
    }

    /// The name, or else `generateName`.
    pub(super) fn name(&self) -> &str {
        &self.identity().name
    }

    /// The labels.
    pub(super) fn labels(&self) -> &Arc<BTreeMap<String, String>> {
        &self.identity().labels
    }

    /// Adds the name and the labels to a view.
    pub fn complete(&self, view: &mut MemoryView) {
        self.name().clone_into(&mut view.name);
        view.labels = Arc::clone(self.labels());
    }

    fn identity(&self) -> &Identity {
        self.identity.get_or_init(|| Identity::of(self.text))
    }
}

impl Identity {
    fn of(object: &str) -> Self {
        let metadata = view::read::<Named<'_>>(object).ok().and_then(|named| named.metadata);
        let NamedMetadata { name, generate_name, labels } = metadata.unwrap_or_default();
        let text =
            |raw: &RawValue| serde_json::from_str(raw.get()).ok().filter(|text: &String| !text.is_empty());
        let labels = labels.and_then(|raw| serde_json::from_str::<BTreeMap<String, Value>>(raw.get()).ok());
        let texts = |(key, value)| match value {
            Value::String(text) => Some((key, text)),
            _ => None,
        };
        Self {
            name: name.and_then(text).or_else(|| generate_name.and_then(text)).unwrap_or_default(),
            labels: Arc::new(labels.into_iter().flatten().filter_map(texts).collect()),
        }
    }
}
