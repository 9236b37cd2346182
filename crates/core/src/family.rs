//! The families: which kinds, labels and codes each has, and its faces.
//!
//! Every function here is one exhaustive match on [`Family`], so a new family does not compile
//! until it is handled everywhere. A family never uses another one; what they share stands in
//! [`schema_check`], [`suggest`], [`quantity`], [`url`] and [`pod`].

pub mod ark;
pub mod arkonis;
pub mod codes;
pub mod common;
pub mod orka;
pub mod orloj;
pub mod pod;
pub mod quantity;
pub mod schema_check;
pub mod suggest;
pub mod sympozium;
pub mod url;

use crate::model::edit::Edit;
use crate::model::event::InvolvedObject;
use crate::model::finding::{Code, Finding};
use crate::model::kind::{Kind, NAMESPACE, SECRET};
use crate::model::pod::Pod;
use crate::model::request::Operation;
use crate::model::selector::PodSelector;
use crate::model::settings::Family;
use crate::model::snapshot::StateReader;
use crate::model::tree::Tree;
use crate::model::twin::{Table, Without, WrittenDefault};

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
        Family::Ark => &ark::api::KINDS,
        Family::Orloj => &orloj::api::KINDS,
        Family::Orka => &orka::api::KINDS,
        Family::Sympozium => &sympozium::api::KINDS,
    }
}

/// The kinds whose objects a family's decisions look up in a cluster: what the server watches and
/// what its RBAC rules name.
#[must_use]
pub fn watched(family: Family) -> &'static [&'static Kind] {
    match family {
        Family::Arkonis => &arkonis::api::KINDS,
        Family::Ark => &ark::api::WATCHED,
        Family::Orloj => &orloj::api::WATCHED,
        Family::Orka => &orka::api::WATCHED,
        Family::Sympozium => &sympozium::api::WATCHED,
    }
}

/// The kinds of which a family's decisions look up single objects in a cluster without watching all
/// of them; RBAC rules allow `get` only.
#[must_use]
pub fn asked(family: Family) -> &'static [&'static Kind] {
    match family {
        Family::Arkonis => &[],
        Family::Ark => &ark::api::ASKED,
        Family::Orloj => &orloj::api::ASKED,
        Family::Orka => &orka::api::ASKED,
        Family::Sympozium => &sympozium::api::ASKED,
    }
}

/// Whether a pod of this family can ask to be refused rather than started without its memory.
#[must_use]
pub const fn honours_required(family: Family) -> bool {
    match family {
        Family::Arkonis | Family::Ark | Family::Orloj | Family::Sympozium => true,
        // Nothing is ever mandatory there: a Task without durable memory is a good Task.
        Family::Orka => false,
    }
}

/// Whether a pod that no family recognises is one of this family's all the same, so that it is not
/// refused although it asks for memory.
#[must_use]
pub fn spares(family: Family, pod: &Pod<'_>) -> bool {
    match family {
        Family::Arkonis | Family::Ark | Family::Orloj | Family::Sympozium => false,
        Family::Orka => orka::inject::is_of_orka(pod),
    }
}

/// Whose pod of this family it is, as far as that is known: the object in the pod's namespace that
/// refers to the memory, or else what made the pod. `None` where the way to the memory leads to another
/// namespace: nothing of that one is to be told here.
#[must_use]
pub fn referrer(
    family: Family,
    pod: &Pod<'_>,
    namespace: &str,
    state: &StateReader<'_>,
) -> Option<InvolvedObject> {
    match family {
        Family::Arkonis => arkonis::inject::referrer(pod, namespace, state),
        Family::Ark => ark::inject::referrer(pod, namespace),
        Family::Orloj => orloj::inject::referrer(pod, namespace, state),
        Family::Orka => orka::inject::referrer(pod, namespace, state),
        Family::Sympozium => sympozium::inject::referrer(pod, namespace, state),
    }
}

/// The namespace that a pod belongs to by its own word, where a manifest names none.
#[must_use]
pub fn home<'p>(pod: &'p Pod<'_>) -> Option<&'p str> {
    orka::inject::home(pod)
}

/// The start of the annotation keys without which an object of this group and kind is no business
/// of any family.
#[must_use]
pub fn mark(group: &str, kind: &str) -> Option<&'static str> {
    let mut marked = Family::ALL.into_iter().flat_map(marked);
    marked.find(|(known, _)| known.is(group, kind)).map(|(_, start)| *start)
}

/// The kinds of which a family judges only the objects that have an annotation whose key starts so.
#[must_use]
pub fn marked(family: Family) -> &'static [(&'static Kind, &'static str)] {
    match family {
        Family::Arkonis | Family::Ark | Family::Orloj | Family::Sympozium => &[],
        Family::Orka => &orka::api::MARKED,
    }
}

/// Whether a family says nothing of an update in which the user's part stays as it was: so it is
/// where controllers write to running objects all the time.
#[must_use]
pub const fn judges_changes_only(family: Family) -> bool {
    match family {
        Family::Arkonis | Family::Ark | Family::Orloj | Family::Sympozium => false,
        Family::Orka => true,
    }
}

/// The kinds for which a family writes defaults.
#[must_use]
pub fn defaulted(family: Family) -> Vec<&'static Kind> {
    match family {
        Family::Arkonis => arkonis::api::DIALECTS.iter().map(|dialect| &dialect.memory).collect(),
        Family::Ark => ark::api::DEFAULTED.to_vec(),
        Family::Orloj => orloj::api::DEFAULTED.to_vec(),
        Family::Orka => orka::api::DEFAULTED.to_vec(),
        Family::Sympozium => sympozium::api::DEFAULTED.to_vec(),
    }
}

/// The kinds that are memory resources: those whose DELETE may leave somebody without.
#[must_use]
pub fn memories(family: Family) -> Vec<&'static Kind> {
    match family {
        Family::Arkonis => arkonis::api::DIALECTS.iter().map(|dialect| &dialect.memory).collect(),
        Family::Ark => ark::api::MEMORIES.to_vec(),
        Family::Orloj => orloj::api::MEMORIES.to_vec(),
        Family::Orka => orka::api::MEMORIES.to_vec(),
        Family::Sympozium => sympozium::api::MEMORIES.to_vec(),
    }
}

/// How a family's agent pods are told from all others, before anything is read of them.
#[must_use]
pub fn pod_selectors(family: Family) -> &'static [PodSelector] {
    match family {
        Family::Arkonis => &arkonis::api::POD_SELECTORS,
        Family::Ark => &ark::api::POD_SELECTORS,
        Family::Orloj => &orloj::api::POD_SELECTORS,
        Family::Orka => &orka::api::POD_SELECTORS,
        Family::Sympozium => &sympozium::api::POD_SELECTORS,
    }
}

/// Whether a family's own resources are admitted when memgate does not answer: so it is where
/// nothing but advice is given.
#[must_use]
pub const fn resources_fail_open(family: Family) -> bool {
    match family {
        Family::Arkonis | Family::Ark | Family::Orloj | Family::Sympozium => false,
        Family::Orka => true,
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
        Family::Ark => &ark::codes::ALL,
        Family::Orloj => &orloj::codes::ALL,
        Family::Orka => &orka::codes::ALL,
        Family::Sympozium => &sympozium::codes::ALL,
    }
}

/// The rules on a family's own resources that the apiserver can check by itself.
#[must_use]
pub fn twins(family: Family) -> &'static [Table] {
    match family {
        Family::Arkonis => &arkonis::twin::TABLES,
        Family::Ark => &ark::twin::TABLES,
        Family::Orloj => &orloj::twin::TABLES,
        Family::Orka => &orka::twin::TABLES,
        Family::Sympozium => &sympozium::twin::TABLES,
    }
}

/// The codes under which a family refuses its own resources and that are in none of [`twins`].
#[must_use]
pub fn without_twin(family: Family) -> &'static [(&'static Code, Without)] {
    match family {
        Family::Arkonis => &arkonis::twin::WITHOUT,
        Family::Ark => &ark::twin::WITHOUT,
        Family::Orloj => &orloj::twin::WITHOUT,
        Family::Orka => &orka::twin::WITHOUT,
        Family::Sympozium => &sympozium::twin::WITHOUT,
    }
}

/// The defaults that the apiserver can write by itself.
#[must_use]
pub fn written_defaults(family: Family) -> &'static [WrittenDefault] {
    match family {
        Family::Arkonis | Family::Orloj | Family::Orka | Family::Sympozium => &[],
        Family::Ark => &ark::twin::WRITTEN,
    }
}

/// What of a family's defaults the apiserver can write, and why no more, in words.
#[must_use]
pub const fn about_defaults(family: Family) -> &'static str {
    match family {
        Family::Arkonis => arkonis::twin::DEFAULTS,
        Family::Ark => ark::twin::DEFAULTS,
        Family::Orloj => orloj::twin::DEFAULTS,
        Family::Orka => orka::twin::DEFAULTS,
        Family::Sympozium => sympozium::twin::DEFAULTS,
    }
}

/// The code for a value of the inject label that means nothing, on a pod of this family.
#[must_use]
pub fn inject_label_unknown(family: Family) -> &'static Code {
    match family {
        Family::Arkonis => &arkonis::codes::INJECT_LABEL_UNKNOWN,
        Family::Ark => &ark::codes::INJECT_LABEL_UNKNOWN,
        Family::Orloj => &orloj::codes::INJECT_LABEL_UNKNOWN,
        Family::Orka => &orka::codes::INJECT_LABEL_UNKNOWN,
        Family::Sympozium => &sympozium::codes::INJECT_LABEL_UNKNOWN,
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
    state_kinds().find(|known| known.is(group, kind))
}

/// Every kind of which objects enter the state; some come more than once.
pub fn state_kinds() -> impl Iterator<Item = &'static Kind> {
    let looked_up = |family| watched(family).iter().chain(asked(family)).copied();
    Family::ALL.into_iter().flat_map(looked_up).chain([&SECRET, &NAMESPACE])
}

/// Kinds in a group that nothing serves, which people write by mistake.
fn misnamed(family: Family) -> &'static [&'static Kind] {
    match family {
        Family::Arkonis => &arkonis::api::MISNAMED,
        Family::Ark | Family::Orloj | Family::Orka | Family::Sympozium => &[],
    }
}

/// Everything that is wrong with an object of one of the family's kinds, in no particular order.
/// For a DELETE, what its absence would break.
#[must_use]
pub fn validate(family: Family, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    match family {
        Family::Arkonis => arkonis::validate::validate(subject, state),
        Family::Ark => ark::validate::validate(subject, state),
        Family::Orloj => orloj::validate::validate(subject, state),
        Family::Orka => orka::validate::validate(subject, state),
        Family::Sympozium => sympozium::validate::validate(subject, state),
    }
}

/// The defaults that an object of one of the family's kinds lacks.
#[must_use]
pub fn default(family: Family, subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Edit> {
    match family {
        Family::Arkonis => arkonis::default::default(subject),
        Family::Ark => ark::default::default(subject, state),
        Family::Orloj => orloj::default::default(subject, state),
        Family::Orka => orka::default::default(subject, state),
        Family::Sympozium => sympozium::default::default(subject, state),
    }
}

/// What a pod lacks to have its memory; `None` when it is no agent pod of the family.
#[must_use]
pub fn inject(
    family: Family,
    pod: &Pod<'_>,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<Injection> {
    match family {
        Family::Arkonis => arkonis::inject::inject(pod, namespace, state),
        Family::Ark => ark::inject::inject(pod, namespace, state),
        Family::Orloj => orloj::inject::inject(pod, namespace, state),
        Family::Orka => orka::inject::inject(pod, namespace, state),
        Family::Sympozium => sympozium::inject::inject(pod, namespace, state),
    }
}
