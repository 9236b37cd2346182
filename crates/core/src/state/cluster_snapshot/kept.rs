//! Of an object what a snapshot holds: the fields that decisions read, of others and about it, and no credential.
//!
//! A credential is masked so that decisions about it stay the same: a URL keeps the colon before a password, and a
//! `$(NAME)` is no literal.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::family;
use crate::manifest::mask::shown_value;
use crate::model::credential::{masked_value, value_spans};
use crate::model::kind::{Kind, POLICY_KINDS};
use crate::model::prune::pruned;
use crate::model::schema::Schema;

/// Of an object what decisions read, credentials masked.
#[must_use]
pub fn kept(kind: &Kind, object: &Value) -> Value {
    let mut read = pruned(object, &kind.schema);
    if let Some(subject) = subject(kind) {
        merge(&mut read, pruned(object, &subject.schema));
        let labels = object.pointer("/metadata/labels").filter(|labels| labels.is_object());
        if let (Some(labels), Some(Value::Object(metadata))) = (labels, read.get_mut("metadata")) {
            metadata.insert("labels".to_owned(), pruned(labels, &Schema::Texts));
        }
    }
    if let Value::Object(fields) = &mut read {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.into());
    }
    // Fields of a policy are named after what it is about, such as `secrets`.
    let mut kept = if POLICY_KINDS.contains(&kind) { read.clone() } else { shown_value(&read) };
    mask_texts(&read, &mut kept);
    if let Some(owner) = controller(object)
        && let Some(Value::Object(metadata)) = kept.get_mut("metadata")
    {
        metadata.insert("ownerReferences".to_owned(), owner);
    }
    kept
}

/// The kind as it is read when its objects are judged themselves; `None` where only others are judged by them. What
/// runs once and ends is judged when it is made.
fn subject(kind: &Kind) -> Option<&'static Kind> {
    let (family, subject) = family::validated(&family::ALL, kind.group, kind.kind)?;
    let is_judged =
        family.viewed.iter().any(|(viewed, _)| *viewed == kind) && !family.transient.contains(&kind);
    is_judged.then_some(subject)
}

/// Adds what another reading of the same object has. The recursion goes no deeper than the schemas.
fn merge(one: &mut Value, other: Value) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in other {
                match one.get_mut(&name) {
                    Some(known) => merge(known, value),
                    None => {
                        one.insert(name, value);
                    }
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter_mut().zip(other).for_each(|(one, other)| merge(one, other));
        }
        (one, other @ (Value::Array(_) | Value::Object(_))) => *one = other,
        _ => {}
    }
}

/// The owner that controls an object: `what-if` groups by it.
fn controller(object: &Value) -> Option<Value> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    Some(json!([{"kind": text("kind"), "name": text("name"), "controller": true}]))
}

/// Masks what texts show by themselves, and gives masked ones their form back. Both are the same object but for
/// that; neither is deeper than the limit of what was parsed.
fn mask_texts(read: &Value, kept: &mut Value) {
    match (read, kept) {
        (Value::Object(read), Value::Object(kept)) => {
            for (name, value) in kept {
                if let Some(read) = read.get(name) {
                    mask_texts(read, value);
                }
            }
        }
        (Value::Array(read), Value::Array(kept)) => {
            read.iter().zip(kept).for_each(|(read, value)| mask_texts(read, value));
        }
        (Value::String(read), Value::String(kept)) => {
            let masked = if kept == read { masked_value(read).into_owned() } else { kept.clone() };
            *kept = with_form(read, &masked);
        }
        _ => {}
    }
}

/// A masked text with the colon between a user and a password; a text that is one `$(NAME)` as it is.
fn with_form(read: &str, masked: &str) -> String {
    let name = read.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    if read == masked || name.is_some_and(|name| !name.contains(['$', '(', ')'])) {
        return read.to_owned();
    }
    let is_userinfo = |end: usize| read.get(end..).is_some_and(|rest| rest.starts_with('@'));
    let spans = value_spans(read).into_iter().filter(|span| is_userinfo(span.end));
    let colons: BTreeSet<usize> =
        spans.filter_map(|span| Some(span.start + read.get(span.clone())?.find(':')?)).collect();
    let shown = |(at, mask)| if colons.contains(&at) { ':' } else { mask };
    masked.char_indices().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kind::{MEMORY_POLICY, NAMESPACE};
    use crate::model::schema::Field;

    /// Any kind of which the spec is read whole.
    static KIND: Kind = Kind { schema: Schema::Open(&[Field::new("spec", Schema::Whole(&[]))]), ..NAMESPACE };

    #[test]
    fn masks_credentials_and_keeps_what_decides() {
        let spec = json!({
            "endpoint": "postgres://user:pa:ss@pg/notes?sslmode=require", "dsn": "user:secret@tcp(db)/x",
            "open": "redis://cache:6379", "password": "x", "token": "$(TOKEN)", "url": "https://token@host",
            "env": [{"name": "API_KEY", "value": "abc"}, {"name": "LOG", "value": "debug"}],
        });
        let expected = json!({
            "endpoint": "postgres://****:*****@pg/notes?sslmode=require", "dsn": "****:******@tcp(db)/x",
            "open": "redis://cache:6379", "password": "*", "token": "$(TOKEN)", "url": "https://*****@host",
            "env": [{"name": "API_KEY", "value": "***"}, {"name": "LOG", "value": "debug"}],
        });
        assert_eq!(kept(&KIND, &json!({"spec": spec}))["spec"], expected);
    }

    #[test]
    fn leaves_the_fields_of_policies_as_they_are() {
        let rules = json!([{"id": "a", "secrets": {"names": ["agent-*"]}, "host": "https://u:p@h"}]);
        let policy = kept(&MEMORY_POLICY, &json!({"metadata": {"name": "org"}, "spec": {"rules": rules}}));
        let expected = json!([{"id": "a", "secrets": {"names": ["agent-*"]}, "host": "https://*:*@h"}]);
        assert_eq!(policy["spec"]["rules"], expected);
        assert_eq!(policy["kind"], "MemoryPolicy");
    }
}
