//! Where the objects of the state stand in the files: what a decision knows of another object is its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::manifest::document::Document;
use crate::manifest::place::{DocumentPlace, LastSource};
use crate::model::elsewhere::Elsewhere;
use crate::model::finding::Finding;
use crate::model::object::Reference;
use crate::model::pointer::Pointer;
use crate::model::settings::Settings;
use crate::offline::errors::location;
use crate::report::Related;
use crate::state;

/// The places of objects by their names, those of `--with` among them. Of two with one name the later one counts, as
/// it does in the state.
#[derive(Debug, Default)]
pub struct Places(BTreeMap<Reference, ObjectPlace>);

/// The place of an object.
#[derive(Debug)]
struct ObjectPlace {
    document: DocumentPlace,
    /// Where in the document: empty, or `/items/3` inside a List that was not taken apart.
    within: Pointer,
}

/// A place that a finding asks for.
struct Wanted<'r> {
    finding: &'r Finding,
    elsewhere: &'r Elsewhere,
    place: &'r ObjectPlace,
    start: usize,
}

impl Places {
    /// Adds the object of a document, or each of a List or of a plain list of objects.
    pub(super) fn add(&mut self, document: &Document, settings: &Settings) {
        let value = document.value();
        self.add_value(
            document,
            value,
            (text(value, "apiVersion"), text(value, "kind")),
            &Pointer::root(),
            settings,
        );
    }

    /// The recursion is bounded: a value is at most so many levels deep as the reader takes.
    fn add_value(
        &mut self,
        document: &Document,
        value: &Value,
        (api_version, kind): (&str, &str),
        within: &Pointer,
        settings: &Settings,
    ) {
        let items = match value {
            Value::Array(items) => Some((items, within.clone())),
            _ => {
                let items = value.get("items").filter(|_| kind.ends_with("List")).and_then(Value::as_array);
                items.map(|items| (items, within.key("items")))
            }
        };
        let Some((items, list)) = items else {
            let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
            if let Some(reference) = state::reference(settings, group, kind, value) {
                let place = ObjectPlace { document: document.place().clone(), within: within.clone() };
                self.0.insert(reference, place);
            }
            return;
        };
        for (index, item) in items.iter().enumerate() {
            // Items of a list of the API leave out what the list says for all of them.
            let is_bare = item.get("apiVersion").is_none() && item.get("kind").is_none();
            let names = match kind.strip_suffix("List").filter(|item| is_bare && !item.is_empty()) {
                Some(kind) => (api_version, kind),
                None => (text(item, "apiVersion"), text(item, "kind")),
            };
            self.add_value(document, item, names, &list.index(index), settings);
        }
    }

    /// What findings say of other objects, by finding. Places of one document are looked up together, since its text
    /// may have to be read again for them.
    pub(super) fn elsewhere<'r>(
        &'r self,
        findings: impl Iterator<Item = &'r Finding>,
    ) -> BTreeMap<*const Finding, Vec<Related<'r>>> {
        let wanted = findings.flat_map(|finding| finding.elsewhere.iter().map(move |it| (finding, it)));
        let wanted = wanted.filter_map(|(finding, elsewhere)| {
            let place = self.0.get(&elsewhere.object)?;
            Some(Wanted { finding, elsewhere, place, start: place.document.span().start })
        });
        let mut wanted: Vec<(usize, Wanted<'r>)> = wanted.enumerate().collect();
        wanted.sort_by_key(|(_, it)| (Arc::as_ptr(it.place.document.source()), it.start));
        let mut last = LastSource::default();
        let related = wanted.into_iter().map(|(number, it)| {
            last.is_now(&it.place.document);
            (number, std::ptr::from_ref(it.finding), it.related())
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

impl<'r> Wanted<'r> {
    fn related(&self) -> Related<'r> {
        let ObjectPlace { document, within } = self.place;
        let (caret, _) = document.locate(&within.join(&self.elsewhere.pointer)).carets(false);
        Related { location: location(document.source(), caret), label: self.elsewhere.label.to_owned() }
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::document::{parse, values};
    use crate::manifest::source::Source;

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
    fn knows_objects_as_the_state_does() {
        let source = Arc::new(Source::new("x", TEXT));
        let settings = Settings::default();
        for documents in [parse(&source).documents, values(&source, &mut Vec::new())] {
            let mut places = Places::default();
            for document in &documents {
                places.add(document, &settings);
            }
            let lines: Vec<_> = places
                .0
                .iter()
                .map(|(object, place)| {
                    let line = place.document.locate(&place.within).caret.line;
                    (object.kind.kind, object.namespace.as_str(), object.name.as_str(), line)
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
