//! What a pod gets, as a hint behind the kind of pods, workloads and agents: from the decision that `mutate` makes.

use lsp_types::{InlayHint, InlayHintLabel, InlayHintTooltip, MarkupContent, MarkupKind, Range};
use serde_json::{Value, json};

use crate::editor::objects::load_views;
use crate::editor::positions::{Encoding, Lines};
use crate::editor::workspace::Plan;
use crate::offline::checked_object::UndecidedObject;
use crate::offline::injected::describe;
use crate::offline::load::Error;
use crate::report::{counted, plain};
use memgate_core::admission::admit;
use memgate_core::decide::origins::{Item, marked};
use memgate_core::family;
use memgate_model::kind::Kind;
use memgate_model::memory_view::Role;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::credential::masked_keys;
use memgate_primitives::pointer::Pointer;

/// The hints of the objects in a range of an open file.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn hints(
    plan: &Plan,
    file: &str,
    text: &str,
    range: Range,
    encoding: Encoding,
) -> Result<Vec<InlayHint>, Error> {
    let lines = Lines::new(text, encoding);
    let (start, end) = (lines.offset(range.start), lines.offset(range.end));
    let mut hints = Vec::new();
    for loaded in load_views(plan, Some(file))? {
        for viewed in loaded.objects.iter().filter(|viewed| !viewed.views.is_empty()) {
            let place = &viewed.object.object.place;
            let kind = place.locate(&Pointer::root()).caret;
            let is_pod = viewed.views.iter().any(|view| view.role == Role::Pod);
            let pod = if is_pod {
                of_object(&viewed.object)
            } else {
                of_agent(&viewed.object, &loaded.inputs.snapshot)
            };
            if let Some(pod) = pod.filter(|_| (start..=end).contains(&kind.start)) {
                hints.extend(hint(&pod, &loaded.inputs.snapshot).map(|(label, tooltip)| InlayHint {
                    position: lines.position(kind.end),
                    label: InlayHintLabel::String(label),
                    kind: None,
                    text_edits: None,
                    tooltip: Some(InlayHintTooltip::MarkupContent(tooltip)),
                    padding_left: Some(true),
                    padding_right: None,
                    data: None,
                }));
            }
        }
    }
    Ok(hints)
}

/// A pod to decide about.
struct HintedPod {
    title: String,
    namespace: String,
    json: String,
}

/// The pod, or the pod of a workload.
fn of_object(undecided: &UndecidedObject) -> Option<HintedPod> {
    let request = undecided.request();
    let (title, namespace) = (undecided.object.object_ref.title(), request.namespace.clone().into_owned());
    Some(HintedPod { title, namespace, json: request.object?.to_owned() })
}

/// A pod as the platform would create it for an agent.
fn of_agent(undecided: &UndecidedObject, snapshot: &Snapshot) -> Option<HintedPod> {
    let request = undecided.request();
    let (family, kind): (_, &Kind) =
        family::validated(&snapshot.settings.families, &request.group, &request.kind)?;
    let object_ref = &undecided.object.object_ref;
    let labels = family.pods.labels_for_agent?(kind, &object_ref.namespace, &object_ref.name)?;
    let metadata = json!({"name": &*object_ref.name, "namespace": &*object_ref.namespace, "labels": labels});
    let containers = json!([{"name": "agent", "image": "agent"}]);
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}});
    let (title, namespace) = (format!("pods of {}", object_ref.title()), object_ref.namespace.to_string());
    Some(HintedPod { title, namespace, json: pod.to_string() })
}

/// The label and the details; `None` for a pod that cannot be decided.
fn hint(pod: &HintedPod, snapshot: &Snapshot) -> Option<(String, MarkupContent)> {
    let request = Request::to_create_pod(&pod.namespace, "", &pod.json);
    let admitted = admit(&request, snapshot).ok()?;
    let stored: Value = serde_json::from_str(admitted.object.as_deref()?).ok()?;
    let items = marked(&stored).unwrap_or_default();
    let mut value = describe(&pod.title, &stored, &pod.namespace, snapshot).text;
    for finding in &admitted.decision.findings {
        value = value + &plain(&finding.message()) + "\n";
    }
    // Nothing in it can end the block.
    let value = format!("```text\n{}\n```", masked_keys(&value).replace("```", "'''").trim_end());
    Some((label(&items), MarkupContent { kind: MarkupKind::Markdown, value }))
}

fn label(items: &[Item]) -> String {
    let count = |is_one: fn(&Item) -> bool| items.iter().filter(|item| is_one(item)).count();
    let counts = [
        (count(|item| matches!(item, Item::Env(..))), "variable"),
        (count(|item| matches!(item, Item::InitContainer(_))), "init container"),
        (count(|item| matches!(item, Item::Volume(_))), "volume"),
        (count(|item| matches!(item, Item::Mount(..))), "mount"),
    ];
    let parts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(count, noun));
    let parts = parts.collect::<Vec<_>>().join(", ");
    if parts.is_empty() { "the pod gets no memory".to_owned() } else { format!("the pod gets {parts}") }
}
