//! The Kubernetes objects that install memgate, as YAML.
//!
//! In goes an [`InstallPlan`]; out comes one document per object, in the order in which they are applied.
//! Which kinds and labels belong to a family comes with the plan. Nothing in here talks to a cluster.
//!
//! ```text
//! InstallPlan ──objects::base──▶ Objects ──families, components──▶ Objects ──render──▶ YAML
//! ```

pub mod cel_policies;
pub mod component;
mod components;
mod entry;
pub mod exported_policies;
mod families;
pub mod install_plan;
pub mod metadata;
pub mod objects;
mod rbac;
mod self_guard;
mod webhooks;
mod workload;

use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::objects::Objects;

/// The objects of a plan: the base, then its families, then its components.
#[must_use]
pub fn objects(plan: &InstallPlan) -> Objects {
    let mut objects = Objects::base(plan);
    for family in &plan.families {
        families::add(&mut objects, plan, family);
    }
    for family in &plan.elsewhere {
        families::leave(&mut objects, family);
    }
    objects.arguments().extend(plan.flags.iter().cloned());
    for component in &plan.components {
        components::apply(&mut objects, plan, *component);
    }
    objects
}

/// Renders the parts of a plan as a stream of YAML documents.
///
/// # Errors
/// When an object cannot be written as YAML, which would be a bug of memgate's.
pub fn render(plan: &InstallPlan, parts: &[InstallPart]) -> Result<String, Error> {
    let mut text = String::new();
    for (_, document) in objects(plan).documents()?.iter().filter(|(part, _)| parts.contains(part)) {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&serde_saphyr::to_string(document)?);
    }
    Ok(text)
}

/// Why objects cannot be written; a bug of memgate's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object has a value that JSON cannot express.
    #[error("failed to build an object")]
    Json(#[from] serde_json::Error),
    /// An object has a value that YAML cannot express.
    #[error("failed to write an object as YAML")]
    Yaml(#[from] serde_saphyr::SerializeError),
}
