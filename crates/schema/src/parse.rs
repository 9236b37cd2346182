//! A CustomResourceDefinition as a manifest has it to a [`Crd`].

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::cel;
use crate::crd::{
    Bound, Crd, CrdVersion, Format, FormatRule, JsonTypes, ListRules, ListType, NumberRules, ObjectRules,
    Pattern, Rare, SchemaNode, TextRules,
};
use crate::formats;
use memgate_primitives::duration::digits;

/// Reads a CustomResourceDefinition of `apiextensions.k8s.io/v1`.
///
/// # Errors
/// A message, when it has no group, no kind or no version with a schema.
pub fn crd(value: &Value) -> Result<Crd, String> {
    let name = text(value, "/metadata/name").unwrap_or("without a name");
    let needed = |pointer: &str, field: &str| {
        let found = text(value, pointer).filter(|text| !text.is_empty());
        found.map(str::to_owned).ok_or_else(|| format!("CustomResourceDefinition {name}: {field} is missing"))
    };
    let (group, kind) =
        (needed("/spec/group", "spec.group")?, needed("/spec/names/kind", "spec.names.kind")?);
    let versions = value.pointer("/spec/versions").and_then(Value::as_array);
    let mut versions: Vec<_> = versions.into_iter().flatten().filter_map(version).collect();
    if !versions.iter().any(|version| version.served) {
        return Err(format!("CustomResourceDefinition {name}: no version is served and has a schema"));
    }
    versions.sort_by_cached_key(|version| Reverse(priority(&version.name)));
    Ok(Crd { group, kind, versions })
}

/// One version; `None` without a name or a schema.
fn version(value: &Value) -> Option<CrdVersion> {
    let schema = value.pointer("/schema/openAPIV3Schema").filter(|schema| schema.is_object())?;
    let mut schema = node(schema);
    // The root of an object has these whether the definition names them or not.
    for field in ["apiVersion", "kind"] {
        schema.object.made().properties.entry(field.to_owned()).or_default().types = JsonTypes::Text;
    }
    let metadata = schema.object.made().properties.entry("metadata".to_owned()).or_default();
    metadata.object.made().preserves_unknown = true;
    cel::bound(&schema);
    Some(CrdVersion {
        name: text(value, "/name")?.to_owned(),
        served: value.get("served").and_then(Value::as_bool).unwrap_or_default(),
        has_status: value.pointer("/subresources/status").is_some_and(Value::is_object),
        schema,
    })
}

/// What sorts versions by age: stable ones are newer than beta ones, these than alpha ones, and those than
/// names of any other form. Source: Kubernetes documentation, "Version priority".
fn priority(name: &str) -> (u8, u64, u64, Reverse<String>) {
    let other = (0, 0, 0, Reverse(name.to_owned()));
    let Some(rest) = name.strip_prefix('v') else { return other };
    let (major, rest) = digits(rest);
    let Ok(major) = major.parse() else { return other };
    for (stage, word) in [(3, ""), (2, "beta"), (1, "alpha")] {
        let minor = rest.strip_prefix(word).filter(|minor| word.is_empty() == minor.is_empty());
        let number = |minor: &str| if minor.is_empty() { Some(0) } else { minor.parse::<u64>().ok() };
        if let Some(minor) = minor.and_then(number) {
            return (stage, major, minor, Reverse(String::new()));
        }
    }
    other
}

/// The keys of rules on lists.
const LIST_KEYS: [&str; 5] = ["items", "minItems", "maxItems", "uniqueItems", "x-kubernetes-list-type"];

/// The keys of rules on objects.
const OBJECT_KEYS: [&str; 7] = [
    "properties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
];

/// One schema. The recursion is bounded by the depth of the manifest.
pub(super) fn node(value: &Value) -> SchemaNode {
    let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
    let nodes = |key: &str| list(value, key).iter().map(node).collect();
    let types = if flag("x-kubernetes-int-or-string") { JsonTypes::IntOrString } else { types(value) };
    let mut read = SchemaNode {
        types,
        nullable: flag("nullable"),
        default: value
            .get("default")
            .filter(|default| !default.is_null())
            .map(|value| value.to_string().into()),
        format: text(value, "/format").and_then(|name| format(types, name)),
        allowed: list(value, "enum").to_vec(),
        text: Rare::of(value, &["minLength", "maxLength", "pattern"], || TextRules {
            min: whole(value, "minLength"),
            max: whole(value, "maxLength"),
            pattern: text(value, "/pattern").filter(|text| !text.is_empty()).map(Pattern::new),
        }),
        number: Rare::of(value, &["minimum", "maximum", "multipleOf"], || NumberRules {
            min: bound(value, "minimum", "exclusiveMinimum"),
            max: bound(value, "maximum", "exclusiveMaximum"),
            multiple_of: value.get("multipleOf").and_then(Value::as_f64).filter(|factor| *factor > 0.0),
        }),
        list: Rare::of(value, &LIST_KEYS, || ListRules {
            items: value.get("items").filter(|items| items.is_object()).map(|items| Box::new(node(items))),
            min: whole(value, "minItems"),
            max: whole(value, "maxItems"),
            unique: flag("uniqueItems"),
            list_type: list_type(value),
        }),
        object: Rare::of(value, &OBJECT_KEYS, || object_rules(value)),
        any_of: nodes("anyOf"),
        one_of: nodes("oneOf"),
        all_of: nodes("allOf"),
        not: value.get("not").filter(|not| not.is_object()).map(|not| Box::new(node(not))),
        is_opaque: false,
        tells_apart: false,
        rules: cel::rules(value),
        has_rules: false,
    };
    read.is_opaque = is_opaque(&read, value);
    read.tells_apart = tells_apart(&read);
    read.has_rules = !read.rules.is_empty() || read.below().any(|below| below.has_rules);
    read
}

/// Whether any value of the right type will do, whatever is in it.
fn is_opaque(node: &SchemaNode, value: &Value) -> bool {
    /// The keywords that do not describe the content of a value.
    const OUTSIDE: [&str; 7] = [
        "type",
        "nullable",
        "default",
        "title",
        "description",
        "example",
        "x-kubernetes-preserve-unknown-fields",
    ];
    let types = matches!(node.types, JsonTypes::Any | JsonTypes::Object | JsonTypes::List);
    let words = value.as_object().into_iter().flatten();
    let only_outside = words.into_iter().all(|(word, _)| OUTSIDE.contains(&word.as_str()));
    node.object.preserves_unknown && types && only_outside
}

/// Whether the elements of a list must differ, here or below.
fn tells_apart(node: &SchemaNode) -> bool {
    node.list.list_type != ListType::Atomic || node.below().any(|below| below.tells_apart)
}

fn object_rules(value: &Value) -> ObjectRules {
    let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
    let properties = value.get("properties").and_then(Value::as_object);
    let additional = match value.get("additionalProperties") {
        Some(schema @ Value::Object(_)) => Some(Box::new(node(schema))),
        Some(Value::Bool(true)) => Some(Box::default()),
        _ => None,
    };
    let properties: BTreeMap<_, _> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.clone(), Box::new(node(schema))))
        .collect();
    let defaulted = properties.iter().filter(|(_, schema)| schema.default.is_some());
    ObjectRules {
        defaulted: defaulted.map(|(name, _)| name.clone()).collect(),
        properties,
        additional,
        required: texts(value, "required"),
        min: whole(value, "minProperties"),
        max: whole(value, "maxProperties"),
        preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
    }
}

fn types(value: &Value) -> JsonTypes {
    let found = text(value, "/type").and_then(JsonTypes::from_name);
    found.filter(|types| *types != JsonTypes::IntOrString).unwrap_or_default()
}

fn list_type(value: &Value) -> ListType {
    match text(value, "/x-kubernetes-list-type") {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(value, "x-kubernetes-list-map-keys")),
        Some(_) | None => ListType::Atomic,
    }
}

/// A format of which the apiserver takes note on values of this type.
fn format(types: JsonTypes, name: &str) -> Option<Format> {
    match types {
        JsonTypes::Text | JsonTypes::Any => formats::find(name),
        JsonTypes::Integer => match name {
            "int32" => Some(Format { name: "int32", rule: FormatRule::Int32 }),
            "int64" => Some(Format { name: "int64", rule: FormatRule::Wide }),
            _ => None,
        },
        JsonTypes::Number => match name {
            "float" => Some(Format { name: "float", rule: FormatRule::Float }),
            "double" => Some(Format { name: "double", rule: FormatRule::Wide }),
            _ => None,
        },
        JsonTypes::Boolean | JsonTypes::List | JsonTypes::Object | JsonTypes::IntOrString => None,
    }
}

fn bound(value: &Value, key: &str, exclusive: &str) -> Option<Bound> {
    let exclusive = value.get(exclusive).and_then(Value::as_bool).unwrap_or_default();
    Some(Bound { value: value.get(key)?.as_f64()?, exclusive })
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    list(value, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn whole(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_versions_as_kubernetes_does() {
        let mut names = ["v1alpha1", "foo", "v2", "v1beta2", "v10", "v1", "v1beta10", "v2alpha1", "bar"];
        names.sort_by_cached_key(|name| Reverse(priority(name)));
        assert_eq!(names, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "bar", "foo"]);
    }
}
