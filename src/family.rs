//! The families: which kinds, labels and codes each has, and its faces.
//!
//! Every function here is one exhaustive match on [`Family`], so a new family does not compile
//! until it is handled everywhere. A family never uses another one; what they share stands in
//! [`schema`], [`suggest`], [`url`] and [`pod`].

pub mod arkonis;
pub mod codes;
pub mod common;
pub mod pod;
pub mod schema;
pub mod suggest;
pub mod url;

use crate::model::edit::Edit;
use crate::model::finding::{Code, Finding};
use crate::model::kind::{Kind, NAMESPACE, SECRET};
use crate::model::pod::Pod;
use crate::model::request::Operation;
use crate::model::settings::Family;
use crate::model::snapshot::Questions;
use crate::model::tree::Tree;

use self::pod::Injection;

/// One object of a family's own kind, under judgement.
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

/// The kinds that a family judges, in a cluster and outside.
#[must_use]
pub fn judged(family: Family) -> &'static [&'static Kind] {
    match family {
        Family::Arkonis => &arkonis::api::KINDS,
    }
}

/// The kinds whose objects a family's decisions look up in a cluster: what the server watches and
/// what its RBAC rules name.
#[must_use]
pub fn watched(family: Family) -> &'static [&'static Kind] {
    match family {
        Family::Arkonis => &arkonis::api::KINDS,
    }
}

/// The kinds for which a family writes defaults.
#[must_use]
pub fn defaulted(family: Family) -> Vec<&'static Kind> {
    match family {
        Family::Arkonis => arkonis::api::DIALECTS.iter().map(|dialect| &dialect.memory).collect(),
    }
}

/// The kinds that are memory resources: those whose DELETE may leave somebody without.
#[must_use]
pub fn memories(family: Family) -> Vec<&'static Kind> {
    match family {
        Family::Arkonis => arkonis::api::DIALECTS.iter().map(|dialect| &dialect.memory).collect(),
    }
}

/// The labels by which a family knows its agent pods, each once.
#[must_use]
pub fn pod_labels(family: Family) -> &'static [&'static str] {
    match family {
        Family::Arkonis => &arkonis::api::POD_LABELS,
    }
}

/// Every finding code, those of no family first.
pub fn all_codes() -> impl Iterator<Item = &'static Code> {
    common::ALL.into_iter().chain(Family::ALL.into_iter().flat_map(codes).copied())
}

/// The finding codes of a family.
#[must_use]
pub fn codes(family: Family) -> &'static [&'static Code] {
    match family {
        Family::Arkonis => &arkonis::codes::ALL,
    }
}

/// The code for a value of the inject label that means nothing, on a pod of this family.
#[must_use]
pub fn inject_label_unknown(family: Family) -> &'static Code {
    match family {
        Family::Arkonis => &arkonis::codes::INJECT_LABEL_UNKNOWN,
    }
}

/// The kind under which a family judges objects of this group and kind, if any does.
#[must_use]
pub fn judging(families: &[Family], group: &str, kind: &str) -> Option<(Family, &'static Kind)> {
    families.iter().find_map(|family| {
        let kinds = judged(*family).iter().chain(misnamed(*family));
        kinds.copied().find(|known| known.is(group, kind)).map(|known| (*family, known))
    })
}

/// The kind under which an object of this group and kind enters the state, if decisions of any
/// family can ask for it.
#[must_use]
pub fn state_kind(group: &str, kind: &str) -> Option<&'static Kind> {
    let watched = Family::ALL.into_iter().flat_map(watched).copied();
    watched.chain([&SECRET, &NAMESPACE]).find(|known| known.is(group, kind))
}

/// Kinds in a group that nothing serves, which people write by mistake.
fn misnamed(family: Family) -> &'static [&'static Kind] {
    match family {
        Family::Arkonis => &arkonis::api::MISNAMED,
    }
}

/// Everything that is wrong with an object of one of the family's kinds, in no particular order.
/// For a DELETE, what its absence would break.
#[must_use]
pub fn validate(family: Family, subject: &Subject<'_>, questions: &mut Questions<'_>) -> Vec<Finding> {
    match family {
        Family::Arkonis => arkonis::validate::validate(subject, questions),
    }
}

/// The defaults that an object of one of the family's kinds lacks.
#[must_use]
pub fn default(family: Family, subject: &Subject<'_>) -> Vec<Edit> {
    match family {
        Family::Arkonis => arkonis::default::default(subject),
    }
}

/// What a pod lacks to have its memory; `None` when it is no agent pod of the family.
#[must_use]
pub fn inject(
    family: Family,
    pod: &Pod<'_>,
    namespace: &str,
    questions: &mut Questions<'_>,
) -> Option<Injection> {
    match family {
        Family::Arkonis => arkonis::inject::inject(pod, namespace, questions),
    }
}
