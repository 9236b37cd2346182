//! What was read: texts, the objects and the state in them, and what was passed by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::judged_by::{Changes, Standing};
use crate::notices::Notice;
use crate::objects::UndecidedObject;
use crate::passed_over::PassedOver;
use crate::places::{Origins, Places};
use crate::policy_files::PolicyFiles;
use crate::render::Unrendered;
use crate::substitutes::Substitutes;
use memgate_core::state::cluster_snapshot::Assumed;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_model::snapshot::Snapshot;
use serde_json::Value;

/// Everything that was read.
#[derive(Debug)]
pub struct Inputs {
    /// The name of the set of files; empty for files of no set.
    pub set: String,
    /// The texts that hold the objects, in the order of the paths, each file once; within a directory or glob by name.
    pub sources: Vec<Arc<Source>>,
    /// What is to be checked, in document order.
    pub objects: Vec<UndecidedObject>,
    /// What decisions may look at.
    pub snapshot: Snapshot,
    /// The objects of the state of which a later step fills in something, without that.
    pub bare: Vec<Value>,
    /// The values that Flux Kustomizations put into files.
    pub substitutes: Substitutes,
    /// What is not checked, in document order.
    pub passed_over: Vec<PassedOver>,
    /// The findings about the files themselves, in document order.
    pub notices: Vec<Notice>,
    /// What could not be read; all other inputs are read nevertheless.
    pub errors: Vec<Error>,
    /// Of what was rendered, the files that it comes from.
    pub origins: Origins,
    /// The places of the objects that decisions look at.
    pub places: Places,
    /// Where policies and exemptions were read.
    pub policies: PolicyFiles,
    /// What is kept of policies, exemptions and Namespaces for the check of a branch.
    pub standing: Standing,
    /// What a branch changes of them.
    pub changes: Changes,
    /// The directories and globs without a manifest.
    pub empty: Vec<String>,
    /// Files that look like manifests and were not read, each with the reason: `a/.b.yaml (hidden)`.
    pub skipped: Vec<String>,
    /// The charts and kustomizations whose files were not read as manifests.
    pub unrendered: Vec<Unrendered>,
    /// What the file with the choices of the repository switched off.
    pub switched_off: Vec<String>,
    /// The numbers of findings that rules of the repository lower or leave out, by code.
    pub lowered: BTreeMap<String, usize>,
    /// Exclude globs that matched nothing.
    pub unused_excludes: Vec<String>,
    /// How many findings of given policies count less because of what only the checked files say.
    pub weakened: usize,
    /// How many objects of state decisions do not look at, since they have no name and namespace that can be read.
    pub unreadable_state: usize,
    /// Whether only one of the files is checked, and the others are its state.
    pub is_partial: bool,
    /// Whether less than the repository was read: a setting without effect may have one on the rest.
    pub is_narrow: bool,
    /// The snapshot of a cluster, if one was given.
    pub assumed: Option<Assumed>,
}

impl Inputs {
    /// Nothing read yet, with a state that decisions may look at.
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            set: String::new(),
            sources: Vec::new(),
            objects: Vec::new(),
            snapshot,
            bare: Vec::new(),
            substitutes: Substitutes::default(),
            passed_over: Vec::new(),
            notices: Vec::new(),
            errors: Vec::new(),
            origins: Origins::default(),
            places: Places::default(),
            policies: PolicyFiles::default(),
            standing: Standing::default(),
            changes: Changes::default(),
            empty: Vec::new(),
            skipped: Vec::new(),
            unrendered: Vec::new(),
            switched_off: Vec::new(),
            lowered: BTreeMap::new(),
            unused_excludes: Vec::new(),
            weakened: 0,
            unreadable_state: 0,
            is_partial: false,
            is_narrow: false,
            assumed: None,
        }
    }

    /// Adds what was read for another set, without its objects and its state.
    pub(crate) fn join(&mut self, other: Self) {
        self.sources.extend(other.sources);
        self.passed_over.extend(other.passed_over);
        self.notices.extend(other.notices);
        self.errors.extend(other.errors);
        self.origins.extend(other.origins);
        self.changes.join(other.changes);
        // These count the files of all sets that were read before.
        self.switched_off = other.switched_off;
        self.unused_excludes = other.unused_excludes;
        self.empty.extend(other.empty);
        self.skipped.extend(other.skipped);
        self.unrendered.extend(other.unrendered);
        self.unreadable_state = self.unreadable_state.max(other.unreadable_state);
    }

    /// Leaves what was read several times once.
    pub(crate) fn deduplicate(&mut self) {
        once(&mut self.sources, Arc::as_ptr);
        once(&mut self.passed_over, |it| (Arc::as_ptr(&it.source), it.span.start));
        once(&mut self.errors, ToString::to_string);
        once(&mut self.empty, Clone::clone);
        once(&mut self.skipped, Clone::clone);
        once(&mut self.unrendered, |it| it.unit.clone());
    }
}

fn once<T, K: Ord>(all: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert(key(one)));
}
