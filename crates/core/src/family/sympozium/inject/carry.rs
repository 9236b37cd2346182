//! From a plan to edits: what the pod has stays as it is.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::family::pod::{Place, env_pointer, insert_env, insert_trees};
use crate::model::decision::Reason;
use crate::model::edit::{Edit, Op, Origin, Value};
use crate::model::finding::{Finding, quoted};
use crate::model::injection::{Added, Injection};
use crate::model::pod::EnvVar;
use crate::model::pointer::Pointer;

use super::super::api::AGENT_CONTAINER;
use super::super::codes::POD_ENV_CONFLICT;
use super::containers::FS_GROUP;
use super::env::{INSTANCE, TRUST_PEERS, Variable, resource};
use super::plan::{Part, Plan};

/// The edits of a plan. Those inside the agent's container come first.
pub(super) fn out(mut plan: Plan<'_, '_>) -> Injection {
    let missing = missing_variables(&mut plan);
    let mut added = Added { memory: memories(&plan), ..Added::default() };
    let mut edits = Vec::new();
    if !missing.is_empty() {
        added.env = vec![(AGENT_CONTAINER.to_owned(), missing.iter().map(|v| Cow::from(v.name)).collect())];
        let block = missing.iter().map(|variable| (variable.env_var(), variable.origin())).collect();
        edits.extend(insert_env(plan.container, plan.agent.env.as_deref(), block, Place::Front));
    }
    if !plan.mounts.is_empty() {
        let paths = plan.mounts.iter().map(|mount| Cow::from(mount.name.clone())).collect();
        added.mounts = vec![(AGENT_CONTAINER.to_owned(), paths)];
        let list = Pointer::new("/spec/containers").index(plan.container).key("volumeMounts");
        let existing = plan.seen.mounts.as_ref().map(Vec::len);
        edits.extend(append(&list, existing, std::mem::take(&mut plan.mounts)));
    }
    let inits = plan.first.iter().chain(&plan.last);
    added.init_containers = inits.map(|part| part.name.clone()).collect();
    added.volumes = plan.volumes.iter().map(|part| part.name.clone()).collect();
    edits.extend(init_containers(&mut plan));
    let volumes = plan.seen.volumes.as_ref().map(Vec::len);
    edits.extend(append(&Pointer::new("/spec/volumes"), volumes, std::mem::take(&mut plan.volumes)));
    if plan.fs_group {
        edits.push(fs_group(plan.seen.security.is_some()));
    }
    injection(plan, edits, added)
}

fn injection(plan: Plan<'_, '_>, edits: Vec<Edit>, added: Added) -> Injection {
    let reason = match (edits.is_empty(), plan.unmet.is_empty() && plan.warnings.is_empty()) {
        (false, _) => Reason::Injected,
        (true, false) => Reason::Conflict,
        (true, true) => Reason::Complete,
    };
    let mut injection = Injection { warnings: plan.warnings, edits, added, ..Injection::nothing(reason) };
    unmet(&mut injection, plan.unmet);
    injection
}

/// Each thing that is missing refuses a pod that requires its memory.
pub(super) fn unmet(injection: &mut Injection, findings: Vec<Finding>) {
    injection.unmet = findings;
}

/// What the agent lacks. Its name goes along with the first of the others.
fn missing_variables(plan: &mut Plan<'_, '_>) -> Vec<Variable> {
    let Some(first) = plan.variables.first() else { return Vec::new() };
    let resource =
        plan.found.agent.map_or_else(|| Arc::clone(&first.resource), |agent| resource("Agent", agent));
    let value = plan.found.instance.clone();
    let name = Variable { name: INSTANCE, value, resource, field: "metadata.name".into() };
    let wanted: Vec<Variable> = std::iter::once(name).chain(plan.variables.iter().cloned()).collect();
    let mut missing = Vec::new();
    for variable in wanted {
        match plan.seen.variable(variable.name) {
            None => missing.push(variable),
            Some((index, entry)) if !says(entry, &variable, plan) => {
                let (kind, name) = variable.resource.split_once(' ').unwrap_or_default();
                let name = name.rsplit('/').next().unwrap_or_default();
                let message =
                    format!("{} is already set and differs from {kind} {}", variable.name, quoted(name));
                let at = env_pointer(plan.container).index(index);
                plan.warnings.push(Finding::warn(&POD_ENV_CONFLICT, at, message));
            }
            Some(_) => {}
        }
    }
    if missing.iter().all(|variable| variable.name == INSTANCE) {
        missing.clear();
    }
    missing
}

/// Whether an entry says what memory wants. More trust peers than ours, and peers by the names of
/// their configs, are upstream's own way.
fn says(entry: &EnvVar<'_>, variable: &Variable, plan: &Plan<'_, '_>) -> bool {
    if entry.value_from.is_some() {
        return false;
    }
    let value = entry.value.as_deref().unwrap_or_default();
    if value == variable.value {
        return true;
    }
    if variable.name != TRUST_PEERS {
        return false;
    }
    let prefix = plan.found.ensemble.map(|ensemble| format!("{}-", ensemble.name)).unwrap_or_default();
    let theirs: BTreeSet<&str> = value.split(',').map(str::trim).collect();
    let has = |ours: &str| {
        theirs.contains(ours) || ours.strip_prefix(&prefix).is_some_and(|config| theirs.contains(config))
    };
    variable.value.is_empty() || variable.value.split(',').all(has)
}

fn memories(plan: &Plan<'_, '_>) -> Vec<String> {
    let agent =
        (plan.found.private.is_some() || plan.found.legacy).then(|| format!("Agent/{}", plan.found.instance));
    let ensemble = plan.found.ensemble.filter(|_| plan.found.shared);
    agent.into_iter().chain(ensemble.map(|ensemble| format!("Ensemble/{}", ensemble.name))).collect()
}

fn init_containers(plan: &mut Plan<'_, '_>) -> Vec<Edit> {
    let list = Pointer::new("/spec/initContainers");
    let front: Vec<Part> = plan.first.take().into_iter().collect();
    let end: Vec<Part> = plan.last.take().into_iter().collect();
    let Some(existing) = plan.seen.init_containers.as_ref().map(Vec::len) else {
        return append(&list, None, front.into_iter().chain(end).collect());
    };
    let behind = existing + front.len();
    let mut edits = insert_trees(&list, Some(existing), 0, trees(front));
    edits.extend(insert_trees(&list, Some(behind), behind, trees(end)));
    edits
}

fn append(list: &Pointer, existing: Option<usize>, parts: Vec<Part>) -> Vec<Edit> {
    insert_trees(list, existing, existing.unwrap_or(0), trees(parts))
}

fn trees(parts: Vec<Part>) -> Vec<(serde_json::Value, Origin)> {
    parts.into_iter().map(|part| (part.tree, part.origin)).collect()
}

/// Without it the memory server could not write to a fresh volume.
fn fs_group(has_context: bool) -> Edit {
    let context = Pointer::new("/spec/securityContext");
    let origins = vec![Origin {
        resource: "".into(),
        field: "".into(),
        rule: "the memory sidecar writes to its volume",
    }];
    if has_context {
        return Edit {
            op: Op::Add,
            pointer: context.key("fsGroup"),
            value: Value::Integer(FS_GROUP),
            origins,
        };
    }
    let value = Value::Tree(serde_json::json!({"fsGroup": FS_GROUP}));
    Edit { op: Op::Add, pointer: context, value, origins }
}
