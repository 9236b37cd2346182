//! The name, the labels and the annotations of an object, which every policy may ask for and families do not read.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;
use serde_json::value::RawValue;

use memgate_model::edit::{Edit, Entry, Op, Origin, Value};
use memgate_model::memory_view::MemoryView;
use memgate_model::plain_value;
use memgate_model::pod::Pod;
use memgate_model::policy::{Group, Policies};
use memgate_model::typed_rule::Sent;
use memgate_model::view::{self, Texts, view};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use crate::places::ObjectPlaces;

view! {
    /// What is read of any object to match and judge it.
    Named {
        /// Its metadata.
        metadata: NamedMetadata<'a> = "metadata",
    }

    /// The name, the labels and the annotations of an object.
    NamedMetadata {
        /// The name, unread.
        name: &'a RawValue = "name",
        /// The prefix of a name that is not generated yet, unread.
        generate_name: &'a RawValue = "generateName",
        /// All labels, unread.
        labels: &'a RawValue = "labels",
        /// All annotations, unread.
        annotations: &'a RawValue = "annotations",
    }
}

/// An object as it was written. Its name, labels and annotations are read once, for all families and policies.
#[derive(Debug)]
pub struct Written<'s> {
    /// The JSON.
    pub text: &'s str,
    /// The same, if it is a pod that was read before, and whether its annotations are wanted.
    pod: Option<(&'s Pod<'s>, bool)>,
    identity: OnceCell<Identity>,
}

/// What is of the wrong type is absent.
#[derive(Debug, Default)]
struct Identity {
    name: String,
    labels: Arc<BTreeMap<String, String>>,
    annotations: Arc<BTreeMap<String, String>>,
}

impl<'s> Written<'s> {
    /// The object with this JSON.
    pub const fn new(text: &'s str) -> Self {
        Self { text, pod: None, identity: OnceCell::new() }
    }

    /// The pod with this JSON. Its annotations may be long: without a policy that reads them they are left out.
    pub fn of_pod(text: &'s str, pod: &'s Pod<'s>, policies: &Policies) -> Self {
        Self { text, pod: Some((pod, policies.has_any(Group::Annotations))), identity: OnceCell::new() }
    }

    /// The name, or else `generateName`.
    pub(super) fn name(&self) -> &str {
        &self.identity().name
    }

    /// The labels.
    pub(super) fn labels(&self) -> &Arc<BTreeMap<String, String>> {
        &self.identity().labels
    }

    /// Adds the name, the labels and the annotations to a view.
    pub fn complete(&self, view: &mut MemoryView) {
        self.name().clone_into(&mut view.name);
        view.labels = Arc::clone(self.labels());
        view.annotations = Arc::clone(&self.identity().annotations);
    }

    fn identity(&self) -> &Identity {
        let of_pod = |(pod, annotated)| Identity::of_pod(pod, annotated);
        let read = || self.pod.and_then(of_pod).unwrap_or_else(|| Identity::of(self.text));
        self.identity.get_or_init(read)
    }
}

impl Identity {
    /// That of a pod; `None` if its annotations were not kept.
    fn of_pod(pod: &Pod<'_>, annotated: bool) -> Option<Self> {
        let Some(metadata) = &pod.metadata else { return Some(Self::default()) };
        let mut names = [&metadata.name, &metadata.generate_name].into_iter().flatten();
        let labels = metadata.labels.iter().flat_map(Texts::entries);
        let annotations = match metadata.annotations.as_ref().filter(|_| annotated) {
            Some(annotations) => Some(annotations.all()?),
            None => None,
        };
        let annotations = annotations.into_iter().flatten().filter(|(key, _)| is_in_view(key));
        Some(Self {
            name: names.find(|name| !name.is_empty()).map(|name| name.to_string()).unwrap_or_default(),
            labels: last(labels.map(|(key, text)| (key, text.map(Cow::Borrowed)))),
            annotations: last(annotations),
        })
    }

    fn of(object: &str) -> Self {
        let metadata = view::read::<Named<'_>>(object).ok().and_then(|named| named.metadata);
        let NamedMetadata { name, generate_name, labels, annotations } = metadata.unwrap_or_default();
        let text =
            |raw: &RawValue| serde_json::from_str(raw.get()).ok().filter(|text: &String| !text.is_empty());
        Self {
            name: name.and_then(text).or_else(|| generate_name.and_then(text)).unwrap_or_default(),
            labels: texts(labels, |_| true),
            annotations: texts(annotations, is_in_view),
        }
    }
}

/// The annotation that names the fields which memgate wrote as defaults. It is there only while a policy asks what the author
/// of an object wrote: a JSON list of pointers.
const DEFAULTED: &str = "memgate.dev/defaulted";

/// Its place in an object.
const DEFAULTED_PLACE: &str = "/metadata/annotations/memgate.dev~1defaulted";

/// Names the fields that these edits write in the annotation of the object, with those that memgate wrote before into the
/// stored object and that are as they were. Takes away an annotation that names others.
pub fn mark(
    edits: &mut Vec<Edit>,
    object: &Written<'_>,
    old: Option<&Written<'_>>,
    defaults: impl FnOnce(&str) -> Vec<Edit>,
) {
    let mut fields: BTreeSet<String> = edits.iter().map(|edit| edit.pointer.as_str().to_owned()).collect();
    let present = raw_annotation(object.text);
    fields.extend(match old {
        Some(old) => unchanged_defaults(object, old),
        None => confirmed(object, &present.fields(), defaults),
    });
    let origin = || Origin { resource: "".into(), field: "".into(), rule: "the fields that memgate filled" };
    let place = Pointer::new(DEFAULTED_PLACE);
    if fields.is_empty() {
        if matches!(present, Present::Text(_) | Present::Other) {
            let (op, value) = (Op::Remove, Value::Nothing);
            edits.push(Edit { op, pointer: place, value, origins: vec![origin()] });
        }
        return;
    }
    let text = serde_json::json!(fields).to_string();
    let edit = match present {
        Present::Text(written) if written == text => return,
        Present::NoMap => {
            let map = Value::Entry(Entry(DEFAULTED.to_owned(), text));
            Edit::add(Pointer::new("/metadata/annotations"), map, origin())
        }
        _ => Edit::add(place, Value::Text(text), origin()),
    };
    edits.push(edit);
}

/// The fields that the annotation of the stored object names and an update leaves as they are.
fn unchanged_defaults(object: &Written<'_>, old: &Written<'_>) -> BTreeSet<String> {
    let named = raw_annotation(old.text).fields();
    if named.is_empty() {
        return named;
    }
    // An object with very many values has no such fields.
    let read = |text| plain_value::read(text, &Budget::default()).ok();
    let (Some(new), Some(old)) = (read(object.text), read(old.text)) else { return BTreeSet::new() };
    let is_same = |field: &String| {
        new.pointer(field).filter(|value| !value.is_null()).is_some_and(|it| Some(it) == old.pointer(field))
    };
    named.into_iter().filter(is_same).collect()
}

/// Of the fields that the annotation of a new object names those which an earlier call has written: without them, `defaults`
/// would write the same values.
fn confirmed(
    object: &Written<'_>,
    named: &BTreeSet<String>,
    defaults: impl FnOnce(&str) -> Vec<Edit>,
) -> BTreeSet<String> {
    if named.is_empty() {
        return BTreeSet::new();
    }
    let Ok(json) = plain_value::read(object.text, &Budget::default()) else { return BTreeSet::new() };
    let mut without = json.clone();
    for field in named.iter().map(Pointer::new) {
        let parent = field.parent().and_then(|parent| without.pointer_mut(parent.as_str()));
        if let (Some(map), Some(name)) = (parent.and_then(Json::as_object_mut), field.tokens().last()) {
            map.remove(&*name);
        }
    }
    let edits = defaults(&without.to_string());
    let is_same = |edit: &Edit| {
        let written = serde_json::to_value(&edit.value).ok();
        written.is_some() && written.as_ref() == json.pointer(edit.pointer.as_str())
    };
    let same = edits.into_iter().filter(is_same).map(|edit| edit.pointer.as_str().to_owned());
    same.filter(|field| named.contains(field)).collect()
}

/// What an object has of the annotation.
#[derive(Debug, PartialEq, Eq)]
enum Present {
    /// No annotations at all.
    NoMap,
    No,
    /// Something that is not a text.
    Other,
    Text(String),
}

impl Present {
    /// The fields that it names.
    fn fields(&self) -> BTreeSet<String> {
        if let Self::Text(text) = self {
            serde_json::from_str(text).unwrap_or_default()
        } else {
            BTreeSet::new()
        }
    }
}

fn raw_annotation(object: &str) -> Present {
    let metadata = view::read::<Named<'_>>(object).ok().and_then(|named| named.metadata);
    let annotations = metadata.and_then(|metadata| metadata.annotations);
    let map = annotations.map(|raw| serde_json::from_str::<Option<BTreeMap<String, &RawValue>>>(raw.get()));
    match map {
        None | Some(Ok(None)) => Present::NoMap,
        Some(Err(_)) => Present::Other,
        Some(Ok(Some(map))) => match map.get(DEFAULTED) {
            None => Present::No,
            Some(raw) => serde_json::from_str(raw.get()).map_or(Present::Other, Present::Text),
        },
    }
}

/// The fields of an object as its author sent it. They are read when they are asked for.
#[derive(Debug)]
pub(super) struct SentFields<'s> {
    text: &'s str,
    read: OnceCell<(ObjectPlaces, BTreeSet<String>)>,
}

impl<'s> SentFields<'s> {
    pub(super) const fn of(written: &Written<'s>) -> Self {
        Self { text: written.text, read: OnceCell::new() }
    }
}

impl SentFields<'_> {
    fn is_there(&self, place: &Pointer, is_found: impl Fn(&ObjectPlaces) -> bool) -> bool {
        let (places, defaulted) =
            self.read.get_or_init(|| (ObjectPlaces::of(self.text), raw_annotation(self.text).fields()));
        let mut above = std::iter::successors(Some(place.clone()), Pointer::parent);
        is_found(places) && !above.any(|place| defaulted.contains(place.as_str()))
    }
}

impl Sent for SentFields<'_> {
    fn has(&self, place: &Pointer) -> bool {
        self.is_there(place, |places| places.nearest(place) == *place)
    }

    fn has_value(&self, place: &Pointer) -> bool {
        self.is_there(place, |places| places.has_scalar(place))
    }
}

/// The annotation in which kubectl keeps the whole object.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether views have the annotation of this key.
pub(super) fn is_in_view(key: &str) -> bool {
    key != LAST_APPLIED && !key.starts_with("memgate.dev/")
}

/// The last text of each key.
fn last<'e>(entries: impl Iterator<Item = (&'e str, Option<Cow<'e, str>>)>) -> Arc<BTreeMap<String, String>> {
    let last: BTreeMap<_, _> = entries.collect();
    let texts = last.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.into_owned())));
    Arc::new(texts.collect())
}

/// The entries of a map whose keys are wanted and whose values are texts.
fn texts(map: Option<&RawValue>, is_wanted: impl Fn(&str) -> bool) -> Arc<BTreeMap<String, String>> {
    let map = map.and_then(|raw| serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get()).ok());
    let wanted = map.into_iter().flatten().filter(|(key, _)| is_wanted(key));
    Arc::new(wanted.filter_map(|(key, raw)| Some((key, serde_json::from_str(raw.get()).ok()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_was_read_has_the_same_identity_as_its_text() {
        for metadata in [
            "{}",
            "null",
            r#"{"name": "a", "generateName": "b"}"#,
            r#"{"name": "", "generateName": "b-", "labels": null, "annotations": null}"#,
            r#"{"labels": {"a": "1", "b": "2", "a": "3", "b": null, "c": "\u0041"}}"#,
            r#"{"annotations": {"a": "1", "b": 2, "c": null, "d": {}, "a": "\n", "e": "1", "e": []}}"#,
            r#"{"annotations": {"memgate.dev/memory": "a", "sidecar.istio.io/inject": "no", "x": "\ud800"}}"#,
            r#"{"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "y": "z"}}"#,
        ] {
            let text = format!(r#"{{"metadata": {metadata}}}"#);
            let pod = Pod::parse(&text).expect("a pod");
            let of_pod = Identity::of_pod(&pod, true).expect("all is kept");
            assert_eq!(format!("{of_pod:?}"), format!("{:?}", Identity::of(&text)), "{metadata}");
        }
    }

    #[test]
    fn very_many_annotations_are_read_from_the_text() {
        let all: Vec<String> = (0..10_001).map(|number| format!(r#""a{number}": "x""#)).collect();
        let text = format!(r#"{{"metadata": {{"annotations": {{{}}}}}}}"#, all.join(","));
        let pod = Pod::parse(&text).expect("a pod");
        let written = Written { text: &text, pod: Some((&pod, true)), identity: OnceCell::new() };
        assert_eq!(written.identity().annotations.len(), 10_001);
        let written = Written::of_pod(&text, &pod, &Policies::default());
        assert_eq!(written.identity().annotations.len(), 0);
    }
}
