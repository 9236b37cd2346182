//! The metadata of objects. Source: k8s.io/apimachinery, `api/validation/objectmeta.go`,
//! `api/validate/content`, and `apis/meta/v1` for the types of the fields.

use std::sync::LazyLock;

use serde_json::json;

use crate::check::check as check_schema;
use crate::crd::SchemaNode;
use crate::metadata_fault::{wrong_base, wrong_key, wrong_label, wrong_label_value, wrong_subdomain};
use crate::node::Node;
use crate::place::Place;
use crate::violation::{Rule, Violations};
use crate::{NewObject, parse};

/// The types of the fields. In Go a `null` counts as absent. Other fields are kept as they are
/// written.
pub(super) static OBJECT_META: LazyLock<SchemaNode> = LazyLock::new(|| {
    let text = json!({"type": "string", "nullable": true});
    let integer = json!({"type": "integer", "nullable": true});
    let flag = json!({"type": "boolean", "nullable": true});
    let texts = json!({"type": "object", "nullable": true, "additionalProperties": text});
    let owner = json!({"type": "object", "nullable": true, "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text,
        "controller": flag, "blockOwnerDeletion": flag,
    }});
    parse::node(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
        "resourceVersion": text, "generation": integer, "creationTimestamp": text,
        "deletionTimestamp": text, "deletionGracePeriodSeconds": integer,
        "labels": texts, "annotations": texts,
        "finalizers": {"type": "array", "nullable": true, "items": text},
        "ownerReferences": {"type": "array", "nullable": true, "items": owner},
        "managedFields": {"type": "array", "nullable": true,
            "items": {"type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true}},
    }}))
});

/// All keys and values of the annotations together. Source: `TotalAnnotationSizeLimitB`.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

/// Notes everything that is wrong with the metadata of a new object, or of an update: types, names, labels and
/// annotations. Owners, finalizers and times, which manifests seldom have, are left to the apiserver.
pub(super) fn check<'d>(root: &'d Node<'d>, new: Option<NewObject<'_>>, found: &mut Violations<'d>) {
    let object = Place::root(root, None);
    let metadata = root.get("metadata");
    // Where an object has none, what is missing is missing from the object.
    let here = object.key("metadata", metadata.unwrap_or(root), None);
    if let Some(metadata) = metadata {
        check_schema(&here, &OBJECT_META, found);
        if metadata.type_name() != "object" {
            return;
        }
    }
    let field = |name| Some(here.key(name, metadata?.get(name)?, None));
    if let Some(new) = new {
        check_names(&here, &field, new, found);
    }
    if let Some(labels) = field("labels") {
        check_labels(&labels, found);
    }
    if let Some(annotations) = field("annotations") {
        check_annotations(&annotations, found);
    }
}

fn check_names<'p, 'd: 'p>(
    here: &Place<'_, 'd>,
    field: &impl Fn(&'static str) -> Option<Place<'p, 'd>>,
    new: NewObject<'_>,
    found: &mut Violations<'d>,
) {
    let text = |name| {
        let place = field(name)?;
        let text = place.value.text().filter(|text| !text.is_empty())?;
        Some((place, text))
    };
    let may_be_text =
        |name| field(name).is_none_or(|place| place.value.is_null() || place.value.text().is_some());
    let wrong_name = if new.name_is_label { wrong_label } else { wrong_subdomain };
    let (name, base) = (text("name"), text("generateName"));
    let is_missing = name.is_none() && base.is_none() && new.name.is_empty();
    let namespace = text("namespace").filter(|_| new.namespaced);
    let base = base.map(|(place, text)| (place, wrong_base(text, wrong_name)));
    let name = name.map(|(place, text)| (place, wrong_name(text)));
    let namespace = namespace.map(|(place, text)| (place, wrong_label(text)));
    for (place, fault) in [base, name, namespace].into_iter().flatten() {
        if let Some(fault) = fault {
            found.push(&place, Rule::Metadata(fault));
        }
    }
    if is_missing && may_be_text("name") && may_be_text("generateName") {
        found.push(here, Rule::Required("name", "name or generateName is required"));
    }
}

fn check_labels<'d>(labels: &Place<'_, 'd>, found: &mut Violations<'d>) {
    for (key, value) in labels.value.fields() {
        if found.is_over() {
            return;
        }
        let place = labels.key(key, value, None);
        if let Some(fault) = wrong_key(key) {
            found.push(&place, Rule::MetadataKey(fault));
        } else if let Some(fault) = value.text().and_then(wrong_label_value) {
            found.push(&place, Rule::Metadata(fault));
        }
    }
}

fn check_annotations<'d>(annotations: &Place<'_, 'd>, found: &mut Violations<'d>) {
    let mut size = 0;
    for (key, value) in annotations.value.fields() {
        if found.is_over() {
            return;
        }
        size += key.len() + value.text().map_or(0, str::len);
        if let Some(fault) = wrong_key(&key.to_lowercase()) {
            found.push(&annotations.key(key, value, None), Rule::MetadataKey(fault));
        }
    }
    if size > MAX_ANNOTATION_BYTES {
        found.push(annotations, Rule::TooLong(MAX_ANNOTATION_BYTES as u64));
    }
}
