//! Where the objects of the state stand in the files: what a decision knows of another object is its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::manifest::document::Document;
use crate::manifest::place::{DocumentPlace, LastSource};
use crate::manifest::source::{Source, Span};
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
    /// Adds an object of a document, which stands in there at `within`.
    pub(super) fn add(&mut self, document: &Document, within: &Pointer, value: &Value, settings: &Settings) {
        if let Some(reference) = state::reference(settings, value) {
            let place = ObjectPlace { document: document.place().clone(), within: within.clone() };
            self.0.insert(reference, place);
        }
    }

    /// Adds those of other inputs, in the place of its own of the same names.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Where a place of an object stands.
    pub(super) fn span(&self, object: &Reference, pointer: &Pointer) -> Option<(Arc<Source>, Span)> {
        let ObjectPlace { document, within } = self.0.get(object)?;
        let (caret, _) = document.locate(&within.join(pointer)).carets(false);
        Some((Arc::clone(document.source()), caret))
    }

    /// Where a place of an object stands: file, line and column.
    #[must_use]
    pub fn describe(&self, object: &Reference, pointer: &Pointer) -> Option<String> {
        let (source, span) = self.span(object, pointer)?;
        Some(format!("{}:{}:{}", source.name(), span.line, span.column))
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

#[cfg(test)]
mod tests {
    use crate::offline::load::load;
    use crate::offline::plan::InputPlan;

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
        let as_state =
            InputPlan { checked: Vec::new(), state: vec!["-".to_owned()], ..InputPlan::of_text(TEXT) };
        for plan in [InputPlan::of_text(TEXT), as_state] {
            let places = load(&plan).expect("loads").places;
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
