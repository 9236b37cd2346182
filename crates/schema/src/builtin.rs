//! The forms of pods and workloads: what an apiserver has to be able to decode of them. They are not CRDs, but
//! the same rules check them. Source: Kubernetes API reference 1.36, Pod v1 core and the workloads of apps/v1
//! and batch/v1; fields that are missing here are kept and not looked at.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::crd::CrdVersion;
use crate::parse;

/// A pod.
pub(super) static POD: LazyLock<CrdVersion> =
    LazyLock::new(|| version(&with_metadata(vec![("spec", pod_spec())])));

/// A workload whose pod template stands right below its spec.
pub(super) static WORKLOAD: LazyLock<CrdVersion> =
    LazyLock::new(|| version(&with_metadata(vec![("spec", spec_of_template())])));

/// A CronJob, in whose Jobs the pod template stands.
pub(super) static CRON_JOB: LazyLock<CrdVersion> = LazyLock::new(|| {
    let jobs = needed(&object(vec![("spec", spec_of_template())]), "spec");
    version(&with_metadata(vec![("spec", needed(&object(vec![("jobTemplate", jobs)]), "jobTemplate"))]))
});

fn version(schema: &Value) -> CrdVersion {
    CrdVersion {
        name: "v1".to_owned(),
        served: true,
        has_status: true,
        replicas: None,
        schema: parse::node(schema),
    }
}

/// An object whose `metadata` is checked by rules of its own.
fn with_metadata(fields: Vec<(&str, Value)>) -> Value {
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    needed(&object([vec![("metadata", any)], fields].concat()), "spec")
}

/// What is inside the template is checked with the pod that is made of it.
fn spec_of_template() -> Value {
    let template = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    needed(&object(vec![("template", template)]), "template")
}

fn pod_spec() -> Value {
    let texts =
        ["dnsPolicy", "hostname", "nodeName", "preemptionPolicy", "priorityClassName", "restartPolicy"];
    let more = ["runtimeClassName", "schedulerName", "serviceAccount", "serviceAccountName", "subdomain"];
    let flags = ["automountServiceAccountToken", "enableServiceLinks", "hostIPC", "hostNetwork", "hostPID"];
    let numbers = ["activeDeadlineSeconds", "priority", "terminationGracePeriodSeconds"];
    let objects = ["affinity", "dnsConfig", "overhead", "securityContext"];
    let lists =
        ["ephemeralContainers", "hostAliases", "readinessGates", "tolerations", "topologySpreadConstraints"];
    let mut fields = vec![
        ("containers", list(&container())),
        ("imagePullSecrets", list(&object(all(&["name"], &text())))),
        ("initContainers", list(&container())),
        ("nodeSelector", json!({"type": "object", "nullable": true, "additionalProperties": text()})),
        ("setHostnameAsFQDN", flag()),
        ("shareProcessNamespace", flag()),
        ("volumes", list(&volume())),
    ];
    fields.extend(all(&texts, &text()));
    fields.extend(all(&more, &text()));
    fields.extend(all(&flags, &flag()));
    fields.extend(all(&numbers, &integer()));
    fields.extend(all(&objects, &object(Vec::new())));
    fields.extend(all(&lists, &list(&object(Vec::new()))));
    object(fields)
}

fn container() -> Value {
    let texts = ["image", "imagePullPolicy", "name", "restartPolicy", "terminationMessagePath", "workingDir"];
    let objects =
        ["lifecycle", "livenessProbe", "readinessProbe", "resources", "securityContext", "startupProbe"];
    let mut fields = vec![
        ("args", list(&text())),
        ("command", list(&text())),
        ("env", list(&variable())),
        ("envFrom", list(&source_of_variables())),
        ("ports", list(&port())),
        ("volumeDevices", list(&object(all(&["devicePath", "name"], &text())))),
        ("volumeMounts", list(&mount())),
    ];
    fields.extend(all(&texts, &text()));
    fields.extend(all(&["stdin", "stdinOnce", "tty"], &flag()));
    fields.extend(all(&objects, &object(Vec::new())));
    object(fields)
}

fn variable() -> Value {
    let key = || object([all(&["key", "name"], &text()), vec![("optional", flag())]].concat());
    let source = object(vec![
        ("configMapKeyRef", key()),
        ("fieldRef", object(all(&["apiVersion", "fieldPath"], &text()))),
        ("resourceFieldRef", object(all(&["containerName", "resource"], &text()))),
        ("secretKeyRef", key()),
    ]);
    object(vec![("name", text()), ("value", text()), ("valueFrom", source)])
}

fn source_of_variables() -> Value {
    let source = || object(vec![("name", text()), ("optional", flag())]);
    object(vec![("configMapRef", source()), ("prefix", text()), ("secretRef", source())])
}

fn port() -> Value {
    let texts = all(&["hostIP", "name", "protocol"], &text());
    object([texts, all(&["containerPort", "hostPort"], &integer())].concat())
}

fn mount() -> Value {
    let texts = ["mountPath", "mountPropagation", "name", "recursiveReadOnly", "subPath", "subPathExpr"];
    object([all(&texts, &text()), vec![("readOnly", flag())]].concat())
}

fn volume() -> Value {
    let objects = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "hostPath",
        "nfs",
        "projected",
        "secret",
    ];
    let claim = object(vec![("claimName", text()), ("readOnly", flag())]);
    let fields = vec![("name", text()), ("persistentVolumeClaim", claim)];
    object([fields, all(&objects, &object(Vec::new()))].concat())
}

/// The same form for each of these fields.
fn all<'n>(names: &[&'n str], form: &Value) -> Vec<(&'n str, Value)> {
    names.iter().map(|name| (*name, form.clone())).collect()
}

fn object(fields: Vec<(&str, Value)>) -> Value {
    let fields: Map<String, Value> = fields.into_iter().map(|(name, form)| (name.to_owned(), form)).collect();
    json!({"type": "object", "nullable": true, "properties": fields, "x-kubernetes-preserve-unknown-fields": true})
}

/// An object that has to be there and to have this field.
fn needed(form: &Value, field: &str) -> Value {
    with(form, vec![("nullable", false.into()), ("required", json!([field]))])
}

/// A patch cannot go into an element that is `null`.
fn list(items: &Value) -> Value {
    json!({"type": "array", "nullable": true, "items": with(items, vec![("nullable", false.into())])})
}

fn with(form: &Value, keywords: Vec<(&str, Value)>) -> Value {
    let mut form = form.as_object().cloned().unwrap_or_default();
    form.extend(keywords.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)));
    form.into()
}

fn text() -> Value {
    json!({"type": "string", "nullable": true})
}

fn integer() -> Value {
    json!({"type": "integer", "nullable": true})
}

fn flag() -> Value {
    json!({"type": "boolean", "nullable": true})
}
