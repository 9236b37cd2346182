//! The views of the objects in files, on which rules of policies are judged.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::files::copied::CopiedSecrets;
use crate::files::errors::fault_of;
use crate::files::inputs::Inputs;
use crate::files::objects::UndecidedObject;
use crate::report::ObjectRef;
use memgate_core::admission::admit;
use memgate_core::decide::views::views;
use memgate_manifest::error::Error;
use memgate_manifest::rewrite::yaml;
use memgate_manifest::source::Source;
use memgate_model::memory_view::MemoryView;
use memgate_model::request::Occasion;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::credential::{hide, is_credential_name, masked, masked_start, masked_value};
use memgate_primitives::plain_text::{cut, plain, shown_key, shown_name};

/// An object with its views: one by each family that knows it.
#[derive(Debug)]
pub struct ViewedObject {
    /// The file in which it stands, and the line.
    place: (Arc<Source>, usize),
    /// Its name in reports; for a pod of a workload that of the workload.
    pub object_ref: ObjectRef,
    /// Its views; for a workload those of its pod.
    pub views: Vec<MemoryView>,
    /// What is not shown of them.
    copied: Arc<CopiedSecrets>,
}

/// The objects of the inputs that have a view, in document order. Errors of objects that cannot be decided go to the inputs.
pub fn view(inputs: &mut Inputs, occasion: Occasion<'static>) -> Vec<ViewedObject> {
    let (mut objects, errors) = views_in(inputs, &inputs.snapshot, occasion);
    inputs.errors.extend(errors);
    objects.retain(|object| !object.views.is_empty());
    objects
}

/// The views of every object as it would be stored, and of every workload's pod as it would be created; and the errors
/// of objects that cannot be decided.
pub(crate) fn views_in(
    inputs: &Inputs,
    state: &Snapshot,
    occasion: Occasion<'static>,
) -> (Vec<ViewedObject>, Vec<Error>) {
    let (mut viewed, mut errors) = (Vec::new(), Vec::new());
    let copied = Arc::new(CopiedSecrets::of(&inputs.origins));
    for undecided in inputs.objects.iter().filter(|it| !it.is_exempt()) {
        match view_object(undecided, state, occasion) {
            Ok(object) => viewed.push(ViewedObject { copied: Arc::clone(&copied), ..object }),
            Err(error) => errors.push(error),
        }
    }
    (viewed, errors)
}

/// The views of one object.
///
/// # Errors
/// When the object cannot be decided.
fn view_object(
    undecided: &UndecidedObject,
    snapshot: &Snapshot,
    occasion: Occasion<'static>,
) -> Result<ViewedObject, Error> {
    let request = undecided.request_at(occasion);
    let admitted = admit(&request, snapshot).map_err(|fault| fault_of(&undecided.object, &fault))?;
    let views = views(&request, admitted.object.as_deref().unwrap_or_default(), snapshot);
    let (source, line) = undecided.object.file_and_line();
    let object_ref = undecided.object.object_ref.clone();
    Ok(ViewedObject { place: (Arc::clone(source), line), object_ref, views, copied: Arc::default() })
}

/// The views, each below a comment that names its object.
pub fn documents(objects: &[ViewedObject]) -> String {
    let mut text = String::new();
    for ViewedObject { place, object_ref, views, copied } in objects {
        let (title, file, line) = (object_ref.title(), place.0.name(), place.1);
        for view in views {
            if !text.is_empty() {
                text.push_str("---\n");
            }
            let _ = writeln!(text, "# {}", in_one_line(&format!("{title} ({file}:{line})")));
            for (path, why) in view.unknown() {
                let _ = writeln!(text, "# {}", in_one_line(&format!("{path}: unknown, because {why}")));
            }
            for path in view.remarked() {
                let remark = view.remark(path, &view.namespace);
                let _ = writeln!(text, "# {}", in_one_line(&format!("{path}{remark}")));
            }
            text.push_str(&copied.masked(&yaml(&shown(view))));
        }
    }
    text
}

/// Text from user input in a comment. Some readers of YAML end a line at U+2028 and U+2029.
pub(crate) fn in_one_line(text: &str) -> String {
    plain(&masked(text)).replace(['\u{2028}', '\u{2029}'], " ")
}

/// A view as it is printed, with credentials in labels and names masked, and annotations cut.
fn shown(view: &MemoryView) -> Value {
    /// The most characters of an annotation.
    const MAX_CHARS: usize = 64;
    let mut value = view.to_json();
    mask("", &mut value);
    for text in value.get_mut("annotations").and_then(Value::as_object_mut).into_iter().flatten() {
        if let (_, Value::String(text)) = text {
            *text = cut(text, MAX_CHARS).into_owned();
        }
    }
    value
}

/// The most characters of a text in a map or a page: more than the longest name that Kubernetes accepts.
const MAX_SHOWN_CHARS: usize = 256;

/// A short text of an input: on one line, with credentials masked, and cut.
pub(crate) fn shown_text(text: &str) -> String {
    cut(&masked_start(text), MAX_SHOWN_CHARS).into_owned()
}

/// Hides a URL that was made of names, if they cannot be names: they would stand in other parts of it. Those of Services
/// begin with `http`; the defaults of platforms, with `https` or this machine.
fn hide_made(endpoint: &mut Map<String, Value>) {
    let is_made = matches!(endpoint.get("from").and_then(Value::as_str), Some("service" | "derived"));
    let of_service = |url: &str| url.strip_prefix("http://").is_some_and(|it| !it.starts_with("localhost:"));
    let authority = |url: &str| Some(url.split_once("://")?.1.split('/').next()?.contains(".svc"));
    let url = endpoint.get("url").and_then(Value::as_str).filter(|url| of_service(url));
    if is_made && url.is_some_and(|url| authority(url) != Some(true)) {
        for field in ["url", "host", "path"] {
            if let Some(value) = endpoint.get_mut(field) {
                *value = "…".into();
            }
        }
    }
}

/// Masks the credentials in all texts of a value below a key. The recursion is bounded by the depth of a view.
fn mask(key: &str, value: &mut Value) {
    match value {
        Value::String(text) if is_credential_name(key) => {
            *text = hide(text, std::iter::once(0..text.len()).collect());
        }
        // It may be the start of a name.
        Value::String(text) if matches!(key, "name" | "namespace") => {
            if let Cow::Owned(shown) = shown_name(text.trim_end_matches(['-', '.'])) {
                *text = shown;
            }
        }
        Value::String(text) if key == "key" => *text = shown_key(text).into_owned(),
        // Of a text with several lines each would begin a line of the output.
        Value::String(text) => *text = plain(&masked_value(text)).into_owned(),
        Value::Array(list) => list.iter_mut().for_each(|element| mask(key, element)),
        Value::Object(map) => {
            hide_made(map);
            for (key, mut value) in std::mem::take(map) {
                mask(&key, &mut value);
                map.insert(shown_key(&key).into_owned(), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::plan::Plan;
    use crate::files::load::load;

    const TEXT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: runs, namespace: ops}
spec:
  template:
    metadata: {labels: {sympozium.ai/component: agent-run, sympozium.ai/instance: triage}}
    spec: {containers: [{name: agent, image: own}]}
---
apiVersion: sympozium.ai/v1alpha1
kind: Agent
metadata: {name: triage, namespace: ops}
spec: {agents: {default: {model: m}}, skills: [{skillPackRef: memory}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
";

    #[test]
    fn sees_the_pod_of_a_workload_with_what_is_added() {
        let mut inputs = load(&Plan::of_text(TEXT)).expect("loads");
        let viewed = view(&mut inputs, Occasion::default());
        let titles: Vec<String> = viewed.iter().map(|object| object.object_ref.title()).collect();
        assert_eq!(titles, ["Deployment ops/runs", "Agent ops/triage"]);
        let pod = viewed.first().and_then(|object| object.views.first()).expect("a view");
        let names: Vec<(&str, bool)> = pod.containers.iter().map(|it| (it.name.as_str(), it.added)).collect();
        assert_eq!((pod.kind, names), ("Pod", vec![("memory-server", true)]));
        assert_eq!(pod.sources.first().map(|source| source.view.name.as_str()), Some("triage"));
    }

    #[test]
    fn shows_the_address_of_a_platform_and_hides_one_made_of_what_is_no_name() {
        for (place, host, text) in [
            (
                "/embedding/endpoint/host",
                "api.openai.com",
                "apiVersion: orloj.dev/v1\nkind: Memory\nmetadata: {name: m}\nspec: {embedding_model: e}\n---\n\
                 apiVersion: orloj.dev/v1\nkind: ModelEndpoint\nmetadata: {name: e}\nspec: {provider: openai}",
            ),
            (
                "/endpoint/host",
                "…",
                "apiVersion: ark.mckinsey.com/v1alpha1\nkind: Memory\nmetadata: {name: m}\n\
                 spec: {address: {valueFrom: {serviceRef: {name: hunter2/x}}}}",
            ),
        ] {
            let mut inputs = load(&Plan::of_text(text)).expect("loads");
            let viewed = view(&mut inputs, Occasion::default());
            let shown = viewed.first().and_then(|object| object.views.first()).map(shown).expect("a view");
            assert_eq!(shown.pointer(place).and_then(Value::as_str), Some(host), "{shown}");
        }
    }
}
