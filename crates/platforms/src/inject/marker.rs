//! The marker annotation: the version of memgate, and everything that it added to a pod, by family.
//!
//! If another webhook changes the pod after memgate, the apiserver calls memgate again. The annotation then
//! still lists the additions of the first call.

use crate::prelude::*;
use std::slice;

use memgate_model::edit::{Entry, Value};

use super::INJECTED_ANNOTATION;
use memgate_model::injection::Item;

/// The maximum total size of an object's annotations. A longer annotation is not read, since an apiserver
/// refuses it.
/// Source: kubernetes/kubernetes, apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

/// The annotation that a pod brings, if it can be read.
pub fn earlier(pod: &Pod<'_>) -> Option<Json> {
    read(pod, INJECTED_ANNOTATION)
}

/// An annotation of a pod that holds JSON, if it can be read.
pub(crate) fn read(pod: &Pod<'_>, key: &str) -> Option<Json> {
    let text = pod.annotation(key).filter(|text| text.len() <= MAX_ANNOTATION_BYTES)?;
    serde_json::from_str(text).ok()
}

/// What the annotation of a pod says that a family added.
pub(crate) fn added(pod: &Pod<'_>, family: &Family) -> Vec<Item> {
    earlier(pod).map(|annotation| added_by(&annotation, family)).unwrap_or_default()
}

/// The containers that the annotation of a pod names for the variables of a family.
pub(crate) fn containers(pod: &Pod<'_>, family: &Family) -> Members<String> {
    let container = |item| if let Item::Env(container, _) = item { Some(container) } else { None };
    added(pod, family).into_iter().filter_map(container).collect()
}

/// Whether an annotation names nothing, so that no reader can be misled by it.
fn is_empty(annotation: &Json) -> bool {
    objects(annotation).iter().all(|marker| marker.as_object().is_some_and(serde_json::Map::is_empty))
}

/// The edit that writes the marker annotation, `None` if it stays as it is. `families` are those that know the pod, each
/// with what it adds, and `kept` is true for each part of an earlier annotation that memgate would add to the pod and that
/// is in it. Of anything else that the pod brings under this name nothing stays. The annotation is an object, or a
/// list of them when several families added something.
pub fn edit(
    pod: &Pod<'_>,
    families: Vec<(&'static Family, Vec<Item>)>,
    kept: &dyn Fn(&Family, &Item) -> bool,
) -> Option<Edit> {
    let earlier = pod.annotation(INJECTED_ANNOTATION);
    let adds = families.iter().any(|(_, added)| !added.is_empty());
    let earlier_markers = if earlier.is_some() { self::earlier(pod) } else { None };
    if !adds && earlier.is_none_or(|_| earlier_markers.as_ref().is_some_and(is_empty)) {
        return None;
    }
    let earlier_markers = earlier_markers.unwrap_or_default();
    let markers = families.into_iter().filter_map(|(family, later)| {
        let mut items = added_by(&earlier_markers, family);
        items.retain(|item| kept(family, item));
        if !adds_any(&items) {
            items.clear();
        }
        let mut known: BTreeSet<Item> = items.iter().cloned().collect();
        items.extend(later.into_iter().filter(|item| known.insert(item.clone())));
        (!items.is_empty()).then(|| written(family, items))
    });
    let markers: Vec<Json> = markers.collect();
    let text = match markers.as_slice() {
        [one] => serde_json::to_string(one),
        many => serde_json::to_string(many),
    };
    let text = text.unwrap_or_default();
    if earlier == Some(&text) {
        return None;
    }
    let annotations = Pointer::new("/metadata/annotations");
    let origins =
        vec![Origin { resource: "".into(), field: "".into(), rule: "what memgate added to this pod" }];
    let has_map = pod.metadata.as_ref().is_some_and(|metadata| metadata.annotations.is_some());
    let (op, pointer, value) = match (has_map, earlier) {
        _ if markers.is_empty() => (Op::Remove, annotations.key(INJECTED_ANNOTATION), Value::Nothing),
        (false, _) => (Op::Add, annotations, Value::Entry(Entry(INJECTED_ANNOTATION.to_owned(), text))),
        (true, Some(_)) => (Op::Replace, annotations.key(INJECTED_ANNOTATION), Value::Text(text)),
        (true, None) => (Op::Add, annotations.key(INJECTED_ANNOTATION), Value::Text(text)),
    };
    Some(Edit { op, pointer, value, origins })
}

/// Whether anything is added, and not only a memory named.
pub fn adds_any(items: &[Item]) -> bool {
    items.iter().any(|item| !matches!(item, Item::Memory(_)))
}

/// The place of an item in an object of the annotation: its field, and in it the container.
fn place(item: Item) -> (&'static str, Option<String>, Json) {
    match item {
        Item::Memory(name) => ("memory", None, name.into()),
        Item::Env(container, name) => ("env", Some(container), name.into()),
        Item::InitContainer(name) => ("initContainers", None, name.into()),
        Item::Volume(name) => ("volumes", None, name.into()),
        Item::Mount(container, path) => ("mounts", Some(container), path.into()),
        Item::ImagePullSecret(name) => ("imagePullSecrets", None, name.into()),
        Item::FsGroup(group) => ("fsGroup", None, group.into()),
    }
}

/// The object of the annotation with the additions of a family. One memory is a text, several are a list.
#[expect(clippy::indexing_slicing, reason = "fields of an object are written")]
fn written(family: &Family, mut items: Vec<Item>) -> Json {
    const FIELDS: [&str; 6] = ["memory", "env", "initContainers", "volumes", "mounts", "imagePullSecrets"];
    let rank = |field: &str| FIELDS.iter().position(|known| *known == field).unwrap_or(FIELDS.len());
    items.sort_by_key(|item| rank(place(item.clone()).0));
    let mut marker = json!({"version": env!("CARGO_PKG_VERSION"), "family": family.name, "memory": []});
    for (field, container, value) in items.into_iter().map(place) {
        let of_field = &mut marker[field];
        let list = if let Some(container) = container { &mut of_field[container] } else { of_field };
        match list {
            Json::Array(values) => values.push(value),
            _ => *list = if field == "fsGroup" { value } else { json!([value]) },
        }
    }
    if let Some([one]) = marker["memory"].as_array().map(Vec::as_slice) {
        marker["memory"] = one.clone();
    }
    marker
}

/// The objects of a marker annotation, one or a list of them.
pub fn objects(annotation: &Json) -> &[Json] {
    match annotation {
        Json::Array(many) => many,
        one => slice::from_ref(one),
    }
}

/// What an annotation says that a family added.
pub fn added_by(annotation: &Json, family: &Family) -> Vec<Item> {
    let is_of = |marker: &&Json| marker.get("family").and_then(Json::as_str) == Some(family.name);
    objects(annotation).iter().find(is_of).map(items).unwrap_or_default()
}

/// What an object of the annotation says that was added, in its order.
pub fn items(marker: &Json) -> Vec<Item> {
    let list = |field: &str| texts(marker.get(field));
    let by_container = |field: &str, item: fn(String, String) -> Item| {
        let lists = marker.get(field).and_then(Json::as_object).into_iter().flatten();
        let of_container = |(container, list): (&String, &Json)| {
            texts(Some(list)).into_iter().map(|text| item(container.clone(), text)).collect::<Vec<_>>()
        };
        lists.flat_map(of_container).collect::<Vec<_>>()
    };
    let mut items: Vec<Item> = list("memory").into_iter().map(Item::Memory).collect();
    items.extend(by_container("env", Item::Env));
    items.extend(list("initContainers").into_iter().map(Item::InitContainer));
    items.extend(list("volumes").into_iter().map(Item::Volume));
    items.extend(by_container("mounts", Item::Mount));
    items.extend(list("imagePullSecrets").into_iter().map(Item::ImagePullSecret));
    items.extend(marker.get("fsGroup").and_then(Json::as_i64).map(Item::FsGroup));
    items
}

/// The strings of a list, or a single string.
fn texts(value: Option<&Json>) -> Vec<String> {
    let one = value.and_then(Json::as_str).into_iter();
    let many = value.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    one.chain(many).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ark, sympozium};

    fn text(annotation: Option<&str>, added: Vec<Item>) -> String {
        let annotations = annotation.map(|text| serde_json::json!({ INJECTED_ANNOTATION: text }));
        let pod = serde_json::json!({"metadata": {"annotations": annotations}}).to_string();
        edited(&pod, vec![(&sympozium::FAMILY, added)])
    }

    fn edited(pod: &str, families: Vec<(&'static Family, Vec<Item>)>) -> String {
        let parsed = Pod::parse(pod).expect("a pod");
        match edit(&parsed, families, &|_, _| true).map(|edit| edit.value) {
            Some(Value::Text(text) | Value::Entry(Entry(_, text))) => text,
            None => parsed.annotation(INJECTED_ANNOTATION).expect("stays").to_owned(),
            other => panic!("{other:?}"),
        }
    }

    fn added(memory: &str, variables: &[&str]) -> Vec<Item> {
        let variables = variables.iter().map(|name| Item::Env("agent".to_owned(), (*name).to_owned()));
        let around = [Item::Memory(memory.to_owned()), Item::Volume("v".to_owned())];
        around.into_iter().chain(variables).collect()
    }

    #[test]
    fn names_what_was_added_before_too() {
        let first = text(None, added("Agent/a", &["A", "B"]));
        let second = text(Some(&first), added("Ensemble/e", &["B", "C"]));
        let marker: Json = serde_json::from_str(&second).expect("JSON");
        assert_eq!(marker["memory"], serde_json::json!(["Agent/a", "Ensemble/e"]));
        assert_eq!(marker["env"], serde_json::json!({"agent": ["A", "B", "C"]}));
        assert_eq!(marker["volumes"], serde_json::json!(["v"]));
        assert_eq!(text(Some(&second), added("Agent/a", &["A"])), second);
    }

    #[test]
    fn ignores_other_annotations_and_malformed_fields() {
        let only = text(None, added("Agent/a", &["A"]));
        for other in ["", "hello", "[]", r#"{"family":"ark","memory":"Memory/x"}"#, r#"{"memory":"Agent/x"}"#]
        {
            assert_eq!(text(Some(other), added("Agent/a", &["A"])), only, "{other}");
        }
        let malformed = r#"{"family":"sympozium","memory":1,"env":{"agent":{"x":1}},"volumes":[2,null]}"#;
        assert_eq!(text(Some(malformed), added("Agent/a", &["A"])), only);
    }
    #[test]
    fn lists_what_several_families_added() {
        let of = |annotation: &str, ark_adds, sympozium_adds| {
            let annotations = serde_json::json!({ INJECTED_ANNOTATION: annotation });
            let pod = serde_json::json!({"metadata": {"annotations": annotations}}).to_string();
            edited(&pod, vec![(&ark::FAMILY, ark_adds), (&sympozium::FAMILY, sympozium_adds)])
        };
        let both = of("", added("Memory/a", &["A"]), added("Agent/b", &["B"]));
        let json = |text: &str| serde_json::from_str::<Json>(text).expect("JSON");
        let families: Vec<Json> =
            objects(&json(&both)).iter().map(|marker| marker["family"].clone()).collect();
        assert_eq!(families, ["ark", "sympozium"]);
        // A family that adds nothing the second time keeps its place.
        let later =
            of(&both.replace(env!("CARGO_PKG_VERSION"), "0.0.1"), Vec::new(), added("Agent/b", &["C"]));
        assert_eq!(json(&later)[0]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(json(&later)[0]["memory"], "Memory/a");
        assert_eq!(json(&later)[1]["env"], serde_json::json!({"agent": ["B", "C"]}));
        let only_ark = of("", added("Memory/a", &["A"]), Vec::new());
        assert_eq!(json(&only_ark)["family"], "ark");
        assert_eq!(of(&only_ark, Vec::new(), added("Agent/b", &["B"])), both);
    }
}
