//! The metadata of objects. Source: k8s.io/apimachinery, `api/validation/objectmeta.go`,
//! `api/validate/content`, and `apis/meta/v1` for the types of the fields.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::json;

use crate::NewObject;
use crate::breach::Breaches;
use crate::check::check as check_schema;
use crate::crd::SchemaNode;
use crate::cursor::{Content, Cursor};
use crate::formats::is_date_time;
use crate::metadata_fault::{Fault, wrong_base, wrong_key, wrong_label, wrong_label_value, wrong_subdomain};
use crate::parse;
use crate::place::{Place, Step};
use crate::rule::Rule;

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
    }}))
});

/// All keys and values of the annotations together. Source: `TotalAnnotationSizeLimitB`.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

/// Notes everything that is wrong with the metadata of a new object, or of an update.
pub(super) fn check<'d>(root: Cursor<'d>, new: Option<NewObject<'_>>, found: &mut Breaches<'d>) {
    let root = Place::root(root, None);
    // Where an object has none, what is missing is missing from the object.
    let value = root.value.get("metadata").unwrap_or(root.value);
    let here = root.below(Step::Key("metadata"), value, None);
    if value.at() != root.value.at() {
        check_schema(&here, &OBJECT_META, found);
        if !value.is_map() {
            return;
        }
    }
    let metadata = Metadata { here: &here, is_there: value.at() != root.value.at() };
    if let Some(new) = new {
        metadata.check_names(new, found);
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if let Some((place, _)) = metadata.text(field).filter(|(_, time)| !is_date_time(time)) {
            found.push(&place, Rule::Metadata(Fault::Time));
        }
    }
    if let Some(place) = metadata.get("generation").filter(|place| is_negative(place.value)) {
        found.push(&place, Rule::Metadata(Fault::Negative));
    }
    metadata.check_labels(found);
    metadata.check_annotations(found);
    metadata.check_owners(found);
    if let Some(list) = metadata.get("finalizers") {
        for (index, element) in list.value.elements().enumerate() {
            if found.is_over() {
                return;
            }
            if let Some(fault) = wrong_key(element.text().unwrap_or_default()) {
                found.push(&list.below(Step::Index(index), element, None), Rule::Metadata(fault));
            }
        }
    }
}

fn is_negative(value: Cursor<'_>) -> bool {
    matches!(value.content(), Content::Number(number) if number.as_i64().is_some_and(|number| number < 0))
}

/// The metadata of an object.
struct Metadata<'p, 'd> {
    here: &'p Place<'p, 'd>,
    /// Whether the object has any.
    is_there: bool,
}

impl<'p, 'd> Metadata<'p, 'd> {
    /// A field.
    fn get(&self, field: &'static str) -> Option<Place<'p, 'd>> {
        let value = self.here.value.get(field).filter(|_| self.is_there)?;
        Some(self.here.below(Step::Key(field), value, None))
    }

    /// A field, and its text.
    fn text(&self, field: &'static str) -> Option<(Place<'p, 'd>, &'d str)> {
        let place = self.get(field)?;
        let text = place.value.text()?;
        Some((place, text))
    }

    fn check_names(&self, new: NewObject<'_>, found: &mut Breaches<'d>) {
        let text = |field| self.text(field).filter(|(_, text)| !text.is_empty());
        let (name, base) = (text("name"), text("generateName"));
        let wrong_name = if new.name_is_label { wrong_label } else { wrong_subdomain };
        if let Some((place, base)) = &base
            && let Some(fault) = wrong_base(base, wrong_name)
        {
            found.push(place, Rule::Metadata(fault));
        }
        let may_be_text =
            |field| self.get(field).is_none_or(|place| place.value.is_null() || place.value.text().is_some());
        match name {
            Some((place, name)) => {
                if let Some(fault) = wrong_name(name) {
                    found.push(&place, Rule::Metadata(fault));
                }
            }
            None if base.is_none()
                && new.name.is_empty()
                && may_be_text("name")
                && may_be_text("generateName") =>
            {
                found.push(self.here, Rule::Required("name", "name or generateName is required"));
            }
            None => {}
        }
        if let Some((place, namespace)) = text("namespace").filter(|_| new.namespaced)
            && let Some(fault) = wrong_label(namespace)
        {
            found.push(&place, Rule::Metadata(fault));
        }
    }

    fn check_labels(&self, found: &mut Breaches<'d>) {
        let Some(labels) = self.get("labels") else { return };
        for (key, value) in labels.value.fields() {
            if found.is_over() {
                return;
            }
            let place = labels.below(Step::Key(key), value, None);
            if let Some(fault) = wrong_key(key) {
                found.push(&place, Rule::MetadataKey(fault));
            } else if let Some(fault) = value.text().and_then(wrong_label_value) {
                found.push(&place, Rule::Metadata(fault));
            }
        }
    }

    fn check_annotations(&self, found: &mut Breaches<'d>) {
        let Some(annotations) = self.get("annotations") else { return };
        let mut size = 0;
        for (key, value) in annotations.value.fields() {
            if found.is_over() {
                return;
            }
            size += key.len() + value.text().map_or(0, str::len);
            if let Some(fault) = wrong_key(&lower_case(key)) {
                found.push(&annotations.below(Step::Key(key), value, None), Rule::MetadataKey(fault));
            }
        }
        if size > MAX_ANNOTATION_BYTES {
            found.push(&annotations, Rule::TooLong(MAX_ANNOTATION_BYTES as u64));
        }
    }

    fn check_owners(&self, found: &mut Breaches<'d>) {
        let Some(owners) = self.get("ownerReferences") else { return };
        let mut controller = None;
        let mut has_several = false;
        for (index, owner) in owners.value.elements().enumerate() {
            if found.is_over() {
                return;
            }
            // Of any other value more than its type would not help.
            if owner.is_map() || owner.is_null() {
                check_owner(&owners.below(Step::Index(index), owner, None), found);
            }
            if let Some(this) = as_controller(owner) {
                // Of two that are the same, the apiserver drops one.
                has_several |= controller.is_some_and(|other| other != this);
                controller = Some(this);
            }
        }
        if has_several {
            found.push(&owners, Rule::Metadata(Fault::Controllers));
        }
    }
}

fn check_owner<'d>(here: &Place<'_, 'd>, found: &mut Breaches<'d>) {
    let mut broken = |field, fault| match here.value.get(field) {
        Some(value) => found.push(&here.below(Step::Key(field), value, None), Rule::Metadata(fault)),
        None => found.push(here, Rule::MetadataField(field, fault)),
    };
    let text = |field| here.value.get(field).and_then(Cursor::text).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if version(api_version).is_empty() {
        broken("apiVersion", Fault::NoVersion);
    }
    for field in ["kind", "name", "uid"] {
        if here.value.get(field).is_none_or(|value| value.is_null() || value.text() == Some("")) {
            broken(field, Fault::Empty);
        }
    }
    if (api_version, kind) == ("v1", "Event") {
        broken("kind", Fault::Event);
    }
}

/// What tells an owner apart that controls the object.
fn as_controller(owner: Cursor<'_>) -> Option<([&str; 4], Option<bool>)> {
    let flag = |field| match owner.get(field)?.content() {
        Content::Boolean(value) => Some(value),
        _ => None,
    };
    let text = |field| owner.get(field).and_then(Cursor::text).unwrap_or_default();
    let names = || ["apiVersion", "kind", "name", "uid"].map(text);
    (flag("controller") == Some(true)).then(|| (names(), flag("blockOwnerDeletion")))
}

/// The version in an `apiVersion`; empty if it has none.
fn version(api_version: &str) -> &str {
    match api_version.split_once('/') {
        None => api_version,
        Some((_, version)) if version.contains('/') => "",
        Some((_, version)) => version,
    }
}

/// A key in lower case.
fn lower_case(key: &str) -> Cow<'_, str> {
    let is_lower = key.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(key) } else { Cow::Owned(key.to_lowercase()) }
}
