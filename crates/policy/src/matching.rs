//! Whether a policy judges an object, and whether an exemption covers it.

use std::collections::BTreeMap;

use memgate_model::kind::{NAMESPACE, SYSTEM_NAMESPACES};
use memgate_model::memory_view::MemoryView;
use memgate_model::policy::{Match, Target};
use memgate_model::request::{Operation, User};
use memgate_model::settings::PolicySettings;
use memgate_model::typed_rule::NamespaceLabels;
use memgate_primitives::budget::Budget;
use memgate_primitives::glob::Glob;

use super::written::Written;

/// The most bytes of the name of an object.
const MAX_NAME_BYTES: usize = 253;

/// The parts of an object that policies match before they look at its view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'s> {
    /// The name of the family.
    pub(super) family: &'static str,
    /// The kind; `Pod` for the pod of a workload too.
    pub(super) kind: &'s str,
    /// The namespace; of a Namespace its name.
    pub(super) namespace: &'s str,
    /// The name, or else `generateName`.
    pub(super) name: &'s str,
}

impl<'s> Candidate<'s> {
    /// A memory that another object uses.
    pub(super) fn of_memory(view: &'s MemoryView, family: &'static str) -> Self {
        Self {
            family,
            kind: view.kind,
            namespace: namespace_of(view.kind, &view.namespace, &view.name),
            name: &view.name,
        }
    }
}

/// Whether a policy judges an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matches {
    Yes,
    No,
    /// It depends on labels of a Namespace that is not known.
    Unknown,
}

/// Whether policies skip this namespace.
pub(super) fn is_excluded(namespace: &str, settings: &PolicySettings) -> bool {
    SYSTEM_NAMESPACES.contains(&namespace)
        || settings.own_namespace == namespace
        || settings.excluded_namespaces.iter().any(|excluded| excluded == namespace)
}

/// Whether a policy may judge objects of this kind; it was asked because of their family.
pub(super) fn judges_kind(matching: &Match, kind: &str, operation: Operation) -> bool {
    named(matching.kinds.as_ref(), kind)
        && matching.operations.as_ref().is_none_or(|operations| operations.contains(&operation))
}

/// Whether a policy may judge objects of this namespace; an object of a cluster-wide kind is in none. Once the budget
/// has ended, every policy may.
pub(super) fn judges_namespace(matching: &Match, namespace: &str, budget: &Budget<'_>) -> bool {
    if namespace.is_empty() {
        return matching.namespaces.is_none();
    }
    let is_asked = matching.namespaces.as_ref().is_none_or(|globs| fits(globs, namespace, budget))
        && !fits(&matching.exclude_namespaces, namespace, budget);
    is_asked || budget.has_ended()
}

/// Whether a policy may judge an object of this name. Once the budget has ended, every policy may.
pub(super) fn judges_name(matching: &Match, name: &str, budget: &Budget<'_>) -> bool {
    matching.names.as_ref().is_none_or(|globs| fits(globs, name, budget)) || budget.has_ended()
}

/// Whether a name fits a pattern; once the budget has ended, it fits none.
fn fits(globs: &[Glob], name: &str, budget: &Budget<'_>) -> bool {
    // An apiserver has no longer names.
    name.len() <= MAX_NAME_BYTES && globs.iter().any(|glob| !budget.has_ended() && glob.matches(name, budget))
}

/// Whether a name is in a list; an absent list has every name.
fn named(list: Option<&Vec<String>>, name: &str) -> bool {
    list.is_none_or(|list| list.iter().any(|one| one == name))
}

/// The labels that selectors ask for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labels<'s> {
    /// The object.
    pub(super) object: &'s Written<'s>,
    /// The stored object.
    pub(super) old: Option<&'s Written<'s>>,
    /// Those of its Namespace; of a Namespace its own.
    pub(super) namespace: NamespaceLabels<'s>,
}

/// Whether the labels of an object and its Namespace fit a policy.
pub(super) fn selects(matching: &Match, labels: &Labels<'_>) -> Matches {
    if let Some(selector) = &matching.object_selector
        && !selector.fits(labels.object.labels())
        && !labels.old.is_some_and(|old| selector.fits(old.labels()))
    {
        return Matches::No;
    }
    selects_namespace(matching, labels)
}

/// Whether the labels of a Namespace fit a policy.
pub(super) fn selects_namespace(matching: &Match, labels: &Labels<'_>) -> Matches {
    let Some(selector) = &matching.namespace_selector else { return Matches::Yes };
    match selector.matches(|key| labels.namespace.get(key)) {
        Some(true) => Matches::Yes,
        Some(false) => Matches::No,
        None => Matches::Unknown,
    }
}

/// Whether requests of this user are not judged. Once the budget has ended, they are.
pub(super) fn excludes_user(matching: &Match, user: &User, budget: &Budget<'_>) -> bool {
    budget.bytes(matching.exclude_users.len() + user.groups.len() * matching.exclude_groups.len())
        && (matching.exclude_users.contains(&user.name)
            || user.groups.iter().any(|group| matching.exclude_groups.contains(group)))
}

/// Whether a policy asks who makes the request.
pub(super) fn asks_for_user(matching: &Match) -> bool {
    !matching.exclude_users.is_empty() || !matching.exclude_groups.is_empty()
}

/// Whether an object is among what is exempted. Once the budget has ended, none is.
pub(super) fn covers(
    target: &Target,
    candidate: &Candidate<'_>,
    labels: &BTreeMap<String, String>,
    budget: &Budget<'_>,
) -> bool {
    target.namespaces.iter().any(|namespace| namespace == candidate.namespace)
        && named(target.families.as_ref(), candidate.family)
        && named(target.kinds.as_ref(), candidate.kind)
        && target.names.as_ref().is_none_or(|globs| fits(globs, candidate.name, budget))
        && target.selector.as_ref().is_none_or(|selector| selector.fits(labels))
}

/// The namespace by which an object is matched: of a Namespace its name.
pub(super) fn namespace_of<'s>(kind: &str, namespace: &'s str, name: &'s str) -> &'s str {
    if kind == NAMESPACE.kind { name } else { namespace }
}
