//! Checks an object against its kind's [`Schema`]: wrong JSON types.
//!
//! In a cluster the apiserver refuses wrong types before it calls a webhook. These checks replace it for files.

use crate::prelude::*;
use memgate_model::finding::{Code, Details, excerpt};
use memgate_model::schema::{Field, Schema};
use memgate_primitives::fix::Fix;
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Path;
use memgate_schema::violation::type_message;
use serde_json::Number;

use super::message::{fit_names, fits};

/// The message about an unknown field, given how the message ends, and what it says besides if there is room.
pub fn unknown_field_message(field: &Pointer, ending: &str, besides: &str) -> String {
    let shown = quoted(&field.field());
    let shown = shown.trim_matches('"');
    let message = |more: &str| format!("{shown}: unknown field, it will be dropped{ending}{more}");
    if let Some(message) = [besides, ""].into_iter().map(message).find(|message| fits(message)) {
        return message;
    }
    fit_names([shown], |[field]| format!("{field}: unknown field{ending}"))
}

/// Checks an object, except for its `metadata`, which the apiserver checks.
pub(crate) fn check(
    object: &Tree,
    schema: &'static Schema,
    code: &'static Code,
    work: &Budget<'_>,
) -> Vec<Finding> {
    let mut check = Check { code, work, findings: Vec::new() };
    check.value(object, schema, Path::Root);
    check.findings
}

/// Removes other findings at or below a field of the wrong type. They would only repeat that memgate cannot
/// read the value.
pub(crate) fn drop_below_wrong_types(mut findings: Vec<Finding>, code: &'static Code) -> Vec<Finding> {
    let is_wrong_type = |finding: &Finding| finding.code == code;
    let (wrong, others): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(|it| is_wrong_type(it));
    if wrong.is_empty() || others.is_empty() {
        return findings;
    }
    // Even with very many wrong types, few places have another finding below them.
    let places: Members<&str> =
        others.iter().flat_map(|finding| from_root(finding.pointer.as_str())).collect();
    let wrong: Members<&str> =
        wrong.iter().map(|finding| finding.pointer.as_str()).filter(|place| places.contains(place)).collect();
    let stays = |finding: &Finding| {
        is_wrong_type(finding) || !from_root(finding.pointer.as_str()).any(|place| wrong.contains(place))
    };
    let mut kept: Vec<bool> = findings.iter().rev().map(stays).collect();
    findings.retain(|_| kept.pop().unwrap_or(true));
    findings
}

/// The pointers of all parents of a place and of the place itself, from the root down.
fn from_root(place: &str) -> impl Iterator<Item = &str> {
    place.match_indices('/').filter_map(|(end, _)| place.get(..end)).chain([place])
}

/// A check in progress.
struct Check<'c> {
    /// The code of a wrong JSON type; denies.
    code: &'static Code,
    work: &'c Budget<'c>,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn value(&mut self, tree: &Tree, schema: &'static Schema, here: Path<'_>) {
        if let Some(expected) = schema.type_name().filter(|expected| *expected != tree.type_name()) {
            return self.wrong_type(tree, schema, here, expected);
        }
        for field in schema.fields().iter().filter(|field| field.name != "metadata") {
            if let Some(value) = tree.get(field.name) {
                self.value(value, &field.schema, Path::Key(&here, field.name));
            }
        }
        for (key, got) in tree.non_texts() {
            self.not_a_string(here.pointer().key(key), got);
        }
        if let Schema::List(element) = schema {
            let before = self.findings.len();
            let mut known: Option<Pointer> = None;
            for (index, value) in tree.elements().iter().enumerate() {
                // After the first wrong element, the pointer of the list is kept: many more elements may be
                // wrong.
                if known.is_none() && self.findings.len() > before {
                    known = Some(here.pointer());
                }
                let list = known.as_ref().map_or(here, |known| Path::Known(known.as_str()));
                self.value(value, element, Path::Index(&list, index));
            }
        }
    }

    /// Reports an entry of a map of strings whose value is not a string.
    fn not_a_string(&mut self, pointer: Pointer, got: &'static str) {
        let message = move |at: &Pointer| type_message(at, "string", got, "");
        let finding = Finding::deny_within(self.work, self.code, pointer, message);
        self.findings.push(finding.fingerprint_value(got));
    }

    fn wrong_type(&mut self, tree: &Tree, schema: &'static Schema, here: Path<'_>, expected: &'static str) {
        let (text, got) = (tree.text().map(excerpt), tree.type_name());
        let shown = match tree {
            Tree::Boolean(value) => value.to_string(),
            Tree::Integer(number) => number.to_string(),
            Tree::Fraction(number) => digits(number),
            _ => text.as_deref().map(quoted).unwrap_or_default(),
        };
        let details = move |at: &Pointer| {
            let meant = text.as_deref().and_then(|text| meant_instead(at, schema, text));
            let fix = text.as_deref().and_then(|_| unquote(expected));
            Details::from(type_message(at, expected, got, &shown))
                .help(meant.map(|meant| format!("write `{meant}`")))
                .fix(fix)
        };
        let finding = Finding::deny_within(self.work, self.code, here.pointer(), details);
        self.findings.push(finding.fingerprint_value(tree.content_hash().to_string()));
    }
}

/// A number that is no 64-bit integer, as a file has it: with all of its digits.
pub fn digits(number: &Number) -> String {
    let float = || number.as_f64().unwrap_or_default().to_string();
    number.as_u64().map_or_else(float, |whole| whole.to_string())
}

/// The fix for a string in place of a value of this type, if only its quotes can be wrong.
pub fn unquote(expected: &str) -> Option<Fix> {
    ["integer", "number", "boolean"].into_iter().find(|known| *known == expected).map(Fix::Unquote)
}

/// The YAML that the user probably meant by a bare string in place of an object with a single string field,
/// or of a list of such objects.
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

/// The field of an object whose only field is a string, such as `{name: …}`. Users write the bare string
/// instead.
fn only_string_field(schema: &Schema) -> Option<&'static str> {
    match schema.fields() {
        [Field { name, schema: Schema::Text }] => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_meant_in_yaml() {
        static REF: Schema = Schema::Open(&[Field::new("name", Schema::Text)]);
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
