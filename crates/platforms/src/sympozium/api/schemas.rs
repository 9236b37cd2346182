//! The fields that are read: a table for each kind. Objects are open, since the platform has many fields
//! besides those for memory.

use memgate_model::schema::{Field, LABELS, Schema, UID, metadata, schema};

const METADATA: Schema = metadata![UID, LABELS, ANNOTATIONS];

const ANNOTATIONS: Field =
    Field::new("annotations", Schema::Open(&[Field::new(super::MODE_ANNOTATION, Schema::Text)]));

/// An object with the fields of the platform's kinds, all of which are reported when they are misspelt.
const fn spec(schema: Schema) -> Field {
    Field::new("spec", schema).guarded()
}

const NAMED: Schema = schema! { [guarded { "name": text, }] };

pub(super) const AGENT: Schema = schema! { open {
    "metadata": METADATA,
    (spec(schema! { guarded {
        "agents": guarded { "default": guarded { "model": text, "env": texts, }, },
        // Kept whole, since runs get copies of these entries.
        "skills": [whole { "skillPackRef" "configMapRef": text, "params": texts, }],
        "memory": guarded { "enabled": boolean, "maxSizeKB": integer, "autoStore": boolean, "systemPrompt": text, },
        "volumes" "volumeMounts": NAMED,
        "runtimeRef": text,
        "execution": guarded { "backend" "executionLifecycle": text, "cellnSelection": any, },
        "workspace": guarded { "perSessionPVC": boolean, "size" "storageClassName" "idleTTL": text, },
    } })),
} };

pub(super) const WORKSPACE_SESSION: Schema = schema! { open {
    "metadata": METADATA,
    (spec(schema! { guarded { "agentRef" "sessionKey" "size" "storageClassName" "idleTTL": text, } })),
    "status": open { "pvcName": text, },
} };

pub(super) const HARNESS_SESSION: Schema = schema! { open {
    "metadata": METADATA,
    (spec(schema! { guarded { "agentRef" "runtimeRef" "desiredState" "idleTimeout": text, } })),
} };

pub(super) const AGENT_RUN: Schema = schema! { open {
    "metadata": METADATA,
    (spec(schema! { guarded {
        "agentRef" "instanceRef" "agentId" "sessionKey": text,
        "model": guarded { "provider" "model" "authSecretRef": text, },
        "skills": [guarded { "skillPackRef" "configMapRef": text, "params": texts, }],
        "env": texts,
        "task": any,
        "backend" "executionLifecycle": text,
        "celln" "cellnSelection" "enduring" "conversation": any,
        "mode" "cleanup": text,
        "useContext": boolean,
        "volumes" "volumeMounts": NAMED,
    } })),
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
    (spec(schema! { guarded {
        "sidecar": guarded {
            "image": text,
            "command": [text],
            "env": [whole { "name" "value": text, VALUE_FROM, }],
            "requiresServer": boolean,
            (Field::new("secretRef", Schema::Text)),
            "volumes": [guarded { "name": text, SECRET_VOLUME, }],
            "volumeMounts" "tools": NAMED,
        },
    } })),
} };

const VALUE_FROM: Field =
    Field::new("valueFrom", schema! { open { "secretKeyRef": open { "name": text, }, } });

const SECRET_VOLUME: Field = Field::new("secret", schema! { open { "secretName": text, } });

pub(super) const ENSEMBLE: Schema = schema! { open {
    "metadata": METADATA,
    (spec(schema! { guarded {
        "enabled": boolean,
        "agentConfigs" "personas": CONFIGS,
        (renamed("excludePersonas", STRINGS, &[("excludeAgentConfigs", "excludePersonas")])),
        "autoStoreMemory": boolean,
        "relationships": [guarded { "source" "target" "type": text, }],
        "stimulus": guarded { "name": text, },
        "volumes" "volumeMounts": NAMED,
        "sharedMemory": SHARED_MEMORY,
    } })),
    "status": open { "tokenBudgetUsed": integer, "circuitBreakerOpen": boolean, },
} };

/// Kept with a digest, since two entries with the same name may differ in any field.
const CONFIGS: Schema = schema! { [compared {
    "name" "systemPrompt": text,
    "skills": [any],
    "memory": guarded { "enabled": boolean, "maxSizeKB": integer, "autoStore": boolean, "seeds": [text], },
    "env": texts,
    (Field::new("displayName", Schema::Text)),
    (Field::new("model", Schema::Text)),
    (Field::new("provider", Schema::Text)),
    (Field::new("baseURL", Schema::Text)),
}] };

const SHARED_MEMORY: Schema = schema! { guarded {
    "enabled": boolean,
    "storageSize": text,
    "accessRules": [guarded { "agentConfig" "persona" "access": text, }],
    "membrane": MEMBRANE,
} };

const MEMBRANE: Schema = schema! { guarded {
    "defaultVisibility": text,
    "permeability": [guarded {
        (renamed("agentConfig", Schema::Text, &[("persona", "agentConfig")])),
        (renamed("defaultVisibility", Schema::Text, &[("visibility", "defaultVisibility")])),
        "exposeTags" "acceptTags": [text],
    }],
    "trustGroups": [guarded {
        "name": text,
        (renamed("agentConfigs", STRINGS, &[("personas", "agentConfigs")])),
    }],
    "tokenBudget": guarded { "maxTokens" "maxTokensPerRun": integer, "action": text, },
    "circuitBreaker": guarded { "consecutiveFailures": integer, "cooldownDuration": text, },
    "timeDecay": guarded { "ttl" "decayFunction": text, },
    "evidencePolicy": guarded { "minKind": text, },
} };

const STRINGS: Schema = schema! { [text] };

/// A field for which there is another name.
const fn renamed(
    name: &'static str,
    schema: Schema,
    aliases: &'static [(&'static str, &'static str)],
) -> Field {
    Field::new(name, schema).guarded().aliases(aliases)
}
