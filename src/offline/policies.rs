//! Policies and exemptions of files: each counts once, and those that cannot be in force are errors unless they are
//! checked themselves.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::manifest;
use crate::manifest::document::Document;
use crate::manifest::place::DocumentPlace;
use crate::manifest::source::Source;
use crate::model::finding::Finding;
use crate::model::kind::MEMORY_POLICY;
use crate::model::object::Reference;
use crate::model::pointer::Pointer;
use crate::model::policy::{Policies, Policy};
use crate::model::settings::Settings;
use crate::offline::errors::error_at;
use crate::offline::notices::Notice;
use crate::offline::places::Places;
use crate::policy;
use crate::policy::leftover::{self, Used};
use crate::report::ObjectRef;
use crate::state;

/// What led to a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyOrigin {
    /// A path of policies.
    Policies,
    /// A path of state.
    State,
    /// A path of what is checked.
    Checked,
}

/// The policies and exemptions that were read, by name.
#[derive(Debug, Default)]
pub struct PolicyFiles(BTreeMap<Reference, PolicyFile>);

/// Where a policy or exemption was read first.
#[derive(Debug)]
pub struct PolicyFile {
    /// What led to it.
    pub origin: PolicyOrigin,
    place: DocumentPlace,
    path: Option<PathBuf>,
    within: Pointer,
}

impl PolicyFiles {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether one of them was read from one of these texts before.
    pub(super) fn read_from(&self, sources: &[Arc<Source>]) -> bool {
        let paths: Vec<_> =
            sources.iter().filter_map(|source| fs::canonicalize(source.name()).ok()).collect();
        self.0.values().any(|file| file.path.as_ref().is_some_and(|path| paths.contains(path)))
    }

    /// What led to a policy or exemption.
    #[must_use]
    pub fn origin(&self, reference: &Reference) -> Option<PolicyOrigin> {
        self.0.get(reference).map(|file| file.origin)
    }

    /// The text in which a policy or exemption stands.
    #[must_use]
    pub fn source(&self, reference: &Reference) -> Option<&Arc<Source>> {
        self.0.get(reference).map(|file| file.place.source())
    }

    /// Whether a value is a policy or an exemption that does not count a second time: it was read already. What is
    /// wrong goes to `errors`.
    pub(super) fn is_repeated(
        &mut self,
        document: &Document,
        within: &Pointer,
        value: &Value,
        origin: PolicyOrigin,
        settings: &Settings,
        errors: &mut Vec<manifest::error::Error>,
    ) -> bool {
        let Some(reference) = state::reference(settings, value) else { return false };
        let place = document.place().clone();
        let path = fs::canonicalize(place.source().name()).ok();
        let file = PolicyFile { origin, place, path, within: within.clone() };
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
                let other = &first.get().place;
                let Reference { kind, name, .. } = first.key();
                let message = format!(
                    "{} {name} is given twice: it stands in {}:{} too",
                    kind.kind,
                    other.source().name(),
                    other.span().line
                );
                errors.push(error_at(document.place(), &within.key("metadata").key("name"), message));
                true
            }
        }
    }
}

/// What there is to say about policies and exemptions once all objects are judged, at their places.
pub(super) fn leftovers(
    files: &PolicyFiles,
    policies: &Policies,
    used: &Used,
    now: Timestamp,
    places: &Places,
) -> Vec<Notice> {
    let given = |policy: &Arc<Policy>| {
        let object = Reference { kind: &MEMORY_POLICY, namespace: String::new(), name: policy.name.clone() };
        let is_given = files.origin(&object) == Some(PolicyOrigin::Policies) && policy.invalid.is_none();
        is_given.then_some(object.name)
    };
    let given = policies.iter().filter_map(given).collect();
    let mut of_policies = leftover::policies(&given, used);
    of_policies.extend(leftover::overlaps(&given, policies));
    let of_exemptions = leftover::exemptions(policies, used, now);
    let notice = |(object, finding): (Reference, Finding)| {
        let (source, span) = places.span(&object, &finding.pointer)?;
        let object_ref = ObjectRef {
            api_version: object.kind.api_version(),
            kind: object.kind.kind.to_owned(),
            namespace: object.namespace,
            name: object.name,
        };
        Some(Notice { finding, object_ref, source, span, related: None })
    };
    of_policies.into_iter().chain(of_exemptions).filter_map(notice).collect()
}

impl PolicyFile {
    /// Whether both are the same place of the same file, or of the same text where it is no file.
    fn is_same(&self, other: &Self) -> bool {
        let is_same_text = match (&self.path, &other.path) {
            (Some(one), Some(two)) => one == two,
            _ => Arc::ptr_eq(self.place.source(), other.place.source()),
        };
        is_same_text && self.place.span().start == other.place.span().start && self.within == other.within
    }
}

/// Whether a value is a policy or an exemption.
pub(super) fn is_policy(value: &Value) -> bool {
    let (group, kind) = state::group_and_kind(value);
    policy::resource::kind(group, kind).is_some()
}

/// The errors of a policy that cannot be in force, at their places.
pub(super) fn errors<'e>(
    document: &'e Document,
    within: &'e Pointer,
    faults: Vec<Finding>,
) -> impl Iterator<Item = manifest::error::Error> + use<'e> {
    faults
        .into_iter()
        .map(|fault| error_at(document.place(), &within.join(&fault.pointer), fault.message().into_owned()))
}
