//! Validates a Memory, a Query or the ArkConfig.
//!
//! The platform accepts these objects unchecked and at best reports errors in a status. Validation never
//! refuses an object that works: if an object has several values, rules that deny apply only to the value
//! that the platform uses.
//!
//! Each part of an object has a ratchet. Each rule depends on a part, such as the address. While an update leaves
//! that part unchanged, its denials only warn, and most of its warnings are not repeated.

mod address;
mod header;
mod query;
mod reference;

use super::prelude::*;
use crate::message::{MANY, MAX_NAMES, first_of};
use crate::references;
use memgate_model::object::is_deleting;
use memgate_schema::violation::{Rule, SchemaViolation};

use super::FAMILY;
use super::default::{DefaultMemory, default_memory};
use super::edges::EDGES;

/// All findings about the subject, in any order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if subject.operation == Operation::Delete {
        let deletes_memory = *subject.kind == MEMORY && !is_deleting(subject.object);
        return if deletes_memory { deleted(subject, state) } else { Vec::new() };
    }
    let mut findings = Vec::new();
    if *subject.kind == MEMORY {
        findings.extend(address::findings(subject, state));
        header::findings(subject, state, &mut findings);
        findings.extend(renamed_default(subject, state));
    } else if *subject.kind == QUERY {
        findings.extend(query::findings(subject, state));
    } else if *subject.kind == ARK_CONFIG {
        findings.extend(config(subject.object));
    }
    findings
}

/// Validates an ArkConfig: its name, the default TTL and the default Memory of Queries.
fn config(object: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = config_name(object).into_iter().collect();
    if let Some(ttl) = object.text_at(&["spec", "queryTTL"]) {
        const POINTER: &str = "/spec/queryTTL";
        findings.extend(match query::nanoseconds(ttl) {
            Err(instead) => Some(query::not_a_duration(&CONFIG_QUERY_TTL, POINTER, (ttl, instead), "720h")),
            Ok(..=0) => {
                let message = format!("spec.queryTTL must be a positive duration, not {}", quoted_text(ttl));
                Some(Finding::deny(&CONFIG_QUERY_TTL, POINTER, message))
            }
            Ok(nanoseconds) => query::too_short((ttl, nanoseconds), &CONFIG_QUERY_TTL_SHORT, POINTER),
        });
    }
    let Some(memory) = object.at(&["spec", "defaultMemory"]).filter(|memory| memory.is_object()) else {
        return findings;
    };
    let here = Pointer::new("/spec/defaultMemory");
    if memory.get("name").is_none_or(|name| name.text() == Some("")) {
        let message = "spec.defaultMemory.name is required when spec.defaultMemory is set";
        findings.push(Finding::deny(&CONFIG_DEFAULT_MEMORY_NAME, here.key("name"), message));
    }
    if memory.text_at(&["namespace"]).is_some_and(|namespace| !namespace.is_empty()) {
        let message =
            "spec.defaultMemory.namespace must be empty: each Query uses the Memory of its own namespace";
        findings.push(Finding::deny(&CONFIG_DEFAULT_MEMORY_NAMESPACE, here.key("namespace"), message));
    }
    findings
}

/// Warns about an ArkConfig of another name than `default`, which the platform does not read.
fn config_name(object: &Tree) -> Option<Finding> {
    let metadata = object.get("metadata")?;
    let name = match metadata.get("name") {
        Some(name) => name.text()?,
        None => metadata.get("generateName").and(Some(""))?,
    };
    let message = format!("ARK reads only the ArkConfig named \"default\", not {}", quoted(name));
    (name != DEFAULT).then(|| Finding::warn(&CONFIG_NAME, "/metadata/name", message))
}

/// Warns about the Memory `default` with a prefix or a suffix of kustomize, in files: Queries that name no Memory do not
/// find it. It has one if all these Queries have the same, and none of their namespace is the default.
fn renamed_default(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    let (prefix, suffix) = subject.name.split_once(DEFAULT)?;
    let is_added = prefix.is_empty() != suffix.is_empty()
        && (prefix.is_empty() || prefix.ends_with('-'))
        && (suffix.is_empty() || suffix.starts_with('-'));
    if !is_added || !state.of_files() {
        return None;
    }
    let key = EDGES.first()?.key_of(subject.namespace, DEFAULT);
    let query = state.indexed(&QUERY, FAMILY.by_memory, &key).next()?;
    let is_renamed = |query: &Object| query.name.starts_with(prefix) && query.name.ends_with(suffix);
    let are_renamed = state.indexed(&QUERY, FAMILY.by_memory, &key).take(MANY).all(is_renamed);
    let mut has_default = || matches!(default_memory(subject.namespace, state), DefaultMemory::Memory { .. });
    if !are_renamed || has_default() {
        return None;
    }
    let (added, field) = if suffix.is_empty() { (prefix, "namePrefix") } else { (suffix, "nameSuffix") };
    let message = format!(
        "metadata.name: Queries without spec.memory use the Memory \"default\", which {field} {} renamed",
        quoted_text(added)
    );
    let finding = Finding::warn(&MEMORY_DEFAULT_RENAMED, "/metadata/name", message);
    let help = format!("keep the Memory in a kustomization without {field}, or name it in the Queries");
    Some(finding.help(help).elsewhere(query, Pointer::new("/spec"), "has no spec.memory"))
}

/// Whether a violation is not reported. The rules about ports have better messages, and of a Query the platform itself
/// accepts what its schema refuses: the older type, no spec, and the older form of a target, which has a warning.
pub(crate) fn tolerates(kind: &Kind, written: &Tree, violation: &SchemaViolation<'_>) -> bool {
    let place = violation.pointer.as_str();
    let is_type = matches!(violation.rule, Rule::Type { .. });
    let is_in_query = || match place {
        "/spec" => is_type && written.get("spec").is_none(),
        "/spec/target" => is_type && matches!(written.at(&["spec", "target"]), Some(Tree::List(_))),
        "/spec/type" => written.text_at(&["spec", "type"]) == Some("messages"),
        _ => false,
    };
    is_type && place.ends_with("/serviceRef/port") && *kind != QUERY || *kind == QUERY && is_in_query()
}

/// The fields of the spec that rules depend on.
const PARTS: [&str; 8] =
    ["address", "headers", "memory", "ttl", "timeout", "type", "queryTTL", "defaultMemory"];

/// On an update, turns denials of unchanged parts into warnings and removes most warnings about them. Warnings
/// about edits and a changed Memory stay. The remaining denials are new, so the caller need not
/// compare them with findings about the stored object.
pub(crate) fn ratchet(subject: &Subject<'_>, mut findings: Vec<Finding>) -> Vec<Finding> {
    let Some(old) = subject.old.filter(|_| !findings.is_empty()) else { return findings };
    let unchanged = PARTS.map(|part| hash_part(subject.object, part) == hash_part(old, part));
    findings.retain_mut(|finding| {
        let unchanged = is_unchanged(finding, unchanged, subject.object, old);
        let always = finding.on_rewrite || finding.code == &QUERY_MEMORY_CHANGED;
        let denies = finding.severity == Severity::Deny;
        if unchanged {
            finding.severity = Severity::Warn;
        }
        always || denies || !unchanged
    });
    findings
}

/// Whether an update leaves the values that a finding depends on unchanged. An empty part equals an absent one
/// here, although some rules deny only one of the two.
fn is_unchanged(finding: &Finding, unchanged: [bool; PARTS.len()], new: &Tree, old: &Tree) -> bool {
    // Whether headers are sent in plain text depends on the address and the headers.
    if *finding.code == MEMORY_ADDRESS_PLAIN_HTTP {
        return unchanged.iter().all(|unchanged| *unchanged);
    }
    let holds = |part: &str| {
        let rest = finding.pointer.as_str().strip_prefix("/spec/").and_then(|at| at.strip_prefix(part));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let part = PARTS.iter().zip(unchanged).find(|(part, _)| holds(part));
    part.map_or_else(
        || value_at(new, &finding.pointer) == value_at(old, &finding.pointer),
        |(_, unchanged)| unchanged,
    )
}

/// The value at a pointer outside all parts: its type, and its text if it is a string.
fn value_at<'t>(object: &'t Tree, pointer: &Pointer) -> Option<(&'static str, Option<&'t str>)> {
    let tokens: Vec<_> = pointer.tokens().collect();
    let path: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
    object.at(&path).map(|tree| (tree.type_name(), tree.text()))
}

/// Whether two Queries refer to the same Memory.
fn is_same_memory_ref(a: &Tree, b: &Tree) -> bool {
    hash_part(a, "memory") == hash_part(b, "memory")
}

/// The hash of a part, which is quick to compare; `None` for `{}`, which typed clients write for an absent part.
fn hash_part(object: &Tree, part: &str) -> Option<u64> {
    object.at(&["spec", part]).filter(|tree| !tree.is_empty_object()).map(Tree::content_hash)
}

/// Warns about a DELETE, and never refuses it. The warning lists the Queries whose messages stay behind.
fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let users = references::users(&FAMILY, (subject.kind, subject.namespace, subject.name), state);
    let mut names: Vec<_> = users.map(|user| user.name_in(subject.namespace)).collect();
    let count = names.len();
    names.sort_unstable();
    let names = first_of(names, MAX_NAMES, Cow::into_owned);
    let (count, verb, whose) = match count {
        0 => return Vec::new(),
        1 => ("1 query".to_owned(), "uses", "its"),
        MANY.. => ("many queries".to_owned(), "use", "their"),
        several => (format!("{several} queries"), "use", "their"),
    };
    let message = format!("{count} {verb} this Memory ({names}); {whose} messages will not be cleaned up");
    vec![Finding::warn(&MEMORY_DELETE_REFERENCED, Pointer::root(), message)]
}
