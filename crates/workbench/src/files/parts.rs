//! Judges the open files that are only parts of what is built: a base, a patch, a template. An editor runs no tool, so of such
//! a file it shows what the definition says of the fields that are there; what the file lacks, another one may have.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::build::object_name::object_ref;
use crate::files::inputs::Inputs;
use crate::files::judge::{Checked, Decided, JudgedValues, keep_first};
use crate::files::load::fill_in;
use crate::files::objects::{CheckedObject, Filled};
use memgate_core::decide::part;
use memgate_manifest::document::{Document, parse_parts};
use memgate_manifest::later::is_marked;
use memgate_manifest::source::Source;
use memgate_model::decision::{Decision, NotShown};
use memgate_model::finding::Finding;
use memgate_model::reason::Reason;
use memgate_model::recurring_texts::RecurringTexts;
use memgate_model::request::{Occasion, Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;

/// Judges the parts among the inputs; `snapshot` has the definitions and no object.
pub(crate) fn judge(inputs: &Inputs, occasion: Occasion<'static>) -> Vec<Decided> {
    let Snapshot { settings, crds, .. } = &inputs.snapshot;
    let mut snapshot = Snapshot::new(settings.clone());
    snapshot.crds.clone_from(crds);
    let documents = inputs.parts.iter().flat_map(parse_parts).flat_map(|parsed| parsed.documents);
    let mut all: Vec<Decided> =
        documents.filter_map(|document| decided(document, &snapshot, occasion)).collect();
    all.chunks_mut(1).for_each(keep_first);
    all
}

/// Adds what was found in parts to what was checked.
pub(crate) fn add(checked: &mut Checked, parts: Vec<Decided>) {
    let texts: Vec<Arc<Source>> = std::mem::take(&mut checked.inputs.parts);
    checked.inputs.origins.add_traced(texts.into_iter());
    checked.decided.extend(parts);
}

fn decided(document: Document, snapshot: &Snapshot, occasion: Occasion<'static>) -> Option<Decided> {
    let Filled { document, later } = fill_in(document, None, None);
    let mut value = document.value().clone();
    clean_fields(&mut value);
    let (mut findings, not_shown) = findings(&document, &value, &later.unknown, snapshot, occasion)?;
    let json = value.to_string();
    let manifest = JudgedValues::whole(&json);
    for finding in &mut findings {
        let place = finding.pointer.clone();
        finding.settle_at(&place);
        manifest.pin(finding, &place);
    }
    let named = object_ref(&document, None, &mut RecurringTexts::default());
    let later = Some(Arc::new(later)).filter(|later| !later.is_empty());
    let object = CheckedObject::part(document.shared_place(), named, later);
    let reason = if findings.iter().any(Finding::is_denial) { Reason::Invalid } else { Reason::Valid };
    let decision = Decision { findings, not_shown, ..Decision::pass(reason) };
    Some(Decided { object: Box::new(object), decision, is_judged: true, users: None })
}

/// The findings about the fields that are there; `None` for kinds without a definition.
fn findings(
    document: &Document,
    value: &Value,
    later: &BTreeSet<Pointer>,
    snapshot: &Snapshot,
    occasion: Occasion<'static>,
) -> Option<(Vec<Finding>, NotShown)> {
    let json = value.to_string();
    let request = Request {
        operation: Operation::Create,
        group: document.group().into(),
        version: document.version().into(),
        kind: document.kind().into(),
        subresource: "".into(),
        namespace: document.namespace().unwrap_or_default().into(),
        name: document.name().into(),
        object: Some(&json),
        old_object: None,
        occasion: Occasion {
            later: Some(later).filter(|later| !later.is_empty()),
            is_part: true,
            ..occasion
        },
        cancelled: None,
    };
    part::findings(&request, value, snapshot)
}

/// Whether a key or an element is a word to kustomize, and not a field.
fn is_directive(key: &str) -> bool {
    ["$patch", "$retainKeys"].contains(&key)
        || key.starts_with("$setElementOrder/")
        || key.starts_with("$deleteFromPrimitiveList/")
}

/// Removes the directives of a patch, the fields that it removes, since it sets nothing there, and those whose names are not
/// known.
fn clean_fields(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, value| !is_directive(key) && !is_marked(key) && sets(value));
    }
}

/// Cleans a value in a patch, and says whether the patch sets it. An element of a list that it does not set becomes null. The
/// recursion is bounded: a value is at most as deep as a manifest may be.
fn sets(value: &mut Value) -> bool {
    match value {
        Value::Null => return false,
        Value::Object(fields) if fields.get("$patch").is_some_and(|it| it == "delete") => return false,
        Value::Object(fields) if fields.is_empty() => {}
        Value::Object(_) => {
            clean_fields(value);
            return value.as_object().is_some_and(|fields| !fields.is_empty());
        }
        Value::Array(elements) => {
            for element in elements {
                if !sets(element) {
                    *element = Value::Null;
                }
            }
        }
        _ => {}
    }
    true
}
