//! The part of an object that a rule rests on. A fault that is stored already only warns, as long as
//! nothing in that part changes; advice that was given already is not given again.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::model::family::Subject;
use crate::model::finding::{Finding, Severity};
use crate::model::pointer::Pointer;
use crate::model::schema::Schema;
use crate::model::tree::Tree;

use super::super::api::{ADDRESS, HEADER, MEMORY_REF};
use super::super::codes::{MEMORY_ADDRESS_PLAIN_HTTP, QUERY_MEMORY_CHANGED, UNKNOWN_FIELD};

/// A part that rules rest on.
struct ObjectPart {
    path: [&'static str; 2],
    schema: Schema,
}

const PARTS: [ObjectPart; 4] = [
    ObjectPart { path: ["spec", "address"], schema: ADDRESS },
    ObjectPart { path: ["spec", "headers"], schema: Schema::List(&HEADER) },
    ObjectPart { path: ["spec", "memory"], schema: MEMORY_REF },
    ObjectPart { path: ["spec", "defaultMemory"], schema: MEMORY_REF },
];

/// Gives each finding the part it rests on as its fingerprint value, and takes out the advice about
/// parts that an update leaves alone.
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

/// A part that is left alone only warns, also where an empty one stands for none: not every rule
/// finds both of them wrong.
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

/// Whether the reference to a Memory is the same in two Queries.
pub(super) fn is_same_memory_ref(a: &Tree, b: &Tree) -> bool {
    let hash_part =
        |object: &Tree| object.at(&["spec", "memory"]).and_then(|tree| hash_part(tree, &MEMORY_REF));
    hash_part(a) == hash_part(b)
}

/// What the parts of one object come to, each as a number: parts can be long, and have many
/// findings.
struct PartHashes<'t> {
    object: &'t Tree,
    hashes: [Option<u64>; PARTS.len()],
}

impl<'t> PartHashes<'t> {
    fn new(object: &'t Tree) -> Self {
        let hashes = PARTS.map(|part| object.at(&part.path).and_then(|tree| hash_part(tree, &part.schema)));
        Self { object, hashes }
    }

    fn fingerprint_value(&self, finding: &Finding) -> String {
        // Whether something travels in clear text depends on the headers too.
        let all_parts = *finding.code == MEMORY_ADDRESS_PLAIN_HTTP;
        let holds = |part: &ObjectPart| all_parts || pointer(part).holds(&finding.pointer);
        let related = PARTS.iter().zip(self.hashes).filter(|(part, _)| holds(part));
        let hashes: Vec<Option<u64>> = related.map(|(_, hash_part)| hash_part).collect();
        if hashes.is_empty() { self.value_at(&finding.pointer) } else { format!("{hashes:?}") }
    }

    /// What stands at a place outside of all roots.
    fn value_at(&self, pointer: &Pointer) -> String {
        let tokens: Vec<_> = pointer.tokens().collect();
        let path: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let text = |tree: &Tree| format!("{} {:?}", tree.type_name(), tree.text());
        self.object.at(&path).map(text).unwrap_or_default()
    }
}

fn pointer(part: &ObjectPart) -> Pointer {
    part.path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key))
}

/// A part as a number; `None` for `{}` as for what is not there, which typed clients write so.
fn hash_part(tree: &Tree, schema: &Schema) -> Option<u64> {
    let is_empty_object =
        tree.is_object() && schema.fields().iter().all(|field| tree.get(field.name).is_none());
    let mut hasher = DefaultHasher::new();
    hash_tree(tree, schema, &mut hasher);
    (!is_empty_object).then(|| hasher.finish())
}

/// Does not depend on the order of fields.
fn hash_tree(tree: &Tree, schema: &Schema, hasher: &mut DefaultHasher) {
    tree.type_name().hash(hasher);
    match (tree, schema) {
        (Tree::Map(_), Schema::Object(fields) | Schema::Open(fields)) => {
            for field in *fields {
                if let Some(value) = tree.get(field.name) {
                    field.name.hash(hasher);
                    hash_tree(value, &field.schema, hasher);
                }
            }
            "}".hash(hasher);
        }
        (Tree::List(elements), Schema::List(schema)) => {
            elements.len().hash(hasher);
            for element in elements {
                hash_tree(element, schema, hasher);
            }
        }
        (Tree::Text(text), _) => text.hash(hasher),
        (Tree::Integer(number), _) => number.hash(hasher),
        (Tree::Boolean(flag), _) => flag.hash(hasher),
        (Tree::Fraction(number), _) => number.to_bits().hash(hasher),
        _ => {}
    }
}
