//! What was read: texts, the objects and the state in them, and what was passed by.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::build::assignments::Assignment;
use crate::build::judged_by::{Changes, Standing};
use crate::build::neighbours::Neighbours;
use crate::build::origins::Origins;
use crate::build::unit::NotBuilt;
use crate::files::notices::Notice;
use crate::files::objects::UndecidedObject;
use crate::files::passed_over::PassedOver;
use crate::files::places::ObjectPlaces;
use crate::files::policy_files::PolicyFiles;
use memgate_core::state::cluster_snapshot::Assumed;
use memgate_core::state::makers::Installation;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_model::object::Reference;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use serde_json::Value;

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The name of the unit; empty for plain manifests.
    pub unit: String,
    /// Its number, and what the other units make.
    pub(crate) number: usize,
    pub(crate) neighbours: Arc<Neighbours>,
    /// The texts that hold the objects, in the order of the paths, each file once; within a directory or glob by name.
    pub sources: Vec<Arc<Source>>,
    /// What is to be checked, in document order.
    pub objects: Vec<UndecidedObject>,
    /// What decisions may look at.
    pub snapshot: Snapshot,
    /// The objects of the state of which a later step fills in something.
    pub unfilled: Vec<Unfilled>,
    /// What a Flux Kustomization puts into the objects.
    pub(crate) assignment: Option<Arc<Assignment>>,
    /// What the objects install that only install others, each with its file.
    pub(crate) installers: Vec<(PathBuf, Installation)>,
    /// The directories of what was not built.
    pub(crate) left: Arc<BTreeSet<PathBuf>>,
    /// The namespace of objects without one.
    pub(crate) fallback: Option<String>,
    /// What is not checked, in document order.
    pub passed_over: Vec<PassedOver>,
    /// The findings about the files themselves, in document order.
    pub notices: Vec<Notice>,
    /// Those that count if a decision reads the object.
    pub(crate) of_read: Vec<(Reference, Notice)>,
    /// What could not be read; all other inputs are read nevertheless.
    pub errors: Vec<Error>,
    /// Of what was rendered, the files that it comes from.
    pub origins: Origins,
    /// The places of the objects that decisions look at.
    pub places: ObjectPlaces,
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
    /// How many of them have something of ours and look as if they were to be checked.
    pub unread: usize,
    /// What may make an object of which nothing else is known.
    pub(crate) makers: BTreeMap<Reference, Arc<str>>,
    /// The units that were not built.
    pub not_built: Vec<NotBuilt>,
    /// Files with something of ours that are only parts, and that no unit has.
    pub unreached: Vec<String>,
    /// The programs that built, with their versions.
    pub tools: BTreeSet<String>,
    /// The open files that are only parts of what is built.
    pub(crate) parts: Vec<Arc<Source>>,
    /// What the file with the choices of the repository switched off.
    pub switched_off: Vec<String>,
    /// The numbers of findings that rules of the repository lower or leave out, by code.
    pub lowered: BTreeMap<String, usize>,
    /// How many objects of state decisions do not look at, since they have no name and namespace that can be read.
    pub unreadable_state: usize,
    /// Whether only one of the files is checked, and the others are its state.
    pub is_partial: bool,
    /// Whether less than the repository was read: a setting without effect may have one on the rest.
    pub is_narrow: bool,
    /// The notes about the cluster that was read, if one was.
    pub assumed: Option<Assumed>,
}

/// An object of which a later step fills in something.
#[derive(Debug, Clone)]
pub struct Unfilled {
    /// The object without that.
    pub bare: Value,
    /// The places of that.
    pub later: BTreeSet<Pointer>,
}

impl Inputs {
    /// Nothing read yet, with a state that decisions may look at.
    pub fn new(snapshot: Snapshot) -> Self {
        Self { snapshot, ..Self::default() }
    }

    /// How many files were read.
    pub(crate) fn files(&self) -> usize {
        let built = |source: &&Arc<Source>| !self.origins.rendered.contains_key(source.name());
        let files = self.sources.iter().filter(built).map(Arc::as_ptr);
        files.chain(self.origins.traced().iter().map(Arc::as_ptr)).collect::<BTreeSet<_>>().len()
    }

    /// A copy without the objects to check and what was found about files.
    pub(crate) fn given(&self) -> Self {
        Self {
            unfilled: self.unfilled.clone(),
            passed_over: self.passed_over.clone(),
            origins: self.origins.clone(),
            places: self.places.clone(),
            policies: self.policies.clone(),
            installers: self.installers.clone(),
            left: Arc::clone(&self.left),
            assumed: self.assumed.clone(),
            ..Self::new(self.snapshot.clone())
        }
    }

    /// Adds what was read for another unit, without its objects and its state.
    pub fn join(&mut self, other: Self) {
        self.sources.extend(other.sources);
        self.passed_over.extend(other.passed_over);
        self.notices.extend(other.notices);
        self.errors.extend(other.errors);
        self.origins.extend(other.origins);
        self.changes.join(other.changes);
        self.empty.extend(other.empty);
        self.skipped.extend(other.skipped);
        self.makers.extend(other.makers);
        self.unreadable_state = self.unreadable_state.max(other.unreadable_state);
    }

    /// Leaves what was read several times once.
    pub(crate) fn deduplicate(&mut self) {
        once(&mut self.sources, Arc::as_ptr);
        self.origins.deduplicate();
        once(&mut self.passed_over, |it| (Arc::as_ptr(&it.source), it.span.start));
        once(&mut self.errors, ToString::to_string);
        once(&mut self.empty, Clone::clone);
        once(&mut self.skipped, Clone::clone);
    }
}

fn once<T, K: Ord>(all: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert(key(one)));
}
