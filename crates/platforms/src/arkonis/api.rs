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
use memgate_model::schema::{METADATA, METADATA_OF_JUDGED, Schema, schema};
use memgate_model::selector::PodSelector;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

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
    /// The vector databases that a memory may name.
    pub(crate) providers: &'static [&'static str],
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
    providers: &["qdrant", PGVECTOR],
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

const REDIS_SCHEMA: Schema =
    schema! { open { "secretRef": NAME_ONLY, "ttlSeconds": integer, "maxEntries": integer, } };

const VECTOR_STORE_SCHEMA: Schema = schema! { open { "provider" "endpoint" "collection": text, "secretRef": NAME_ONLY, "ttlSeconds": integer, } };

const MEMORY: Schema = schema! { open {
    "metadata": METADATA_OF_JUDGED,
    "spec": open { "backend": text, "redis": REDIS_SCHEMA, "vectorStore": VECTOR_STORE_SCHEMA, },
} };

const SWARM_MEMORY: Schema = schema! { open {
    "metadata": METADATA_OF_JUDGED,
    "spec": open {
        "backend": text,
        "redis": REDIS_SCHEMA,
        "vectorStore": VECTOR_STORE_SCHEMA,
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

/// A field, as the names on the way to it.
pub(crate) type Field = &'static [&'static str];

/// Where memory is kept.
pub(crate) const BACKEND: Field = &["spec", "backend"];
/// The same in settings.
pub(crate) const SETTINGS_BACKEND: Field = &["spec", "memoryBackend"];
/// The section of Redis.
pub(crate) const REDIS: Field = &["spec", "redis"];
/// The Secret with the URL of Redis.
pub(crate) const REDIS_SECRET: Field = &["spec", "redis", "secretRef", "name"];
/// Seconds until Redis drops an entry, and what an absent number means.
pub(crate) const REDIS_TTL: (Field, i64) = (&["spec", "redis", "ttlSeconds"], 3600);
/// The number of entries in Redis.
pub(crate) const MAX_ENTRIES: (Field, i64) = (&["spec", "redis", "maxEntries"], 0);
/// The section of a vector database.
pub(crate) const VECTOR_STORE: Field = &["spec", "vectorStore"];
/// The vector database.
pub(crate) const PROVIDER: Field = &["spec", "vectorStore", "provider"];
/// The base URL of the vector database.
pub(crate) const ENDPOINT: Field = &["spec", "vectorStore", "endpoint"];
/// The collection in the vector database.
pub(crate) const COLLECTION: Field = &["spec", "vectorStore", "collection"];
/// The reference to the Secret with the API key of the vector database.
pub(crate) const VECTOR_SECRET_REF: Field = &["spec", "vectorStore", "secretRef"];
/// Its name.
pub(crate) const VECTOR_SECRET: Field = &["spec", "vectorStore", "secretRef", "name"];
/// Seconds until the vector database drops an entry.
pub(crate) const VECTOR_TTL: (Field, i64) = (&["spec", "vectorStore", "ttlSeconds"], 0);
/// The successor's section of the embedding model.
pub(crate) const EMBEDDING: Field = &["spec", "embedding"];
/// The embedding model.
pub(crate) const EMBEDDING_MODEL: Field = &["spec", "embedding", "model"];
/// The provider of the embedding model.
pub(crate) const EMBEDDING_PROVIDER: Field = &["spec", "embedding", "provider"];
/// The Secret with the API key of the embedding provider.
pub(crate) const EMBEDDING_SECRET: Field = &["spec", "embedding", "apiKeyRef", "name"];

/// The collection if none is given.
pub(crate) const COLLECTION_DEFAULT: &str = "agent-memories";
/// The embedding provider if none is given: the name of the model decides.
pub(crate) const OF_MODEL: &str = "auto";
/// The provider whose address is a connection string.
pub(crate) const PGVECTOR: &str = "pgvector";

/// Where memory is kept.
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
    /// The names, in the order in which messages list them.
    pub(crate) const NAMES: [&str; 3] = ["in-context", "redis", "vector-store"];

    /// The backend of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::InContext, Self::Redis, Self::VectorStore].into_iter().find(|backend| backend.name() == name)
    }

    /// Its name in objects.
    pub(crate) const fn name(self) -> &'static str {
        let [in_context, redis, vector_store] = Self::NAMES;
        match self {
            Self::InContext => in_context,
            Self::Redis => redis,
            Self::VectorStore => vector_store,
        }
    }
}

/// A memory resource. A value of the wrong type reads as absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory<'t> {
    object: &'t Tree,
    /// Whether an absent name of a Secret counts as an empty one.
    empty_names: bool,
}

impl<'t> Memory<'t> {
    /// Reads an object.
    pub(crate) const fn read(dialect: &Dialect, object: &'t Tree) -> Self {
        Self { object, empty_names: dialect.successor }
    }

    /// The backend, if it is one of the known ones.
    pub(crate) fn backend(&self) -> Option<Backend> {
        self.text(BACKEND).and_then(Backend::named)
    }

    /// Whether there is an object at a place.
    pub(crate) fn has(&self, section: &[&str]) -> bool {
        self.object.at(section).is_some_and(Tree::is_object)
    }

    /// The value of a field.
    pub(crate) fn at(&self, field: Field) -> Option<&'t Tree> {
        self.object.at(field)
    }

    /// The text of a field.
    pub(crate) fn text(&self, field: Field) -> Option<&'t str> {
        self.object.text_at(field)
    }

    /// The name of a Secret, at the end of this path.
    pub(crate) fn secret(&self, field: Field) -> Option<&'t str> {
        let has_reference = || field.split_last().is_some_and(|(_, reference)| self.has(reference));
        self.text(field).or_else(|| (self.empty_names && has_reference()).then_some(""))
    }

    /// The number of a field, or what an absent one means. A negative one counts as 0.
    pub(crate) fn number(&self, (field, default): (Field, i64)) -> i64 {
        self.at(field).and_then(Tree::integer).unwrap_or(default).max(0)
    }

    /// The collection, or the default for an absent or empty one.
    pub(crate) fn collection(&self) -> &'t str {
        self.text(COLLECTION).filter(|text| !text.is_empty()).unwrap_or(COLLECTION_DEFAULT)
    }

    /// The embedding provider; without one that is named, the one that kubeswarm chooses from the name of the model.
    pub(crate) fn embedding_provider(&self) -> Option<&'t str> {
        let of_model = |model: &str| {
            if model.starts_with("text-multilingual-embedding-") {
                "google"
            } else if model.starts_with("voyage-") {
                "voyageai"
            } else {
                "openai"
            }
        };
        match self.text(EMBEDDING_PROVIDER) {
            None | Some(OF_MODEL) => self.text(EMBEDDING_MODEL).map(of_model),
            provider => provider,
        }
    }

    /// The sections that the backend does not use, with the backend that would.
    pub(crate) fn unused_sections(&self) -> impl Iterator<Item = (Field, Backend)> {
        let (memory, chosen) = (*self, self.backend());
        let sections = [(REDIS, Backend::Redis), (VECTOR_STORE, Backend::VectorStore)];
        sections
            .into_iter()
            .filter(move |(section, of)| chosen.is_some_and(|it| it != *of) && memory.has(section))
    }
}

/// The pointer to the `memoryRef` of an agent.
pub(crate) fn memory_ref_pointer(dialect: &Dialect) -> Pointer {
    dialect.memory_ref.into()
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
    settings.text_at(SETTINGS_BACKEND).unwrap_or(Backend::InContext.name())
}
