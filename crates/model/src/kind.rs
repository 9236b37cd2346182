//! The kinds of Kubernetes resources that decisions read.

use std::cmp::Ordering;

use crate::schema::{Field, METADATA, METADATA_WITH_ANNOTATIONS, Schema};

/// One kind of resource: how it is named, how it is fetched and which of its fields are read.
///
/// Two kinds are the same when group and kind are: memgate does not tell versions apart.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version to watch and to write in examples.
    pub version: &'static str,
    /// The kind in CamelCase, as in a manifest.
    pub kind: &'static str,
    /// The plural resource name, as in a URL and in RBAC rules.
    pub plural: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// The fields that are read of an object of this kind, metadata included.
    pub schema: Schema,
}

impl Kind {
    /// The `apiVersion` of manifests of this kind.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether `group` and `kind` name this kind.
    #[must_use]
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
pub static SECRET: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
    namespaced: true,
    schema: Schema::Open(&[
        Field::new("metadata", METADATA),
        Field::new("data", Schema::Keys),
        Field::new("stringData", Schema::Keys),
    ]),
};

/// core/v1 Service: read for its ports and its selector, and to know which host names lead into the cluster.
pub static SERVICE: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Service",
    plural: "services",
    namespaced: true,
    schema: Schema::Open(&[
        Field::new("metadata", METADATA),
        Field::new(
            "spec",
            Schema::Open(&[
                Field::new(
                    "ports",
                    Schema::List(&Schema::Open(&[
                        Field::new("name", Schema::Text),
                        Field::new("port", Schema::Integer),
                        Field::new("targetPort", Schema::Text),
                    ])),
                ),
                Field::new("type", Schema::Text),
                Field::new("selector", Schema::Texts),
            ]),
        ),
    ]),
};

/// core/v1 Namespace: read for its labels, from manifests.
pub static NAMESPACE: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    namespaced: false,
    schema: Schema::Open(&[Field::new("metadata", METADATA_WITH_ANNOTATIONS)]),
};

/// The policy of an organisation on memory; the whole spec is kept, to be compiled.
pub static MEMORY_POLICY: Kind = Kind {
    group: POLICY_GROUP,
    version: "v1alpha1",
    kind: "MemoryPolicy",
    plural: "memorypolicies",
    namespaced: false,
    schema: Schema::Open(&[Field::new("metadata", METADATA), Field::new("spec", Schema::Whole(&[]))]),
};

/// An exemption from a policy; the whole spec is kept, to be compiled.
pub static MEMORY_POLICY_EXEMPTION: Kind = Kind {
    group: POLICY_GROUP,
    version: "v1alpha1",
    kind: "MemoryPolicyExemption",
    plural: "memorypolicyexemptions",
    namespaced: true,
    schema: Schema::Open(&[Field::new("metadata", METADATA), Field::new("spec", Schema::Whole(&[]))]),
};

/// The group of policies and exemptions.
pub const POLICY_GROUP: &str = "policy.memgate.dev";

/// Both kinds of that group.
pub static POLICY_KINDS: [&Kind; 2] = [&MEMORY_POLICY, &MEMORY_POLICY_EXEMPTION];

/// Their CustomResourceDefinitions.
pub const POLICY_CRDS: &str = include_str!("../crds/policy.yaml");

/// Namespaces whose pods a cluster needs to start. Requests about them are not sent to memgate.
pub const SYSTEM_NAMESPACES: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
