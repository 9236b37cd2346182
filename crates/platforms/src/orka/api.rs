//! The family's kinds, and the fields that memgate reads of them.

use memgate_model::change::{Keys, Meaning};
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::schema::{Field, METADATA, METADATA_WITH_ANNOTATIONS, Schema, schema};
use memgate_model::selector::PodSelector;
use memgate_model::tree::Tree;

/// The prefix of memgate's annotations for this family.
pub(crate) const ANNOTATION_PREFIX: &str = "memgate.dev/orka-";

/// The annotation that switches the memory section on or off.
pub(crate) const ENABLED_ANNOTATION: &str = "memgate.dev/orka-memory-context";
/// The annotation with the maximum number of memories.
pub(crate) const LIMIT_ANNOTATION: &str = "memgate.dev/orka-memory-context-limit";
/// The annotation with the maximum number of bytes.
pub(crate) const MAX_CHARS_ANNOTATION: &str = "memgate.dev/orka-memory-context-max-chars";
/// The annotation that switches the memory tools on or off.
pub(crate) const TOOLS_ANNOTATION: &str = "memgate.dev/orka-memory-tools";

/// The label of a pod that names its Task, converted to a valid label value.
pub(crate) const TASK_LABEL: &str = "orka.ai/task";
/// The label of a pod with the type of its Task.
pub(crate) const TASK_TYPE_LABEL: &str = "orka.ai/task-type";
/// The prefix of all labels of Orka.
pub(crate) const LABEL_PREFIX: &str = "orka.ai/";
/// The label of a Task that a schedule created.
pub(crate) const SCHEDULED_LABEL: &str = "orka.ai/scheduled-run";
/// The label of a Task that another Task created.
pub(crate) const PARENT_LABEL: &str = "orka.ai/parent-task";
/// The annotation of such a Task with the full name of its parent Task.
pub(crate) const PARENT_ANNOTATION: &str = "orka.ai/parent-task-name";

/// The type of the Tasks whose worker reads memory.
pub(crate) const TASK_TYPE_AI: &str = "ai";

/// The container of an AI worker.
pub(crate) const WORKER_CONTAINER: &str = "worker";

/// The tools that read and write memory, in the order in which a suggestion prefers them.
pub(crate) const MEMORY_TOOLS: [&str; 4] =
    ["recall_memory", "remember", "propose_memory", "search_transcript"];

const GROUP: (&str, &str) = ("core.orka.ai", "v1alpha1");

/// An Agent, with the fields that validation reads.
pub(crate) static AGENT: Kind = Kind::new(GROUP, "Agent", "agents", AGENT_SCHEMA);

/// A Task, with the fields that validation reads.
pub(crate) static TASK: Kind = Kind::new(GROUP, "Task", "tasks", TASK_SCHEMA);

/// A MemoryBackend, from an open pull request of the platform.
pub(crate) static MEMORY_BACKEND: Kind =
    Kind::new(GROUP, "MemoryBackend", "memorybackends", MEMORY_BACKEND_SCHEMA);

/// An Agent in the state: its annotations, and the tools that it gives to Tasks.
pub(crate) static STATE_AGENT: Kind = Kind::new(GROUP, "Agent", "agents", STATE_AGENT_SCHEMA);

/// A Task in the state. Its variables are left out, since some hold credentials.
pub(crate) static STATE_TASK: Kind = Kind::new(GROUP, "Task", "tasks", STATE_TASK_SCHEMA);

/// A tool that users added. Only its name is read.
pub(crate) static TOOL: Kind = Kind::new(GROUP, "Tool", "tools", schema! { open { "metadata": METADATA, } });

/// The annotations that mean something.
pub(crate) static MEANINGS: [Meaning; 1] = [Meaning {
    kinds: &[&AGENT, &TASK, &NAMESPACE],
    labels: Keys::None,
    annotations: Keys::StartingWith(ANNOTATION_PREFIX),
}];

/// Selects agent pods.
pub(crate) static POD_SELECTORS: [PodSelector; 1] = [PodSelector {
    without: Some(POOL_LABEL_PREFIX),
    ..PodSelector::labelled("orka", &[(TASK_LABEL, &[]), (TASK_TYPE_LABEL, &[TASK_TYPE_AI])])
}];

/// The prefix of labels on pods in a pool of runtimes. Any change to such a pod makes Orka recycle the
/// pool.
pub(crate) const POOL_LABEL_PREFIX: &str = "orka.ai/runtime-pool";

const AGENT_SCHEMA: Schema = schema! { open {
    "metadata": METADATA_WITH_ANNOTATIONS,
    "spec": open {
        "tools": TOOLS,
        "coordination": open { "enabled": boolean, "approvalRequiredTools": [text], },
        "runtime": open { "type": text, "defaultAllowedTools": [text], },
        "secretRef": open { "name": text, },
    },
} };

const TOOLS: Schema = schema! { [open { "name": text, "enabled": boolean, }] };

const TASK_SCHEMA: Schema = schema! { open {
    "metadata": METADATA_WITH_ANNOTATIONS,
    "spec": open {
        "type": text,
        "env": [open { "name" "value": text, "valueFrom": open { "secretKeyRef" "configMapKeyRef": KEY_REF, }, }],
        "ai": open { "tools": [text], },
        "agentRef": open { "name" "namespace": text, },
    },
} };

const KEY_REF: Schema = schema! { open { "name" "key": text, "optional": boolean, } };

const MEMORY_BACKEND_SCHEMA: Schema = schema! { open {
    "metadata": METADATA_WITH_ANNOTATIONS,
    "spec": open {
        "protocol": open { "omsVersion" "profile": text, },
        "deployment": open { "endpoint": text, },
        "clientAuth": open { "bearerTokenSecretRef": open { "name" "key": text, }, },
        "store": open { "name": text, },
    },
} };

const STATE_AGENT_SCHEMA: Schema = schema! { open {
    "metadata": open { "name" "namespace": text, "annotations": (Schema::Open(ANNOTATIONS)), },
    "spec": open { "tools": TOOLS, "coordination": open { "enabled": boolean, }, },
} };

const STATE_TASK_SCHEMA: Schema = schema! { pruned {
    "metadata": pruned {
        "name" "namespace" "uid": text,
        "labels": (Schema::Pruned(&[text(SCHEDULED_LABEL), text(PARENT_LABEL)])),
        "annotations": (Schema::Pruned(ANNOTATIONS)),
    },
    "spec": pruned { "agentRef": pruned { "name" "namespace": text, }, },
} };

/// The annotations of stored objects that decisions read.
const ANNOTATIONS: &[Field] = &[
    text(ENABLED_ANNOTATION),
    text(LIMIT_ANNOTATION),
    text(MAX_CHARS_ANNOTATION),
    text(TOOLS_ANNOTATION),
    text(PARENT_ANNOTATION),
];

const fn text(name: &'static str) -> Field {
    Field::new(name, Schema::Text)
}

/// The value of an annotation, of an object under review or in the state.
pub(crate) fn annotation<'t>(object: &'t Tree, key: &str) -> Option<&'t str> {
    entry(object, "annotations", key)
}

/// The value of a label, of an object under review or in the state.
pub(crate) fn label<'t>(object: &'t Tree, key: &str) -> Option<&'t str> {
    entry(object, "labels", key)
}

fn entry<'t>(object: &'t Tree, map: &str, key: &str) -> Option<&'t str> {
    let map = object.at(&["metadata", map])?;
    map.entry(key).or_else(|| map.text_at(&[key]))
}

/// The name of the Task whose schedule created this one.
pub(crate) fn scheduled_parent(task: &Tree) -> Option<&str> {
    if label(task, SCHEDULED_LABEL) != Some("true") {
        return None;
    }
    let full_name = annotation(task, PARENT_ANNOTATION).filter(|name| !name.is_empty());
    full_name.or_else(|| label(task, PARENT_LABEL)).filter(|name| !name.is_empty())
}

/// The Agent of a Task: its namespace, if the Task sets one, and its name. `None` if either has the wrong type.
pub(crate) fn agent_ref(task: &Tree) -> Option<(Option<&str>, &str)> {
    let reference = task.at(&["spec", "agentRef"])?;
    let namespace = match reference.get("namespace") {
        Some(namespace) => Some(namespace.text()?).filter(|namespace| !namespace.is_empty()),
        None => None,
    };
    Some((namespace, reference.get("name")?.text()?))
}
