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
struct Root {
    path: [&'static str; 2],
    schema: Schema,
}

const ROOTS: [Root; 4] = [
    Root { path: ["spec", "address"], schema: ADDRESS },
    Root { path: ["spec", "headers"], schema: Schema::List(&HEADER) },
    Root { path: ["spec", "memory"], schema: MEMORY_REF },
    Root { path: ["spec", "defaultMemory"], schema: MEMORY_REF },
];

/// Gives each finding the part it rests on as its fingerprint value, and takes out the advice about
/// parts that an update leaves alone.
pub(super) fn settle(subject: &Subject<'_>, findings: Vec<Finding>) -> Vec<Finding> {
    let now = Prints::of(subject.object);
    let rooted = findings.into_iter().map(|finding| {
        let fingerprint_value = now.fingerprint_value(&finding);
        finding.fingerprint_value(fingerprint_value)
    });
    let Some(old) = subject.old.map(Prints::of) else { return rooted.collect() };
    rooted.filter(|finding| is_new(finding, &old)).map(|finding| ratcheted(finding, &old)).collect()
}

/// A part that is left alone only warns, also where an empty one stands for none: not every rule
/// finds both of them wrong.
fn ratcheted(finding: Finding, old: &Prints<'_>) -> Finding {
    let same = old.fingerprint_value(&finding) == finding.fingerprint_value;
    let severity = if same { Severity::Warn } else { finding.severity };
    Finding { severity, ..finding }
}

fn is_new(finding: &Finding, old: &Prints<'_>) -> bool {
    let always = finding.on_rewrite || [&QUERY_MEMORY_CHANGED, &UNKNOWN_FIELD].contains(&finding.code);
    always
        || finding.severity == Severity::Deny
        || old.fingerprint_value(finding) != finding.fingerprint_value
}

/// Whether the reference to a Memory is the same in two Queries.
pub(super) fn is_same_memory(a: &Tree, b: &Tree) -> bool {
    let print = |object: &Tree| object.at(&["spec", "memory"]).and_then(|tree| print(tree, &MEMORY_REF));
    print(a) == print(b)
}

/// What the parts of one object come to, each as a number: parts can be long, and have many
/// findings.
struct Prints<'t> {
    object: &'t Tree,
    roots: [Option<u64>; ROOTS.len()],
}

impl<'t> Prints<'t> {
    fn of(object: &'t Tree) -> Self {
        let roots = ROOTS.map(|root| object.at(&root.path).and_then(|tree| print(tree, &root.schema)));
        Self { object, roots }
    }

    fn fingerprint_value(&self, finding: &Finding) -> String {
        // Whether something travels in clear text depends on the headers too.
        let every = *finding.code == MEMORY_ADDRESS_PLAIN_HTTP;
        let holds = |root: &Root| every || pointer(root).holds(&finding.pointer);
        let holding = ROOTS.iter().zip(self.roots).filter(|(root, _)| holds(root));
        let prints: Vec<Option<u64>> = holding.map(|(_, print)| print).collect();
        if prints.is_empty() { self.at(&finding.pointer) } else { format!("{prints:?}") }
    }

    /// What stands at a place outside of all roots.
    fn at(&self, pointer: &Pointer) -> String {
        let tokens: Vec<_> = pointer.tokens().collect();
        let path: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let text = |tree: &Tree| format!("{} {:?}", tree.type_name(), tree.text());
        self.object.at(&path).map(text).unwrap_or_default()
    }
}

fn pointer(root: &Root) -> Pointer {
    root.path.iter().fold(Pointer::root(), |pointer, key| pointer.key(key))
}

/// A part as a number; `None` for `{}` as for what is not there, which typed clients write so.
fn print(tree: &Tree, schema: &Schema) -> Option<u64> {
    let is_empty = tree.is_object() && schema.fields().iter().all(|field| tree.get(field.name).is_none());
    let mut hasher = DefaultHasher::new();
    digest(tree, schema, &mut hasher);
    (!is_empty).then(|| hasher.finish())
}

/// Does not depend on the order of fields.
fn digest(tree: &Tree, schema: &Schema, hasher: &mut DefaultHasher) {
    tree.type_name().hash(hasher);
    match (tree, schema) {
        (Tree::Map(_), Schema::Object(fields) | Schema::Open(fields)) => {
            for field in *fields {
                if let Some(value) = tree.get(field.name) {
                    field.name.hash(hasher);
                    digest(value, &field.schema, hasher);
                }
            }
            "}".hash(hasher);
        }
        (Tree::List(elements), Schema::List(schema)) => {
            elements.len().hash(hasher);
            for element in elements {
                digest(element, schema, hasher);
            }
        }
        (Tree::Text(text), _) => text.hash(hasher),
        (Tree::Integer(number), _) => number.hash(hasher),
        (Tree::Boolean(flag), _) => flag.hash(hasher),
        (Tree::Fraction(number), _) => number.to_bits().hash(hasher),
        _ => {}
    }
}
