//! The places of the state's objects in the files. A finding refers to another object by name; reports show its place.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::offline::errors::location;
use crate::report::{ObjectRef, Related};
use memgate_core::state::{self, like};
use memgate_manifest::document::Document;
use memgate_manifest::place::{DocumentPlace, LastSource};
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::object::Reference;
use memgate_model::settings::Settings;
use memgate_primitives::pointer::Pointer;

/// The places of objects by their names, also of those that `--with` gives. The later of two objects with one name
/// counts, as in the state.
#[derive(Debug, Default)]
pub struct Places(BTreeMap<Key, ObjectPlace>);

/// A reference that shares its texts.
type Key = (&'static Kind, Arc<str>, Arc<str>);

/// The place of an object.
#[derive(Debug)]
struct ObjectPlace {
    document: DocumentPlace,
    /// The object in the document: `/items/3` inside a List that is one document.
    within: Option<Box<Pointer>>,
}

impl Places {
    /// Adds the object at `within` in a document. `names` has its name and namespace, if they are known.
    pub(super) fn add(
        &mut self,
        document: &Document,
        within: &Pointer,
        value: &Value,
        names: &ObjectRef,
        settings: &Settings,
    ) {
        if let Some(Reference { kind, namespace, name }) = state::reference(settings, value) {
            let within = Some(within).filter(|within| **within != Pointer::root()).cloned().map(Box::new);
            let place = ObjectPlace { document: document.place().clone(), within };
            let key = (kind, like(&namespace, &names.namespace), like(&name, &names.name));
            self.0.insert(key, place);
        }
    }

    fn get(&self, Reference { kind, namespace, name }: &Reference) -> Option<&ObjectPlace> {
        self.0.get(&(*kind, namespace.as_str().into(), name.as_str().into()))
    }

    /// Adds the places of other inputs, which replace those of the same names.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The place of a field of an object.
    pub(super) fn span(&self, object: &Reference, pointer: &Pointer) -> Option<(Arc<Source>, Span)> {
        let place = self.get(object)?;
        Some((Arc::clone(place.document.source()), place.caret(pointer)))
    }

    /// The file, line and column of a field of an object.
    pub fn describe(&self, object: &Reference, pointer: &Pointer) -> Option<String> {
        let (source, span) = self.span(object, pointer)?;
        Some(format!("{}:{}:{}", source.name(), span.line, span.column))
    }

    /// The places in other objects that findings refer to, by finding. Places of one document are looked up together,
    /// since its text may have to be parsed again for them.
    pub(super) fn elsewhere<'r>(
        &'r self,
        findings: impl Iterator<Item = &'r Finding>,
    ) -> BTreeMap<*const Finding, Vec<Related<'r>>> {
        let all = findings.flat_map(|finding| finding.elsewhere.iter().map(move |it| (finding, it)));
        let places = all.filter_map(|(finding, it)| Some((finding, it, self.get(&it.object)?)));
        let mut places: Vec<_> = places.enumerate().collect();
        places.sort_by_key(|(_, (.., place))| (Arc::as_ptr(place.document.source()), place.document.start()));
        let mut last = LastSource::default();
        let related = places.into_iter().map(|(number, (finding, elsewhere, place))| {
            last.is_now(&place.document);
            let location = location(place.document.source(), place.caret(&elsewhere.pointer));
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
    use crate::offline::load::InputPlan;
    use crate::offline::load::load;
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
        let as_state =
            InputPlan { checked: Vec::new(), state: vec!["-".to_owned()], ..InputPlan::of_text(TEXT) };
        for plan in [InputPlan::of_text(TEXT), as_state] {
            let places = load(&plan).expect("loads").places;
            let lines: Vec<_> = places
                .0
                .iter()
                .map(|((kind, namespace, name), place)| {
                    (kind.kind, &**namespace, &**name, place.caret(&Pointer::root()).line)
                })
                .collect();
            let expected = [
                ("ArkMemory", "default", "a", 4),
                ("ArkMemory", "default", "c", 9),
                ("ArkMemory", "team-b", "b", 11),
                ("Namespace", "", "d", 13),
            ];
            assert_eq!(lines, expected);
        }
    }
}
