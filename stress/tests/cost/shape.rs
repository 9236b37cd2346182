//! The shapes of all kinds: each list, map, object, text and number that an object of a kind can hold.
//!
//! Kinds of platforms have theirs from their CRDs. Pods, workloads and metadata are written down here: no
//! CRD has them.

use std::fmt;
use std::sync::Arc;

use anyhow::{Result, ensure};
use memgate_manifest::{document::parse, source::Source};
use serde_json::{Value, json};

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A field of an object.
    Field(String),
    /// The first element of a list.
    Item,
    /// Some value of a map.
    Entry,
}

/// What may stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    List,
    Map,
    Object,
    Text,
    Number,
    Any,
}

/// A place in the objects of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) steps: Vec<Step>,
    pub(crate) sort: Sort,
    /// The schema of the value at this place.
    pub(crate) schema: Value,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            match step {
                Step::Field(name) if index == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item => f.write_str("[]")?,
                Step::Entry => f.write_str("{}")?,
            }
        }
        Ok(())
    }
}

/// The schema of a kind, metadata included; `None` for a kind without a bundled schema.
pub(crate) fn schema(api_version: &str, kind: &str) -> Result<Option<Value>> {
    let pod = || json!({"type": "object", "properties": {"metadata": metadata(), "spec": pod_spec()}});
    let workload = |steps: &[&str]| {
        let spec = steps
            .iter()
            .rev()
            .fold(pod(), |inner, step| json!({"type": "object", "properties": {*step: inner}}));
        json!({"type": "object", "properties": {"metadata": metadata(), "spec": spec}})
    };
    Ok(match (api_version, kind) {
        ("v1", "Pod") => Some(pod()),
        ("v1", "Namespace") => Some(json!({"type": "object", "properties": {"metadata": metadata()}})),
        (_, "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job") => {
            Some(workload(&["template"]))
        }
        (_, "CronJob") => Some(workload(&["jobTemplate", "spec", "template"])),
        _ => defined(api_version, kind)?,
    })
}

fn defined(api_version: &str, kind: &str) -> Result<Option<Value>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    for file in memgate_platforms::ALL.iter().flat_map(|family| family.definitions.crds) {
        let parsed = parse(&Arc::new(Source::new("a bundled CRD", file())));
        ensure!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        for document in &parsed.documents {
            let spec = &document.value()["spec"];
            if spec["group"] != group || spec["names"]["kind"] != kind {
                continue;
            }
            let versions = spec["versions"].as_array().into_iter().flatten();
            let mut schemas = versions.filter(|it| it["name"] == version);
            if let Some(found) = schemas.next() {
                let mut schema = found["schema"]["openAPIV3Schema"].clone();
                schema["properties"]["metadata"] = metadata();
                return Ok(Some(schema));
            }
        }
    }
    Ok(None)
}

/// All places of a schema, the object itself among them.
pub(crate) fn places(schema: &Value) -> Vec<Place> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, steps: &mut Vec<Step>, found: &mut Vec<Place>) {
    found.push(Place { steps: steps.clone(), sort: sort(schema), schema: schema.clone() });
    let mut below = |step: Step, schema: &Value| {
        steps.push(step);
        collect(schema, steps, found);
        steps.pop();
    };
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        below(Step::Field(name.clone()), field);
    }
    if schema["additionalProperties"].is_object() {
        below(Step::Entry, &schema["additionalProperties"]);
    }
    if schema["items"].is_object() {
        below(Step::Item, &schema["items"]);
    }
}

fn sort(schema: &Value) -> Sort {
    match schema["type"].as_str() {
        Some("array") => Sort::List,
        Some("object") if schema["additionalProperties"].is_object() => Sort::Map,
        Some("object") => Sort::Object,
        Some("string") => Sort::Text,
        Some("integer" | "number") => Sort::Number,
        _ => Sort::Any,
    }
}

fn texts() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

fn object(required: &[&str], properties: &Value) -> Value {
    json!({"type": "object", "required": required, "properties": properties})
}

fn metadata() -> Value {
    let owner = json!({
        "apiVersion": text(), "kind": text(), "name": text(), "uid": text(),
        "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
    });
    let managed = json!({
        "manager": text(), "operation": text(), "apiVersion": text(), "time": text(),
        "fieldsType": text(), "fieldsV1": texts(), "subresource": text(),
    });
    json!({"type": "object", "properties": {
        "name": text(), "generateName": text(), "namespace": text(), "uid": text(),
        "resourceVersion": text(), "creationTimestamp": text(), "deletionTimestamp": text(),
        "generation": {"type": "integer"},
        "labels": texts(), "annotations": texts(), "finalizers": list(&text()),
        "ownerReferences": list(&object(&["apiVersion", "kind", "name", "uid"], &owner)),
        "managedFields": list(&object(&["manager"], &managed)),
    }})
}

fn pod_spec() -> Value {
    json!({"type": "object", "properties": {
        "containers": list(&container()), "initContainers": list(&container()),
        "ephemeralContainers": list(&container()), "volumes": list(&volume()),
        "imagePullSecrets": list(&object(&["name"], &json!({"name": text()}))),
        "tolerations": list(&object(&[], &json!({"key": text(), "operator": text(), "value": text()}))),
        "hostAliases": list(&object(&["ip"], &json!({"ip": text(), "hostnames": list(&text())}))),
        "nodeSelector": texts(), "serviceAccountName": text(), "nodeName": text(), "hostname": text(),
        "restartPolicy": text(), "schedulerName": text(), "terminationGracePeriodSeconds": {"type": "integer"},
        "os": object(&["name"], &json!({"name": text()})), "hostNetwork": {"type": "boolean"},
        "securityContext": object(&[], &json!({"runAsUser": {"type": "integer"}, "sysctls": list(&texts())})),
        "affinity": object(&[], &json!({"nodeAffinity": texts()})), "overhead": texts(),
    }})
}

fn container() -> Value {
    let key = object(&["key"], &json!({"name": text(), "key": text(), "optional": {"type": "boolean"}}));
    let from = object(
        &[],
        &json!({
            "secretKeyRef": key, "configMapKeyRef": key,
            "fieldRef": object(&["fieldPath"], &json!({"fieldPath": text()})),
        }),
    );
    let source = object(&[], &json!({"name": text()}));
    let env = object(&["name"], &json!({"name": text(), "value": text(), "valueFrom": from}));
    let env_from = json!({"prefix": text(), "secretRef": source, "configMapRef": source});
    let mount =
        json!({"name": text(), "mountPath": text(), "subPath": text(), "readOnly": {"type": "boolean"}});
    let port = json!({"name": text(), "containerPort": {"type": "integer"}, "protocol": text()});
    let probe =
        object(&[], &json!({"httpGet": object(&[], &json!({"path": text(), "port": {"type": "integer"}}))}));
    object(
        &["name"],
        &json!({
            "name": text(), "image": text(), "command": list(&text()), "args": list(&text()),
            "env": list(&env), "envFrom": list(&object(&[], &env_from)),
            "volumeMounts": list(&object(&["name", "mountPath"], &mount)),
            "volumeDevices": list(&object(&["name"], &json!({"name": text(), "devicePath": text()}))),
            "ports": list(&object(&["containerPort"], &port)), "workingDir": text(), "restartPolicy": text(),
            "resources": object(&[], &json!({"limits": texts(), "requests": texts()})), "readinessProbe": probe,
            "securityContext": object(&[], &json!({"runAsUser": {"type": "integer"}})),
        }),
    )
}

fn volume() -> Value {
    let item = object(&["key", "path"], &json!({"key": text(), "path": text()}));
    let secret = json!({"secretName": text(), "name": text(), "items": list(&item)});
    let source = object(&[], &json!({"secret": object(&[], &secret), "configMap": object(&[], &secret)}));
    object(
        &["name"],
        &json!({
            "name": text(), "emptyDir": object(&[], &json!({"medium": text(), "sizeLimit": text()})),
            "secret": object(&[], &secret), "configMap": object(&[], &secret),
            "persistentVolumeClaim": object(&["claimName"], &json!({"claimName": text()})),
            "projected": object(&[], &json!({"sources": list(&source)})),
            "hostPath": object(&["path"], &json!({"path": text()})),
            "csi": object(&["driver"], &json!({"driver": text(), "volumeAttributes": texts()})),
        }),
    )
}

/// The schema of what is one step below.
pub(crate) fn below<'s>(schema: &'s Value, step: &Step) -> &'s Value {
    match step {
        Step::Field(name) => &schema["properties"][name],
        Step::Item => &schema["items"],
        Step::Entry => &schema["additionalProperties"],
    }
}

/// The schema of a place.
pub(crate) fn schema_at<'s>(schema: &'s Value, steps: &[Step]) -> &'s Value {
    steps.iter().fold(schema, |schema, step| below(schema, step))
}

/// The schema of a review itself; what it carries is described elsewhere.
pub(crate) fn review() -> Value {
    let kind = object(&[], &json!({"group": text(), "version": text(), "kind": text()}));
    let extra = json!({"type": "object", "additionalProperties": list(&text())});
    let user = json!({"username": text(), "uid": text(), "groups": list(&text()), "extra": extra});
    let request = json!({
        "uid": text(), "name": text(), "namespace": text(), "operation": text(), "subResource": text(),
        "kind": kind, "requestKind": kind, "userInfo": object(&[], &user), "options": texts(),
    });
    json!({"type": "object", "properties": {
        "apiVersion": text(), "kind": text(), "request": object(&[], &request), "response": texts(),
    }})
}
