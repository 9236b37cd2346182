//! The Kubernetes objects that install memgate, as YAML.
//!
//! The input is an [`InstallPlan`], which has the families; the output is one document per object, in the order in which
//! they are applied. This module sends no request to a cluster.
//!
//! ```text
//! InstallPlan ──objects::base──▶ Objects ──families, policies, components──▶ Objects ──render──▶ YAML
//! ```

pub mod asked;
pub mod component;
mod components;
pub mod difference;
mod entry;
mod families;
pub mod install_plan;
pub mod metadata;
pub mod objects;
pub mod pause;
mod rbac;
pub mod replica;
pub mod rights;
pub mod rows;
mod webhooks;
pub mod workload;

use serde_json::Value;

use crate::component::Component;
use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::NAME;
use crate::objects::Objects;
use crate::workload::{POD, SECONDS_AFTER_DRAIN, WEBHOOK};

/// The runbooks of the alerts, by name: what an alert means, its causes and what to do, in Markdown.
pub fn runbooks() -> impl Iterator<Item = (&'static str, &'static str)> {
    components::monitoring::runbooks()
}

/// The objects of a plan: the base, then its families, its policies and its components.
pub fn objects(plan: &InstallPlan) -> Objects {
    let mut objects = Objects::base(plan);
    for family in &plan.families {
        families::add(&mut objects, plan, family);
    }
    set_settings(&mut objects, plan);
    if plan.policies {
        components::policies::policies(&mut objects, plan);
    }
    for component in &plan.components {
        components::apply(&mut objects, plan, *component);
    }
    objects.arguments.extend((!plan.events).then(|| "--no-events".to_owned()));
    if let Some(port) = plan.webhook_port {
        components::set_port(&mut objects, WEBHOOK, port.into());
    }
    if plan.components.contains(&Component::Audit) {
        components::audit::complete(&mut objects, plan);
    }
    // Also where memgate writes nothing into the configurations: the Deployment shows their name.
    let name = (plan.name != NAME).then(|| format!("--webhook-configuration={}", plan.name));
    objects.arguments.extend(name);
    objects
}

/// Passes the settings on to memgate, in the form that needs no file.
fn set_settings(objects: &mut Objects, plan: &InstallPlan) {
    let mut settings = Value::Object(plan.settings.clone());
    settings.sort_all_objects();
    objects.arguments.extend((!plan.settings.is_empty()).then(|| format!("--settings={settings}")));
    if let Some(drain) = plan.settings.get("drain").and_then(Value::as_u64) {
        objects.set(POD, "terminationGracePeriodSeconds", drain.saturating_add(SECONDS_AFTER_DRAIN));
    }
}

/// Renders the parts of a plan as a stream of YAML documents.
///
/// # Errors
/// When an object cannot be written as YAML, which would be a bug of memgate's.
pub fn render(plan: &InstallPlan, parts: &[InstallPart]) -> Result<String, Error> {
    let documents = objects(plan).documents().into_iter().filter(|(part, _)| parts.contains(part));
    let texts: Result<Vec<_>, _> =
        documents.map(|(_, document)| serde_saphyr::to_string(&document)).collect();
    Ok(texts?.join("---\n"))
}

/// An object has a value that YAML cannot express; a bug of memgate's.
#[derive(Debug, thiserror::Error)]
#[error("failed to write an object as YAML")]
pub struct Error(#[from] serde_saphyr::SerializeError);
