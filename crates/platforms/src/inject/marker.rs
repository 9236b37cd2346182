//! The marker annotation: the version of memgate, and everything that it added to a pod, by family.
//!
//! If another webhook changes the pod after memgate, the apiserver calls memgate again. The annotation then
//! still lists the additions of the first call.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use serde::Serialize;
use serde_json::Value as Json;

use memgate_model::edit::{Edit, Entry, Op, Origin, Value};
use memgate_model::family::Family;
use memgate_model::pod::Pod;
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Pointer;

use super::INJECTED_ANNOTATION;
use memgate_model::injection::Added;

/// The maximum total size of an object's annotations. A longer annotation is not read, since an apiserver
/// refuses it.
/// Source: kubernetes/kubernetes, apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

/// The additions of one family to a pod.
#[derive(Serialize)]
struct Marker<'a> {
    version: Cow<'a, str>,
    family: &'static str,
    #[serde(flatten)]
    added: Added,
}

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
pub(crate) fn added(pod: &Pod<'_>, family: &Family) -> Added {
    let earlier = earlier(pod).unwrap_or_default();
    earlier_of(&earlier, family, &|_, _| true).unwrap_or_default()
}

/// The containers that the annotation of a pod names for the variables of a family.
pub(crate) fn containers(pod: &Pod<'_>, family: &Family) -> Members<String> {
    added(pod, family).env.into_iter().map(|(container, _)| container).collect()
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
    families: Vec<(&'static Family, Option<Added>)>,
    kept: &dyn Fn(&Family, Part<'_>) -> bool,
) -> Option<Edit> {
    let earlier = pod.annotation(INJECTED_ANNOTATION);
    let adds = families.iter().any(|(_, added)| added.is_some());
    let earlier_markers = if earlier.is_some() { self::earlier(pod) } else { None };
    if !adds && earlier.is_none_or(|_| earlier_markers.as_ref().is_some_and(is_empty)) {
        return None;
    }
    let earlier_markers = earlier_markers.unwrap_or_default();
    let markers = families.into_iter().filter_map(|(family, added)| {
        let added = match (earlier_of(&earlier_markers, family, kept), added) {
            (Some(earlier), Some(added)) => merged(earlier, added),
            (earlier, added) => earlier.or(added)?,
        };
        Some(current(family, added))
    });
    let markers: Vec<Marker<'_>> = markers.collect();
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

/// A part of what a marker says that memgate added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'m> {
    /// A memory resource.
    Memory(&'m str),
    /// A variable, by the name of its container.
    Env(&'m str, &'m str),
    /// An init container.
    InitContainer(&'m str),
    /// A volume.
    Volume(&'m str),
    /// A mount, by the name of its container.
    Mount(&'m str, &'m str),
    /// A Secret with which images are pulled.
    ImagePullSecret(&'m str),
    /// The group of the pod's volumes.
    FsGroup(i64),
}

fn current(family: &Family, added: Added) -> Marker<'static> {
    Marker { version: env!("CARGO_PKG_VERSION").into(), family: family.name, added }
}

/// The objects of a marker annotation, one or a list of them.
pub fn objects(annotation: &Json) -> &[Json] {
    match annotation {
        Json::Array(many) => many,
        one => slice::from_ref(one),
    }
}

/// What an annotation says that a family added, as far as it is `kept`.
fn earlier_of(annotation: &Json, family: &Family, kept: &dyn Fn(&Family, Part<'_>) -> bool) -> Option<Added> {
    let is_of = |marker: &&Json| marker.get("family").and_then(Json::as_str) == Some(family.name);
    let marker = objects(annotation).iter().find(is_of)?;
    let mut added = Added {
        memory: texts(marker.get("memory")),
        env: lists(marker.get("env")),
        init_containers: texts(marker.get("initContainers")),
        volumes: texts(marker.get("volumes")),
        restored: Vec::new(),
        mounts: lists(marker.get("mounts")),
        image_pull_secrets: texts(marker.get("imagePullSecrets")),
        fs_group: marker.get("fsGroup").and_then(Json::as_i64),
    };
    added.memory.retain(|name| kept(family, Part::Memory(name)));
    added.init_containers.retain(|name| kept(family, Part::InitContainer(name)));
    added.volumes.retain(|name| kept(family, Part::Volume(name)));
    retain(&mut added.env, |container, name| kept(family, Part::Env(container, name)));
    retain(&mut added.mounts, |container, path| kept(family, Part::Mount(container, path)));
    added.image_pull_secrets.retain(|name| kept(family, Part::ImagePullSecret(name)));
    added.fs_group = added.fs_group.filter(|group| kept(family, Part::FsGroup(*group)));
    (!added.is_empty()).then_some(added)
}

fn retain(lists: &mut Lists, kept: impl Fn(&str, &str) -> bool) {
    for (container, list) in lists.iter_mut() {
        list.retain(|item| kept(container, item));
    }
    lists.retain(|(_, list)| !list.is_empty());
}

/// The strings of a list, or a single string.
fn texts(value: Option<&Json>) -> Vec<String> {
    let one = value.and_then(Json::as_str).into_iter();
    let many = value.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    one.chain(many).map(str::to_owned).collect()
}

type Lists = Vec<(String, Vec<Cow<'static, str>>)>;

fn lists(value: Option<&Json>) -> Lists {
    let entries = value.and_then(Json::as_object).into_iter().flatten();
    let list = |list| texts(Some(list)).into_iter().map(Cow::from).collect();
    entries.map(|(key, value)| (key.clone(), list(value))).collect()
}

/// Earlier additions together with later ones, without duplicates.
fn merged(mut earlier: Added, later: Added) -> Added {
    add_new(&mut earlier.memory, later.memory);
    add_new(&mut earlier.init_containers, later.init_containers);
    add_new(&mut earlier.volumes, later.volumes);
    add_new(&mut earlier.image_pull_secrets, later.image_pull_secrets);
    add_lists(&mut earlier.env, later.env);
    add_lists(&mut earlier.mounts, later.mounts);
    earlier.fs_group = later.fs_group.or(earlier.fs_group);
    earlier
}

fn add_new<T: Clone + Ord>(all: &mut Vec<T>, later: Vec<T>) {
    let mut known: BTreeSet<T> = all.iter().cloned().collect();
    all.extend(later.into_iter().filter(|item| known.insert(item.clone())));
}

fn add_lists(all: &mut Lists, later: Lists) {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (index, (key, _)) in all.iter().enumerate() {
        known.entry(key.clone()).or_insert(index);
    }
    for (key, list) in later {
        match known.get(&key).and_then(|index| all.get_mut(*index)) {
            Some((_, known)) => add_new(known, list),
            None => {
                known.insert(key.clone(), all.len());
                all.push((key, list));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ark, sympozium};

    fn text(annotation: Option<&str>, added: Added) -> String {
        let annotations = annotation.map(|text| serde_json::json!({ INJECTED_ANNOTATION: text }));
        let pod = serde_json::json!({"metadata": {"annotations": annotations}}).to_string();
        edited(&pod, vec![(&sympozium::FAMILY, Some(added))])
    }

    fn edited(pod: &str, families: Vec<(&'static Family, Option<Added>)>) -> String {
        let parsed = Pod::parse(pod).expect("a pod");
        match edit(&parsed, families, &|_, _| true).map(|edit| edit.value) {
            Some(Value::Text(text) | Value::Entry(Entry(_, text))) => text,
            None => parsed.annotation(INJECTED_ANNOTATION).expect("stays").to_owned(),
            other => panic!("{other:?}"),
        }
    }

    fn added(memory: &str, variables: &[&'static str]) -> Added {
        Added {
            memory: vec![memory.to_owned()],
            env: vec![("agent".to_owned(), variables.iter().copied().map(Cow::from).collect())],
            volumes: vec!["v".to_owned()],
            ..Added::default()
        }
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
        let both = of("", Some(added("Memory/a", &["A"])), Some(added("Agent/b", &["B"])));
        let json = |text: &str| serde_json::from_str::<Json>(text).expect("JSON");
        let families: Vec<Json> =
            objects(&json(&both)).iter().map(|marker| marker["family"].clone()).collect();
        assert_eq!(families, ["ark", "sympozium"]);
        // A family that adds nothing the second time keeps its place.
        let later =
            of(&both.replace(env!("CARGO_PKG_VERSION"), "0.0.1"), None, Some(added("Agent/b", &["C"])));
        assert_eq!(json(&later)[0]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(json(&later)[0]["memory"], "Memory/a");
        assert_eq!(json(&later)[1]["env"], serde_json::json!({"agent": ["B", "C"]}));
        let only_ark = of("", Some(added("Memory/a", &["A"])), None);
        assert_eq!(json(&only_ark)["family"], "ark");
        assert_eq!(of(&only_ark, None, Some(added("Agent/b", &["B"]))), both);
    }
}
