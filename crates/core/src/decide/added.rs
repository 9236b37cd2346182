//! What memgate added to a pod: the annotation `memgate.dev/injected` says it, and a decision about the pod without it
//! confirms it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use memgate_model::edit::{Edit, Entry};
use memgate_model::injection::Item;
use memgate_platforms::inject::neighbours::{CniSign, MESHES};
use memgate_platforms::inject::{INJECTED_ANNOTATION, marker};
use memgate_primitives::pointer::list_index;
use serde_json::Value;

/// What the annotation of a pod says that was added to it, in its order; `None` if it has none that can be read.
pub fn marked(pod: &Value) -> Option<Vec<Item>> {
    let annotation = pod.pointer("/metadata/annotations")?.get(INJECTED_ANNOTATION)?.as_str()?;
    let annotation: Value = serde_json::from_str(annotation).ok()?;
    let items = marker::objects(&annotation).iter().flat_map(marker::items);
    Some(items.filter(|item| !matches!(item, Item::Memory(_))).collect())
}

/// How often a pod is decided about again, each time without fewer items: what nothing confirms may have been the reason
/// for others.
const MAX_CONFIRMATIONS: usize = 3;

/// The items that the annotation of a pod names, that the pod has, and that a decision about the pod without them adds,
/// with all that this decision adds, and its annotation. `decide` makes the edits of this decision.
///
/// `seen` is the pod about which is decided: the same, or without what hinders.
pub(super) fn confirmed(
    pod: &Value,
    seen: &Value,
    mut decide: impl FnMut(&str) -> Vec<Edit>,
) -> (BTreeSet<Item>, BTreeSet<Item>, Value) {
    let mut marked: BTreeSet<Item> = marked(pod).unwrap_or_default().into_iter().collect();
    let present = present(pod, &marked);
    let mut confirmed = (BTreeSet::new(), BTreeSet::new(), Value::Null);
    for _ in 0..MAX_CONFIRMATIONS {
        let Some(bare) = bare(seen.clone(), &marked) else { break };
        let (given, annotation) = given(&bare, &decide(&bare.to_string()));
        let before = marked.len();
        marked.retain(|item| {
            let values = given.get(item).zip(present.get(item));
            values.is_some_and(|(given, value)| is_confirmed(item, given, value))
        });
        let is_settled = marked.len() == before;
        confirmed = (marked.clone(), given.into_keys().collect(), annotation);
        if is_settled || marked.is_empty() {
            break;
        }
    }
    confirmed
}

/// What edits give to a pod, and the annotation that they write.
fn given(bare: &Value, edits: &[Edit]) -> (BTreeMap<Item, Value>, Value) {
    let mut names = Names::of(bare);
    let mut given = BTreeMap::new();
    let mut annotation = Value::Null;
    for edit in edits {
        add_items(edit, &mut names, &mut given);
        if let memgate_model::edit::Value::Text(text) | memgate_model::edit::Value::Entry(Entry(_, text)) =
            &edit.value
            && edit.pointer.as_str().starts_with("/metadata/annotations")
        {
            annotation = serde_json::from_str(text).unwrap_or_default();
        }
    }
    (given, annotation)
}

/// Whether the value in the pod is one that was given. Another webhook may have completed a container or a volume.
fn is_confirmed(item: &Item, given: &Value, value: &Value) -> bool {
    match item {
        Item::Env(..) => {
            let only =
                |field: &str| given.get(field).is_some() || value.get(field).is_none_or(Value::is_null);
            has(value, given) && ["value", "valueFrom"].into_iter().all(only)
        }
        Item::FsGroup(_) => given == value,
        // With another claim it is another volume.
        Item::Volume(_) => given.get("persistentVolumeClaim").is_none() || has(value, given),
        Item::Memory(_) | Item::InitContainer(_) | Item::Mount(..) | Item::ImagePullSecret(_) => true,
    }
}

/// Whether a value has everything that was given. An apiserver adds defaults, and drops an empty text.
fn has(value: &Value, given: &Value) -> bool {
    let Some(given) = given.as_object() else { return value == given };
    given.iter().all(|(field, given)| match value.get(field) {
        Some(value) => has(value, given),
        None => given == "",
    })
}

/// The marked items of a pod, as they are now.
fn present(pod: &Value, marked: &BTreeSet<Item>) -> BTreeMap<Item, Value> {
    let (mut pod, mut items) = (pod.clone(), BTreeMap::new());
    // Variables go into the first of several containers with one name, which no apiserver accepts.
    for list in ["/spec/containers", "/spec/initContainers"] {
        let mut seen = BTreeSet::new();
        retain(pod.pointer_mut(list), |it| seen.insert(text_of(it, "name")));
    }
    retain_items(&mut pod, |item, value| {
        if marked.contains(&item) {
            items.insert(item, value.clone());
        }
        true
    });
    items
}

fn elements<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// The pod without what was added.
fn bare(mut pod: Value, added: &BTreeSet<Item>) -> Option<Value> {
    pod.pointer_mut("/metadata/annotations")?.as_object_mut()?.remove(INJECTED_ANNOTATION);
    retain_items(&mut pod, |item, _| !added.contains(&item))?;
    Some(pod)
}

/// Goes through all that memgate may have added to a pod, and takes out what does not stay.
fn retain_items(pod: &mut Value, mut stays: impl FnMut(Item, &Value) -> bool) -> Option<()> {
    let spec = pod.get_mut("spec")?;
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = text_of(container, "name");
            let env = |it: &Value| Item::Env(name.clone(), text_of(it, "name"));
            let mount = |it: &Value| Item::Mount(name.clone(), text_of(it, "mountPath"));
            retain(container.get_mut("env"), |it| stays(env(it), it));
            retain(container.get_mut("volumeMounts"), |it| stays(mount(it), it));
        }
    }
    retain(spec.get_mut("initContainers"), |it| stays(Item::InitContainer(text_of(it, "name")), it));
    retain(spec.get_mut("volumes"), |it| stays(Item::Volume(text_of(it, "name")), it));
    retain(spec.get_mut("imagePullSecrets"), |it| stays(Item::ImagePullSecret(text_of(it, "name")), it));
    if let Some(context) = spec.get_mut("securityContext").and_then(Value::as_object_mut) {
        let stays = |value: &Value| value.as_i64().is_none_or(|group| stays(Item::FsGroup(group), value));
        if !context.get("fsGroup").is_none_or(stays) {
            context.remove("fsGroup");
        }
    }
    Some(())
}

/// The fields of a pod's spec, and those of a container, from which memgate learns what to add. What is in the others can only
/// keep it from adding that: the network, the nodes, ports and probes.
const OF_SPEC: [&str; 5] = ["containers", "initContainers", "volumes", "securityContext", "imagePullSecrets"];
const OF_CONTAINER: [&str; 6] = ["name", "image", "env", "envFrom", "volumeMounts", "restartPolicy"];

/// The pod without what may keep memgate from adding its parts: the settings of the pod, other containers' ports, a mesh, and
/// volumes that no ordinary container mounts.
pub(super) fn unhindered(mut pod: Value) -> Value {
    if let Some(annotations) = pod.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations
            .retain(|key, _| !is_sign_of_mesh(|sign| sign.annotation.is_some_and(|(of, _)| of == key)));
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return pod };
    spec.retain(|field, _| OF_SPEC.contains(&field.as_str()));
    if let Some(context) = spec.get_mut("securityContext").and_then(Value::as_object_mut) {
        context.remove("windowsOptions");
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.retain(|field, _| OF_CONTAINER.contains(&field.as_str()));
            }
        }
    }
    let containers = spec.get("containers").and_then(Value::as_array).into_iter().flatten();
    let mounts = containers.flat_map(|it| elements(it, "volumeMounts"));
    let mounted: BTreeSet<String> = mounts.map(|mount| text_of(mount, "name")).collect();
    retain(spec.get_mut("volumes"), |volume| mounted.contains(&text_of(volume, "name")));
    retain(spec.get_mut("initContainers"), |it| {
        let name = text_of(it, "name");
        !is_sign_of_mesh(|sign| sign.init_container == Some(&*name))
    });
    pod
}

/// Whether a mesh is known by this sign.
fn is_sign_of_mesh(test: impl Fn(&CniSign) -> bool) -> bool {
    MESHES.iter().filter_map(|mesh| mesh.cni.as_ref()).any(test)
}

fn retain(list: Option<&mut Value>, stays: impl FnMut(&Value) -> bool) {
    if let Some(elements) = list.and_then(Value::as_array_mut) {
        elements.retain(stays);
    }
}

/// The names of a pod's containers by their places, while edits insert some.
struct Names {
    containers: Vec<String>,
    init_containers: Vec<String>,
}

impl Names {
    fn of(pod: &Value) -> Self {
        let names = |list: &str| {
            let spec = pod.get("spec").unwrap_or(&Value::Null);
            elements(spec, list).map(|container| text_of(container, "name")).collect()
        };
        Self { containers: names("containers"), init_containers: names("initContainers") }
    }

    fn container(&self, list: &str, index: &str) -> String {
        let names = if list == "containers" { &self.containers } else { &self.init_containers };
        list_index(index).and_then(|index| names.get(index)).cloned().unwrap_or_default()
    }
}

pub(super) fn text_of(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Adds what one edit adds: an element of a list, or a list where there was none.
fn add_items(edit: &Edit, names: &mut Names, given: &mut BTreeMap<Item, Value>) {
    let Ok(value) = serde_json::to_value(&edit.value) else { return };
    let tokens: Vec<Cow<'_, str>> = edit.pointer.tokens().collect();
    let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
    if let ["spec", "securityContext", ..] = tokens.as_slice() {
        let group = value.as_i64().or_else(|| value.get("fsGroup")?.as_i64());
        if let Some(group) = group {
            given.insert(Item::FsGroup(group), group.into());
        }
        return;
    }
    let (list, at, elements) = match (value, tokens.as_slice()) {
        (Value::Array(elements), list) => (list, None, elements),
        (element, [list @ .., index]) => (list, list_index(index), vec![element]),
        (_, []) => return,
    };
    for (number, value) in elements.into_iter().enumerate() {
        let name = text_of(&value, "name");
        let item = match list {
            ["spec", "volumes"] => Item::Volume(name),
            ["spec", "imagePullSecrets"] => Item::ImagePullSecret(name),
            ["spec", "initContainers"] => {
                let place = at.unwrap_or(number).min(names.init_containers.len());
                names.init_containers.insert(place, name.clone());
                Item::InitContainer(name)
            }
            ["spec", kind, index, "env"] => Item::Env(names.container(kind, index), name),
            ["spec", kind, index, "volumeMounts"] => {
                Item::Mount(names.container(kind, index), text_of(&value, "mountPath"))
            }
            _ => return,
        };
        given.insert(item, value);
    }
}
