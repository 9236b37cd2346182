//! Restores the request that created a pod, and decides about it again. No I/O.

use std::num::NonZeroUsize;

use serde_json::Value;

use crate::cluster_state::{AgentPod, elements, text};
use memgate_core::admission::admit;
use memgate_model::decision::Decision;
use memgate_model::edit::Edit;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_model::workload::deployment_of;
use memgate_platforms::inject::INJECTED_ANNOTATION;

/// Metadata that the apiserver writes.
const SERVER_METADATA: [&str; 6] =
    ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"];

/// On how many threads pods are decided about, from how many on.
const MAX_THREADS: usize = 8;
const MIN_PODS_FOR_THREADS: usize = 100;

/// A pod and the decision about it today.
#[derive(Debug)]
pub struct Replayed<'a> {
    /// The pod.
    pub pod: &'a AgentPod,
    /// The decision.
    pub decision: Decision,
    /// Whether memory would be added.
    pub lacks_memory: bool,
    /// The pod with its memory.
    pub with_memory: Value,
}

/// What owns pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Owner {
    /// `Kind namespace/name`.
    pub fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// The command that makes its pods anew; none if no single one does.
    pub fn restart(&self) -> Option<String> {
        let Self { kind, namespace, name } = self;
        matches!(kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet")
            .then(|| format!("kubectl -n {namespace} rollout restart {}/{name}", kind.to_lowercase()))
    }

    /// How its pods are made anew. What is not made anew by its owner is not to be deleted alone.
    pub fn renewal(&self) -> String {
        let Self { kind, namespace, .. } = self;
        self.restart().unwrap_or_else(|| match kind.as_str() {
            "Job" | "Pod" => {
                format!(
                    "make the {kind} anew from its manifest: kubectl -n {namespace} replace --force -f FILE"
                )
            }
            _ => format!("delete its pods in {namespace}, so that the {kind} makes new ones"),
        })
    }
}

/// Decides about every pod that has not ended, on all cores. A pod that cannot be read is left out: the apiserver would
/// not have created it.
pub fn replay<'a>(pods: impl IntoIterator<Item = &'a AgentPod>, snapshot: &Snapshot) -> Vec<Replayed<'a>> {
    let pods: Vec<&AgentPod> = pods.into_iter().filter(|pod| !pod.ends()).collect();
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS);
    let some = |pods: &[&'a AgentPod]| -> Vec<Replayed<'a>> {
        pods.iter().filter_map(|pod| replay_one(pod, snapshot)).collect()
    };
    if threads < 2 || pods.len() < MIN_PODS_FOR_THREADS {
        return some(&pods);
    }
    std::thread::scope(|scope| {
        let parts = pods.chunks(pods.len().div_ceil(threads));
        let running: Vec<_> = parts.map(|part| (part, scope.spawn(move || some(part)))).collect();
        // One that ended early is done again here, where its panic is this one's.
        running.into_iter().flat_map(|(part, thread)| thread.join().unwrap_or_else(|_| some(part))).collect()
    })
}

/// Decides about one pod; `None` if it cannot be read.
fn replay_one<'a>(pod: &'a AgentPod, snapshot: &Snapshot) -> Option<Replayed<'a>> {
    let text = pod.creation().to_string();
    let request = Request::to_create_pod(pod.namespace(), pod.name(), &text);
    let admitted = admit(&request, snapshot).ok()?;
    let lacks_memory = admitted.edits.iter().any(Edit::gives_memory) && admitted.allowed();
    let with_memory = serde_json::from_str(&admitted.object.unwrap_or(text)).unwrap_or_default();
    Some(Replayed { pod, decision: admitted.decision, lacks_memory, with_memory })
}

/// The annotation in which memgate says what it added: an object, or a list with one for each family; null
/// without an annotation.
pub fn marker(pod: &Value) -> Value {
    let text = pod.pointer("/metadata/annotations").and_then(|all| all.get(INJECTED_ANNOTATION)?.as_str());
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

impl AgentPod {
    fn text(&self, pointer: &str) -> &str {
        text(&self.json, pointer)
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `Pod namespace/name`.
    pub fn title(&self) -> String {
        format!("Pod {}/{}", self.namespace(), self.name())
    }

    /// An annotation of it.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.json.pointer("/metadata/annotations")?.get(key)?.as_str()
    }

    /// The workload that owns it: of a ReplicaSet whose name ends in the hash of a Deployment's pods the Deployment. A
    /// pod without a controller is its own.
    pub fn owner(&self) -> Owner {
        let mut owners = elements(&self.json, "/metadata/ownerReferences");
        let owner = owners.find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
        let owner = owner.map(|owner| ["/kind", "/name"].map(|field| text(owner, field)));
        let hash =
            self.json.pointer("/metadata/labels").and_then(|all| all.get("pod-template-hash")?.as_str());
        let [kind, name] = match owner {
            Some(["ReplicaSet", name]) => match deployment_of(name, hash) {
                Some(deployment) => ["Deployment", deployment],
                None => ["ReplicaSet", name],
            },
            Some(other) => other,
            None => ["Pod", self.name()],
        };
        Owner { kind: kind.to_owned(), namespace: self.namespace().to_owned(), name: name.to_owned() }
    }

    /// Whether it has ended or is being deleted.
    pub(super) fn ends(&self) -> bool {
        matches!(self.text("/status/phase"), "Succeeded" | "Failed")
            || self.json.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    /// The pod as it was sent to the apiserver, as far as that can be restored.
    fn creation(&self) -> Value {
        let mut pod = self.json.clone();
        if let Value::Object(fields) = &mut pod {
            fields.remove("status");
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
            }
        }
        pod
    }
}
