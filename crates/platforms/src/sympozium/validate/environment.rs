//! Variables set by the user that conflict with those that memory needs.

use memgate_model::finding::Finding;
use memgate_model::object::Object;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::codes::{PRIVATE_URL_OVERRIDE, RESERVED_ENV};
use super::{Report, tokens};
use crate::message::fit_names;

use super::super::variables::{PRIVATE_URL, shared_variables};

/// Whether any variable at a path has a name that an Ensemble may set.
pub(super) fn names_reserved(object: &Tree, path: &[&str]) -> bool {
    object.at(path).is_some_and(|entries| entries.keys().any(is_reserved))
}

fn is_reserved(name: &str) -> bool {
    name.starts_with("WORKFLOW_MEMORY_") || name.starts_with("WORKFLOW_MEMBRANE_")
}

/// Findings about the variables at a path.
pub(super) fn findings(
    object: &Tree,
    path: &[&str],
    ensemble: Option<&Object>,
    report: Report<'_>,
) -> Vec<Finding> {
    let Some(entries @ Tree::Texts(_)) = object.at(path) else { return Vec::new() };
    let at = path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key));
    let field = at.field();
    let ensemble = ensemble.filter(|_| names_reserved(object, path));
    let set = ensemble.map(|ensemble| shared_variables(ensemble, "", None)).unwrap_or_default();
    let mut findings = tokens::in_env(Some(entries), || at.clone(), report);
    for name in entries.keys() {
        if name == PRIVATE_URL {
            let message = format!("{field}[{}] wins over the injected value", quoted(name));
            let help = "the server of this URL is sent the writer token by Sympozium's runner";
            findings.push(Finding::warn(&PRIVATE_URL_OVERRIDE, at.key(name), message).help(help));
        }
        let setter = ensemble.filter(|_| is_reserved(name) && set.iter().any(|set| set.name == name));
        findings.extend(setter.map(|ensemble| {
            let message = fit_names([&ensemble.name], |[ensemble]| {
                let (name, ensemble) = (quoted(name), quoted(ensemble));
                format!("{field}[{name}] has no effect: set by Ensemble {ensemble}")
            });
            let shared = Pointer::new("/spec/sharedMemory");
            Finding::warn(&RESERVED_ENV, at.key(name), message)
                .elsewhere(ensemble, shared, "sets the variable")
        }));
    }
    findings
}
