//! The name, the labels and the annotations of an object, which every policy may ask for and families do not read.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use memgate_model::memory_view::MemoryView;
use memgate_model::view::{self, view};

view! {
    /// What is read of any object to match and judge it.
    Named {
        /// Its metadata.
        metadata: NamedMetadata<'a> = "metadata",
    }

    /// The name, the labels and the annotations of an object.
    NamedMetadata {
        /// The name, unread.
        name: &'a RawValue = "name",
        /// The prefix of a name that is not generated yet, unread.
        generate_name: &'a RawValue = "generateName",
        /// All labels, unread.
        labels: &'a RawValue = "labels",
        /// All annotations, unread.
        annotations: &'a RawValue = "annotations",
    }
}

/// An object as it was written. Its name, labels and annotations are read once, for all families and policies.
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
    annotations: Arc<BTreeMap<String, String>>,
}

impl<'s> Written<'s> {
    /// The object with this JSON.
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

    /// Adds the name, the labels and the annotations to a view.
    pub fn complete(&self, view: &mut MemoryView) {
        self.name().clone_into(&mut view.name);
        view.labels = Arc::clone(self.labels());
        view.annotations = Arc::clone(&self.identity().annotations);
    }

    fn identity(&self) -> &Identity {
        self.identity.get_or_init(|| Identity::of(self.text))
    }
}

impl Identity {
    fn of(object: &str) -> Self {
        let metadata = view::read::<Named<'_>>(object).ok().and_then(|named| named.metadata);
        let NamedMetadata { name, generate_name, labels, annotations } = metadata.unwrap_or_default();
        let text =
            |raw: &RawValue| serde_json::from_str(raw.get()).ok().filter(|text: &String| !text.is_empty());
        Self {
            name: name.and_then(text).or_else(|| generate_name.and_then(text)).unwrap_or_default(),
            labels: texts(labels, |_| true),
            annotations: texts(annotations, is_in_view),
        }
    }
}

/// The annotation in which kubectl keeps the whole object.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether views have the annotation of this key.
pub(super) fn is_in_view(key: &str) -> bool {
    key != LAST_APPLIED && !key.starts_with("memgate.dev/")
}

/// The entries of a map whose keys are wanted and whose values are texts.
fn texts(map: Option<&RawValue>, is_wanted: impl Fn(&str) -> bool) -> Arc<BTreeMap<String, String>> {
    let map = map.and_then(|raw| serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get()).ok());
    let wanted = map.into_iter().flatten().filter(|(key, _)| is_wanted(key));
    Arc::new(wanted.filter_map(|(key, raw)| Some((key, serde_json::from_str(raw.get()).ok()?))).collect())
}
