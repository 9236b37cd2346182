//! The family's kinds, and the fields that memgate reads of them.

use crate::prelude::*;
use memgate_model::schema::{METADATA, METADATA_OF_JUDGED, Schema, schema};

/// The API group of kagent 0.x.
pub(crate) const OLDER_GROUP: &str = "kagent.dev";
/// The API group of kagent 1.x.
pub(crate) const NEWER_GROUP: &str = "api.kagent.dev";
/// The version of kagent 1.x. Early builds served it in the group of 0.x; no release does.
pub(crate) const NEWER_VERSION: &str = "v1alpha3";

const OLDER: (&str, &str) = (OLDER_GROUP, "v1alpha2");
const NEWER: (&str, &str) = (NEWER_GROUP, NEWER_VERSION);

/// An Agent of 0.x, with its memory.
pub(crate) static AGENT: Kind = Kind::new(OLDER, "Agent", "agents", AGENT_SCHEMA).also("v1alpha1");
/// A SandboxAgent of 0.x, with the same fields as an Agent.
pub(crate) static SANDBOX_AGENT: Kind = Kind::new(OLDER, "SandboxAgent", "sandboxagents", AGENT_SCHEMA);
/// A ModelConfig of 0.x.
pub(crate) static MODEL_CONFIG: Kind = Kind::new(OLDER, "ModelConfig", "modelconfigs", MODEL_CONFIG_SCHEMA);
/// A Memory, which no kagent since 0.7 reads.
pub(crate) static MEMORY: Kind = Kind::new((OLDER_GROUP, "v1alpha1"), "Memory", "memories", MEMORY_SCHEMA);

/// A Harness of 1.x, with the memory of its agents.
pub(crate) static HARNESS: Kind = Kind::new(NEWER, "Harness", "harnesses", HARNESS_SCHEMA);
/// An Agent of 1.x: it joins a template and a harness.
pub(crate) static NEWER_AGENT: Kind = Kind::new(NEWER, "Agent", "agents", NEWER_AGENT_SCHEMA);
/// An AgentTemplate of 1.x.
pub(crate) static AGENT_TEMPLATE: Kind =
    Kind::new(NEWER, "AgentTemplate", "agenttemplates", AGENT_TEMPLATE_SCHEMA);
/// A ModelConfig of 1.x.
pub(crate) static NEWER_MODEL_CONFIG: Kind =
    Kind::new(NEWER, "ModelConfig", "modelconfigs", MODEL_CONFIG_SCHEMA);

/// A Harness in the group of 0.x, which no release serves.
pub(crate) static MOVED_HARNESS: Kind =
    Kind::new((OLDER_GROUP, NEWER_VERSION), "Harness", "harnesses", HARNESS_SCHEMA);
/// An AgentTemplate in the group of 0.x, which no release serves.
pub(crate) static MOVED_AGENT_TEMPLATE: Kind =
    Kind::new((OLDER_GROUP, NEWER_VERSION), "AgentTemplate", "agenttemplates", AGENT_TEMPLATE_SCHEMA);

/// The kinds that the family validates.
pub(crate) static VALIDATED: [&Kind; 8] = [
    &AGENT, &SANDBOX_AGENT, &MODEL_CONFIG, &MEMORY, &HARNESS, &NEWER_AGENT, &AGENT_TEMPLATE,
    &NEWER_MODEL_CONFIG,
];

/// The kinds of 1.x.
pub(crate) static NEWER_KINDS: [&Kind; 4] = [&HARNESS, &NEWER_AGENT, &AGENT_TEMPLATE, &NEWER_MODEL_CONFIG];

/// The kinds of 1.x in the group of 0.x.
pub(crate) static MISNAMED: [&Kind; 2] = [&MOVED_HARNESS, &MOVED_AGENT_TEMPLATE];

/// The kinds whose DELETE takes memory from agents.
pub(crate) static MODEL_CONFIGS: [&Kind; 2] = [&MODEL_CONFIG, &NEWER_MODEL_CONFIG];

/// The kinds whose memories stay when an object that has any is deleted, and the objects that have any, in CEL.
pub(crate) static AGENTS: [&Kind; 2] = [&AGENT, &SANDBOX_AGENT];
pub(crate) const HAS_MEMORY: &str =
    "has(oldObject.spec) && has(oldObject.spec.declarative) && has(oldObject.spec.declarative.memory)";

const AGENT_SCHEMA: Schema = schema! { open {
    "apiVersion": text,
    "metadata": METADATA_OF_JUDGED,
    "spec": open {
        "type": text,
        "memory": [text],
        "declarative": open {
            "runtime" "modelConfig": text,
            "memory": open { "modelConfig": text, "ttlDays": integer, },
            "context": open { "compaction": open {
                "compactionInterval" "overlapSize" "tokenThreshold" "eventRetentionSize": integer,
                "summarizer": open { "modelConfig" "promptTemplate": text, },
            }, },
        },
    },
} };

const NAMED: Schema = schema! { open { "name": text, } };

/// The section `kagent` of a harness.
const KAGENT: Schema = schema! { open {
    "memory": open { "modelConfigRef": NAMED, "ttlDays": integer, },
    "compaction": open {
        "compactionInterval" "overlapSize" "tokenThreshold" "eventRetentionSize": integer,
        "summarizer": open { "modelConfigRef": NAMED, "promptTemplate": text, },
    },
} };

const HARNESS_SCHEMA: Schema = schema! { open {
    "apiVersion": text,
    "metadata": METADATA_OF_JUDGED,
    "spec": open { "kagent": KAGENT, },
} };

const NEWER_AGENT_SCHEMA: Schema = schema! { open {
    "apiVersion": text,
    "metadata": METADATA_OF_JUDGED,
    "spec": open {
        "templateRef" "harnessRef": NAMED,
        "template": open { "modelConfig": NAMED, },
        "harness": open { "kagent": KAGENT, "ref": NAMED, "inline": open { "kagent": KAGENT, }, },
    },
} };

const AGENT_TEMPLATE_SCHEMA: Schema = schema! { open {
    "apiVersion": text,
    "metadata": METADATA,
    "spec": open { "modelConfig": NAMED, },
} };

const MODEL_CONFIG_SCHEMA: Schema = schema! { open {
    "apiVersion": text,
    "metadata": METADATA,
    "spec": open {
        "model" "provider" "apiKeySecret" "apiKeySecretKey": text,
        "apiKeyPassthrough": boolean,
        "defaultHeaders": keys,
        "openAI": open { "baseUrl": text, "tokenExchange": any, },
        "azureOpenAI": open { "azureEndpoint" "azureDeployment": text, "azureAdToken": credential, },
        "ollama": open { "host": text, },
        "bedrock": open { "region": text, },
        "foundry": open { "endpoint" "apiFormat": text, "endpointFrom": open { "name" "key": text, }, },
        "tls": open {
            "disableVerify" "disableSystemCAs": boolean,
            "caCertSecretRef" "caCertSecretKey": text,
        },
    },
} };

const MEMORY_SCHEMA: Schema = schema! { open {
    "apiVersion": text,
    "metadata": METADATA_OF_JUDGED,
    "spec": open {
        "provider" "apiKeySecretRef" "apiKeySecretKey": text,
        "pinecone": open { "indexHost": text, },
    },
} };

/// What the definitions accept and memgate refuses.
pub(crate) static WAIT_PROBES: [(&Kind, &str); 2] = [
    (&AGENT, r#"{"declarative":{"memory":{"modelConfig":""}}}"#),
    (
        &HARNESS,
        r#"{"kagent":{"memory":{"modelConfigRef":{"name":"none"},"ttlDays":999999}},"workload":{"image":"memgate.dev/none@sha256:0000000000000000000000000000000000000000000000000000000000000000"},"substrate":{"workerPoolRef":{"name":"none"},"snapshotPolicy":{"location":"s3://none/"}}}"#,
    ),
];

/// Whether kagent 0.x runs an agent in a pod.
pub(crate) fn is_kagent_pod(pod: &Pod<'_>) -> bool {
    pod.label("kagent").is_some()
}

/// One of the two lines of kagent. They share words, and no objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// 0.x.
    Older,
    /// 1.x.
    Newer,
}

/// The kind of 1.x that an object of this kind and version is, if it has the group of 0.x and the version of 1.x.
pub(crate) fn moved(kind: &Kind, version: &str) -> Option<&'static Kind> {
    let is_moved = kind.group == OLDER_GROUP && version == NEWER_VERSION;
    NEWER_KINDS.into_iter().find(|newer| is_moved && newer.kind == kind.kind)
}

/// Whether an object is of a version that is now served in another group. It may name objects of either.
pub(crate) fn is_moved(kind: &Kind, object: &Tree) -> bool {
    let version = object.text_at(&["apiVersion"]).and_then(|version| version.split_once('/'));
    version.is_some_and(|(_, version)| moved(kind, version).is_some())
}

impl Line {
    /// The line of a kind.
    pub(crate) fn of(kind: &Kind) -> Self {
        let is_newer = kind.group == NEWER_GROUP || MISNAMED.contains(&kind);
        if is_newer { Self::Newer } else { Self::Older }
    }

    /// The other line.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Older => Self::Newer,
            Self::Newer => Self::Older,
        }
    }

    /// The ModelConfigs that objects of this line name.
    pub(crate) fn model_config(self) -> &'static Kind {
        match self {
            Self::Older => &MODEL_CONFIG,
            Self::Newer => &NEWER_MODEL_CONFIG,
        }
    }

    /// The ModelConfig of this namespace and name, of the other line too for an object of a version that moved.
    pub(crate) fn find_model_config<'s>(
        self,
        (namespace, name): (&str, &str),
        is_moved: bool,
        state: &mut StateReader<'s>,
    ) -> Lookup<'s> {
        match state.get(self.model_config(), namespace, name) {
            Lookup::Absent if is_moved => state.get(self.other().model_config(), namespace, name),
            found_or_unknown => found_or_unknown,
        }
    }
}
