//! Policies and exemptions in files. Each counts once. One that cannot be in force is an error, unless it is checked
//! itself.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::build::origins::Spot;
use crate::build::origins::search::SpotsOf;
use crate::files::errors::error_of;
use crate::files::notices::{Notice, object_ref};
use crate::files::places::{DocumentValue, ObjectPlaces};
use jiff::Timestamp;
use memgate_core::state;
use memgate_manifest::document::values;
use memgate_manifest::error::{Error, SyntaxError};
use memgate_manifest::place::DocumentPlace;
use memgate_model::finding::Finding;
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::object::Reference;
use memgate_model::policy::{Policies, Policy};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_policy::leftover::{self, Used};
use memgate_primitives::pointer::Pointer;
use serde_json::Value;

/// The kind of path at which a policy was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyOrigin {
    /// A path of policies.
    Policies,
    /// A path of state.
    State,
    /// A path of objects to check.
    Checked,
}

/// The policies and exemptions that were read, by name.
#[derive(Debug, Clone, Default)]
pub struct PolicyFiles(BTreeMap<Reference, PolicyFile>);

/// The first place of a policy or exemption.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    /// The kind of path.
    pub origin: PolicyOrigin,
    place: Arc<DocumentPlace>,
    path: Option<PathBuf>,
    within: Pointer,
    /// Where its document stands, in the file from which it comes.
    spot: Spot,
}

impl PolicyFiles {
    /// The kind of path at which a policy or exemption was read.
    pub fn origin(&self, reference: &Reference) -> Option<PolicyOrigin> {
        self.0.get(reference).map(|file| file.origin)
    }

    /// The manifest of a policy or exemption.
    pub fn manifest(&self, reference: &Reference) -> Option<Value> {
        let PolicyFile { place, within, .. } = self.0.get(reference)?;
        let documents = values(place.source(), &mut Vec::new());
        let document = documents.iter().find(|document| document.place().index() == place.index())?;
        document.value().pointer(place.prefix().join(within).as_str()).cloned()
    }

    /// Whether a value is a policy or an exemption that was read already, and so does not count again. Errors go to
    /// `errors`.
    pub(crate) fn is_repeated(
        &mut self,
        DocumentValue { document, within, value }: DocumentValue<'_>,
        origin: PolicyOrigin,
        settings: &Settings,
        (spots, errors): (&mut SpotsOf<'_>, &mut Vec<Error>),
    ) -> bool {
        let Some(reference) = state::reference(settings, value) else { return false };
        let place = document.shared_place();
        let path = fs::canonicalize(place.source().name()).ok();
        let spot = spots.of(document, &Pointer::root());
        let file = PolicyFile { origin, place, path, within: within.clone(), spot };
        match self.0.entry(reference) {
            Entry::Vacant(first) => {
                first.insert(file);
                false
            }
            Entry::Occupied(first) if first.get().is_same(&file) => true,
            Entry::Occupied(first)
                if [origin, first.get().origin] == [PolicyOrigin::Checked, PolicyOrigin::Checked] =>
            {
                false
            }
            Entry::Occupied(first) => {
                let other = &first.get().spot;
                let Reference { kind, name, .. } = first.key();
                let message = format!(
                    "{} {name} is given twice: it stands in {}:{} too",
                    kind.kind,
                    other.source().name(),
                    other.first_line()
                );
                let spot = spots.of(document, &within.key("metadata").key("name"));
                let error = SyntaxError::new(spot.source(), spot.caret(), message);
                errors.push(Error::Syntax(Box::new(error)));
                true
            }
        }
    }
}

/// The findings about policies and exemptions after all objects are judged, such as rules that never applied.
pub(crate) fn leftovers(
    files: &PolicyFiles,
    Snapshot { policies, .. }: &Snapshot,
    used: &Used,
    now: Timestamp,
    places: &ObjectPlaces,
) -> Vec<Notice> {
    let given = |policy: &Arc<Policy>| {
        let object = Reference { kind: &MEMORY_POLICY, namespace: String::new(), name: policy.name.clone() };
        let is_given = files.origin(&object) == Some(PolicyOrigin::Policies) && policy.invalid.is_none();
        is_given.then_some(object.name)
    };
    let given = policies.iter().filter_map(given).collect();
    let mut of_policies = leftover::policies(&given, policies, used);
    of_policies.extend(leftover::overlaps(&given, policies));
    let of_exemptions = leftover::exemptions(policies, used, now);
    let notice = |(object, finding): (Reference, Finding)| {
        let (source, span) = places.span(&object, &finding.pointer)?;
        Some(Notice { object_ref: object_ref(object), ..Notice::new(&source, span, finding) })
    };
    of_policies.into_iter().chain(of_exemptions).filter_map(notice).collect()
}

impl PolicyFile {
    /// Whether both are the same place of the same file, or of the same text if it does not come from a file.
    fn is_same(&self, other: &Self) -> bool {
        let is_same_text = match (&self.path, &other.path) {
            (Some(one), Some(two)) => one == two,
            _ => Arc::ptr_eq(self.place.source(), other.place.source()),
        };
        is_same_text && self.place.start() == other.place.start() && self.within == other.within
    }
}

/// The policies without some, and with others in place of those of the same names.
pub fn replaced(policies: &Policies, without: &Policies, others: &Policies) -> Arc<Policies> {
    let mut all = policies.clone();
    without.iter().for_each(|policy| all.remove(&policy.name));
    without.exemptions().for_each(|it| all.remove_exemption(&it.namespace, &it.name));
    others.iter().for_each(|policy| all.insert(Arc::clone(policy)));
    others.exemptions().for_each(|exemption| all.insert_exemption(Arc::clone(exemption)));
    Arc::new(all)
}

/// Whether a value is a policy or an exemption.
pub(crate) fn is_policy(value: &Value) -> bool {
    let (group, kind) = state::group_and_kind(value);
    memgate_policy::resource::kind(group, kind).is_some()
}

/// The errors of a policy that cannot be in force, at their places.
pub(crate) fn errors(
    DocumentValue { document, within, .. }: DocumentValue<'_>,
    faults: Vec<Finding>,
    spots: &mut SpotsOf<'_>,
) -> Vec<Error> {
    let error = |fault: Finding| {
        let spot = spots.of(document, &within.join(&fault.pointer));
        error_of(spot.source(), spot.caret_at(fault.at_key), &fault)
    };
    faults.into_iter().map(error).collect()
}
