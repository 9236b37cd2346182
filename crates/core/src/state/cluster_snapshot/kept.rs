//! Of an object what a snapshot holds: the fields that decisions read, of others and about it.

use memgate_model::kind::Kind;
use memgate_model::schema::Schema;
use memgate_model::tree::Tree;
use memgate_policy::written::LAST_APPLIED;
use serde_json::{Value, json};

/// Of an object what decisions read.
pub fn kept(kind: &Kind, object: &Value) -> Value {
    let mut read = pruned(object, &kind.schema);
    if let Some(subject) = subject(kind) {
        merge(&mut read, pruned(object, &subject.schema));
        let labels = object.pointer("/metadata/labels").filter(|labels| labels.is_object());
        if let (Some(labels), Some(Value::Object(metadata))) = (labels, read.get_mut("metadata")) {
            metadata.insert("labels".to_owned(), pruned(labels, &Schema::Texts));
        }
        if let Some(annotations) = annotations(object) {
            merge(&mut read, json!({"metadata": {"annotations": annotations}}));
        }
    }
    if let Value::Object(fields) = &mut read {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.into());
    }
    if let Some(owner) = controller(object)
        && let Some(Value::Object(metadata)) = read.get_mut("metadata")
    {
        metadata.insert("ownerReferences".to_owned(), owner);
    }
    read
}

/// The kind as it is read when its objects are judged themselves; `None` where only others are judged by them. What
/// runs once and ends is judged when it is made.
fn subject(kind: &Kind) -> Option<&'static Kind> {
    let (family, subject) = memgate_platforms::validated(&memgate_platforms::ALL, kind.group, kind.kind)?;
    let is_judged = family.views.kinds.iter().any(|(viewed, _)| *viewed == kind)
        && !family.views.transient.contains(&kind);
    is_judged.then_some(subject)
}

/// The annotations that policies may ask for. Of a long one, in which a tool may keep an object, only its key.
fn annotations(object: &Value) -> Option<Value> {
    const MAX_BYTES: usize = 253;
    let all = object.pointer("/metadata/annotations")?.as_object()?.iter();
    let texts = all.filter(|(key, _)| *key != LAST_APPLIED);
    let texts = texts.filter_map(|(key, value)| Some((key, value.as_str()?)));
    let short = |text: &str| if text.len() > MAX_BYTES { "…".into() } else { text.into() };
    Some(Value::Object(texts.map(|(key, text)| (key.clone(), short(text))).collect()))
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

/// The parts of a value that the schema reads. For a Secret's data these are the keys, each with an empty string.
fn pruned(value: &Value, schema: &Schema) -> Value {
    Tree::read(value, schema).map(|tree| tree.to_json()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::kind::{MEMORY_POLICY, NAMESPACE, SECRET};

    #[test]
    fn keeps_labels_and_the_owner_that_controls() {
        let labels = json!({"secret-access": "restricted", "token": "a"});
        let owner = json!({"kind": "Cluster", "name": "c", "uid": "u", "controller": true});
        let other = json!({"kind": "Other", "name": "o", "uid": "u"});
        let metadata = json!({"name": "a", "uid": "u", "labels": labels, "ownerReferences": [other, owner]});
        let namespace = kept(&NAMESPACE, &json!({"metadata": metadata, "status": {"phase": "Active"}}));
        assert_eq!(namespace["metadata"]["labels"], labels);
        let owner = json!([{"kind": "Cluster", "name": "c", "controller": true}]);
        assert_eq!(namespace["metadata"]["ownerReferences"], owner);
        assert!(namespace["status"].is_null());
    }

    #[test]
    fn keeps_what_is_read() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "a", "uid": "u"}, "type": "Opaque",
            "data": {"KEY": "c2VjcmV0"}, "stringData": ["x"]});
        let kept = json!({"metadata": {"name": "a"}, "data": {"KEY": ""}, "stringData": []});
        assert_eq!(pruned(&secret, &SECRET.schema), kept);
        let policy = json!({"metadata": {"name": "a"}, "spec": {"any": [{"thing": 1}]}, "other": {}});
        assert_eq!(pruned(&policy, &MEMORY_POLICY.schema)["spec"], policy["spec"]);
        assert_eq!(pruned(&policy, &MEMORY_POLICY.schema).get("other"), None);
    }
}
