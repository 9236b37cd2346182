//! The ratchet by parts of an object. Each rule depends on a part, such as the address. While an update leaves
//! that part unchanged, its denials only warn, and most of its warnings are not repeated.

use memgate_model::family::Subject;
use memgate_model::finding::{Finding, Severity};
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use super::super::codes::{MEMORY_ADDRESS_PLAIN_HTTP, QUERY_MEMORY_CHANGED, UNKNOWN_FIELD};

/// The parts of an object that rules depend on: the pointer and the path of each.
const PARTS: [(&str, [&str; 2]); 8] = [
    ("/spec/address", ["spec", "address"]),
    ("/spec/headers", ["spec", "headers"]),
    ("/spec/memory", ["spec", "memory"]),
    ("/spec/ttl", ["spec", "ttl"]),
    ("/spec/timeout", ["spec", "timeout"]),
    ("/spec/type", ["spec", "type"]),
    ("/spec/queryTTL", ["spec", "queryTTL"]),
    ("/spec/defaultMemory", ["spec", "defaultMemory"]),
];

/// On an update, turns denials of unchanged parts into warnings and removes most warnings about them. Warnings
/// about unknown fields, edits and a changed Memory stay. The remaining denials are new, so the caller need not
/// compare them with findings about the stored object.
pub(super) fn apply(subject: &Subject<'_>, mut findings: Vec<Finding>) -> Vec<Finding> {
    let Some(old) = subject.old.filter(|_| !findings.is_empty()) else { return findings };
    let unchanged = PARTS.map(|(_, path)| hash_part(subject.object, &path) == hash_part(old, &path));
    findings.retain_mut(|finding| {
        let unchanged = is_unchanged(finding, unchanged, subject.object, old);
        let always = finding.on_rewrite || [&QUERY_MEMORY_CHANGED, &UNKNOWN_FIELD].contains(&finding.code);
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
        let rest = finding.pointer.as_str().strip_prefix(part);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let part = PARTS.iter().zip(unchanged).find(|((part, _), _)| holds(part));
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
pub(super) fn is_same_memory_ref(a: &Tree, b: &Tree) -> bool {
    hash_part(a, &["spec", "memory"]) == hash_part(b, &["spec", "memory"])
}

/// The hash of the part at a path, which is quick to compare; `None` for `{}`, which typed clients write for an
/// absent part.
fn hash_part(object: &Tree, path: &[&str]) -> Option<u64> {
    object.at(path).filter(|tree| !tree.is_empty_object()).map(Tree::content_hash)
}
