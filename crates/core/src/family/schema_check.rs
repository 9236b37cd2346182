//! Checks an object against its kind's [`Schema`]: wrong JSON types and unknown fields.
//!
//! In a cluster the apiserver refuses wrong types and prunes unknown fields before it calls a webhook.
//! These checks replace it for files.

use crate::family::suggest::{did_you_mean, nearest};
use crate::model::finding::{Code, Finding, quoted};
use crate::model::pointer::{Path, Pointer};
use crate::model::schema::{Field, Schema};
use crate::model::tree::Tree;

/// The codes and messages with which a family reports.
#[derive(Debug, Clone, Copy)]
pub struct Codes {
    /// A wrong JSON type; denies.
    pub field_type: &'static Code,
    /// A field that the schema does not have; warns.
    pub unknown_field: &'static Code,
    /// The message about an unknown field, given the field and the one that was probably meant.
    pub unknown_message: fn(&str, Option<&str>) -> String,
    /// The message about a wrong type, given the field, the expected type and the actual one.
    pub type_message: fn(&str, &str, &str) -> String,
}

/// The usual message about a wrong type.
#[must_use]
pub fn expected_type_message(field: &str, expected: &str, got: &str) -> String {
    format!("{field}: expected {expected}, got {got}")
}

/// The usual message about an unknown field.
#[must_use]
pub fn unknown_field_message(field: &str, meant: Option<&str>) -> String {
    format!("{field}: unknown field, it will be dropped{}", did_you_mean(meant))
}

/// Checks an object, except for its `metadata`, which the apiserver checks.
#[must_use]
pub fn check(object: &Tree, schema: &Schema, codes: Codes) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_value(object, schema, Path::Root, codes, &mut findings);
    findings
}

/// Removes other findings at or below a field of the wrong type: they would only repeat that the value
/// cannot be read.
#[must_use]
pub fn drop_below_wrong_types(findings: Vec<Finding>, codes: Codes) -> Vec<Finding> {
    let wrong: Vec<Pointer> =
        findings.iter().filter(|f| f.code == codes.field_type).map(|f| f.pointer.clone()).collect();
    let below_wrong_type =
        |f: &Finding| f.code != codes.field_type && wrong.iter().any(|w| w.holds(&f.pointer));
    findings.into_iter().filter(|finding| !below_wrong_type(finding)).collect()
}

fn check_value(tree: &Tree, schema: &Schema, here: Path<'_>, codes: Codes, findings: &mut Vec<Finding>) {
    if let Some(finding) = wrong_type(tree, schema, here, codes) {
        findings.push(finding);
        return;
    }
    for name in tree.unknown_fields() {
        findings.extend(unknown_field(name, schema, here, codes));
    }
    for field in schema.fields().iter().filter(|field| field.name != "metadata") {
        if let Some(value) = tree.get(field.name) {
            check_value(value, &field.schema, Path::Key(&here, field.name), codes, findings);
        }
    }
    if let Tree::Texts(_, others) = tree {
        findings.extend(others.iter().map(|(key, got)| not_a_string(here.pointer().key(key), got, codes)));
    }
    if let Schema::List(element) = schema {
        for (index, value) in tree.elements().iter().enumerate() {
            check_value(value, element, Path::Index(&here, index), codes, findings);
        }
    }
}

/// An entry of a map of strings whose value is not a string.
fn not_a_string(pointer: Pointer, got: &str, codes: Codes) -> Finding {
    let message = (codes.type_message)(&pointer.field(), "string", got);
    Finding::deny(codes.field_type, pointer, message).fingerprint_value(got)
}

fn wrong_type(tree: &Tree, schema: &Schema, here: Path<'_>, codes: Codes) -> Option<Finding> {
    let expected = schema.type_name()?;
    let got = tree.type_name();
    if expected == got {
        return None;
    }
    let here = here.pointer();
    let message = (codes.type_message)(&field_or_object(&here), expected, got);
    let finding =
        Finding::deny(codes.field_type, here.clone(), message).fingerprint_value(format!("{tree:?}"));
    Some(match tree.text().and_then(|text| meant_instead(&here, schema, text)) {
        Some(meant) => finding.help(format!("write `{meant}`")),
        None => finding,
    })
}

/// What the user of a bare string meant where an object with a single string field belongs, or a list of
/// them, as YAML.
fn meant_instead(here: &Pointer, schema: &Schema, text: &str) -> Option<String> {
    let (object, is_list) = match schema {
        Schema::List(element) => (*element, true),
        other => (other, false),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/');
    let word = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"].contains(&&*text.to_lowercase());
    let is_plain = !word && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
    let text = if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() };
    let meant = format!("{{{}: {text}}}", only_string_field(object)?);
    let meant = if is_list { format!("[{meant}]") } else { meant };
    let field = here.field();
    let last = field.rsplit('.').next().unwrap_or_default();
    Some(if last.ends_with(']') { meant } else { format!("{last}: {meant}") })
}

/// The field of an object that has a single string field, such as `{name: …}`: users write the bare string
/// instead.
fn only_string_field(schema: &Schema) -> Option<&'static str> {
    match schema.fields() {
        [Field { name, schema: Schema::Text, .. }] => Some(name),
        _ => None,
    }
}

fn unknown_field(name: &str, schema: &Schema, here: Path<'_>, codes: Codes) -> Option<Finding> {
    let open = matches!(schema, Schema::Open(_) | Schema::Whole(_));
    let fields = || schema.fields().iter().filter(|field| field.guarded || !open);
    let alias = fields().flat_map(|field| field.aliases).find(|(wrong, _)| *wrong == name);
    let meant = alias.map(|(_, meant)| *meant).or_else(|| nearest(name, fields().map(|field| field.name)));
    if open && meant.is_none() {
        return None;
    }
    let pointer = here.pointer().key(name);
    let field = pointer.field();
    let shown = quoted(&field);
    let message = (codes.unknown_message)(shown.trim_matches('"'), meant);
    Some(Finding::warn(codes.unknown_field, pointer, message).at_key())
}

fn field_or_object(pointer: &Pointer) -> String {
    let field = pointer.field();
    if field.is_empty() { "the object".to_owned() } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_meant_in_yaml() {
        static REF: Schema = Schema::Object(&[Field::new("name", Schema::Text)]);
        static LIST: Schema = Schema::List(&REF);
        let meant = |at, schema, text| meant_instead(&Pointer::new(at), schema, text);
        assert_eq!(meant("/spec/ref", &REF, "house-1").as_deref(), Some("ref: {name: house-1}"));
        assert_eq!(meant("/spec/ref", &REF, "a: b").as_deref(), Some("ref: {name: \"a: b\"}"));
        assert_eq!(meant("/spec/ref", &REF, "no").as_deref(), Some("ref: {name: \"no\"}"));
        assert_eq!(meant("/spec/refs", &LIST, "house").as_deref(), Some("refs: [{name: house}]"));
        assert_eq!(meant("/spec/refs/0", &REF, "house").as_deref(), Some("{name: house}"));
        assert_eq!(meant("/spec/ref", &Schema::Text, "house"), None);
    }
}
