//! What a pod gets, as a hint behind the kind of pods, workloads and agents: from the decision that `mutate` makes.

use lsp_types::{InlayHint, InlayHintLabel, InlayHintTooltip, MarkupContent, MarkupKind};
use serde_json::{Value, json};

use crate::navigation::Question;
use crate::objects::{Loaded, load_views};
use crate::positions::Lines;
use memgate_core::admission::{Admitted, admit};
use memgate_core::decide::added::{Item, marked};
use memgate_model::finding::Cause;
use memgate_model::kind::Kind;
use memgate_model::memory_view::Role;
use memgate_model::reason::Reason;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::credential::masked_keys;
use memgate_workbench::injected::describe;
use memgate_workbench::load::Error;
use memgate_workbench::objects::{UndecidedObject, open_state};
use memgate_workbench::report::{counted, plain};

/// The hints of the objects in a range of an open file.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn hints(question: &Question<'_>) -> Result<Vec<InlayHint>, Error> {
    let lines = Lines::new(&question.buffer.text, question.encoding);
    let mut hints = Vec::new();
    for Loaded { inputs, objects } in load_views(&question.run, |place| question.is_in(place))? {
        let states = [&inputs.snapshot, &open_state(&inputs.snapshot)];
        for viewed in objects.iter().filter(|viewed| !viewed.views.is_empty()) {
            let object = &viewed.object.object;
            let place = object.place.locate(&object.hint_place());
            let kind = place.key.unwrap_or(place.caret);
            let is_pod = viewed.views.iter().any(|view| view.role == Role::Pod);
            let pod = if is_pod { of_object(&viewed.object) } else { of_agent(&viewed.object, states[0]) };
            if let Some(pod) = pod.filter(|_| question.touches(kind.start, kind.start)) {
                hints.extend(hint(&pod, states).map(|(label, tooltip)| InlayHint {
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
    /// Whether it is in no file, so that its fields mean nothing to the author.
    is_made_up: bool,
}

/// The pod, or the pod of a workload.
fn of_object(undecided: &UndecidedObject) -> Option<HintedPod> {
    let request = undecided.request();
    let (title, namespace) = (undecided.object.pod_title(), request.namespace.clone().into_owned());
    Some(HintedPod { title, namespace, json: request.object?.to_owned(), is_made_up: false })
}

/// A pod as the platform would create it for an agent.
fn of_agent(undecided: &UndecidedObject, snapshot: &Snapshot) -> Option<HintedPod> {
    let request = undecided.request();
    let (family, kind): (_, &Kind) =
        memgate_platforms::validated(&snapshot.settings.families, &request.group, &request.kind)?;
    let object_ref = &undecided.object.object_ref;
    let labels = family.pods.labels_for_agent?(kind, &object_ref.namespace, &object_ref.name)?;
    let metadata = json!({"name": &*object_ref.name, "namespace": &*object_ref.namespace, "labels": labels});
    let containers = json!([{"name": "agent", "image": "agent"}]);
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}});
    let (title, namespace) = (format!("pods of {}", object_ref.title()), object_ref.namespace.to_string());
    Some(HintedPod { title, namespace, json: pod.to_string(), is_made_up: true })
}

/// The label and the details; `None` for a pod that cannot be decided. In the second state, kinds of which the files hold
/// no object are unknown.
fn hint(pod: &HintedPod, [snapshot, open]: [&Snapshot; 2]) -> Option<(String, MarkupContent)> {
    let request = Request::to_create_pod(&pod.namespace, "", &pod.json);
    let admitted = admit(&request, snapshot).ok()?;
    let stored: Value = serde_json::from_str(admitted.object.as_deref()?).ok()?;
    let is_missing = |it: &Admitted| it.decision.findings.iter().any(|it| it.cause == Cause::NotFound);
    let is_unknown = is_missing(&admitted) && admit(&request, open).is_ok_and(|open| !is_missing(&open));
    let items = marked(&stored).unwrap_or_default();
    let mut value = describe(&pod.title, &stored);
    for finding in &admitted.decision.findings {
        let message = finding.message();
        let field = format!("{}: ", finding.pointer.field());
        let message = message.strip_prefix(&field).filter(|_| pod.is_made_up).unwrap_or(&message);
        let unknown = is_unknown && finding.cause == Cause::NotFound;
        let unknown = if unknown { " (the files hold no object of this kind)" } else { "" };
        value = value + &plain(message) + unknown + "\n";
    }
    let label = match admitted.decision.reason {
        _ if !admitted.allowed() => "the pod is refused".to_owned(),
        _ if !items.is_empty() => added(&items),
        Reason::OptedOut => "the pod opts out of its memory".to_owned(),
        _ if is_unknown => "the memory of the pod is not known".to_owned(),
        _ => "the pod gets no memory".to_owned(),
    };
    // Nothing in it can end the block.
    let value = format!("```text\n{}\n```", masked_keys(&value).replace("```", "'''").trim_end());
    Some((label, MarkupContent { kind: MarkupKind::Markdown, value }))
}

fn added(items: &[Item]) -> String {
    let count = |is_one: fn(&Item) -> bool| items.iter().filter(|item| is_one(item)).count();
    let counts = [
        (count(|item| matches!(item, Item::Env(..))), "variable"),
        (count(|item| matches!(item, Item::InitContainer(_))), "init container"),
        (count(|item| matches!(item, Item::Volume(_))), "volume"),
        (count(|item| matches!(item, Item::Mount(..))), "mount"),
    ];
    let parts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(count, noun));
    format!("the pod gets {}", parts.collect::<Vec<_>>().join(", "))
}
