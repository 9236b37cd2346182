//! Describes the additions of memgate to pods, from the annotation of the mutating call, with their origins as far as the
//! state shows them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::inputs::Inputs;
use crate::objects::UndecidedObject;
use crate::report::diff::describe_origin;
use crate::report::{at_line_start, plain};
use crate::unfit;
use memgate_core::decide::origins::{Given, Item, marked, marked_by, origins, present};
use memgate_manifest::mask;
use memgate_model::family::Family;
use memgate_model::pod::Pod;
use memgate_model::snapshot::Snapshot;
use memgate_platforms::inject::{INJECTED_ANNOTATION, marker};
use memgate_primitives::pointer::Pointer;

/// The description of a pod.
#[derive(Debug)]
pub struct DescribedPod {
    /// A few lines.
    pub text: String,
    /// Whether the state does not show the origin of an addition.
    pub lacks_origins: bool,
}

/// Describes the additions to each pod and pod template of the inputs.
pub fn describe_all(inputs: &Inputs) -> Vec<DescribedPod> {
    let described = |undecided: &UndecidedObject| {
        let request = undecided.request();
        let pod = serde_json::from_str(request.object.filter(|_| request.is_pod())?).ok()?;
        let title = undecided.object.pod_title();
        Some(describe(&title, &pod, &request.namespace, &inputs.snapshot))
    };
    inputs.objects.iter().filter_map(described).collect()
}

/// Describes the additions to a pod of this namespace.
pub fn describe(title: &str, pod: &Value, namespace: &str, snapshot: &Snapshot) -> DescribedPod {
    let title = plain(title);
    let shown = mask::shown_value(pod);
    let annotation = Pointer::root().key("metadata").key("annotations").key(INJECTED_ANNOTATION);
    let annotation = pod.pointer(annotation.as_str()).and_then(Value::as_str);
    let mut text = String::new();
    let mut lacks_origins = false;
    match annotation.map(serde_json::from_str::<Value>) {
        None => {
            text = format!("{title}: memgate added nothing\n");
            for (family, about) in about(pod, snapshot) {
                let _infallible = writeln!(text, "{family}: {about}");
            }
        }
        Some(Ok(annotation)) => {
            let given = origins(pod, namespace, snapshot).given;
            let variables = Variables::of(&shown);
            let present = present(pod, &marked(pod).into_iter().flatten().collect());
            for added in marker::objects(&annotation) {
                let _infallible = write!(text, "{title}: ");
                write_added(added, (&variables, &present), &given, &mut text);
                lacks_origins |= marked_by(added).iter().any(|item| !given.contains_key(item));
            }
        }
        Some(Err(_)) => {
            let _infallible = writeln!(
                text,
                "{title}: the annotation {INJECTED_ANNOTATION} was not written by memgate: it is not JSON"
            );
        }
    }
    for sentence in unfit::sentences(pod, namespace, annotation.is_some(), snapshot) {
        let _infallible = writeln!(text, "  {}", plain(&sentence));
    }
    DescribedPod { text, lacks_origins }
}

/// What platforms say of a pod of theirs that gets nothing, each with its name.
pub fn about<'s>(pod: &Value, snapshot: &'s Snapshot) -> Vec<(&'s str, &'s str)> {
    let text = pod.to_string();
    let Ok(pod) = Pod::parse(&text) else { return Vec::new() };
    let about = |family: &&'static Family| {
        let is_known = family.pods.known_otherwise.is_some_and(|knows| knows(&pod));
        Some((family.name, family.pods.about_others.filter(|_| is_known)?))
    };
    snapshot.settings.families.iter().filter_map(about).collect()
}

/// Writes the additions of one family, in the order of the annotation.
fn write_added(
    annotation: &Value,
    (variables, present): (&Variables, &BTreeMap<Item, Value>),
    given: &BTreeMap<Item, Given>,
    text: &mut String,
) {
    let known = |key| plain(annotation.get(key).and_then(Value::as_str).unwrap_or("unknown"));
    let _infallible = writeln!(
        text,
        "memory of {}, added by memgate {} (platform {})",
        memories(annotation),
        known("version"),
        known("family")
    );
    let mut last_container = None;
    for item in marked_by(annotation) {
        let line = match &item {
            Item::Env(container, name) => {
                if last_container.as_ref() != Some(container) {
                    let _infallible = writeln!(text, "  container {}:", plain(container));
                    last_container = Some(container.clone());
                }
                let value = variables.current(container, name);
                format!("    {}{}", at_line_start(name), value.unwrap_or_default())
            }
            Item::InitContainer(name) => format!("  init container {}", plain(name)),
            Item::Volume(name) => format!("  volume {}", plain(name)),
            Item::ImagePullSecret(name) => format!("  imagePullSecret {}", plain(name)),
            Item::FsGroup(group) => format!("  fsGroup {group}"),
            Item::Mount(container, path) => {
                format!("  mount {} in container {}", plain(path), plain(container))
            }
        };
        let gone = if present.contains_key(&item) { "" } else { " is no longer there" };
        let origin = given.get(&item).map(|given| origin(&item, given, variables)).unwrap_or_default();
        let _infallible = writeln!(text, "{line}{gone}{origin}");
    }
}

/// The origin of an item, and the value that it would get now, if that differs.
fn origin(item: &Item, given: &Given, variables: &Variables) -> String {
    let origin = plain(&describe_origin(&given.origin)).into_owned();
    let now = match item {
        Item::Env(container, name) => {
            let now = value(&mask::shown_value(&given.value));
            variables.current(container, name).filter(|current| *current != now).map(|_| now)
        }
        _ => None,
    };
    let now = now.map(|now| format!(", by now{}", now.replacen('=', " ", 1))).unwrap_or_default();
    format!("  ← {origin}{now}")
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

/// The current variables of a pod, by container and name. The last entry of a name counts.
struct Variables(BTreeMap<(String, String), String>);

impl Variables {
    fn of(pod: &Value) -> Self {
        let text = |value: &Value| value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let lists = ["/spec/containers", "/spec/initContainers"];
        let containers = lists.iter().filter_map(|list| pod.pointer(list)?.as_array()).flatten();
        let entries = containers.flat_map(|container| {
            let env = container.get("env").and_then(Value::as_array).into_iter().flatten();
            env.map(move |entry| ((text(container), text(entry)), value(entry)))
        });
        Self(entries.collect())
    }

    fn current(&self, container: &str, name: &str) -> Option<String> {
        self.0.get(&(container.to_owned(), name.to_owned())).cloned()
    }
}

/// The value of a variable or its source, as written behind its name.
fn value(entry: &Value) -> String {
    let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str);
    for (field, kind) in [("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")] {
        let part = |part| text(&format!("/valueFrom/{field}/{part}"));
        if let (Some(name), Some(key)) = (part("name"), part("key")) {
            return format!(" from key {} of {kind} {}", plain(key), plain(name));
        }
    }
    format!("={}", plain(text("/value").unwrap_or_default()))
}
