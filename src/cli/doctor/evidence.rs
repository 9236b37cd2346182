//! What was read of a cluster, before anybody judges it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Pod, ResourceQuota, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::cli::doctor::check::Check;
use crate::model::family::Family;
use crate::model::snapshot::Snapshot;

/// What came of reading something.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Seen<T> {
    /// It is there.
    Found(T),
    /// It is not there.
    #[default]
    Absent,
    /// It could not be read, and why.
    Unknown(String),
}

impl<T> Seen<T> {
    /// What was found.
    pub const fn found(&self) -> Option<&T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// The check that says that it could not be read, if so it is.
    pub fn unknown(&self, id: &'static str, subject: &str) -> Option<Check> {
        match self {
            Self::Unknown(why) => Some(Check::unknown(id, subject, why.clone())),
            Self::Found(_) | Self::Absent => None,
        }
    }
}

/// A list that may have been cut.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T> {
    /// The objects.
    pub items: Vec<T>,
    /// Whether there are more of them.
    pub cut: bool,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: Vec::new(), cut: false }
    }
}

/// Which kinds the apiserver serves: group and version, with the plural names of the kinds.
pub type Served = BTreeMap<(String, String), BTreeSet<String>>;

/// What memgate's installation consists of, and what stands beside it.
#[derive(Debug, Default)]
pub struct Installation {
    /// The namespace that memgate runs in.
    pub home: String,
    /// The name of the webhook configurations.
    pub name: String,
    /// The time by the apiserver's clock, in seconds since 1970.
    pub time: Option<i64>,
    /// The version of the apiserver: major, minor.
    pub version: Seen<(u32, u32)>,
    /// What the apiserver serves.
    pub served: Seen<Served>,
    /// Every configuration of mutating webhooks.
    pub mutating: Seen<Listed<MutatingWebhookConfiguration>>,
    /// Every configuration of validating webhooks.
    pub validating: Seen<Listed<ValidatingWebhookConfiguration>>,
    /// The Service that the configurations name.
    pub service: Seen<Service>,
    /// Its endpoints.
    pub endpoints: Seen<Listed<EndpointSlice>>,
    /// The Deployment.
    pub deployment: Seen<Deployment>,
    /// The disruption budgets of the namespace.
    pub budgets: Seen<Listed<PodDisruptionBudget>>,
    /// memgate's pods.
    pub replicas: Seen<Listed<Pod>>,
    /// All namespaces.
    pub namespaces: Seen<Listed<Namespace>>,
    /// The rights that memgate's account should have and has not, one a line; and how many it should
    /// have.
    pub denied: Seen<(usize, Vec<String>)>,
}

/// An agent pod, as the apiserver has it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPod {
    /// The family that it looks like one of.
    pub family: &'static Family,
    /// The whole pod.
    pub json: serde_json::Value,
}

/// The agents, and what concerns them.
#[derive(Debug, Default)]
pub struct Agents {
    /// The pods.
    pub pods: Vec<AgentPod>,
    /// Pods that agents without one would have, where these get containers from memgate.
    pub imagined: Vec<AgentPod>,
    /// What could not be read of them, or was cut.
    pub gaps: Vec<String>,
    /// What decisions look at.
    pub snapshot: Snapshot,
    /// When objects of the families' kinds were made: kind, namespace, name.
    pub created: BTreeMap<(String, String, String), i64>,
    /// The quotas in the namespaces of agents.
    pub quotas: Seen<Vec<ResourceQuota>>,
    /// The limits in the namespaces of agents.
    pub ranges: Seen<Vec<LimitRange>>,
}

impl Installation {
    /// memgate's own configuration of mutating webhooks.
    #[must_use]
    pub fn own_mutating(&self) -> Option<&MutatingWebhookConfiguration> {
        let named =
            |config: &&MutatingWebhookConfiguration| config.metadata.name.as_ref() == Some(&self.name);
        self.mutating.found()?.items.iter().find(named)
    }

    /// memgate's own configuration of validating webhooks.
    #[must_use]
    pub fn own_validating(&self) -> Option<&ValidatingWebhookConfiguration> {
        let named =
            |config: &&ValidatingWebhookConfiguration| config.metadata.name.as_ref() == Some(&self.name);
        self.validating.found()?.items.iter().find(named)
    }

    /// The labels of a namespace, with the one that every namespace has.
    #[must_use]
    pub fn labels(&self, namespace: &str) -> BTreeMap<String, String> {
        let found = self.namespaces.found().and_then(|namespaces| {
            namespaces.items.iter().find(|found| found.metadata.name.as_deref() == Some(namespace))
        });
        let mut labels = found.and_then(|found| found.metadata.labels.clone()).unwrap_or_default();
        labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
        labels
    }
}
