//! The forms of pods and workloads: what an apiserver has to be able to decode of them. They are not CRDs, but
//! the same rules check them. Source: Kubernetes API reference 1.36, Pod v1 core and the workloads of apps/v1
//! and batch/v1; fields that are missing here are kept and not looked at.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::crd::CrdVersion;
use crate::parse;

/// The schema of this kind of Kubernetes itself; `None` for all others.
pub fn find(group: &str, kind: &str) -> Option<&'static CrdVersion> {
    match (group, kind) {
        ("", "Pod") => Some(&POD),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
            Some(&WORKLOAD)
        }
        ("batch", "CronJob") => Some(&CRON_JOB),
        _ => None,
    }
}

/// A pod.
static POD: LazyLock<CrdVersion> = LazyLock::new(|| version(POD_SPEC.schema(false)));

/// A workload whose pod template stands right below its spec.
static WORKLOAD: LazyLock<CrdVersion> = LazyLock::new(|| version(spec_of_template()));

/// A CronJob, in whose Jobs the pod template stands.
static CRON_JOB: LazyLock<CrdVersion> = LazyLock::new(|| {
    let jobs = object([("spec", spec_of_template())], false, &["spec"]);
    version(object([("jobTemplate", jobs)], false, &["jobTemplate"]))
});

/// An object with this spec, whose `metadata` is checked by rules of its own.
fn version(spec: Value) -> CrdVersion {
    let metadata = json!({"x-kubernetes-preserve-unknown-fields": true});
    let object = object([("metadata", metadata), ("spec", spec)], false, &["spec"]);
    CrdVersion { name: "v1".to_owned(), served: true, has_status: true, schema: parse::node(&object) }
}

/// What is inside the template is checked with the pod that is made of it.
fn spec_of_template() -> Value {
    let template = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    object([("template", template)], false, &["template"])
}

/// What a field holds. Each field may be `null`.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Integer,
    Flag,
    /// An object of texts.
    Texts,
    /// An object that is not looked into.
    Any,
    List(&'static Self),
    /// An object with these fields among others: names, separated by blanks, with what each holds.
    Object(&'static [(&'static str, Self)]),
}

use Holds::{Any, Flag, Integer, List, Object, Text, Texts};

const POD_SPEC: Holds = Object(&[
    (
        "dnsPolicy hostname nodeName preemptionPolicy priorityClassName restartPolicy runtimeClassName \
         schedulerName serviceAccount serviceAccountName subdomain",
        Text,
    ),
    (
        "automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID setHostnameAsFQDN \
         shareProcessNamespace",
        Flag,
    ),
    ("activeDeadlineSeconds priority terminationGracePeriodSeconds", Integer),
    ("nodeSelector", Texts),
    ("affinity dnsConfig overhead securityContext", Any),
    ("ephemeralContainers hostAliases readinessGates tolerations topologySpreadConstraints", List(&Any)),
    ("containers initContainers", List(&CONTAINER)),
    ("imagePullSecrets", List(&Object(&[("name", Text)]))),
    ("volumes", List(&VOLUME)),
]);

const CONTAINER: Holds = Object(&[
    ("image imagePullPolicy name restartPolicy terminationMessagePath workingDir", Text),
    ("stdin stdinOnce tty", Flag),
    ("lifecycle livenessProbe readinessProbe resources securityContext startupProbe", Any),
    ("args command", List(&Text)),
    ("env", List(&Object(&[("name value", Text), ("valueFrom", VALUE_FROM)]))),
    (
        "envFrom",
        List(&Object(&[
            ("prefix", Text),
            ("configMapRef secretRef", Object(&[("name", Text), ("optional", Flag)])),
        ])),
    ),
    ("ports", List(&Object(&[("hostIP name protocol", Text), ("containerPort hostPort", Integer)]))),
    ("volumeDevices", List(&Object(&[("devicePath name", Text)]))),
    (
        "volumeMounts",
        List(&Object(&[
            ("mountPath mountPropagation name recursiveReadOnly subPath subPathExpr", Text),
            ("readOnly", Flag),
        ])),
    ),
]);

const VALUE_FROM: Holds = Object(&[
    ("configMapKeyRef secretKeyRef", Object(&[("key name", Text), ("optional", Flag)])),
    ("fieldRef", Object(&[("apiVersion fieldPath", Text)])),
    ("resourceFieldRef", Object(&[("containerName resource", Text)])),
]);

const VOLUME: Holds = Object(&[
    ("name", Text),
    ("persistentVolumeClaim", Object(&[("claimName", Text), ("readOnly", Flag)])),
    ("configMap csi downwardAPI emptyDir ephemeral hostPath nfs projected secret", Any),
]);

impl Holds {
    fn schema(self, nullable: bool) -> Value {
        match self {
            Text => json!({"type": "string", "nullable": nullable}),
            Integer => json!({"type": "integer", "nullable": nullable}),
            Flag => json!({"type": "boolean", "nullable": nullable}),
            Texts => {
                json!({"type": "object", "nullable": nullable, "additionalProperties": Text.schema(true)})
            }
            Any => object([], nullable, &[]),
            // A patch cannot go into an element that is `null`.
            List(items) => json!({"type": "array", "nullable": nullable, "items": items.schema(false)}),
            Object(fields) => {
                let each = fields.iter().flat_map(|(names, holds)| {
                    names.split_whitespace().map(|name| (name, holds.schema(true)))
                });
                object(each, nullable, &[])
            }
        }
    }
}

fn object<'n>(
    fields: impl IntoIterator<Item = (&'n str, Value)>,
    nullable: bool,
    required: &[&str],
) -> Value {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({
        "type": "object",
        "nullable": nullable,
        "properties": fields,
        "required": required,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
