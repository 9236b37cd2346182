//! Describes the additions of memgate to pods, in the words of the annotation that the mutating call writes.

use std::fmt::Write as _;

use serde_json::Value;

use crate::report::{at_line_start, plain};
use memgate_model::injection::Item;
use memgate_platforms::inject::{INJECTED_ANNOTATION, marker};
use memgate_primitives::credential::masked;

/// Describes the additions to a pod.
pub fn describe(title: &str, pod: &Value) -> String {
    let title = plain(title);
    let annotations = pod.pointer("/metadata/annotations");
    let annotation = annotations.and_then(|all| all.get(INJECTED_ANNOTATION)?.as_str());
    match annotation.map(serde_json::from_str::<Value>) {
        None => format!("{title}: memgate added nothing\n"),
        Some(Ok(annotation)) if is_own(&annotation) => marker::objects(&annotation)
            .iter()
            .fold(String::new(), |text, added| text + &format!("{title}: {}", described(added))),
        Some(_) => format!("{title}: the annotation {INJECTED_ANNOTATION} was not written by memgate\n"),
    }
}

/// Whether an annotation has the form of memgate's: each of its objects names a platform.
fn is_own(annotation: &Value) -> bool {
    let objects = marker::objects(annotation);
    !objects.is_empty() && objects.iter().all(|added| added.get("family").is_some_and(Value::is_string))
}

/// A text of the annotation, which anyone may have written.
fn shown(text: &str) -> String {
    plain(&masked(text)).into_owned()
}

/// The additions of one family, in the order of the annotation.
fn described(annotation: &Value) -> String {
    let known = |key| shown(annotation.get(key).and_then(Value::as_str).unwrap_or("unknown"));
    let items = marker::items(annotation);
    let memory = |item: &Item| if let Item::Memory(name) = item { Some(name.clone()) } else { None };
    let memories: Vec<String> = items.iter().filter_map(memory).collect();
    let mut text = format!(
        "memory of {}, added by memgate {} (platform {})\n",
        if memories.is_empty() { "unknown".to_owned() } else { shown(&memories.join(", ")) },
        known("version"),
        known("family")
    );
    let mut last_container = None;
    for item in items {
        let line = match item {
            Item::Memory(_) => continue,
            Item::Env(container, name) => {
                if last_container.as_ref() != Some(&container) {
                    let _infallible = writeln!(text, "  container {}:", shown(&container));
                    last_container = Some(container);
                }
                format!("    {}", at_line_start(&masked(&name)))
            }
            Item::InitContainer(name) => format!("  init container {}", shown(&name)),
            Item::Volume(name) => format!("  volume {}", shown(&name)),
            Item::ImagePullSecret(name) => format!("  imagePullSecret {}", shown(&name)),
            Item::FsGroup(group) => format!("  fsGroup {group}"),
            Item::Mount(container, path) => {
                format!("  mount {} in container {}", shown(&path), shown(&container))
            }
        };
        let _infallible = writeln!(text, "{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(annotation: &str) -> String {
        describe("Pod a", &json!({"metadata": {"annotations": {INJECTED_ANNOTATION: annotation}}}))
    }

    #[test]
    fn says_what_several_families_added() {
        assert_eq!(describe("Pod a", &json!({"metadata": {}})), "Pod a: memgate added nothing\n");
        let notes = json!({"version": "0.1.0", "family": "arkonis", "memory": "ArkMemory/notes", "env": {"agent": ["A", "B"]}});
        let shared =
            json!({"version": "0.1.0", "family": "ark", "memory": "Memory/shared", "env": {"agent": ["C"]}});
        let expected = "\
Pod a: memory of ArkMemory/notes, added by memgate 0.1.0 (platform arkonis)
  container agent:
    A
    B
Pod a: memory of Memory/shared, added by memgate 0.1.0 (platform ark)
  container agent:
    C
";
        assert_eq!(described(&json!([notes, shared]).to_string()), expected);
    }

    /// Anyone may have written it.
    #[test]
    fn shows_no_credential_of_an_annotation_and_says_when_it_is_not_its_own() {
        for annotation in ["[]", "5", "no"] {
            let expected = "Pod a: the annotation memgate.dev/injected was not written by memgate\n";
            assert_eq!(described(annotation), expected, "{annotation}");
        }
        let text = described(r#"{"family":"arkonis","version":"1","memory":["redis://u:hunter2@h"]}"#);
        assert_eq!(text, "Pod a: memory of redis://*********@h, added by memgate 1 (platform arkonis)\n");
    }
}
