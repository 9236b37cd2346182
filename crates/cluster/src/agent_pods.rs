//! The pods of agents, and what owns them.

use std::collections::BTreeSet;

use kube::api::ListParams;
use serde_json::Value;

use crate::cluster_state::{Fetched, elements, text};
use crate::reader::{ClusterReader, path, with_kind};
use memgate_core::state::cluster_snapshot::ClusterSnapshot;
use memgate_model::family::Family;
use memgate_model::kind::POD;
use memgate_model::workload::deployment_of;
use memgate_platforms::inject::INJECTED_ANNOTATION;

/// An agent pod, as the apiserver has it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPod {
    /// The whole pod.
    pub json: Value,
}

/// Adds the pods that the selectors of families match, each once and with all its fields: policies judge them.
pub async fn add_agent_pods(
    reader: &ClusterReader,
    families: &[&'static Family],
    file: &mut ClusterSnapshot,
) {
    let namespaces = file.namespaces.clone().unwrap_or_else(|| BTreeSet::from([String::new()]));
    let mut seen = BTreeSet::new();
    for selector in families.iter().flat_map(|family| family.pods.selectors) {
        for namespace in &namespaces {
            let params = ListParams { label_selector: selector.query(), ..ListParams::default() };
            let take = |page: Vec<Value>| {
                for mut json in page {
                    if let Some(Value::Object(metadata)) = json.get_mut("metadata") {
                        metadata.remove("managedFields");
                    }
                    let pod = AgentPod { json: with_kind(&POD, json) };
                    let is_of_sort = selector.annotation.is_none_or(|key| pod.annotation(key).is_some());
                    if is_of_sort && seen.insert((pod.namespace().to_owned(), pod.name().to_owned())) {
                        file.items.push(pod.json);
                    }
                }
            };
            let path = path("v1", namespace, POD.plural);
            if let Fetched::Unknown(why) = reader.pages(POD.plural, &path, params, take).await {
                file.add_entry(POD.api_version(), POD.kind, Fetched::Unknown(why));
                return;
            }
        }
    }
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
}
