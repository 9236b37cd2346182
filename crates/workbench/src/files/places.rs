//! The places of the state's objects in the files. A finding refers to another object by name; reports show its place.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::build::origins::Spot;
use crate::files::errors::location;
use crate::report::Related;
use memgate_core::state;
use memgate_core::state::makers::charts;
use memgate_manifest::document::Document;
use memgate_manifest::place::{DocumentPlace, LastSource};
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::object::Reference;
use memgate_model::settings::Settings;
use memgate_primitives::members::Layered;
use memgate_primitives::pointer::Pointer;

/// The places of objects by their names, also of those that `--with` gives. The later of two objects with one name
/// counts, as in the state.
#[derive(Debug, Clone, Default)]
pub struct ObjectPlaces {
    objects: Layered<u64, ObjectPlace>,
    /// Where fields of rendered objects stand, as far as findings refer to them.
    spots: BTreeMap<(u64, Pointer), Spot>,
}

/// A hash of an object's group, kind, namespace and name. Each process has a key of its own, so that an author cannot look
/// for names that collide. With a million objects two collide in one of 37 million runs.
pub(crate) fn name_hash(names: [&str; 4]) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(names)
}

fn key(Reference { kind, namespace, name }: &Reference) -> u64 {
    name_hash([kind.group, kind.kind, namespace, name])
}

/// A value of a document: its object, or one in a List.
#[derive(Clone, Copy)]
pub(crate) struct DocumentValue<'d> {
    pub(crate) document: &'d Document,
    /// The place in the document.
    pub(crate) within: &'d Pointer,
    pub(crate) value: &'d Value,
}

/// The place of an object.
#[derive(Debug, Clone)]
struct ObjectPlace {
    document: Arc<DocumentPlace>,
    /// The object in the document: `/items/3` inside a List that is one document.
    within: Option<Box<Pointer>>,
}

impl ObjectPlaces {
    /// Adds an object.
    pub(crate) fn add(
        &mut self,
        DocumentValue { document, within, value }: DocumentValue<'_>,
        settings: &Settings,
    ) {
        let reference = || state::reference(settings, value);
        if let Some(reference) = reference().or_else(|| charts::release(settings, value)) {
            let within = Some(within).filter(|within| **within != Pointer::root()).cloned().map(Box::new);
            let place = ObjectPlace { document: document.shared_place(), within };
            self.objects.insert(key(&reference), place);
        }
    }

    /// Shares all places with copies from now on.
    pub(crate) fn settle(&mut self) {
        self.objects.settle();
    }

    /// Adds the places of other inputs, which replace those of the same names.
    pub fn extend(&mut self, others: Self) {
        self.objects.extend(others.objects);
        self.spots.extend(others.spots);
    }

    /// The place of a field of an object.
    pub(crate) fn span(&self, object: &Reference, pointer: &Pointer) -> Option<(Arc<Source>, Span)> {
        let place = self.objects.get(&key(object))?;
        Some((Arc::clone(place.document.source()), place.caret(pointer)))
    }

    /// Notes where a field of a rendered object stands: what `find` says of its document, and of the pointer in it.
    pub(crate) fn trace(
        &mut self,
        object: &Reference,
        pointer: &Pointer,
        find: impl FnOnce(&Arc<DocumentPlace>, &Pointer) -> Option<Spot>,
    ) {
        let key = key(object);
        let Some(place) = self.objects.get(&key) else { return };
        let within = place.within.as_ref().map_or_else(|| pointer.clone(), |within| within.join(pointer));
        if let Some(spot) = find(&place.document, &within) {
            self.spots.insert((key, pointer.clone()), spot);
        }
    }

    /// The place of the name of an object of one of these kinds.
    pub fn of_object(
        &self,
        kinds: impl Iterator<Item = &'static Kind>,
        [namespace, name]: [&str; 2],
    ) -> Option<(Arc<Source>, Span)> {
        let hash = |kind: &Kind| {
            let namespace = if kind.namespaced { namespace } else { "" };
            name_hash([kind.group, kind.kind, namespace, name])
        };
        let place = kinds.map(hash).find_map(|key| self.objects.get(&key))?;
        Some((Arc::clone(place.document.source()), place.caret(&Pointer::new("/metadata/name"))))
    }

    /// The file, line and column of a field of an object.
    pub fn describe(&self, object: &Reference, pointer: &Pointer) -> Option<String> {
        let (source, span) = self.span(object, pointer)?;
        Some(format!("{}:{}:{}", source.name(), span.line, span.column))
    }

    /// The places in other objects that findings refer to, by finding. Places of one document are looked up together,
    /// since its text may have to be parsed again for them.
    pub(crate) fn elsewhere<'r>(
        &'r self,
        findings: impl Iterator<Item = &'r Finding>,
    ) -> BTreeMap<*const Finding, Vec<Related<'r>>> {
        let all = findings.flat_map(|finding| finding.elsewhere.iter().map(move |it| (finding, it)));
        let places = all.filter_map(|(finding, it)| Some((finding, it, self.objects.get(&key(&it.object))?)));
        let mut places: Vec<_> = places.enumerate().collect();
        places.sort_by_key(|(_, (.., place))| (Arc::as_ptr(place.document.source()), place.document.start()));
        let mut last = LastSource::default();
        let related = places.into_iter().map(|(number, (finding, elsewhere, place))| {
            let location = match self.spots.get(&(key(&elsewhere.object), elsewhere.pointer.clone())) {
                Some(spot) => location(spot.source(), spot.caret()),
                None => {
                    last.is_now(&place.document);
                    location(place.document.source(), place.caret(&elsewhere.pointer))
                }
            };
            let label = elsewhere.label.to_owned();
            (number, std::ptr::from_ref(finding), Related { location, label })
        });
        let mut related: Vec<_> = related.collect();
        related.sort_by_key(|(number, ..)| *number);
        let mut of_findings: BTreeMap<*const Finding, Vec<Related<'r>>> = BTreeMap::new();
        for (_, finding, related) in related {
            of_findings.entry(finding).or_default().push(related);
        }
        of_findings
    }
}

impl ObjectPlace {
    /// The stretch of a caret for a field of the object.
    fn caret(&self, pointer: &Pointer) -> Span {
        let within = self.within.as_ref().map(|within| within.join(pointer));
        self.document.locate(within.as_ref().unwrap_or(pointer)).carets(false).0
    }
}

#[cfg(test)]
mod tests {
    use crate::build::plan::Plan;
    use crate::files::load::load;
    use memgate_model::kind::NAMESPACE;
    use memgate_model::object::Reference;
    use memgate_platforms::ALL;
    use memgate_platforms::state_kind;
    use memgate_primitives::pointer::Pointer;

    const TEXT: &str = "\
apiVersion: v1
kind: List
items:
  - {apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: a}}
  - {apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: b, namespace: team-b}}
  - apiVersion: arkonis.dev/v1alpha1
    kind: ArkMemoryList
    items:
      - metadata: {name: c}
---
{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory, metadata: {name: b, namespace: team-b}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: d, namespace: none}}
---
{apiVersion: v1, kind: Pod, metadata: {name: e}}
---
{apiVersion: arkonis.dev/v1alpha1, kind: ArkMemory}
";

    #[test]
    fn finds_the_objects_of_the_state() {
        let as_state = Plan { checked: Vec::new(), state: vec!["-".to_owned()], ..Plan::of_text(TEXT) };
        for plan in [Plan::of_text(TEXT), as_state] {
            let places = load(&plan).expect("loads").places;
            let memory = state_kind(&ALL, "arkonis.dev", "ArkMemory").expect("a kind");
            let rows = [
                (memory, "default", "a", Some(4)),
                (memory, "default", "c", Some(9)),
                (memory, "team-b", "b", Some(11)),
                (&NAMESPACE, "", "d", Some(13)),
                (&NAMESPACE, "none", "d", None),
                (memory, "default", "e", None),
                (memory, "default", "", None),
            ];
            for (kind, namespace, name, line) in rows {
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                let span = places.span(&Reference { kind, namespace, name }, &Pointer::root());
                assert_eq!(span.map(|(_, span)| span.line), line);
            }
        }
    }
}
