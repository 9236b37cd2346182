//! Variables of the user's own that stand in the way of those that memory needs.

use memgate_model::finding::Finding;
use memgate_model::object::{Lookup, Object};
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::agent::ensemble_name;
use super::super::codes::{PRIVATE_URL_OVERRIDE, RESERVED_ENV};
use super::super::lookup;
use crate::family::message::fit_names;

use super::super::variables::{PRIVATE_URL, shared_variable_names};

/// The Ensemble of an agent.
pub(super) struct Membership<'m> {
    pub(super) ensemble: &'m Object,
}

/// The membership of an Agent, or of an AgentRun with its Agent where that is known.
pub(super) fn membership<'m, 's: 'm>(
    agent: Option<&'m Tree>,
    run: Option<&Tree>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Option<Membership<'m>> {
    match lookup::ensemble(namespace, ensemble_name(agent, run)?, state) {
        Lookup::Found(ensemble) => Some(Membership { ensemble }),
        Lookup::Absent | Lookup::Unknown => None,
    }
}

/// Whether any variable at a path can be one that an Ensemble sets.
pub(super) fn names_reserved(object: &Tree, path: &[&str]) -> bool {
    object.at(path).is_some_and(|entries| entries.keys().any(is_reserved))
}

fn is_reserved(name: &str) -> bool {
    name.starts_with("WORKFLOW_MEMORY_") || name.starts_with("WORKFLOW_MEMBRANE_")
}

/// What is wrong with the variables at a path.
pub(super) fn findings(object: &Tree, path: &[&str], membership: Option<&Membership<'_>>) -> Vec<Finding> {
    let Some(entries @ Tree::Texts(_)) = object.at(path) else { return Vec::new() };
    let at = path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key));
    let field = at.field();
    let set = membership.map(|membership| shared_variable_names(membership.ensemble));
    let set = set.unwrap_or_default();
    let mut findings = Vec::new();
    for name in entries.keys() {
        if name == PRIVATE_URL {
            let message = format!("{field}[{}] wins over the injected value", quoted(name));
            findings.push(Finding::warn(&PRIVATE_URL_OVERRIDE, at.key(name), message));
        }
        let ensemble = membership.filter(|_| is_reserved(name) && set.contains(&name));
        findings.extend(ensemble.map(|Membership { ensemble }| {
            let message = fit_names([&ensemble.name], |[ensemble]| {
                let (name, ensemble) = (quoted(name), quoted(ensemble));
                format!("{field}[{name}] has no effect: set by Ensemble {ensemble}")
            });
            let shared = Pointer::new("/spec/sharedMemory");
            Finding::warn(&RESERVED_ENV, at.key(name), message).elsewhere(
                ensemble,
                shared,
                "sets the variable",
            )
        }));
    }
    findings
}
