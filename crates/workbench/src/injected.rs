//! Describes the additions of memgate to pods, in the words of the annotation that the mutating call writes.

use std::fmt::Write as _;

use serde_json::Value;

use crate::inputs::Inputs;
use crate::objects::UndecidedObject;
use crate::report::{at_line_start, plain};
use memgate_core::decide::added::{Item, marked_by};
use memgate_platforms::inject::{INJECTED_ANNOTATION, marker};

/// Describes the additions to each pod and pod template of the inputs, each in a few lines.
pub fn describe_all(inputs: &Inputs) -> Vec<String> {
    let described = |undecided: &UndecidedObject| {
        let request = undecided.request();
        let pod = serde_json::from_str(request.object.filter(|_| request.is_pod())?).ok()?;
        Some(describe(&undecided.object.pod_title(), &pod))
    };
    inputs.objects.iter().filter_map(described).collect()
}

/// Describes the additions to a pod.
pub fn describe(title: &str, pod: &Value) -> String {
    let title = plain(title);
    let annotations = pod.pointer("/metadata/annotations");
    let annotation = annotations.and_then(|all| all.get(INJECTED_ANNOTATION)?.as_str());
    match annotation.map(serde_json::from_str::<Value>) {
        None => format!("{title}: memgate added nothing\n"),
        Some(Ok(annotation)) => marker::objects(&annotation)
            .iter()
            .fold(String::new(), |text, added| text + &format!("{title}: {}", described(added))),
        Some(Err(_)) => {
            format!(
                "{title}: the annotation {INJECTED_ANNOTATION} was not written by memgate: it is not JSON\n"
            )
        }
    }
}

/// The additions of one family, in the order of the annotation.
fn described(annotation: &Value) -> String {
    let known = |key| plain(annotation.get(key).and_then(Value::as_str).unwrap_or("unknown"));
    let mut text = format!(
        "memory of {}, added by memgate {} (platform {})\n",
        memories(annotation),
        known("version"),
        known("family")
    );
    let mut last_container = None;
    for item in marked_by(annotation) {
        let line = match item {
            Item::Env(container, name) => {
                if last_container.as_ref() != Some(&container) {
                    let _infallible = writeln!(text, "  container {}:", plain(&container));
                    last_container = Some(container);
                }
                format!("    {}", at_line_start(&name))
            }
            Item::InitContainer(name) => format!("  init container {}", plain(&name)),
            Item::Volume(name) => format!("  volume {}", plain(&name)),
            Item::ImagePullSecret(name) => format!("  imagePullSecret {}", plain(&name)),
            Item::FsGroup(group) => format!("  fsGroup {group}"),
            Item::Mount(container, path) => {
                format!("  mount {} in container {}", plain(&path), plain(&container))
            }
        };
        let _infallible = writeln!(text, "{line}");
    }
    text
}

/// The memory resources: one, or a list of them.
fn memories(annotation: &Value) -> String {
    let names: Vec<&str> = match annotation.get("memory") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if names.is_empty() { "unknown".to_owned() } else { plain(&names.join(", ")).into_owned() }
}
