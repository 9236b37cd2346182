//! The ratchet by parts of an object. Each rule depends on a part, such as the address. While an update leaves
//! that part unchanged, its denials only warn and its warnings are not repeated.

use crate::model::family::Subject;
use crate::model::finding::{Finding, Severity};
use crate::model::pointer::Pointer;
use crate::model::tree::Tree;

use super::super::codes::{MEMORY_ADDRESS_PLAIN_HTTP, QUERY_MEMORY_CHANGED, UNKNOWN_FIELD};

/// The parts of an object that rules depend on.
const PARTS: [[&str; 2]; 4] =
    [["spec", "address"], ["spec", "headers"], ["spec", "memory"], ["spec", "defaultMemory"]];

/// Sets the fingerprint value of each finding to its part, and removes warnings about parts that an update
/// leaves unchanged.
pub(super) fn apply(subject: &Subject<'_>, findings: Vec<Finding>) -> Vec<Finding> {
    let new = PartHashes::new(subject.object);
    let with_fingerprints = findings.into_iter().map(|finding| {
        let fingerprint_value = new.fingerprint_value(&finding);
        finding.fingerprint_value(fingerprint_value)
    });
    let Some(old) = subject.old.map(PartHashes::new) else { return with_fingerprints.collect() };
    with_fingerprints
        .filter(|finding| concerns_change(finding, &old))
        .map(|finding| warn_if_unchanged(finding, &old))
        .collect()
}

/// Turns the denial of an unchanged part into a warning. An empty part equals an absent one here, although
/// some rules deny only one of the two.
fn warn_if_unchanged(finding: Finding, old: &PartHashes<'_>) -> Finding {
    let same = old.fingerprint_value(&finding) == finding.fingerprint_value;
    let severity = if same { Severity::Warn } else { finding.severity };
    Finding { severity, ..finding }
}

fn concerns_change(finding: &Finding, old: &PartHashes<'_>) -> bool {
    let always = finding.on_rewrite || [&QUERY_MEMORY_CHANGED, &UNKNOWN_FIELD].contains(&finding.code);
    always
        || finding.severity == Severity::Deny
        || old.fingerprint_value(finding) != finding.fingerprint_value
}

/// Whether two Queries refer to the same Memory.
pub(super) fn is_same_memory_ref(a: &Tree, b: &Tree) -> bool {
    hash_part(a, &["spec", "memory"]) == hash_part(b, &["spec", "memory"])
}

/// A hash of each part of an object. Hashes are cheap to compare although parts can be long and have many
/// findings.
struct PartHashes<'t> {
    object: &'t Tree,
    hashes: [Option<u64>; PARTS.len()],
}

impl<'t> PartHashes<'t> {
    fn new(object: &'t Tree) -> Self {
        Self { object, hashes: PARTS.map(|part| hash_part(object, &part)) }
    }

    fn fingerprint_value(&self, finding: &Finding) -> String {
        // Whether headers are sent in plain text depends on the address and the headers.
        let all_parts = *finding.code == MEMORY_ADDRESS_PLAIN_HTTP;
        let holds = |part: &[&str; 2]| all_parts || pointer(part).holds(&finding.pointer);
        let related = PARTS.iter().zip(self.hashes).filter(|(part, _)| holds(part));
        let hashes: Vec<Option<u64>> = related.map(|(_, hash)| hash).collect();
        if hashes.is_empty() { self.value_at(&finding.pointer) } else { format!("{hashes:?}") }
    }

    /// The value at a pointer outside all parts.
    fn value_at(&self, pointer: &Pointer) -> String {
        let tokens: Vec<_> = pointer.tokens().collect();
        let path: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let text = |tree: &Tree| format!("{} {:?}", tree.type_name(), tree.text());
        self.object.at(&path).map(text).unwrap_or_default()
    }
}

fn pointer(part: &[&str]) -> Pointer {
    part.iter().fold(Pointer::root(), |pointer, key| pointer.key(key))
}

/// The hash of the part at a path; `None` for `{}`, which typed clients write for an absent part.
fn hash_part(object: &Tree, path: &[&str]) -> Option<u64> {
    object.at(path).filter(|tree| !tree.is_empty_object()).map(Tree::content_hash)
}
