//! The objects that were read from a cluster, unchanged.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;
use serde_json::Value;

use memgate_install::objects::WebhookConfiguration;
use memgate_model::answer::Answer;
use memgate_primitives::review_path;
use memgate_primitives::review_path::Phase;

/// The result of a read, or why it failed.
pub type Fetched<T> = Answer<T, String>;

/// The containers of a Deployment.
pub const CONTAINERS: &str = "/spec/template/spec/containers";

/// What the apiserver serves: group and version, with the plural names of the kinds.
pub type ServedResources = BTreeMap<(String, String), BTreeSet<String>>;

/// The elements of a list in an object; none if it has no such list.
pub fn elements<'o>(object: &'o Value, pointer: &str) -> impl Iterator<Item = &'o Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// A text in an object; empty if it has none.
pub fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
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
    pub service: Fetched<Value>,
    /// The Deployment.
    pub deployment: Fetched<Value>,
    /// memgate's pods.
    pub replicas: Fetched<Vec<Value>>,
    /// The Leases in which replicas say what they know.
    pub leases: Fetched<Vec<Value>>,
    /// The flags with which `memgate manifests` prints this installation, each with a blank in front.
    pub flags: String,
    /// All namespaces.
    pub namespaces: Fetched<Vec<Value>>,
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

    /// Whether something of it is there, or may be.
    pub fn exists(&self) -> bool {
        let is_configured = Phase::ALL.into_iter().any(|call| self.own(call).is_some());
        let is_unknown =
            self.configurations().iter().any(|(_, listed)| matches!(listed, Fetched::Unknown(_)));
        is_configured || is_unknown || self.deployment != Fetched::Absent || self.service != Fetched::Absent
    }

    /// The command that prints its objects, with these further arguments.
    pub fn manifests(&self, arguments: &str) -> String {
        format!("memgate manifests{} {arguments}", self.flags)
    }

    /// The entries of memgate's own configuration for a call.
    pub fn own_entries(&self, call: Phase) -> &[MutatingWebhook] {
        self.own(call).map(entries).unwrap_or_default()
    }

    /// The entries of memgate's own configurations.
    pub fn all_own_entries(&self) -> impl Iterator<Item = &MutatingWebhook> + Clone {
        Phase::ALL.into_iter().flat_map(|call| self.own_entries(call))
    }

    /// The title of memgate's own configuration for a call.
    pub fn own_title(&self, call: Phase) -> String {
        configuration_title(call, &self.name)
    }

    /// Where memgate is called, if that is outside the cluster.
    pub fn own_url(&self) -> Option<String> {
        let mut clients = self.all_own_entries().map(|entry| &entry.client_config);
        let by_url = clients.clone().all(|client| client.service.is_none());
        let url = clients.next()?.url.as_ref()?;
        by_url.then(|| review_path::without_path(url).to_owned())
    }
}

/// The entries of a configuration.
pub fn entries(configuration: &WebhookConfiguration) -> &[MutatingWebhook] {
    configuration.webhooks.as_deref().unwrap_or_default()
}

/// `MutatingWebhookConfiguration NAME` or `ValidatingWebhookConfiguration NAME`.
pub fn configuration_title(call: Phase, name: &str) -> String {
    let kind = if call == Phase::Mutate { "Mutating" } else { "Validating" };
    format!("{kind}WebhookConfiguration {name}")
}
