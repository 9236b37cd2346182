//! Variables of the user's own that stand in the way of those that memory needs.

use std::borrow::Cow;

use crate::model::finding::{Finding, quoted};
use crate::model::object::Lookup;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::api::agent::{config_name, ensemble_name};
use super::super::codes::{PRIVATE_URL_OVERRIDE, RESERVED_ENV};
use super::super::lookup;
use super::super::variables::{PRIVATE_URL, shared_variable_names};

/// Of an Agent, or of an AgentRun with its Agent where that is known.
pub(super) fn findings(
    object: &Tree,
    path: &[&str],
    (agent, run): (Option<&Tree>, Option<&Tree>),
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let Some(Tree::Texts(entries, _)) = object.at(path) else { return Vec::new() };
    let at = path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key));
    let field = at.field();
    let mut findings = Vec::new();
    let is_reserved =
        |name: &str| name.starts_with("WORKFLOW_MEMORY_") || name.starts_with("WORKFLOW_MEMBRANE_");
    let ensemble_variables = if entries.iter().any(|(name, _)| is_reserved(name)) {
        ensemble_variables(agent, run, namespace, state)
    } else {
        None
    };
    for (name, _) in entries {
        if name == PRIVATE_URL {
            let message = format!("{field}[{}] wins over the injected value", quoted(name));
            findings.push(Finding::warn(&PRIVATE_URL_OVERRIDE, at.key(name), message));
        }
        if let Some((ensemble, _)) =
            ensemble_variables.as_ref().filter(|(_, names)| names.iter().any(|known| known == name))
        {
            let message =
                format!("{field}[{}] has no effect: set by Ensemble {}", quoted(name), quoted(ensemble));
            findings.push(Finding::warn(&RESERVED_ENV, at.key(name), message));
        }
    }
    findings
}

/// The Ensemble that sets variables of this agent's pods, and which.
fn ensemble_variables<'s>(
    agent: Option<&Tree>,
    run: Option<&Tree>,
    namespace: &str,
    state: &mut StateReader<'s>,
) -> Option<(&'s str, Vec<Cow<'static, str>>)> {
    let name = ensemble_name(agent, run)?;
    let Lookup::Found(ensemble) = lookup::ensemble(namespace, name, state) else { return None };
    let names = shared_variable_names(ensemble, agent.and_then(config_name));
    (!names.is_empty()).then_some((ensemble.name.as_str(), names))
}
