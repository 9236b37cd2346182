//! What a kind's [`Shape`] says by itself: wrong JSON types and unknown fields.
//!
//! In a cluster the apiserver has refused the one and pruned the other before a webhook is called;
//! outside, these checks stand in for it.

use crate::family::suggest::{did_you_mean, nearest};
use crate::model::finding::{Code, Finding, quoted};
use crate::model::pointer::Pointer;
use crate::model::shape::{Field, Shape};
use crate::model::tree::Tree;

/// The codes under which a family reports.
#[derive(Debug, Clone, Copy)]
pub struct Codes {
    /// A wrong JSON type; denies.
    pub field_type: &'static Code,
    /// A field that the schema does not have; warns.
    pub unknown_field: &'static Code,
}

/// How a family says that a field has the wrong type: field, expected and found type to a message.
pub type Wording = fn(&str, &str, &str) -> String;

/// Checks a whole object. Its `metadata` is left to the apiserver.
#[must_use]
pub fn check(object: &Tree, shape: &Shape, codes: Codes) -> Vec<Finding> {
    check_worded(object, shape, codes, |field, expected, got| {
        format!("{field}: expected {expected}, got {got}")
    })
}

/// The same in a family's own words.
#[must_use]
pub fn check_worded(object: &Tree, shape: &Shape, codes: Codes, wording: Wording) -> Vec<Finding> {
    let mut findings = Vec::new();
    walk(object, shape, &Pointer::root(), (codes, wording), &mut findings);
    findings
}

/// Takes out the findings that stand at or below a field of the wrong type: nothing more can be
/// said there.
#[must_use]
pub fn beside_wrong_types(findings: Vec<Finding>, codes: Codes) -> Vec<Finding> {
    let wrong: Vec<Pointer> =
        findings.iter().filter(|f| f.code == codes.field_type).map(|f| f.pointer.clone()).collect();
    let silenced = |f: &Finding| f.code != codes.field_type && wrong.iter().any(|w| w.holds(&f.pointer));
    findings.into_iter().filter(|finding| !silenced(finding)).collect()
}

type Terms = (Codes, Wording);

fn walk(tree: &Tree, shape: &Shape, here: &Pointer, terms: Terms, findings: &mut Vec<Finding>) {
    if let Some(finding) = wrong_type(tree, shape, here, terms) {
        findings.push(finding);
        return;
    }
    for name in tree.unknown_fields() {
        findings.extend(unknown_field(name, shape, here, terms.0));
    }
    for field in shape.fields().iter().filter(|field| field.name != "metadata") {
        if let Some(value) = tree.get(field.name) {
            walk(value, &field.shape, &here.key(field.name), terms, findings);
        }
    }
    if let Shape::List(element) = shape {
        for (index, value) in tree.elements().iter().enumerate() {
            walk(value, element, &here.index(index), terms, findings);
        }
    }
}

fn wrong_type(tree: &Tree, shape: &Shape, here: &Pointer, (codes, wording): Terms) -> Option<Finding> {
    let expected = shape.type_name()?;
    let got = tree.type_name();
    if expected == got {
        return None;
    }
    let message = wording(&field_or_object(here), expected, got);
    let finding = Finding::deny(codes.field_type, here.clone(), message).basis(format!("{tree:?}"));
    Some(match only_text_field(shape).zip(tree.text()) {
        Some((inner, text)) => {
            let field = here.field();
            let last = field.rsplit('.').next().unwrap_or_default();
            finding.help(format!("write `{last}: {{{inner}: {}}}`", quoted(text).trim_matches('"')))
        }
        None => finding,
    })
}

/// The one string field of an object such as `{name: …}`, for which people write the bare string.
fn only_text_field(shape: &Shape) -> Option<&'static str> {
    match shape.fields() {
        [Field { name, shape: Shape::Text, .. }] => Some(name),
        _ => None,
    }
}

fn unknown_field(name: &str, shape: &Shape, here: &Pointer, codes: Codes) -> Option<Finding> {
    let open = matches!(shape, Shape::Open(_));
    let fields = || shape.fields().iter().filter(|field| field.guarded || !open);
    let alias = fields().flat_map(|field| field.aliases).find(|(wrong, _)| *wrong == name);
    let meant = alias.map(|(_, meant)| *meant).or_else(|| nearest(name, fields().map(|field| field.name)));
    if open && meant.is_none() {
        return None;
    }
    let pointer = here.key(name);
    let field = pointer.field();
    let shown = quoted(&field);
    let message =
        format!("{}: unknown field, it will be dropped{}", shown.trim_matches('"'), did_you_mean(meant));
    Some(Finding::warn(codes.unknown_field, pointer, message).at_key())
}

fn field_or_object(pointer: &Pointer) -> String {
    let field = pointer.field();
    if field.is_empty() { "the object".to_owned() } else { field }
}
