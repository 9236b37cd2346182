//! The family's kinds, and the fields that memgate reads of them.

use memgate_model::change::{Keys, Meaning};
use memgate_model::kind::Kind;
use memgate_model::schema::{Field, LABELS, Schema, UID, metadata, schema};
use memgate_model::selector::PodSelector;
use memgate_model::tree::Tree;

use super::claim::{TARGET_NAMESPACE, counts};

/// The label with the component that a pod of Orloj runs.
pub(crate) const COMPONENT_LABEL: &str = "orloj.dev/component";

/// The value of [`COMPONENT_LABEL`] on the pods that run agents.
pub(crate) const AGENT_JOB: &str = "agent-job";

/// The label of an agent pod with the agent's sanitized name.
pub(crate) const AGENT_LABEL: &str = "orloj.dev/agent";

/// The label of an agent pod with the sanitized Orloj namespace of its task.
pub(crate) const NAMESPACE_LABEL: &str = "orloj.dev/namespace";

/// The container of an agent pod that gets the memory.
pub(crate) const AGENT_CONTAINER: &str = "agent";

/// The default key of a Secret.
pub(crate) const SECRET_KEY: &str = "value";

/// The operations on memory that an Agent can be granted; each also as `memory.<operation>`.
/// Source: OrlojHQ/orloj, resources/memory_ops.go.
pub(crate) const OPERATIONS: [&str; 5] = ["read", "write", "search", "list", "ingest"];

/// The default address of the embeddings API.
/// Source: OrlojHQ/orloj, resources/model_endpoint.go.
pub(crate) const OPENAI_URL: &str = "https://api.openai.com/v1";

/// The default address of ollama.
/// Source: OrlojHQ/orloj, resources/model_endpoint.go.
pub(crate) const OLLAMA_URL: &str = "http://127.0.0.1:11434";

/// The default address of anthropic.
/// Source: OrlojHQ/orloj, resources/model_endpoint.go.
const ANTHROPIC_URL: &str = "https://api.anthropic.com/v1";

/// The memory resource.
pub(crate) static MEMORY: Kind = Kind::new(GROUP, "Memory", "memories", MEMORY_SCHEMA).counted_if(counts);

/// The referrer, with the fields that lookups need.
pub(crate) static AGENT: Kind = Kind::new(GROUP, "Agent", "agents", AGENT_SCHEMA).counted_if(counts);

/// The referrer, with all fields that validation needs.
pub(crate) static VALIDATED_AGENT: Kind = Kind::new(GROUP, "Agent", "agents", VALIDATED_AGENT_SCHEMA);

/// The resource that serves a Memory's embeddings.
pub(crate) static MODEL_ENDPOINT: Kind =
    Kind::new(GROUP, "ModelEndpoint", "modelendpoints", MODEL_ENDPOINT_SCHEMA).counted_if(counts);

/// A Secret of Orloj itself; only its existence is read, and only in files.
pub(crate) static OWN_SECRET: Kind =
    Kind::new(GROUP, "Secret", "secrets", schema! { open { "metadata": METADATA, } }).counted_if(counts);

/// The annotations that mean something.
pub(crate) static MEANINGS: [Meaning; 1] = [Meaning {
    kinds: &[&MEMORY, &AGENT, &MODEL_ENDPOINT],
    labels: Keys::None,
    annotations: Keys::These(&[TARGET_NAMESPACE]),
}];

/// Selects agent pods.
pub(crate) static POD_SELECTORS: [PodSelector; 1] =
    [PodSelector::labelled("orloj", &[(COMPONENT_LABEL, &[AGENT_JOB])])];

const GROUP: (&str, &str) = ("orloj.dev", "v1");

const METADATA: Schema = metadata![UID, ANNOTATIONS];

/// The metadata of kinds whose objects policies judge: policies select by labels.
const JUDGED_METADATA: Schema = metadata![UID, LABELS, ANNOTATIONS];

const ANNOTATIONS: Field =
    Field::new("annotations", Schema::Open(&[Field::new(TARGET_NAMESPACE, Schema::Text)]));

const AUTH: Field = Field::new("auth", schema! { open { "secretRef": text, } });

const MEMORY_SCHEMA: Schema = schema! { open {
    "metadata": JUDGED_METADATA,
    "spec": open {
        "type" "provider" "embedding_model" "endpoint" "endpoint_secret_ref": text,
        AUTH,
    },
    "status": open { "phase": text, },
} };

const CLAIM: Field =
    Field::new("memory", schema! { open { "ref": text, "allow": [text], "type" "provider": text, } });

const AGENT_SCHEMA: Schema = schema! { open { "metadata": JUDGED_METADATA, "spec": open { CLAIM, }, } };

const VALIDATED_AGENT_SCHEMA: Schema = schema! { open {
    "metadata": JUDGED_METADATA,
    "spec": open {
        "prompt" "model_ref": text,
        CLAIM,
        "tools" "allowed_tools" "roles" "fallback_model_refs": [text],
        "limits": open { "max_steps": integer, "timeout": text, },
        "execution": open {},
    },
} };

const MODEL_ENDPOINT_SCHEMA: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open {
        "provider" "base_url" "default_model": text,
        "options": open {},
        AUTH,
        "allowPrivate": boolean,
    },
} };

/// Where a Memory is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Provider {
    /// In the process. This is the default.
    InMemory,
    /// In Postgres.
    Pgvector,
    /// Behind an adapter.
    Http,
    /// A provider that a custom build of Orloj registered, in lower case.
    Custom(String),
}

impl Provider {
    pub(crate) fn parse(name: Option<&str>) -> Self {
        match name.map(str::to_lowercase).as_deref() {
            None | Some("in-memory" | "memory") => Self::InMemory,
            Some("pgvector") => Self::Pgvector,
            Some("http") => Self::Http,
            Some(other) => Self::Custom(other.to_owned()),
        }
    }

    /// The name, normalized.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::InMemory => "in-memory",
            Self::Pgvector => "pgvector",
            Self::Http => "http",
            Self::Custom(name) => name,
        }
    }
}

/// The spec of a Memory. Strings are trimmed; a blank string, or a value of another type, counts as absent.
#[derive(Debug, Clone)]
pub(crate) struct Memory<'t> {
    /// The provider; `None` if the value has the wrong type.
    pub(crate) provider: Option<Provider>,
    /// The provider as it is written.
    pub(crate) provider_text: Option<&'t str>,
    /// The purpose. The platform ignores it.
    pub(crate) purpose: Option<&'t str>,
    /// The URL or connection string.
    pub(crate) endpoint: Option<&'t str>,
    /// The Secret that holds the endpoint.
    pub(crate) endpoint_secret_ref: Option<&'t str>,
    /// The ModelEndpoint.
    pub(crate) embedding_model: Option<&'t str>,
    /// The Secret that holds a password or token.
    pub(crate) secret_ref: Option<&'t str>,
}

impl<'t> Memory<'t> {
    /// Reads a Memory.
    pub(crate) fn read(object: &'t Tree) -> Self {
        let spec = |field| text(object, &["spec", field]);
        let provider = object.at(&["spec", "provider"]);
        let is_string = provider.is_none_or(|provider| provider.text().is_some());
        Memory {
            provider: is_string.then(|| Provider::parse(spec("provider"))),
            provider_text: spec("provider"),
            purpose: spec("type"),
            endpoint: spec("endpoint"),
            endpoint_secret_ref: spec("endpoint_secret_ref"),
            embedding_model: spec("embedding_model"),
            secret_ref: text(object, &["spec", "auth", "secretRef"]),
        }
    }

    /// Whether the provider is this one.
    pub(crate) fn has_provider(&self, provider: &Provider) -> bool {
        self.provider.as_ref() == Some(provider)
    }

    /// The endpoint, unless a Secret with an endpoint overrides it.
    pub(crate) fn effective_endpoint(&self) -> Option<&'t str> {
        self.endpoint.filter(|_| self.endpoint_secret_ref.is_none())
    }
}

/// The name of the Memory that an Agent claims; `None` when it is absent or blank.
pub(crate) fn claimed_memory(agent: &Tree) -> Option<&str> {
    text(agent, &["spec", "memory", "ref"])
}

/// The operations that an Agent requests, unparsed.
pub(crate) fn allow(agent: &Tree) -> &[Tree] {
    agent.list_at(&["spec", "memory", "allow"])
}

/// The text of an entry of `allow`, trimmed; empty for an entry that is not a string.
pub(crate) fn allow_text(entry: &Tree) -> &str {
    entry.text().unwrap_or_default().trim()
}

/// The operation that an entry of `allow` grants; `None` for an invalid entry.
pub(crate) fn operation(entry: &Tree) -> Option<&'static str> {
    const PREFIX: &str = "memory.";
    let entry = allow_text(entry);
    let start = entry.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX));
    let short = start.and_then(|_| entry.get(PREFIX.len()..)).unwrap_or(entry);
    // ASCII rules are enough: the lower-case form of other letters never occurs in the name of an
    // operation.
    OPERATIONS.into_iter().find(|operation| operation.eq_ignore_ascii_case(short))
}

/// The spec of a ModelEndpoint, read as a [`Memory`] is.
#[derive(Debug, Clone)]
pub(crate) struct ModelEndpoint<'t> {
    /// The provider, in lower case; `openai` if absent.
    pub(crate) provider: String,
    /// The URL of its API, if it sets one.
    pub(crate) base_url: Option<&'t str>,
    /// The model for embeddings.
    pub(crate) default_model: Option<&'t str>,
    /// The Secret that holds the API key.
    pub(crate) secret_ref: Option<&'t str>,
}

impl<'t> ModelEndpoint<'t> {
    /// Reads a ModelEndpoint.
    pub(crate) fn read(object: &'t Tree) -> Self {
        let spec = |field| text(object, &["spec", field]);
        ModelEndpoint {
            provider: spec("provider").unwrap_or("openai").to_lowercase(),
            base_url: spec("base_url"),
            default_model: spec("default_model"),
            secret_ref: text(object, &["spec", "auth", "secretRef"]),
        }
    }

    /// The URL to which texts are sent if it does not set one.
    pub(crate) fn default_url(&self) -> &'static str {
        match self.provider.as_str() {
            "anthropic" => ANTHROPIC_URL,
            "ollama" => OLLAMA_URL,
            _ => OPENAI_URL,
        }
    }
}

/// The trimmed text at a path; `None` if it is absent, blank or not a string.
pub(crate) fn text<'t>(object: &'t Tree, path: &[&str]) -> Option<&'t str> {
    object.text_at(path).map(str::trim).filter(|text| !text.is_empty())
}
