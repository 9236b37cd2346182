//! The metadata of objects. Source: k8s.io/apimachinery, `api/validation/objectmeta.go`,
//! `api/validate/content`, and `apis/meta/v1` for the types of the fields.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::crd::check::check_value;
use crate::crd::formats::is_date_time;
use crate::crd::path::Path;
use crate::crd::{NewObject, parse};
use crate::model::crd::SchemaNode;
use crate::model::finding::quoted;
use crate::model::name::is_dns_subdomain;
use crate::model::pointer::Pointer;
use crate::model::violation::{BrokenRule, Violation};

/// The types of the fields. A `null` is no value in Go, wherever it stands.
static OBJECT_META: LazyLock<SchemaNode> = LazyLock::new(|| {
    let text = json!({"type": "string", "nullable": true});
    let integer = json!({"type": "integer", "nullable": true});
    let flag = json!({"type": "boolean", "nullable": true});
    let texts = json!({"type": "object", "nullable": true, "additionalProperties": text});
    let owner = json!({"type": "object", "nullable": true, "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text,
        "controller": flag, "blockOwnerDeletion": flag,
    }});
    parse::node(&json!({"type": "object", "nullable": true, "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
        "resourceVersion": text, "generation": integer, "creationTimestamp": text,
        "deletionTimestamp": text, "deletionGracePeriodSeconds": integer,
        "labels": texts, "annotations": texts,
        "finalizers": {"type": "array", "nullable": true, "items": text},
        "ownerReferences": {"type": "array", "nullable": true, "items": owner},
    }}))
});

/// All keys and values of the annotations together. Source: `TotalAnnotationSizeLimitB`.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;
/// The longest name of a label or value of one, in bytes.
const MAX_LABEL_BYTES: usize = 63;
/// The longest name of an object, in bytes.
const MAX_NAME_BYTES: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// Everything that is wrong with the metadata of a new object, or of an update.
pub(super) fn check(object: &Value, new: Option<NewObject<'_>>) -> Vec<Violation> {
    let mut found = Vec::new();
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    check_value(metadata, &OBJECT_META, None, Path::Key(&Path::Root, "metadata"), &mut found);
    let nothing = Map::new();
    let fields = match metadata {
        Value::Object(fields) => fields,
        Value::Null => &nothing,
        _ => return found,
    };
    if let Some(new) = new {
        found.extend(names(fields, new));
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        let time = fields.get(field).and_then(Value::as_str).filter(|time| !is_date_time(time));
        found.extend(time.map(|time| invalid(at(field), time, "must be a time of RFC 3339")));
    }
    let generation = fields.get("generation").and_then(Value::as_i64).filter(|number| *number < 0);
    found.extend(generation.map(|number| {
        let detail = "must be greater than or equal to 0".to_owned();
        let rule = BrokenRule::Invalid { value: number.to_string(), detail, about_field: false };
        Violation::new(at("generation"), rule)
    }));
    found.extend(labels(fields));
    found.extend(annotations(fields));
    found.extend(owners(fields));
    for (index, name) in list(fields, "finalizers").iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        let wrong = wrong_qualified_name(name);
        found.extend(wrong.map(|why| invalid(at("finalizers").index(index), name, why)));
    }
    found
}

fn at(field: &str) -> Pointer {
    Pointer::new("/metadata").key(field)
}

fn list<'f>(fields: &'f Map<String, Value>, field: &str) -> &'f [Value] {
    fields.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn invalid(pointer: Pointer, value: &str, detail: impl Into<String>) -> Violation {
    let rule = BrokenRule::Invalid { value: quoted(value), detail: detail.into(), about_field: false };
    Violation::new(pointer, rule)
}

fn names(fields: &Map<String, Value>, new: NewObject<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let text = |field| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    let (name, base) = (text("name"), text("generateName"));
    let wrong_name = if new.name_is_label { wrong_label } else { wrong_subdomain };
    let why = if base.is_empty() { None } else { wrong_base(base, wrong_name) };
    found.extend(why.map(|why| invalid(at("generateName"), base, why)));
    let is_text = |field| fields.get(field).is_none_or(|value| value.is_string() || value.is_null());
    if name.is_empty() && base.is_empty() && new.name.is_empty() {
        if is_text("name") && is_text("generateName") {
            let rule = BrokenRule::Required("name or generateName is required");
            found.push(Violation::new(at("name"), rule));
        }
    } else if let Some(why) = wrong_name(name).filter(|_| !name.is_empty()) {
        found.push(invalid(at("name"), name, why));
    }
    let namespace = text("namespace");
    if new.namespaced
        && !namespace.is_empty()
        && let Some(why) = wrong_label(namespace)
    {
        found.push(invalid(at("namespace"), namespace, why));
    }
    found
}

/// What is wrong with the beginning of a name that the apiserver makes: with a letter in the place of a hyphen
/// at its end, or with the five characters that it adds.
fn wrong_base(base: &str, wrong_name: fn(&str) -> Option<String>) -> Option<String> {
    /// What remains of a long beginning. Source: k8s.io/apiserver, `storage/names/generate.go`.
    const MAX_CHARS: usize = 58;
    let stem = match base.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let kept = rest.char_indices().next_back().map_or(0, |(last, _)| last);
            format!("{}a", rest.get(..kept).unwrap_or_default())
        }
        None => base.to_owned(),
    };
    let made: String = base.chars().take(MAX_CHARS).chain("xxxxx".chars()).collect();
    wrong_name(&stem).or_else(|| wrong_name(&made))
}

fn wrong_subdomain(name: &str) -> Option<String> {
    if name.len() > MAX_NAME_BYTES {
        return Some(too_long("", MAX_NAME_BYTES));
    }
    (!is_dns_subdomain(name)).then(|| SUBDOMAIN.to_owned())
}

fn wrong_label(name: &str) -> Option<String> {
    if name.len() > MAX_LABEL_BYTES {
        return Some(too_long("", MAX_LABEL_BYTES));
    }
    if !is_dns_subdomain(name) {
        return Some(LABEL.to_owned());
    }
    name.contains('.').then(|| "must not contain dots".to_owned())
}

fn too_long(part: &str, max: usize) -> String {
    format!("{part}must be no more than {max} bytes")
}

fn labels(fields: &Map<String, Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (key, value) in fields.get("labels").and_then(Value::as_object).into_iter().flatten() {
        if let Some(why) = wrong_qualified_name(key) {
            found.push(Violation { at_key: true, ..invalid(at("labels").key(key), key, why) });
            continue;
        }
        let Some(value) = value.as_str() else { continue };
        let why = if value.len() > MAX_LABEL_BYTES {
            Some(too_long("", MAX_LABEL_BYTES))
        } else {
            (!value.is_empty() && !is_name_part(value)).then(|| LABEL_VALUE.to_owned())
        };
        found.extend(why.map(|why| invalid(at("labels").key(key), value, why)));
    }
    found
}

fn annotations(fields: &Map<String, Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut size = 0;
    for (key, value) in fields.get("annotations").and_then(Value::as_object).into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Some(why) = wrong_qualified_name(&key.to_lowercase()) {
            found.push(Violation { at_key: true, ..invalid(at("annotations").key(key), key, why) });
        }
    }
    if size > MAX_ANNOTATION_BYTES {
        let rule = BrokenRule::TooLong { max: MAX_ANNOTATION_BYTES as u64 };
        found.push(Violation::new(at("annotations"), rule));
    }
    found
}

fn owners(fields: &Map<String, Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut controllers = BTreeSet::new();
    for (index, owner) in list(fields, "ownerReferences").iter().enumerate() {
        let here = at("ownerReferences").index(index);
        let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if version(api_version).is_empty() {
            found.push(invalid(here.key("apiVersion"), api_version, "version must not be empty"));
        }
        for field in ["kind", "name", "uid"] {
            let value = owner.get(field).unwrap_or(&Value::Null);
            if value.is_null() || value.as_str() == Some("") {
                found.push(invalid(here.key(field), "", "must not be empty"));
            }
        }
        if (api_version, kind) == ("v1", "Event") {
            found.push(invalid(here.key("kind"), kind, "is disallowed from being an owner"));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            // Of two that are the same, the apiserver drops one.
            let blocks = owner.get("blockOwnerDeletion").and_then(Value::as_bool);
            controllers.insert((api_version, kind, text("name"), text("uid"), blocks));
        }
    }
    if controllers.len() > 1 {
        let detail = "Only one reference can have Controller set to true".to_owned();
        let rule = BrokenRule::Invalid { value: String::new(), detail, about_field: false };
        found.push(Violation::new(at("ownerReferences"), rule));
    }
    found
}

/// The version in an `apiVersion`; empty where there is none.
fn version(api_version: &str) -> &str {
    match api_version.split_once('/') {
        None => api_version,
        Some((_, version)) if version.contains('/') => "",
        Some((_, version)) => version,
    }
}

/// What is wrong with the key of a label or annotation: a name, with or without a domain in front.
fn wrong_qualified_name(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            return Some(format!(
                "a valid label key {NAME_PART} with an optional DNS subdomain prefix and '/'"
            ));
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix == Some("") {
        return Some("prefix part must be non-empty".to_owned());
    }
    if let Some(why) = prefix.and_then(wrong_subdomain) {
        return Some(format!("prefix part {why}"));
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > MAX_LABEL_BYTES {
        return Some(too_long("name part ", MAX_LABEL_BYTES));
    }
    (!is_name_part(name)).then(|| format!("name part {NAME_PART}"))
}

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_name_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let (first, last) = (text.bytes().next(), text.bytes().last());
    let ends = [first, last].into_iter().all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()));
    ends && text.bytes().all(inner)
}
