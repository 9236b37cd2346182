//! The family's kinds, and the fields that memgate reads of them.
//!
//! The same resources have had four sets of names. Each set is a [`Dialect`], and the code of the family is
//! written once, for any dialect:
//!
//! | dialect | memory | agent | settings | pod label |
//! |---|---|---|---|---|
//! | [`ARKONIS`] | ArkMemory | ArkAgent | ArkSettings | `arkonis.dev/deployment` |
//! | [`ARKONIS_OLD`] | ArkonisMemory | ArkonisDeployment | ArkonisConfig | `arkonis.dev/deployment` |
//! | [`KUBESWARM`] | SwarmMemory | SwarmAgent | SwarmSettings | `kubeswarm/deployment` |
//! | [`AGENTOPS`] | AgentMemory | AgentDeployment | AgentConfig | `agentops.io/deployment` |

use memgate_model::kind::Kind;
use memgate_model::schema::{Field, METADATA, METADATA_OF_JUDGED, Schema, schema};
use memgate_model::selector::PodSelector;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

/// The value of an unset `spec.redis.ttlSeconds`, in seconds: the default of the CRD's schema.
pub(crate) const REDIS_TTL_DEFAULT: i64 = 3600;

/// The value of an unset `spec.vectorStore.collection`: the default of the CRD's schema.
pub(crate) const COLLECTION_DEFAULT: &str = "agent-memories";

/// The embedding providers of the successor.
pub(crate) const EMBEDDING_PROVIDERS: [&str; 2] = [EMBEDDING_PROVIDER_DEFAULT, "openai"];

/// The embedding providers that only older releases of the successor accept.
pub(crate) const OLDER_EMBEDDING_PROVIDERS: [&str; 2] = ["google", "voyageai"];

/// The value of an unset `spec.embedding.provider` of the successor: the name of the model decides.
pub(crate) const EMBEDDING_PROVIDER_DEFAULT: &str = "auto";

/// The key that the Secret of a Redis memory must hold.
pub(crate) const REDIS_URL_KEY: &str = "REDIS_URL";

/// The key that the Secret of a vector store must hold.
pub(crate) const API_KEY_KEY: &str = "VECTOR_STORE_API_KEY";

/// The container of an agent pod that gets the memory.
pub(crate) const AGENT_CONTAINER: &str = "agent";

/// One set of names for the same resources.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The memory resource.
    pub(crate) memory: Kind,
    /// The referrer.
    pub(crate) agent: Kind,
    /// The settings, which can also name a backend.
    pub(crate) settings: Kind,
    /// The label of an agent pod; its value is the agent's name.
    pub(crate) pod_label: &'static str,
    /// The path from an agent to the object that names its memory.
    pub(crate) memory_ref: &'static [&'static str],
    /// The vector databases that the CRD's schema accepts.
    pub(crate) providers: &'static [&'static str],
    /// Those that only older releases accept.
    pub(crate) older_providers: &'static [&'static str],
    /// Whether this is the successor, whose rules differ in places.
    pub(crate) successor: bool,
}

/// arkonis v0.4 and later.
pub(crate) static ARKONIS: Dialect = ARKONIS_NAMES;

const ARKONIS_NAMES: Dialect = Dialect {
    memory: Kind::new(ARKONIS_GROUP, "ArkMemory", "arkmemories", MEMORY),
    agent: Kind::new(ARKONIS_GROUP, "ArkAgent", "arkagents", AGENT),
    settings: Kind::new(ARKONIS_GROUP, "ArkSettings", "arksettings", SETTINGS),
    pod_label: "arkonis.dev/deployment",
    memory_ref: &["spec", "memoryRef"],
    providers: &["qdrant", "pinecone", "weaviate"],
    older_providers: &[],
    successor: false,
};

/// arkonis v0.3: the same resources and the same pod label under older names.
pub(crate) static ARKONIS_OLD: Dialect = Dialect {
    memory: Kind::new(ARKONIS_GROUP, "ArkonisMemory", "arkonismemories", MEMORY),
    agent: Kind::new(ARKONIS_GROUP, "ArkonisDeployment", "arkonisdeployments", AGENT),
    settings: Kind::new(ARKONIS_GROUP, "ArkonisConfig", "arkonisconfigs", SETTINGS),
    ..ARKONIS_NAMES
};

/// kubeswarm, the successor of arkonis.
pub(crate) static KUBESWARM: Dialect = Dialect {
    memory: Kind::new(KUBESWARM_GROUP, "SwarmMemory", "swarmmemories", SWARM_MEMORY),
    agent: Kind::new(KUBESWARM_GROUP, "SwarmAgent", "swarmagents", SWARM_AGENT),
    settings: Kind::new(KUBESWARM_GROUP, "SwarmSettings", "swarmsettings", SETTINGS),
    pod_label: "kubeswarm/deployment",
    memory_ref: &["spec", "runtime", "loop", "memory", "ref"],
    providers: &["qdrant", "pgvector"],
    older_providers: &["pinecone", "weaviate"],
    successor: true,
};

/// agentops v0.3, the oldest names.
pub(crate) static AGENTOPS: Dialect = Dialect {
    memory: Kind::new(AGENTOPS_GROUP, "AgentMemory", "agentmemories", MEMORY),
    agent: Kind::new(AGENTOPS_GROUP, "AgentDeployment", "agentdeployments", AGENT),
    settings: Kind::new(AGENTOPS_GROUP, "AgentConfig", "agentconfigs", SETTINGS),
    pod_label: "agentops.io/deployment",
    ..ARKONIS_NAMES
};

/// The dialects, in the order in which they are tried for a pod with several labels.
pub(crate) static DIALECTS: [&Dialect; 4] = [&ARKONIS, &ARKONIS_OLD, &KUBESWARM, &AGENTOPS];

/// The kinds of this family, memory resources first in each dialect.
pub(crate) static VALIDATED: [&Kind; 12] = [
    &ARKONIS.memory, &ARKONIS.agent, &ARKONIS.settings, &ARKONIS_OLD.memory, &ARKONIS_OLD.agent,
    &ARKONIS_OLD.settings, &KUBESWARM.memory, &KUBESWARM.agent, &KUBESWARM.settings, &AGENTOPS.memory,
    &AGENTOPS.agent, &AGENTOPS.settings,
];

/// The memory resources.
pub(crate) static MEMORIES: [&Kind; 4] =
    [&ARKONIS.memory, &ARKONIS_OLD.memory, &KUBESWARM.memory, &AGENTOPS.memory];

/// The selectors for the pods of [`DIALECTS`], each label once.
pub(crate) static POD_SELECTORS: [PodSelector; 3] = [
    PodSelector::labelled("arkonis", &[("arkonis.dev/deployment", &[])]),
    PodSelector::labelled("arkonis-kubeswarm", &[("kubeswarm/deployment", &[])]),
    PodSelector::labelled("arkonis-agentops", &[("agentops.io/deployment", &[])]),
];

/// The API group that kubeswarm's own samples use by mistake. No apiserver serves it.
pub(crate) const MISNAMED_GROUP: &str = "kubeswarm";

/// The kinds of kubeswarm under the mistaken group.
pub(crate) static MISNAMED: [&Kind; 3] = [
    &Kind::new((MISNAMED_GROUP, VERSION), "SwarmMemory", "swarmmemories", Schema::Any),
    &Kind::new((MISNAMED_GROUP, VERSION), "SwarmAgent", "swarmagents", Schema::Any),
    &Kind::new((MISNAMED_GROUP, VERSION), "SwarmSettings", "swarmsettings", Schema::Any),
];

const VERSION: &str = "v1alpha1";
const ARKONIS_GROUP: (&str, &str) = ("arkonis.dev", VERSION);
const KUBESWARM_GROUP: (&str, &str) = ("kubeswarm.io", VERSION);
const AGENTOPS_GROUP: (&str, &str) = ("agentops.agentops.io", VERSION);

const NAME_ONLY: Schema = schema! { open { "name": text, } };

const SECRET_REF: Field = Field::new("secretRef", NAME_ONLY);

const REDIS: Schema = schema! { open { SECRET_REF, "ttlSeconds": integer, "maxEntries": integer, } };

const VECTOR_STORE: Schema =
    schema! { open { "provider" "endpoint" "collection": text, SECRET_REF, "ttlSeconds": integer, } };

const MEMORY: Schema = schema! { open {
    "metadata": METADATA_OF_JUDGED,
    "spec": open { "backend": text, "redis": REDIS, "vectorStore": VECTOR_STORE, },
} };

const SWARM_MEMORY: Schema = schema! { open {
    "metadata": METADATA_OF_JUDGED,
    "spec": open {
        "backend": text,
        "redis": REDIS,
        "vectorStore": VECTOR_STORE,
        "embedding": open {
            "model" "provider": text,
            "dimensions": integer,
            "apiKeyRef": open { "name" "key": text, "optional": boolean, },
        },
    },
} };

const AGENT: Schema = schema! { open {
    "metadata": METADATA_OF_JUDGED,
    "spec": open { "memoryRef": NAME_ONLY, "configRef": open { "name": text, }, },
} };

const SWARM_AGENT: Schema = schema! { open {
    "metadata": METADATA_OF_JUDGED,
    "spec": open {
        "runtime": open { "loop": open { "memory": open { "ref": NAME_ONLY, }, }, },
        "settings": [open { "name": text, }],
    },
} };

const SETTINGS: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open { "memoryBackend": text, },
} };

/// Where a memory is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// Within one task's context window only.
    InContext,
    /// In Redis.
    Redis,
    /// In a vector database.
    VectorStore,
}

impl Backend {
    /// Every backend, in the order in which messages list them.
    pub(crate) const ALL: [Self; 3] = [Self::InContext, Self::Redis, Self::VectorStore];

    /// The backend of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }

    /// The name in `spec.backend`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InContext => "in-context",
            Self::Redis => "redis",
            Self::VectorStore => "vector-store",
        }
    }

    /// The field of the section that this backend needs.
    pub(crate) const fn section(self) -> Option<&'static str> {
        match self {
            Self::InContext => None,
            Self::Redis => Some("redis"),
            Self::VectorStore => Some("vectorStore"),
        }
    }
}

/// The spec of a memory resource. A field of the wrong type reads as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Memory<'t> {
    /// `spec.backend`, unparsed.
    pub(crate) backend_name: Option<&'t str>,
    /// `spec.redis`.
    pub(crate) redis: Option<Redis<'t>>,
    /// `spec.vectorStore`.
    pub(crate) vector_store: Option<VectorStore<'t>>,
    /// `spec.embedding`, of the successor only.
    pub(crate) embedding: Option<Embedding<'t>>,
}

/// `spec.redis` of a memory resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redis<'t> {
    /// `secretRef.name`; `None` when it or the whole `secretRef` is absent.
    pub(crate) secret_name: Option<&'t str>,
    /// Seconds; 0 and negative numbers mean no expiry, `None` means [`REDIS_TTL_DEFAULT`].
    pub(crate) ttl_seconds: Option<i64>,
    /// Entries; `None`, 0 and negative numbers mean unlimited.
    pub(crate) max_entries: Option<i64>,
}

/// `spec.vectorStore` of a memory resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VectorStore<'t> {
    /// The product.
    pub(crate) provider: Option<&'t str>,
    /// The base URL.
    pub(crate) endpoint: Option<&'t str>,
    /// The collection; `None` means [`COLLECTION_DEFAULT`].
    pub(crate) collection: Option<&'t str>,
    /// Whether there is a `secretRef`, with or without a name.
    pub(crate) has_secret_ref: bool,
    /// `secretRef.name`.
    pub(crate) secret_name: Option<&'t str>,
    /// Seconds; `None`, 0 and negative numbers mean no expiry.
    pub(crate) ttl_seconds: Option<i64>,
}

/// `spec.embedding` of a SwarmMemory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Embedding<'t> {
    /// The name of the embedding model.
    pub(crate) model: Option<&'t str>,
    /// The provider of the model; `None` means `auto`.
    pub(crate) provider: Option<&'t str>,
}

impl<'t> Embedding<'t> {
    /// The provider; that of `auto` is the one that kubeswarm chooses from the name of the model.
    pub(crate) fn resolved_provider(&self) -> Option<&'t str> {
        let of_model = |model: &str| {
            if model.starts_with("text-multilingual-embedding-") {
                "google"
            } else if model.starts_with("voyage-") {
                "voyageai"
            } else {
                "openai"
            }
        };
        match self.provider {
            None | Some(EMBEDDING_PROVIDER_DEFAULT) => self.model.map(of_model),
            provider => provider,
        }
    }
}

impl<'t> Memory<'t> {
    /// Reads a memory resource. In the successor's `secretRef`, an absent name counts as an empty one.
    pub(crate) fn read(dialect: &Dialect, object: &'t Tree) -> Self {
        let secret_name = |section: &'t Tree| {
            let reference = section.get("secretRef")?;
            let name = reference.text_at(&["name"]);
            if dialect.successor && reference.is_object() { name.or(Some("")) } else { name }
        };
        let text = |tree: &'t Tree, field| tree.text_at(&[field]);
        let integer = |tree: &'t Tree, field| tree.get(field).and_then(Tree::integer);
        let section = |name| object.at(&["spec", name]).filter(|section| section.is_object());
        Memory {
            backend_name: object.text_at(&["spec", "backend"]),
            redis: section("redis").map(|redis| Redis {
                secret_name: secret_name(redis),
                ttl_seconds: integer(redis, "ttlSeconds"),
                max_entries: integer(redis, "maxEntries"),
            }),
            vector_store: section("vectorStore").map(|store| VectorStore {
                provider: text(store, "provider"),
                endpoint: text(store, "endpoint"),
                collection: text(store, "collection"),
                has_secret_ref: store.get("secretRef").is_some(),
                secret_name: secret_name(store),
                ttl_seconds: integer(store, "ttlSeconds"),
            }),
            embedding: section("embedding").map(|embedding| Embedding {
                model: text(embedding, "model"),
                provider: text(embedding, "provider"),
            }),
        }
    }

    /// The backend, if it is one of the three.
    pub(crate) fn backend(&self) -> Option<Backend> {
        self.backend_name.and_then(Backend::from_name)
    }

    /// The name and the key of the Secret in the section that the backend uses.
    pub(crate) fn secret(&self) -> Option<(&'t str, &'static str)> {
        match self.backend()? {
            Backend::InContext => None,
            Backend::Redis => Some((self.redis.as_ref()?.secret_name?, REDIS_URL_KEY)),
            Backend::VectorStore => Some((self.vector_store.as_ref()?.secret_name?, API_KEY_KEY)),
        }
    }
}

impl Redis<'_> {
    /// Seconds until an entry expires, with the default applied; `None` means no expiry.
    pub(crate) fn ttl(&self) -> Option<i64> {
        positive(Some(self.ttl_seconds.unwrap_or(REDIS_TTL_DEFAULT)))
    }

    /// How many entries are kept; `None` means unlimited.
    pub(crate) fn entry_limit(&self) -> Option<i64> {
        positive(self.max_entries)
    }
}

impl<'t> VectorStore<'t> {
    /// The collection; an empty name means the default.
    pub(crate) fn collection_or_default(&self) -> &'t str {
        self.collection.filter(|name| !name.is_empty()).unwrap_or(COLLECTION_DEFAULT)
    }

    /// Seconds until an entry expires; `None` means no expiry.
    pub(crate) fn ttl(&self) -> Option<i64> {
        positive(self.ttl_seconds)
    }
}

/// Drops zero and negative numbers, which mean the same as an absent number.
fn positive(number: Option<i64>) -> Option<i64> {
    number.filter(|number| *number > 0)
}

/// The pointer to the `memoryRef` of an agent.
pub(crate) fn memory_ref_pointer(dialect: &Dialect) -> Pointer {
    dialect.memory_ref.iter().fold(Pointer::root(), |pointer, key| pointer.key(key))
}

/// The `memoryRef` of an agent; `None` if it is absent or not an object.
pub(crate) fn memory_ref<'t>(dialect: &Dialect, agent: &'t Tree) -> Option<&'t Tree> {
    agent.at(dialect.memory_ref).filter(|reference| reference.is_object())
}

/// The name of the memory that an agent claims; empty if the claim has no name.
pub(crate) fn memory_name<'t>(dialect: &Dialect, agent: &'t Tree) -> Option<&'t str> {
    memory_ref(dialect, agent).map(|reference| reference.text_at(&["name"]).unwrap_or_default())
}

/// The settings that an agent names, in order, each with its index if it is in a list. The last existing
/// settings win.
pub(crate) fn settings_names<'t>(
    dialect: &Dialect,
    agent: &'t Tree,
) -> impl DoubleEndedIterator<Item = (Option<usize>, &'t str)> + use<'t> {
    settings_references(dialect, agent).filter(|(_, name)| !name.is_empty())
}

/// The same, with empty names. In the successor's list, an absent name counts as an empty one.
pub(crate) fn settings_references<'t>(
    dialect: &Dialect,
    agent: &'t Tree,
) -> impl DoubleEndedIterator<Item = (Option<usize>, &'t str)> + use<'t> {
    let spec = agent.get("spec");
    let of_list = spec.filter(|_| dialect.successor).and_then(|spec| spec.get("settings"));
    let of_field = spec.filter(|_| !dialect.successor).and_then(|spec| spec.get("configRef"));
    let list = of_list.map(Tree::elements).unwrap_or_default().iter().enumerate();
    let list = list.filter(|(_, settings)| settings.is_object()).filter_map(|(index, settings)| {
        let name = settings.get("name").map_or(Some(""), Tree::text)?;
        Some((Some(index), name))
    });
    let field = of_field.and_then(|settings| settings.get("name")).and_then(Tree::text);
    list.chain(field.map(|name| (None, name)))
}

/// The pointer to the name of settings, for an index from [`settings_names`].
pub(crate) fn settings_pointer(index: Option<usize>) -> Pointer {
    match index {
        Some(index) => Pointer::new("/spec/settings").index(index).key("name"),
        None => Pointer::new("/spec/configRef/name"),
    }
}

/// `spec.memoryBackend` of settings; if absent, the CRD's schema sets `in-context`.
pub(crate) fn memory_backend(settings: &Tree) -> &str {
    settings.text_at(&["spec", "memoryBackend"]).unwrap_or(Backend::InContext.name())
}
