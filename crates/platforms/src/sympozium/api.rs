//! The family's kinds, and the fields that memgate reads of them.
//!
//! ```text
//! AgentRun ──spec.agentRef──▶ Agent ──label sympozium.ai/ensemble──▶ Ensemble
//!    ▲                          │                                       │
//!    └── label agent-run ── Pod ┘ label instance        spec.sharedMemory, membrane
//! ```
//!
//! The skill `memory` of an Agent turns its private memory on. An Ensemble shares another memory among its
//! Agents. Two kinds, and some fields and labels, have had other names.

pub(crate) mod agent;
pub(crate) mod ensemble;
mod schemas;

use memgate_model::change::{Keys, Meaning};
use memgate_model::kind::{CORE, Kind};
use memgate_model::schema::{METADATA, Schema, schema};
use memgate_model::selector::PodSelector;
use memgate_model::tree::Tree;

/// The API group.
pub(crate) const GROUP: &str = "sympozium.ai";

/// The skill that turns private memory on, and the name of its SkillPack.
pub(crate) const MEMORY_SKILL: &str = "memory";

/// The namespace of SkillPacks for all namespaces.
pub(crate) const SYSTEM_NAMESPACE: &str = "sympozium-system";

/// The container of an agent pod that gets the memory.
pub(crate) const AGENT_CONTAINER: &str = "agent";

/// The container of the memory server.
pub(crate) const MEMORY_SERVER: &str = "memory-server";

/// The label with the component that a pod runs.
pub(crate) const COMPONENT_LABEL: &str = "sympozium.ai/component";
/// The component of a pod that runs an agent.
pub(crate) const AGENT_RUN_COMPONENT: &str = "agent-run";
/// The label that names the Agent of a pod.
pub(crate) const INSTANCE_LABEL: &str = "sympozium.ai/instance";
/// The label that names the AgentRun of a pod.
pub(crate) const RUN_LABEL: &str = "sympozium.ai/agent-run";
/// The label that names the Ensemble of an Agent or AgentRun.
pub(crate) const ENSEMBLE_LABEL: &str = "sympozium.ai/ensemble";
/// The same before release 0.9.
pub(crate) const PACK_LABEL: &str = "sympozium.ai/persona-pack";
/// The label that names the Ensemble's entry from which an Agent was made.
pub(crate) const CONFIG_LABEL: &str = "sympozium.ai/agent-config";
/// The same before release 0.10.
pub(crate) const PERSONA_LABEL: &str = "sympozium.ai/persona";
/// The label with the role of a pod, since release 0.10.12.
pub(crate) const ROLE_LABEL: &str = "sympozium.ai/role";
/// The backend of runs in virtual machines.
pub(crate) const CELLN: &str = "celln";
/// The lifecycle of runs that continue, which only Celln has.
pub(crate) const ENDURING: &str = "enduring";
/// The label with the source of an AgentRun.
pub(crate) const SOURCE_LABEL: &str = "sympozium.ai/source";
/// The source whose runs do not inherit the skills of their Agent.
pub(crate) const WEB_PROXY: &str = "web-proxy";

/// The annotation, on a pod or an Agent, that chooses a service or a sidecar for the private memory.
pub(crate) const MODE_ANNOTATION: &str = "memgate.dev/memory-mode";

/// The key of a writer token in its Secret.
pub(crate) const TOKEN_KEY: &str = "token";

/// The port of every memory server.
pub(crate) const MEMORY_SERVER_PORT: u16 = 8080;

/// The value of an unset `spec.sharedMemory.storageSize`: the default of the CRD's schema.
pub(crate) const STORAGE_SIZE_DEFAULT: &str = "1Gi";

/// The longest name of an Agent: the name of its Service `<agent>-memory` may have 63 bytes.
pub(crate) const MAX_AGENT_NAME_BYTES: usize = 56;

/// The longest name of an Ensemble: the name of its Service `<ensemble>-shared-memory` may have 63 bytes.
pub(crate) const MAX_ENSEMBLE_NAME_BYTES: usize = 49;

/// The names of volumes that Sympozium reserves.
pub(crate) const RESERVED_VOLUMES: [&str; 9] = [
    "workspace", "ipc", "skills", "tmp", "memory", "mcp-config", "sidecar-tools", "harness-home",
    "sympozium-run-api-access",
];

/// The accesses to shared memory that the CRD's schema accepts; the first is the default.
pub(crate) const ACCESSES: [&str; 2] = ["read-write", "read-only"];
/// The visibilities that the CRD's schema accepts; the first is the default.
pub(crate) const VISIBILITIES: [&str; 3] = ["public", "trusted", "private"];
/// The actions when the budget is spent that the CRD's schema accepts; the first is the default.
pub(crate) const BUDGET_ACTIONS: [&str; 2] = ["halt", "warn"];
/// The referrer.
pub(crate) static AGENT: Kind = kind("Agent", "agents", schemas::AGENT);
/// The name of Agent before release 0.10.
pub(crate) static AGENT_OLD: Kind = kind("SympoziumInstance", "sympoziuminstances", schemas::AGENT);
/// The resource from which Agents are made, with the memory that they share.
pub(crate) static ENSEMBLE: Kind = kind("Ensemble", "ensembles", schemas::ENSEMBLE);
/// The name of Ensemble before release 0.9.
pub(crate) static ENSEMBLE_OLD: Kind = kind("PersonaPack", "personapacks", schemas::ENSEMBLE);
/// One invocation of an Agent.
pub(crate) static AGENT_RUN: Kind = kind("AgentRun", "agentruns", schemas::AGENT_RUN);
/// An AgentRun in the state.
pub(crate) static STATE_AGENT_RUN: Kind = kind("AgentRun", "agentruns", schemas::STATE_AGENT_RUN);
/// The resource behind a skill.
pub(crate) static SKILL_PACK: Kind = kind("SkillPack", "skillpacks", schemas::SKILL_PACK);

/// The workspace of one session of an Agent.
pub(crate) static WORKSPACE_SESSION: Kind =
    kind("WorkspaceSession", "workspacesessions", schemas::WORKSPACE_SESSION);
/// The fields of older versions, of which rules of the family speak.
pub(crate) static OLD_FIELDS: [(&Kind, &str); 3] = [
    (&ENSEMBLE, "spec.personas"),
    (&ENSEMBLE, "spec.sharedMemory.accessRules[].persona"),
    (&AGENT_RUN, "spec.instanceRef"),
];

/// A harness that keeps running, with its state.
pub(crate) static HARNESS_SESSION: Kind = kind("HarnessSession", "harnesssessions", schemas::HARNESS_SESSION);

/// core/v1 PersistentVolumeClaim; its existence is read, and whether it can be written.
pub(crate) static CLAIM: Kind = Kind::new(
    CORE,
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    schema! { open { "metadata": METADATA, "spec": open { "accessModes": [text], }, } },
);

/// The kinds that the family validates.
pub(crate) static VALIDATED: [&Kind; 8] = [
    &AGENT, &ENSEMBLE, &AGENT_RUN, &SKILL_PACK, &AGENT_OLD, &ENSEMBLE_OLD, &WORKSPACE_SESSION,
    &HARNESS_SESSION,
];

/// The kinds that fail open: runs, and the storage of a session, which the platform's controllers write.
pub(crate) static OPEN: [&Kind; 3] = [&AGENT_RUN, &WORKSPACE_SESSION, &HARNESS_SESSION];

/// The kinds that decisions look up and the server watches.
pub(crate) static WATCHED: [&Kind; 6] =
    [&AGENT, &ENSEMBLE, &STATE_AGENT_RUN, &SKILL_PACK, &AGENT_OLD, &ENSEMBLE_OLD];

/// The kinds that decisions look up one object at a time.
pub(crate) static FETCHED: [&Kind; 1] = [&CLAIM];

/// The kinds for which defaults are written. Agents must not be among them: the Ensemble's controller would
/// revert the defaults forever.
pub(crate) static DEFAULTED: [&Kind; 1] = [&AGENT_RUN];

/// The kinds whose DELETE deletes memories or leaves Agents without memory.
pub(crate) static MEMORIES: [&Kind; 7] =
    [&AGENT, &ENSEMBLE, &SKILL_PACK, &AGENT_OLD, &ENSEMBLE_OLD, &WORKSPACE_SESSION, &HARNESS_SESSION];

/// The labels and annotations that mean something.
pub(crate) static MEANINGS: [Meaning; 1] = [Meaning {
    kinds: &[&AGENT, &AGENT_OLD, &AGENT_RUN],
    labels: Keys::These(&[ENSEMBLE_LABEL, PACK_LABEL, CONFIG_LABEL, PERSONA_LABEL, SOURCE_LABEL]),
    annotations: Keys::These(&[MODE_ANNOTATION]),
}];

/// Selects agent pods.
pub(crate) static POD_SELECTORS: [PodSelector; 1] =
    [PodSelector::labelled("sympozium", &[(COMPONENT_LABEL, &[AGENT_RUN_COMPONENT]), (INSTANCE_LABEL, &[])])];

/// The name of the Deployment and the Service of an Agent's private memory.
pub(crate) fn private_server(agent: &str) -> String {
    format!("{agent}-memory")
}

/// The name of the Deployment and the Service of the memory that an Ensemble shares.
pub(crate) fn shared_server(ensemble: &str) -> String {
    format!("{ensemble}-shared-memory")
}

/// The name of the Secret with the writer token of a memory server.
pub(crate) fn token_secret(server: &str) -> String {
    format!("{server}-writer-token")
}

/// The URL of the private memory of an Agent, if it is a Service.
pub(crate) fn private_url(agent: &str, namespace: &str) -> String {
    server_url(&private_server(agent), namespace)
}

/// The URL of the memory that an Ensemble shares.
pub(crate) fn shared_url(ensemble: &str, namespace: &str) -> String {
    server_url(&shared_server(ensemble), namespace)
}

fn server_url(server: &str, namespace: &str) -> String {
    format!("http://{server}.{namespace}.svc:{MEMORY_SERVER_PORT}")
}

const fn kind(kind: &'static str, plural: &'static str, schema: Schema) -> Kind {
    Kind::new((GROUP, "v1alpha1"), kind, plural, schema)
}

/// The value of a label; `None` when it is absent or empty.
pub(crate) fn label<'t>(object: &'t Tree, key: &str) -> Option<&'t str> {
    object.at(&["metadata", "labels"])?.entry(key).filter(|value| !value.is_empty())
}

/// An object at a path.
pub(crate) fn section<'t>(tree: &'t Tree, path: &[&str]) -> Option<&'t Tree> {
    tree.at(path).filter(|section| section.is_object())
}

/// Whether a field that is false by default is true.
pub(crate) fn is_true(object: &Tree, path: &[&str]) -> bool {
    object.at(path) == Some(&Tree::Boolean(true))
}

/// The objects of a list, with their indexes.
fn objects<'t>(tree: &'t Tree, path: &[&str]) -> impl Iterator<Item = (usize, &'t Tree)> + use<'t> {
    let elements = tree.list_at(path);
    elements.iter().enumerate().filter(|(_, element)| element.is_object())
}

/// The strings of a list. The apiserver refuses a list with other elements.
pub(crate) fn texts<'t>(tree: &'t Tree, path: &[&str]) -> impl Iterator<Item = &'t str> + use<'t> {
    let elements = tree.list_at(path);
    elements.iter().filter_map(Tree::text)
}
