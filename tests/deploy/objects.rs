//! Sets of Kubernetes objects.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use memgate_manifest::{document::parse, source::Source};
use serde_json::{Value, json};

/// Objects by kind, namespace and name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// The image that `deploy/kustomize/base` names.
const IMAGE: &str = concat!("--image=memgate:", env!("CARGO_PKG_VERSION"));

/// The objects that `memgate manifests` prints with these arguments.
pub(crate) fn printed(arguments: &[&str]) -> Objects {
    read(&text(arguments))
}

/// What `memgate manifests` prints with these arguments.
pub(crate) fn text(arguments: &[&str]) -> String {
    let has_image = arguments.iter().any(|argument| argument.starts_with("--image="));
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
    let output = command
        .arg("manifests")
        .args((!has_image).then_some(IMAGE))
        .args(arguments)
        .env_clear()
        .output()
        .expect("memgate starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "memgate manifests {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("is text")
}

/// The objects in a YAML text.
pub(crate) fn read(text: &str) -> Objects {
    let parsed = parse(&Arc::new(Source::new("objects", text)));
    assert!(parsed.errors.is_empty(), "{:?}\n{text}", parsed.errors);
    let mut objects = Objects::new();
    for document in &parsed.documents {
        let object = document.value().clone();
        let part =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = [part("/kind"), part("/metadata/namespace"), part("/metadata/name")].join(" ");
        assert!(objects.insert(name.clone(), object).is_none(), "{name} comes twice");
    }
    objects
}

/// Fails with the first differences when two sets are not the same.
pub(crate) fn compare(what: &str, rendered: Objects, written: Objects) {
    let mut differences = Vec::new();
    let (rendered, written) = (normal(rendered), normal(written));
    for name in rendered.keys().chain(written.keys().filter(|name| !rendered.contains_key(*name))) {
        match (rendered.get(name), written.get(name)) {
            (Some(rendered), Some(written)) => differ(name, rendered, written, &mut differences),
            (Some(_), None) => differences.push(format!("{name} is not there")),
            (None, _) => differences.push(format!("{name} is there, but should not")),
        }
    }
    assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
}

/// Takes out what makes no difference to Kubernetes: lists that are empty rather than absent. The order of webhook entries
/// and of flags stays, so that another way to install changes nothing.
fn normal(objects: Objects) -> Objects {
    let normal = |(name, mut object): (String, Value)| {
        drop_empty(&mut object);
        (name, object)
    };
    objects.into_iter().map(normal).collect()
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| *field != json!([]));
            fields.values_mut().for_each(drop_empty);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Notes where two objects differ, pointer by pointer.
pub(crate) fn differ(path: &str, rendered: &Value, written: &Value, differences: &mut Vec<String>) {
    match (rendered, written) {
        (Value::Object(rendered), Value::Object(written)) => {
            for key in rendered.keys().chain(written.keys().filter(|key| !rendered.contains_key(*key))) {
                let [one, other] = [rendered, written].map(|fields| fields.get(key).unwrap_or(&Value::Null));
                differ(&format!("{path}/{key}"), one, other, differences);
            }
        }
        (Value::Array(rendered), Value::Array(written)) if rendered.len() == written.len() => {
            for (index, (one, other)) in rendered.iter().zip(written).enumerate() {
                differ(&format!("{path}/{index}"), one, other, differences);
            }
        }
        _ if rendered == written => {}
        _ => differences.push(format!("{path}:\n  rendered {rendered}\n  written  {written}")),
    }
}
