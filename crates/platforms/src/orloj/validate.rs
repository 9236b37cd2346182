//! Validates a Memory, an Agent or a ModelEndpoint.
//!
//! The CRDs accept almost anything, and the platform reports faults later and without a reason. So users see the
//! reason only here. Each kind has a module; rules for all kinds are in this one.
//!
//! A DELETE of a Memory or ModelEndpoint in use is never refused. The warning lists the users of the object.

mod advice;
mod agent;
mod memory;

use std::hash::{DefaultHasher, Hash, Hasher as _};

use super::prelude::*;
use crate::message::{MAX_NAMES, first_of};
use crate::references;
use memgate_model::object::is_deleting;
use memgate_model::platform_settings::Orloj;

use super::FAMILY;
use super::claim;
use super::message::{fit_message, truncate};

/// Names that have another meaning in the paths of Orloj's API.
/// Source: OrlojHQ/orloj, the API's check of names.
const RESERVED_NAMES: [&str; 6] = ["status", "logs", "exec", "scale", "proxy", "binding"];

/// All findings about the subject, in any order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if subject.operation == Operation::Delete {
        // The first DELETE already gave the warning.
        return if is_deleting(subject.object) { Vec::new() } else { deleted(subject, state) };
    }
    let mut findings: Vec<Finding> = name_reserved(subject).into_iter().collect();
    findings.extend(target_namespace(subject, &state.settings().orloj));
    if *subject.kind == MEMORY {
        findings.extend(memory::findings(subject.object));
        findings.extend(advice::findings(subject, state));
    } else if *subject.kind == AGENT {
        findings.extend(agent::findings(subject, state));
    } else {
        findings.extend(model_endpoint(subject.object));
    }
    findings
}

/// Keeps the warnings about fields that an UPDATE changes. The operator updates each object right after its
/// creation, and the warnings about unchanged fields were already reported then.
pub(crate) fn keep_changed(subject: &Subject<'_>, mut findings: Vec<Finding>) -> Vec<Finding> {
    const PROVIDER: [&str; 2] = ["spec", "provider"];
    let (object, Some(old)) = (subject.object, subject.old) else { return findings };
    let spec_changed = match (object.get("spec"), old.get("spec")) {
        (Some(new), Some(old)) => !new.is_equivalent(old),
        (new, old) => new.is_some() || old.is_some(),
    };
    findings.retain(|finding| {
        if finding.severity == Severity::Deny {
            true
        } else if *finding.code == TARGET_NAMESPACE {
            claim::annotation(object) != claim::annotation(old)
        } else if *finding.code == PROVIDER_UNKNOWN {
            text(object, &PROVIDER) != text(old, &PROVIDER)
        } else {
            spec_changed
        }
    });
    findings
}

fn name_reserved(subject: &Subject<'_>) -> Option<Finding> {
    let reserved = subject.operation == Operation::Create && RESERVED_NAMES.contains(&subject.name);
    let message = || format!("metadata.name {} is a reserved subresource name", quoted(subject.name));
    reserved.then(|| Finding::deny(&NAME_RESERVED, "/metadata/name", message()))
}

fn target_namespace(subject: &Subject<'_>, settings: &Orloj) -> Option<Finding> {
    let target = claim::annotated(subject.object).filter(|target| *target != subject.namespace)?;
    let pointer = Pointer::new("/metadata/annotations").key(claim::TARGET_NAMESPACE);
    // Orloj reads the object even if memgate ignores it.
    let ignored = claim::is_ignored(subject.object, subject.namespace, settings);
    let note = if ignored { "; memgate ignores it" } else { "" };
    let values = [claim::TARGET_NAMESPACE, target, note];
    let finding = warning(&TARGET_NAMESPACE, pointer, "{bare} writes into Orloj namespace {}{bare}", values);
    let help = "only namespaces of orloj.sourceNamespaces may use the annotation";
    Some(if ignored { finding.help(help) } else { finding })
}

/// A fingerprint value: the same for two lists that are equal, and short even for a long one.
fn fingerprint_of<T: Hash>(values: impl IntoIterator<Item = T>) -> String {
    let mut hasher = DefaultHasher::new();
    let count = values.into_iter().map(|value| value.hash(&mut hasher)).count();
    count.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Validates a ModelEndpoint.
fn model_endpoint(object: &Tree) -> Option<Finding> {
    let missing = ModelEndpoint::read(object).default_model.is_none();
    let pointer = Pointer::new("/spec/default_model");
    missing.then(|| Finding::deny(&MODELENDPOINT_MODEL_REQUIRED, pointer, "spec.default_model is required"))
}

fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if claim::is_ignored(subject.object, subject.namespace, &state.settings().orloj) {
        return Vec::new();
    }
    let (code, mut users, user_kinds) = if *subject.kind == MEMORY {
        (&MEMORY_IN_USE, agents(subject, state), "Agent(s)")
    } else if *subject.kind == MODEL_ENDPOINT {
        let users = memories(subject, state).map(|it| format!("{}/{}", it.namespace, it.name).into());
        (&MODELENDPOINT_IN_USE, users.collect(), "Memory(s)")
    } else {
        return Vec::new();
    };
    users.sort_unstable();
    users.dedup();
    if users.is_empty() {
        return Vec::new();
    }
    let message = fit_message(|limit| {
        let name = quoted(&truncate(subject.name, limit));
        let users = first_of(&users, MAX_NAMES, |user| truncate(user, limit));
        format!("{} {name} is used by {user_kinds}: {users}", subject.kind.kind)
    });
    vec![Finding::warn(code, Pointer::new("/metadata/name"), message)]
}

/// The names of the Agents of the Memory's Orloj namespace that claim it.
fn agents<'s>(subject: &Subject<'_>, state: &mut StateReader<'s>) -> Vec<Cow<'s, str>> {
    let home = claim::effective(subject.object, subject.namespace);
    let agents = references::users(&FAMILY, (subject.kind, home, subject.name), state);
    agents.map(|agent| Cow::Borrowed(&*agent.name)).collect()
}

/// The Memories, with their Kubernetes namespaces, whose embeddings come from the ModelEndpoint. Those of other namespaces
/// count in files only.
pub(crate) fn memories<'s>(
    subject: &Subject<'_>,
    state: &mut StateReader<'s>,
) -> impl Iterator<Item = &'s Object> + use<'s> {
    let home = claim::effective(subject.object, subject.namespace);
    let key = format!("{} {home}/{}", MODEL_ENDPOINT.kind, subject.name);
    // This notes those that are not held, and whether some are unknown.
    drop(state.everywhere(&MEMORY));
    let namespace = (!state.names_others()).then_some(subject.namespace);
    references::staying(state.indexed_in(&MEMORY, (FAMILY.by_memory, &key), namespace))
}
