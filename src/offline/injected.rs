//! What memgate added to pods, read from the annotation that the mutating call leaves.

use std::io::Read;
use std::sync::Arc;

use serde_json::Value;

use crate::manifest::document::{Document, parse};
use crate::manifest::error::Error;
use crate::model::pointer::Pointer;
use crate::offline::classify::{Class, classify, object_ref};
use crate::offline::collect::collect;
use crate::report::injected::{
    InjectedContainer, InjectedPod, InjectedVariable, InjectionRecord, InjectionState, VariableValue,
};

/// The annotation in which the mutating call writes down what it added.
pub const ANNOTATION: &str = "memgate.dev/injected";

/// What was added to the pods, and to the pod templates of workloads, at `paths`; and what could not
/// be read.
#[must_use]
pub fn read(paths: &[String], stdin: &mut dyn Read) -> (Vec<InjectedPod>, Vec<Error>) {
    let collected = collect(paths, stdin);
    let mut errors = collected.errors;
    let mut pods = Vec::new();
    for source in collected.sources {
        let parsed = parse(&Arc::new(source));
        errors.extend(parsed.errors);
        pods.extend(parsed.documents.iter().filter_map(injected_pod));
    }
    (pods, errors)
}

/// `None` when the document holds no pod.
fn injected_pod(document: &Document) -> Option<InjectedPod> {
    let template = match classify(document.group(), document.kind()) {
        Class::Object if document.kind() == "Pod" => "",
        Class::Workload { template } => template,
        Class::Object | Class::PassedOver => return None,
    };
    let pod = document.value().pointer(template)?;
    let object_ref = object_ref(document, document.namespace().unwrap_or_default());
    let annotation = Pointer::root().key("metadata").key("annotations").key(ANNOTATION);
    let annotation = pod.pointer(annotation.as_str()).and_then(Value::as_str);
    let state = match annotation.map(serde_json::from_str::<Value>) {
        None => InjectionState::Nothing,
        Some(Err(_)) => InjectionState::Unreadable { annotation: ANNOTATION },
        Some(Ok(annotation)) => InjectionState::Injected(injection(&annotation, pod)),
    };
    Some(InjectedPod { object_ref, state })
}

fn injection(annotation: &Value, pod: &Value) -> InjectionRecord {
    let text = |key| annotation.get(key).and_then(Value::as_str).map(str::to_owned);
    let containers = annotation.get("env").and_then(Value::as_object).into_iter().flatten();
    let container = |(name, variables): (&String, &Value)| {
        let names = variables.as_array().into_iter().flatten().filter_map(Value::as_str);
        let variable = |variable: &str| InjectedVariable {
            name: variable.to_owned(),
            value: current_value(pod, name, variable),
        };
        InjectedContainer { name: name.clone(), variables: names.map(variable).collect() }
    };
    InjectionRecord {
        memories: memories(annotation),
        version: text("version"),
        family: text("family"),
        containers: containers.map(container).collect(),
    }
}

/// The memory resources: one, or a list of them.
fn memories(annotation: &Value) -> Vec<String> {
    match annotation.get("memory") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// What the container sees now: the last entry of the name.
fn current_value(pod: &Value, container: &str, variable: &str) -> VariableValue {
    let is_named = |value: &&Value, name: &str| value.get("name").and_then(Value::as_str) == Some(name);
    let lists = ["/spec/containers", "/spec/initContainers"];
    let mut containers = lists.iter().filter_map(|list| pod.pointer(list)?.as_array()).flatten();
    let container = containers.find(|value| is_named(value, container));
    let mut env = container.and_then(|container| container.get("env")?.as_array()).into_iter().flatten();
    let Some(entry) = env.rfind(|value| is_named(value, variable)) else { return VariableValue::Removed };
    let text = |pointer| entry.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    match (text("/valueFrom/secretKeyRef/name"), text("/valueFrom/secretKeyRef/key")) {
        (Some(secret), Some(key)) => VariableValue::SecretKey { secret, key },
        _ => VariableValue::Literal(text("/value").unwrap_or_default()),
    }
}
