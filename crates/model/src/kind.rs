//! The kinds of Kubernetes resources that decisions read.

use std::cmp::Ordering;

use crate::platform_settings::PlatformSettings;
use crate::schema::{Field, METADATA, METADATA_WITH_ANNOTATIONS, Schema, schema};
use crate::tree::Tree;

/// One kind of resource: how it is named, how it is fetched and which of its fields are read.
///
/// Two kinds are the same when group and kind are: memgate does not tell versions apart.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version to watch and to write in examples.
    pub version: &'static str,
    /// An older version whose fields are others. Objects of it are reviewed as they are, without a conversion.
    pub older: Option<&'static str>,
    /// The kind in CamelCase, as in a manifest.
    pub kind: &'static str,
    /// The plural resource name, as in a URL and in RBAC rules.
    pub plural: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// The fields that are read of an object of this kind, metadata included.
    pub schema: Schema,
    /// Whether an object of the state counts, where the settings decide that. An object that does not count is as if it
    /// were not there.
    pub counts: Option<Counts>,
}

/// Whether an object in this namespace counts under these settings.
pub type Counts = fn(&Tree, &str, &PlatformSettings) -> bool;

impl Kind {
    /// A kind whose objects live in namespaces.
    pub const fn new(
        (group, version): (&'static str, &'static str),
        kind: &'static str,
        plural: &'static str,
        schema: Schema,
    ) -> Self {
        Self { group, version, older: None, kind, plural, namespaced: true, schema, counts: None }
    }

    /// The same kind, whose objects live outside of namespaces.
    #[must_use]
    pub const fn of_cluster(self) -> Self {
        Self { namespaced: false, ..self }
    }

    /// The same kind with an older version whose fields are others.
    #[must_use]
    pub const fn also(self, older: &'static str) -> Self {
        Self { older: Some(older), ..self }
    }

    /// The same kind, whose objects count only under some settings.
    #[must_use]
    pub const fn counted_if(self, counts: Counts) -> Self {
        Self { counts: Some(counts), ..self }
    }

    /// The API group, in the log: that of core kinds has no name.
    pub fn group_in_words(&self) -> &'static str {
        if self.group.is_empty() { "core" } else { self.group }
    }

    /// The `apiVersion` of manifests of this kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether `group` and `kind` name this kind.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.kind == kind && self.group == group
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.group == other.group
    }
}

impl Eq for Kind {}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.kind, self.group).cmp(&(other.kind, other.group))
    }
}

/// core/v1 Secret: only its name and the names of its keys are ever read, and only from manifests. The
/// server does not watch Secrets, and no RBAC rule names them.
pub static SECRET: Kind = Kind::new(CORE, "Secret", "secrets", SECRET_SCHEMA);

/// core/v1 `ConfigMap`: read for the values that other objects name, and for settings of platforms.
pub static CONFIG_MAP: Kind = Kind::new(CORE, "ConfigMap", "configmaps", CONFIG_MAP_SCHEMA);

/// Where the state has the place of a setting in such an object: not at the path of a value.
pub const SETTING_AT: &str = "at";

/// Objects that install a chart. Of one with the chart of a platform the state has what it sets, as the data of a
/// `ConfigMap`.
pub static CHART_RELEASES: [Kind; 4] = [
    Kind::new(("helm.toolkit.fluxcd.io", "v2"), "HelmRelease", "helmreleases", CONFIG_MAP_SCHEMA),
    Kind::new(("argoproj.io", "v1alpha1"), "Application", "applications", CONFIG_MAP_SCHEMA),
    Kind::new(("helm.cattle.io", "v1"), "HelmChart", "helmcharts", CONFIG_MAP_SCHEMA),
    Kind::new(("helm.cattle.io", "v1"), "HelmChartConfig", "helmchartconfigs", CONFIG_MAP_SCHEMA),
];

/// core/v1 Service: read for its ports and its selector, and to know which host names lead into the cluster.
pub static SERVICE: Kind = Kind::new(CORE, "Service", "services", SERVICE_SCHEMA);

/// core/v1 Namespace: read for its labels, from manifests.
pub static NAMESPACE: Kind = Kind::new(CORE, "Namespace", "namespaces", NAMESPACE_SCHEMA).of_cluster();

/// The policy of an organisation on memory; the whole spec is kept, to be compiled, and the status, for metrics.
pub static MEMORY_POLICY: Kind =
    Kind::new((POLICY_GROUP, "v1alpha1"), "MemoryPolicy", "memorypolicies", POLICY_SCHEMA).of_cluster();

/// An exemption from a policy; the whole spec is kept, to be compiled.
pub static MEMORY_POLICY_EXEMPTION: Kind =
    Kind::new((POLICY_GROUP, "v1alpha1"), "MemoryPolicyExemption", "memorypolicyexemptions", POLICY_SCHEMA);

/// core/v1 Pod; all of it is read.
pub static POD: Kind = Kind::new(CORE, "Pod", "pods", Schema::Any);

/// Group and version of the core kinds.
pub const CORE: (&str, &str) = ("", "v1");

const SECRET_SCHEMA: Schema = schema! { open { "metadata": METADATA, "data" "stringData": keys, } };

const CONFIG_MAP_SCHEMA: Schema = schema! { open { "metadata": METADATA, "data": texts, } };
const SERVICE_SCHEMA: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open {
        "ports": [open { "name": text, "port": integer, "targetPort": text, }],
        "type": text,
        "selector": texts,
    },
} };

const NAMESPACE_SCHEMA: Schema = schema! { open { "metadata": METADATA_WITH_ANNOTATIONS, } };

const POLICY_SCHEMA: Schema = schema! { open {
    "metadata": METADATA,
    (Field::new("spec", Schema::Whole(&[]))),
    (Field::new("status", Schema::Whole(&[]))),
} };

/// The group of policies and exemptions.
pub const POLICY_GROUP: &str = "policy.memgate.dev";

/// Both kinds of that group.
pub static POLICY_KINDS: [&Kind; 2] = [&MEMORY_POLICY, &MEMORY_POLICY_EXEMPTION];

/// Namespaces whose pods a cluster needs to start. Requests about them are not sent to memgate.
pub const SYSTEM_NAMESPACES: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
