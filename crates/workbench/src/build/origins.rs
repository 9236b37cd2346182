//! Where objects come from that helm or kustomize made: `search` finds the text from which a value comes, so that findings stand
//! where a person would edit ([`trace`](crate::files::trace)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::build::rendered::Rendered;
use memgate_manifest::source::Source;

pub(crate) mod files;
pub(crate) mod search;
pub mod spot;

/// What was built, and the files from which it was.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// What memgate had built, by the names of the sources.
    pub(crate) rendered: BTreeMap<String, Arc<Rendered>>,
    /// The files in which findings about these objects stand.
    traced: Vec<Arc<Source>>,
}

impl Origins {
    /// Adds the files of other inputs.
    pub(crate) fn extend(&mut self, others: Self) {
        self.rendered.extend(others.rendered);
        self.traced.extend(others.traced);
    }

    /// What a tool printed in which a document is.
    pub(crate) fn rendered_in(&self, source: &Source) -> Option<&Rendered> {
        self.rendered.get(source.name()).map(|rendered| &**rendered)
    }

    /// Whether anything was rendered.
    pub(crate) fn has_rendered(&self) -> bool {
        !self.rendered.is_empty()
    }

    /// Adds files in which findings stand.
    pub(crate) fn add_traced(&mut self, files: impl Iterator<Item = Arc<Source>>) {
        self.traced.extend(files);
        self.deduplicate();
    }

    /// Leaves each file once.
    pub(crate) fn deduplicate(&mut self) {
        let mut seen = BTreeSet::new();
        self.traced.retain(|source| seen.insert(Arc::as_ptr(source)));
    }

    /// The files in which findings about rendered objects stand, each once. They are none of the sources that were read.
    pub fn traced(&self) -> &[Arc<Source>] {
        &self.traced
    }
}
