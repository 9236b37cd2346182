//! The forms of pods and workloads: what an apiserver has to be able to decode of them. They are not CRDs, but
//! the same rules check them. Source: Kubernetes API reference 1.36, Pod v1 core and the workloads of apps/v1
//! and batch/v1; fields that are missing here are kept and not looked at. What is inside a template is checked with the pod
//! that is made of it, and `metadata` by rules of its own.

use std::sync::LazyLock;

use serde_json::Value;

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

/// The schema of each form. Each field may be `null`.
static FORMS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("builtin/forms.json")).unwrap_or_default());

/// A pod.
static POD: LazyLock<CrdVersion> = LazyLock::new(|| version("pod"));

/// A workload whose pod template stands right below its spec.
static WORKLOAD: LazyLock<CrdVersion> = LazyLock::new(|| version("workload"));

/// A CronJob, in whose Jobs the pod template stands.
static CRON_JOB: LazyLock<CrdVersion> = LazyLock::new(|| version("cronJob"));

fn version(form: &str) -> CrdVersion {
    let schema = parse::node(FORMS.get(form).unwrap_or(&Value::Null));
    CrdVersion { name: "v1".to_owned(), served: true, has_status: true, schema }
}
