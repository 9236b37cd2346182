//! The settings of an installation for individual platforms, as the settings file has them. Its schema checks their texts.

use std::collections::BTreeMap;

use memgate_primitives::glob::Glob;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The settings that belong to one platform each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PlatformSettings {
    /// The settings for ark.
    pub ark: Ark,
    /// The settings for orloj.
    pub orloj: Orloj,
    /// The settings for sympozium.
    pub sympozium: Sympozium,
    /// Whether a server watches the workloads that serve memory.
    #[serde(skip)]
    pub watches_workloads: bool,
    /// The version of the apiserver that stores the objects, if it is known.
    #[serde(skip)]
    pub apiserver: Option<(u32, u32)>,
}

/// The first version of Kubernetes in which init containers can be sidecars, without a feature gate.
pub const MIN_SIDECAR_VERSION: (u32, u32) = (1, 29);

impl PlatformSettings {
    /// Whether the apiserver is known to drop what makes an init container a sidecar.
    pub fn drops_sidecars(&self) -> bool {
        self.apiserver.is_some_and(|version| version < MIN_SIDECAR_VERSION)
    }
}

/// The settings for ark.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Ark {
    /// Names of containers that are never an agent's, besides the known sidecars.
    pub sidecars: Vec<Glob>,
}

/// The settings for orloj.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Orloj {
    /// The namespaces in which Orloj runs the Jobs of agents.
    pub job_namespaces: Vec<String>,
    /// Name patterns of Secrets in the job namespaces. Objects of other namespaces may give pods references
    /// to these.
    pub shared_secrets: Vec<String>,
    /// The namespaces whose objects may claim another Orloj namespace; [`EVERY_NAMESPACE`] for all.
    pub source_namespaces: Vec<String>,
}

/// The entry of a list of namespaces that stands for all of them.
pub const EVERY_NAMESPACE: &str = "*";

impl Orloj {
    /// Whether objects of this Kubernetes namespace may claim another Orloj namespace.
    pub fn may_claim(&self, namespace: &str) -> bool {
        self.source_namespaces.iter().any(|source| source == namespace || source == EVERY_NAMESPACE)
    }
}

impl PlatformSettings {
    /// The namespaces whose pods depend on objects of other namespaces.
    pub fn namespaces_of_pods(&self) -> &[String] {
        &self.orloj.job_namespaces
    }
}

impl Default for Orloj {
    fn default() -> Self {
        let job_namespaces = vec!["orloj".to_owned()];
        Self { job_namespaces, shared_secrets: Vec::new(), source_namespaces: Vec::new() }
    }
}

/// Where the private memory of a sympozium agent runs, unless the pod or an annotation decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryMode {
    /// The SkillPack decides.
    #[default]
    Auto,
    /// In a Deployment of its own.
    Service,
    /// In a native sidecar of the agent's pod.
    Sidecar,
}

/// Which agent pods of sympozium get references to the writer tokens of their memory servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriterTokens {
    /// A pod starts without the Secret, unless the server is known to ask for the token.
    #[default]
    Auto,
    /// A pod waits for the Secret.
    Always,
    /// No pod gets one: the servers are older than the tokens.
    Never,
}

/// Which pods get init containers that wait for a memory service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Waits {
    /// Those in which such a container has a network.
    #[default]
    Auto,
    /// No pod.
    Never,
}

/// The resources of a container that have sizes. An apiserver calls `requests` and `limits` the same.
pub const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Sizes by resource, as they are written.
pub type Quantities = BTreeMap<String, String>;

/// The requests and limits of a container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Sizes {
    /// The least that it gets.
    #[serde(deserialize_with = "quantities", skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: Quantities,
    /// The most that it gets.
    #[serde(deserialize_with = "quantities", skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: Quantities,
}

/// The requests and limits of added containers, as far as they differ from the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct AddedResources {
    /// Those of an init container that waits for a memory service.
    pub wait: Sizes,
    /// Those of the memory sidecar.
    pub server: Sizes,
}

/// Reads sizes, which may be numbers; what cannot be a size is left out.
fn quantities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Quantities, D::Error> {
    let all = Option::<BTreeMap<String, Value>>::deserialize(deserializer)?;
    Ok(all
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(resource, value)| Some((resource, quantity(&value)?)))
        .collect())
}

/// The text of a quantity, which may be a number.
pub fn quantity(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The settings for sympozium.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sympozium {
    /// Where the private memory runs.
    pub memory_mode: MemoryMode,
    /// Which pods get references to writer tokens.
    pub writer_tokens: WriterTokens,
    /// The image of the init containers that wait for a memory service; a tag or a digest.
    pub wait_image: String,
    /// The image of the memory sidecar where the SkillPack names none; a tag or a digest.
    pub memory_image: String,
    /// Which pods wait for a memory service.
    pub wait: Waits,
    /// The sizes of added containers.
    pub resources: AddedResources,
    /// The Secrets with which a node may pull the images of added containers.
    pub image_pull_secrets: Vec<String>,
}

impl Default for Sympozium {
    fn default() -> Self {
        Self {
            memory_mode: MemoryMode::Auto,
            writer_tokens: WriterTokens::Auto,
            wait_image: "busybox:1.36".to_owned(),
            memory_image: "ghcr.io/sympozium-ai/sympozium/skill-memory:latest".to_owned(),
            wait: Waits::Auto,
            resources: AddedResources::default(),
            image_pull_secrets: Vec::new(),
        }
    }
}
