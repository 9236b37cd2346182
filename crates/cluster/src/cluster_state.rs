//! The objects that were read from a cluster, unchanged.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use crate::pauses::Pause;
use crate::webhook_entry::{NAME_LABEL, WebhookEntry, entries};
use memgate_install::objects::WebhookConfiguration;
use memgate_model::answer::Answer;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::review_path;
use memgate_primitives::review_path::Phase;

/// The result of a read, or why it failed.
pub type Fetched<T> = Answer<T, String>;

/// The containers of a Deployment.
pub const CONTAINERS: &str = "/spec/template/spec/containers";

/// What the apiserver serves: group and version, with the plural names of the kinds.
pub type ServedResources = BTreeMap<(String, String), BTreeSet<String>>;

/// When objects were created, in seconds since 1970, by kind, namespace and name.
pub type Created = BTreeMap<[String; 3], i64>;

/// When an object was created, in seconds since 1970.
pub fn created_at(object: &Value) -> Option<i64> {
    Some(text(object, "/metadata/creationTimestamp").parse::<Timestamp>().ok()?.as_second())
}

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// The elements of a list in an object; none if it has no such list.
pub fn elements<'o>(object: &'o Value, pointer: &str) -> impl Iterator<Item = &'o Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// A text in an object; empty if it has none.
pub fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The labels of a Deployment's pods.
pub fn template_labels(deployment: &Value) -> Option<Labels> {
    Labels::deserialize(deployment.pointer("/spec/template/metadata/labels")?).ok()
}

/// The objects of an installation of memgate, and the cluster's other webhook configurations.
#[derive(Debug, Default)]
pub struct Installation {
    /// The namespace that memgate runs in.
    pub namespace: String,
    /// The name of the webhook configurations.
    pub name: String,
    /// The time by the apiserver's clock, in seconds since 1970.
    pub apiserver_time: Option<i64>,
    /// What the apiserver serves.
    pub served: Fetched<ServedResources>,
    /// Every configuration of mutating webhooks.
    pub mutating: Fetched<Vec<WebhookConfiguration>>,
    /// Every configuration of validating webhooks.
    pub validating: Fetched<Vec<WebhookConfiguration>>,
    /// The Service that the configurations name.
    pub service: Fetched<Service>,
    /// Its endpoints.
    pub endpoints: Fetched<Vec<EndpointSlice>>,
    /// The Deployment.
    pub deployment: Fetched<Value>,
    /// memgate's pods.
    pub replicas: Fetched<Vec<Value>>,
    /// The labels of all namespaces, by their names.
    pub namespaces: Fetched<BTreeMap<String, Labels>>,
    /// What is paused.
    pub pauses: Fetched<Vec<Pause>>,
}

/// An agent pod, as the apiserver has it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPod {
    /// The whole pod.
    pub json: Value,
}

/// The pods of agents, and the state that decisions about these pods read.
#[derive(Debug)]
pub struct Agents {
    /// The pods.
    pub pods: Vec<AgentPod>,
    /// What could not be read, or only in part, a sentence each.
    pub incomplete: Vec<String>,
    /// The state that decisions look at.
    pub snapshot: Snapshot,
    /// When its objects were created.
    pub created: Created,
}

#[cfg(test)]
impl Default for Agents {
    /// No pods, and a state of which nothing is known.
    fn default() -> Self {
        Self {
            pods: Vec::new(),
            incomplete: Vec::new(),
            snapshot: Snapshot::new(memgate_platforms::default_settings()),
            created: Created::new(),
        }
    }
}

impl Installation {
    /// The arguments of the Deployment's containers.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        let containers =
            self.deployment.as_ref().found().into_iter().flat_map(|found| elements(found, CONTAINERS));
        containers.flat_map(|container| elements(container, "/args")).filter_map(Value::as_str)
    }

    /// The configurations of both kinds: mutating, then validating.
    pub const fn configurations(&self) -> [(Phase, &Fetched<Vec<WebhookConfiguration>>); 2] {
        [(Phase::Mutate, &self.mutating), (Phase::Validate, &self.validating)]
    }

    /// memgate's own configuration for a call.
    pub fn own(&self, call: Phase) -> Option<&WebhookConfiguration> {
        let [mutating, validating] = [self.mutating.items(), self.validating.items()];
        let items = if call == Phase::Mutate { mutating } else { validating };
        items.iter().find(|config| config.metadata.name.as_ref() == Some(&self.name))
    }

    /// The entries of memgate's own configuration for a call.
    pub fn own_entries(&self, call: Phase) -> Option<Vec<WebhookEntry>> {
        self.own(call).map(entries)
    }

    /// The entries of memgate's own configurations.
    pub fn all_own_entries(&self) -> Vec<WebhookEntry> {
        Phase::ALL.into_iter().filter_map(|call| self.own_entries(call)).flatten().collect()
    }

    /// The title of memgate's own configuration for a call.
    pub fn own_title(&self, call: Phase) -> String {
        configuration_title(call, &self.name)
    }

    /// Where memgate is called, if that is outside the cluster.
    pub fn own_url(&self) -> Option<String> {
        let entries = self.all_own_entries();
        let by_url = entries.iter().all(|entry| entry.client.service.is_none());
        let url = entries.into_iter().next()?.client.url?;
        by_url.then(|| review_path::without_path(&url).to_owned())
    }

    /// The labels of a namespace; none if the namespaces could not be read.
    pub fn labels(&self, namespace: &str) -> Option<Labels> {
        if let Fetched::Unknown(_) = self.namespaces {
            return None;
        }
        let known = self.namespaces.as_ref().found().and_then(|all| all.get(namespace).cloned());
        Some(known.unwrap_or_else(|| [(NAME_LABEL.to_owned(), namespace.to_owned())].into()))
    }
}

/// `MutatingWebhookConfiguration NAME` or `ValidatingWebhookConfiguration NAME`.
pub fn configuration_title(call: Phase, name: &str) -> String {
    let kind = if call == Phase::Mutate { "Mutating" } else { "Validating" };
    format!("{kind}WebhookConfiguration {name}")
}

/// The name of a namespace and its labels, with the one that every namespace has.
pub fn labels(namespace: Namespace) -> (String, Labels) {
    let name = namespace.metadata.name.unwrap_or_default();
    let mut labels = namespace.metadata.labels.unwrap_or_default();
    labels.insert(NAME_LABEL.to_owned(), name.clone());
    (name, labels)
}
