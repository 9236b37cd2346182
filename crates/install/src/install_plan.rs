//! The choices of an installation; the other modules make objects from them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::component::Component;
use memgate_model::family::Family;

/// The choices of an installation.
#[derive(Debug)]
pub struct InstallPlan {
    /// The name of the cluster-wide objects, by which installations in one cluster differ.
    pub name: String,
    /// The namespace that memgate runs in.
    pub namespace: String,
    /// The container image.
    pub image: String,
    /// How the apiserver reaches memgate.
    pub endpoint: WebhookEndpoint,
    /// The beginning of the address of each alert's runbook; without it alerts name the command that prints the page.
    pub runbooks: Option<String>,
    /// The CA certificates, PEM, for `caBundle`. Without them the field is left out, so that another tool can own it.
    pub ca: Option<Vec<u8>>,
    /// The families that are switched on, in their usual order.
    pub families: Vec<&'static Family>,
    /// Whether MemoryPolicies are in force, also for pods that opted out of injection.
    pub policies: bool,
    /// Whether memgate writes Events.
    pub events: bool,
    /// The components, which change the base.
    pub components: BTreeSet<Component>,
    /// The settings of `memgate serve`, with the keys of its settings file.
    pub settings: Map<String, Value>,
    /// The port of the webhook in its pods instead of the usual one.
    pub webhook_port: Option<u16>,
}

impl InstallPlan {
    /// How an installation was made, as far as it shows: what changes its entries and rights. `arguments` are those of `serve`,
    /// and `entries` the names of those that are there; where the arguments are not known, these show more.
    pub fn inferred(
        name: &str,
        namespace: &str,
        families: Vec<&'static Family>,
        arguments: Option<&[&str]>,
        entries: &[&str],
    ) -> Self {
        let has_entry = |start: &str| entries.iter().any(|entry| entry.starts_with(start));
        let has_flag = |flag: &str| arguments.is_some_and(|arguments| arguments.contains(&flag));
        let chosen = [
            (Component::PolicyStrict, has_entry("strict.")),
            (Component::CertManager, has_flag("--certs=cert-manager")),
            (Component::CertFiles, has_flag("--certs=files")),
            (Component::ArkBrokers, has_flag("--ark-brokers")),
        ];
        let is_without_policies = match arguments {
            Some(_) => has_flag("--no-policies"),
            None => has_entry("") && !has_entry("policies."),
        };
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            image: concat!("memgate:", env!("CARGO_PKG_VERSION")).to_owned(),
            endpoint: WebhookEndpoint::Service,
            ca: None,
            runbooks: None,
            settings: Map::new(),
            families,
            policies: !is_without_policies,
            events: !has_flag("--no-events"),
            components: chosen
                .into_iter()
                .filter_map(|(component, is_on)| is_on.then_some(component))
                .collect(),
            webhook_port: None,
        }
    }

    /// Whether memgate itself writes its trust into the webhook configurations.
    pub fn has_own_certificates(&self) -> bool {
        !self.components.iter().any(|component| component.is_certificate())
    }
}

/// How the apiserver reaches memgate.
#[derive(Debug)]
pub enum WebhookEndpoint {
    /// Through the Service that is installed with it.
    Service,
    /// At this URL, without a path; for development.
    Url(String),
}

/// One part of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallPart {
    /// The namespace.
    Namespace,
    /// The definitions of memgate's own kinds.
    Crds,
    /// The service account and its permissions.
    Rbac,
    /// The policies that work without memgate.
    Policies,
    /// The Service, the Deployment and its disruption budget.
    Workload,
    /// The webhook configurations.
    Webhooks,
}

impl InstallPart {
    /// Every part with its name in flags, in the order in which they are applied.
    pub const ALL: [(&'static str, Self); 6] = [
        ("namespace", Self::Namespace),
        ("crds", Self::Crds),
        ("rbac", Self::Rbac),
        ("policies", Self::Policies),
        ("workload", Self::Workload),
        ("webhooks", Self::Webhooks),
    ];
}
