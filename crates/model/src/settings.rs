//! The settings of an installation or a command that decisions depend on.

use std::collections::BTreeMap;

use crate::family::Family;
use crate::platform_settings::PlatformSettings;
use memgate_primitives::glob::Glob;

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The enabled families, in the order in which they are asked about a pod. For users the default is all of them.
    pub families: Vec<&'static Family>,
    /// The namespace of requests and objects that do not name one, if it was given. In a cluster all of
    /// them name one.
    pub namespace: Option<String>,
    /// The settings that belong to one platform each.
    pub platforms: PlatformSettings,
    /// The facts about the cluster that policies need.
    pub policies: PolicySettings,
}

impl Settings {
    /// The settings that families read: their own, and the domain of the cluster's Services.
    pub fn for_readers(&self) -> (&PlatformSettings, &str) {
        (&self.platforms, &self.policies.cluster_domain)
    }
}

/// The facts about the cluster that policies need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySettings {
    /// The namespace in which memgate runs. Policies do not judge objects in it.
    pub own_namespace: String,
    /// More namespaces in which policies do not judge objects.
    pub excluded_namespaces: Vec<String>,
    /// The domain of the cluster's Services.
    pub cluster_domain: String,
    /// Labels of Namespaces, by name: for unknown Namespaces, and in addition to the labels of known ones.
    pub namespace_labels: BTreeMap<String, BTreeMap<String, String>>,
    /// Labels of Namespaces that are not in the state, by patterns of their names. Of several patterns for a name, later
    /// labels replace earlier ones.
    pub unknown_namespaces: Vec<(Glob, BTreeMap<String, String>)>,
    /// Labels of Namespaces, by name, that count whatever the Namespaces say: those that a branch must not change.
    pub held_labels: BTreeMap<String, BTreeMap<String, String>>,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            own_namespace: "memgate-system".to_owned(),
            excluded_namespaces: Vec::new(),
            cluster_domain: "cluster.local".to_owned(),
            namespace_labels: BTreeMap::new(),
            unknown_namespaces: Vec::new(),
            held_labels: BTreeMap::new(),
        }
    }
}
