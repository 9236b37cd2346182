//! What memgate has to know of a platform: one row, which is all that the rest of memgate reads of it.
//!
//! A [`Family`] is a `static` in the platform's own folder, written without defaults: a new field does
//! not compile until every platform has it. The rows stand in one list, `family::ALL`, and
//! [`Settings`](crate::model::settings::Settings) says which of them are switched on. So a platform may
//! also come from elsewhere, as it does in tests.

use std::cmp::Ordering;
use std::fmt;

use crate::model::cel::{CelDefault, CelTable, NotInCel};
use crate::model::edit::Edit;
use crate::model::event::InvolvedObject;
use crate::model::finding::{Code, Finding};
use crate::model::injection::Injection;
use crate::model::kind::Kind;
use crate::model::pod::Pod;
use crate::model::request::Operation;
use crate::model::selector::PodSelector;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

/// A platform whose memory resources memgate knows. Two are the same when their names are.
pub struct Family {
    /// The name in codes, flags, metrics and annotations.
    pub name: &'static str,

    /// The kinds whose objects are validated, in a cluster and outside.
    pub validated: &'static [&'static Kind],
    /// Those of them of which only objects with an annotation are validated, and what its key starts
    /// with.
    pub validated_if_annotated: &'static [(&'static Kind, &'static str)],
    /// Kinds in a group that nothing serves, which people write by mistake.
    pub misnamed: &'static [&'static Kind],
    /// The kinds for which defaults are written.
    pub defaulted: &'static [&'static Kind],
    /// The kinds that are memory resources: those whose DELETE may leave an agent without.
    pub memories: &'static [&'static Kind],
    /// The kinds whose objects decisions look up, all of which a server watches.
    pub watched: &'static [&'static Kind],
    /// The kinds of which decisions look up single objects; RBAC rules allow `get` only.
    pub fetched: &'static [&'static Kind],

    /// What distinguishes the family's agent pods from all others, before anything is read of them.
    pub pod_selectors: &'static [PodSelector],
    /// Whether a pod can ask to be refused rather than started without its memory.
    pub honours_required: bool,
    /// Whether the family's resources are admitted when memgate does not answer: so it is where
    /// nothing but advice is given.
    pub fails_open: bool,
    /// Whether an update is validated only when it changes what users write: so it is where controllers
    /// write to running objects all the time.
    pub validates_changes_only: bool,

    /// The finding codes.
    pub codes: &'static [&'static Code],
    /// The code for a value of the inject label that means nothing.
    pub inject_label_unknown: &'static Code,
    /// The rules on the family's resources that an apiserver can check by itself, in CEL.
    pub cel_tables: &'static [CelTable],
    /// The codes that refuse a resource and are in none of these tables.
    pub not_in_cel: &'static [(&'static Code, NotInCel)],
    /// The defaults that an apiserver can write by itself, in CEL.
    pub cel_defaults: &'static [CelDefault],
    /// Which of the family's defaults an apiserver can write, and why no more, in words.
    pub about_cel_defaults: &'static str,

    /// The CustomResourceDefinitions of the kinds, in YAML.
    pub crds: &'static [&'static str],
    /// For each memory resource a spec, in JSON, that its CRD accepts and memgate objects to: what
    /// `memgate wait` sends as a dry run.
    pub wait_probes: &'static [(&'static Kind, &'static str)],

    /// Everything that is wrong with an object of one of the family's kinds, in no particular order;
    /// for a DELETE, what its absence would break.
    pub validate: fn(&Subject<'_>, &mut StateReader<'_>) -> Vec<Finding>,
    /// The defaults that an object of one of the family's kinds lacks.
    pub default: fn(&Subject<'_>, &mut StateReader<'_>) -> Vec<Edit>,
    /// What a pod of this namespace lacks to have its memory; `None` when it is no agent pod of the family.
    pub inject: fn(&Pod<'_>, &str, &mut StateReader<'_>) -> Option<Injection>,
    /// The object on whose behalf a pod of this namespace runs, as far as that is known. `None` where the
    /// way to the memory leads to another namespace: an Event in this one must not reveal anything of it.
    pub referrer: fn(&Pod<'_>, &str, &StateReader<'_>) -> Option<InvolvedObject>,
    /// Whether a pod is one of the platform's although `inject` does not know it: it is not refused then,
    /// whatever it asks for. `None` where every pod of the platform is an agent pod.
    pub knows_other_pods: Option<fn(&Pod<'_>) -> bool>,
    /// The namespace that a pod of a manifest says it belongs to. `None` where pods say no such thing.
    pub namespace_of_pod: Option<for<'p> fn(&'p Pod<'_>) -> Option<&'p str>>,
    /// The metadata of one pod for each agent, as the platform would create it with a container `agent`,
    /// for `memgate doctor` to try: where a quota refuses every pod, only these can show it. `None` where
    /// memgate adds no containers.
    pub stand_in_pods: Option<fn(&mut StateReader<'_>) -> Vec<serde_json::Value>>,
}

/// One object of a family's own kind, to be validated or defaulted.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'t> {
    /// Its kind.
    pub kind: &'static Kind,
    /// What is being done to it.
    pub operation: Operation,
    /// The namespace of the request.
    pub namespace: &'t str,
    /// The name of the object.
    pub name: &'t str,
    /// The object; for a DELETE the one that goes.
    pub object: &'t Tree,
    /// The stored object, for an UPDATE.
    pub old: Option<&'t Tree>,
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Family {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Family {}

impl PartialOrd for Family {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Family {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}
