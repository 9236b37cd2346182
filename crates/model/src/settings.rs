//! What an installation or a command chose, as far as decisions depend on it.

use std::collections::BTreeMap;

use crate::family::Family;
use crate::platform_settings::PlatformSettings;

/// The choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The families that are switched on, in the order in which they are asked about a pod. The default is
    /// all of them.
    pub families: Vec<&'static Family>,
    /// The namespace of requests and objects that name none, if one was given. In a cluster all
    /// of them do.
    pub namespace: Option<String>,
    /// The choices that are about one platform each.
    pub platforms: PlatformSettings,
    /// What policies need to know of the cluster.
    pub policies: PolicySettings,
}

impl Settings {
    /// What families read of the settings: their own, and the domain of the cluster's Services.
    #[must_use]
    pub fn for_readers(&self) -> (&PlatformSettings, &str) {
        (&self.platforms, &self.policies.cluster_domain)
    }
}

/// What policies need to know of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySettings {
    /// The namespace in which memgate runs, about which no policy judges.
    pub own_namespace: String,
    /// More namespaces about which none does.
    pub excluded_namespaces: Vec<String>,
    /// The domain of the cluster's Services.
    pub cluster_domain: String,
    /// Labels of Namespaces, by name, for Namespaces that are not known or besides those that are.
    pub namespace_labels: BTreeMap<String, BTreeMap<String, String>>,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            own_namespace: "memgate-system".to_owned(),
            excluded_namespaces: Vec::new(),
            cluster_domain: "cluster.local".to_owned(),
            namespace_labels: BTreeMap::new(),
        }
    }
}
