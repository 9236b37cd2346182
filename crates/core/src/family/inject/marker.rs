//! The marker annotation: the version of memgate, and everything that it added to a pod.
//!
//! The apiserver calls memgate again if another webhook changed the pod after it; the annotation then
//! keeps what the first call added.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value as Json;

use crate::model::edit::{Edit, Entry, Op, Origin, Value};
use crate::model::family::Family;
use crate::model::pod::Pod;
use crate::model::pointer::Pointer;

use super::INJECTED_ANNOTATION;
use crate::model::injection::Added;

#[derive(Serialize)]
struct Marker<'a> {
    version: &'static str,
    family: &'static str,
    #[serde(flatten)]
    added: &'a Added,
}

/// The edit that writes the marker annotation of an injection.
#[must_use]
pub fn edit(pod: &Pod<'_>, family: &Family, added: Added) -> Edit {
    let earlier = pod.annotation(INJECTED_ANNOTATION);
    let added = match earlier.and_then(|text| read(text, family)) {
        Some(earlier) => earlier.merged_with(added),
        None => added,
    };
    let marker = Marker { version: env!("CARGO_PKG_VERSION"), family: family.name, added: &added };
    let text = serde_json::to_string(&marker).unwrap_or_default();
    let annotations = Pointer::new("/metadata/annotations");
    let origins =
        vec![Origin { resource: "".into(), field: "".into(), rule: "what memgate added to this pod" }];
    let has_map = pod.metadata.as_ref().is_some_and(|metadata| metadata.annotations.is_some());
    let (op, pointer, value) = match (has_map, earlier) {
        (false, _) => (Op::Add, annotations, Value::Entry(Entry(INJECTED_ANNOTATION.to_owned(), text))),
        (true, Some(_)) => (Op::Replace, annotations.key(INJECTED_ANNOTATION), Value::Text(text)),
        (true, None) => (Op::Add, annotations.key(INJECTED_ANNOTATION), Value::Text(text)),
    };
    Edit { op, pointer, value, origins }
}

/// Reads the annotation; `None` if it was not written for this family.
fn read(text: &str, family: &Family) -> Option<Added> {
    let marker: Json = serde_json::from_str(text).ok()?;
    let ours = marker.get("family").and_then(Json::as_str) == Some(family.name);
    ours.then(|| Added {
        memory: texts(marker.get("memory")),
        env: lists(marker.get("env")),
        init_containers: texts(marker.get("initContainers")),
        volumes: texts(marker.get("volumes")),
        mounts: lists(marker.get("mounts")),
    })
}

/// The strings of a list, or the only one.
fn texts(value: Option<&Json>) -> Vec<String> {
    let one = value.and_then(Json::as_str).into_iter();
    let many = value.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    one.chain(many).map(str::to_owned).collect()
}

type Lists = Vec<(String, Vec<Cow<'static, str>>)>;

fn lists(value: Option<&Json>) -> Lists {
    let entries = value.and_then(Json::as_object).into_iter().flatten();
    let list = |list| texts(Some(list)).into_iter().map(Cow::from).collect();
    entries.map(|(key, value)| (key.clone(), list(value))).collect()
}

impl Added {
    /// This together with later additions, without duplicates.
    fn merged_with(mut self, later: Self) -> Self {
        add_new(&mut self.memory, later.memory);
        add_new(&mut self.init_containers, later.init_containers);
        add_new(&mut self.volumes, later.volumes);
        add_lists(&mut self.env, later.env);
        add_lists(&mut self.mounts, later.mounts);
        self
    }
}

fn add_new<T: PartialEq>(all: &mut Vec<T>, later: Vec<T>) {
    for item in later {
        if !all.contains(&item) {
            all.push(item);
        }
    }
}

fn add_lists(all: &mut Lists, later: Lists) {
    for (key, list) in later {
        match all.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => add_new(known, list),
            None => all.push((key, list)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(annotation: Option<&str>, added: Added) -> String {
        let annotations = annotation.map(|text| serde_json::json!({ INJECTED_ANNOTATION: text }));
        let pod = serde_json::json!({"metadata": {"annotations": annotations}}).to_string();
        match edit(&Pod::parse(&pod).expect("a pod"), &crate::family::sympozium::FAMILY, added).value {
            Value::Text(text) | Value::Entry(Entry(_, text)) => text,
            other => panic!("{other:?}"),
        }
    }

    fn added(memory: &str, variables: &[&'static str]) -> Added {
        Added {
            memory: vec![memory.to_owned()],
            env: vec![("agent".to_owned(), variables.iter().copied().map(Cow::from).collect())],
            volumes: vec!["v".to_owned()],
            ..Added::default()
        }
    }

    #[test]
    fn names_what_was_added_before_too() {
        let first = text(None, added("Agent/a", &["A", "B"]));
        let second = text(Some(&first), added("Ensemble/e", &["B", "C"]));
        let marker: Json = serde_json::from_str(&second).expect("JSON");
        assert_eq!(marker["memory"], serde_json::json!(["Agent/a", "Ensemble/e"]));
        assert_eq!(marker["env"], serde_json::json!({"agent": ["A", "B", "C"]}));
        assert_eq!(marker["volumes"], serde_json::json!(["v"]));
        assert_eq!(text(Some(&second), added("Agent/a", &["A"])), second);
    }

    #[test]
    fn ignores_other_annotations_and_malformed_fields() {
        let only = text(None, added("Agent/a", &["A"]));
        for other in ["", "hello", "[]", r#"{"family":"ark","memory":"Memory/x"}"#, r#"{"memory":"Agent/x"}"#]
        {
            assert_eq!(text(Some(other), added("Agent/a", &["A"])), only, "{other}");
        }
        let malformed = r#"{"family":"sympozium","memory":1,"env":{"agent":{"x":1}},"volumes":[2,null]}"#;
        assert_eq!(text(Some(malformed), added("Agent/a", &["A"])), only);
    }
}
