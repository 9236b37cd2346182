//! The fields that are read: a table for each kind. Objects are open, since the platform has many fields
//! besides those for memory.

use memgate_model::schema::{Field, LABELS, Schema, UID, metadata, schema};

const METADATA: Schema = metadata![UID, LABELS, ANNOTATIONS];

const ANNOTATIONS: Field =
    Field::new("annotations", Schema::Open(&[Field::new(super::MODE_ANNOTATION, Schema::Text)]));

const NAMED: Schema = schema! { [open { "name": text, }] };

pub(super) const AGENT: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open {
        "agents": open { "default": open { "model": text, "env": texts, }, },
        "skills": [open { "skillPackRef" "configMapRef": text, "params": texts, }],
        "memory": open { "enabled": boolean, "maxSizeKB": integer, "autoStore": boolean, "systemPrompt": text, },
        "volumes" "volumeMounts": NAMED,
        "runtimeRef": text,
        "execution": open { "backend" "executionLifecycle": text, "cellnSelection": any, },
        "workspace": open { "perSessionPVC": boolean, "size" "storageClassName" "idleTTL": text, },
    },
} };

pub(super) const WORKSPACE_SESSION: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open { "agentRef" "sessionKey" "size" "storageClassName" "idleTTL": text, },
    "status": open { "pvcName": text, },
} };

pub(super) const HARNESS_SESSION: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open { "agentRef" "runtimeRef" "desiredState" "idleTimeout": text, },
} };

pub(super) const AGENT_RUN: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open {
        "agentRef" "instanceRef" "agentId" "sessionKey": text,
        "model": open { "provider" "model" "authSecretRef": text, },
        "skills": [open { "skillPackRef" "configMapRef": text, "params": texts, }],
        "env": texts,
        "task": any,
        "backend" "executionLifecycle": text,
        "agentSandbox": open { "enabled": boolean, "warmPoolRef": text, },
        "celln" "cellnSelection" "enduring" "conversation": any,
        "mode" "cleanup": text,
        "useContext": boolean,
        "volumes" "volumeMounts": NAMED,
    },
} };

/// An AgentRun in the state: its Agent, and its skills. There can be very many AgentRuns.
pub(super) const STATE_AGENT_RUN: Schema = schema! { pruned {
    "metadata": pruned { "name" "namespace": text, UID, LABELS, },
    "spec": pruned {
        "agentRef" "instanceRef": text,
        "skills": [pruned { "skillPackRef" "configMapRef": text, "params": texts, }],
        "task": pruned { "mode": text, "parameters": pruned { "image" "runtime": text, }, },
    },
} };

pub(super) const SKILL_PACK: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open {
        "sidecar": open {
            "image": text,
            "command": [text],
            "env": [whole { "name" "value": text, VALUE_FROM, }],
            "requiresServer": boolean,
            "resources": open { "cpu" "memory": text, },
            "secretRef": text,
            "volumes": [open { "name": text, SECRET_VOLUME, }],
            "volumeMounts" "tools": NAMED,
        },
    },
} };

const VALUE_FROM: Field =
    Field::new("valueFrom", schema! { open { "secretKeyRef": open { "name": text, }, } });

const SECRET_VOLUME: Field = Field::new("secret", schema! { open { "secretName": text, } });

pub(super) const ENSEMBLE: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open {
        "enabled": boolean,
        "agentConfigs" "personas": CONFIGS,
        "excludePersonas": [text],
        "autoStoreMemory": boolean,
        "relationships": [open { "source" "target" "type": text, }],
        "stimulus": open { "name": text, },
        "volumes" "volumeMounts": NAMED,
        "sharedMemory": SHARED_MEMORY,
    },
    "status": open { "tokenBudgetUsed": integer, "circuitBreakerOpen": boolean, },
} };

/// Kept with a digest, since two entries with the same name may differ in any field.
const CONFIGS: Schema = schema! { [compared {
    "name" "systemPrompt" "displayName" "model" "provider" "baseURL": text,
    "skills": [either { "skillPackRef": text, }],
    "memory": open { "enabled": boolean, "maxSizeKB": integer, "autoStore": boolean, "seeds": [text], },
    "env": texts,
}] };

const SHARED_MEMORY: Schema = schema! { open {
    "enabled": boolean,
    "storageSize": text,
    "accessRules": [open { "agentConfig" "persona" "access": text, }],
    "membrane": MEMBRANE,
} };

const MEMBRANE: Schema = schema! { open {
    "defaultVisibility": text,
    "permeability": [open {
        "agentConfig" "defaultVisibility": text,
        "exposeTags" "acceptTags": [text],
    }],
    "trustGroups": [open { "name": text, "agentConfigs": [text], }],
    "tokenBudget": open { "maxTokens" "maxTokensPerRun": integer, "action": text, },
    "circuitBreaker": open { "consecutiveFailures": integer, "cooldownDuration": text, },
    "timeDecay": open { "ttl" "decayFunction": text, },
    "evidencePolicy": open { "minKind": text, },
} };
