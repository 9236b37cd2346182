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

use crate::fields::MemoryFields;

use super::fields::{ARK_FIELDS, IN_CONTEXT, SWARM_FIELDS};

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
    /// The fields of a memory.
    pub(crate) fields: &'static MemoryFields,
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
    fields: &ARK_FIELDS,
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
    fields: &SWARM_FIELDS,
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
    settings.text_at(&["spec", "memoryBackend"]).unwrap_or(IN_CONTEXT.name)
}
