//! The fields that are read: a table for each kind. Objects are open, since the platform has many fields
//! besides those for memory.

use memgate_model::schema::{Field, LABELS, Schema, UID, metadata};

const fn field(name: &'static str, schema: Schema) -> Field {
    Field::new(name, schema).guarded()
}

const fn text(name: &'static str) -> Field {
    field(name, Schema::Text)
}

const fn integer(name: &'static str) -> Field {
    field(name, Schema::Integer)
}

const fn boolean(name: &'static str) -> Field {
    field(name, Schema::Boolean)
}

const STRINGS: Schema = Schema::List(&Schema::Text);

const METADATA: Field = Field::new("metadata", metadata![UID, LABELS, ANNOTATIONS]);

const ANNOTATIONS: Field =
    Field::new("annotations", Schema::Open(&[Field::new(super::MODE_ANNOTATION, Schema::Text)]));

const VOLUMES: Field = field("volumes", Schema::List(&Schema::Open(&[text("name")])));

const VOLUME_MOUNTS: Field = field("volumeMounts", Schema::List(&Schema::Open(&[text("name")])));

const SKILL: &[Field] = &[text("skillPackRef"), text("configMapRef"), field("params", Schema::Texts)];

/// Kept whole, since runs get copies of these entries.
const AGENT_SKILLS: Field = field("skills", Schema::List(&Schema::Whole(SKILL)));

const RUN_SKILLS: Field = field("skills", Schema::List(&Schema::Open(SKILL)));

pub(super) const AGENT: Schema = Schema::Open(&[
    METADATA,
    field(
        "spec",
        Schema::Open(&[
            field(
                "agents",
                Schema::Open(&[field(
                    "default",
                    Schema::Open(&[text("model"), field("env", Schema::Texts)]),
                )]),
            ),
            AGENT_SKILLS,
            field(
                "memory",
                Schema::Open(&[
                    boolean("enabled"),
                    integer("maxSizeKB"),
                    boolean("autoStore"),
                    text("systemPrompt"),
                ]),
            ),
            VOLUMES,
            VOLUME_MOUNTS,
            text("runtimeRef"),
            HARNESS,
            field(
                "execution",
                Schema::Open(&[
                    text("backend"),
                    text("executionLifecycle"),
                    field("cellnSelection", Schema::Any),
                ]),
            ),
            field(
                "workspace",
                Schema::Open(&[
                    boolean("perSessionPVC"),
                    text("size"),
                    text("storageClassName"),
                    text("idleTTL"),
                ]),
            ),
        ]),
    ),
]);

/// A field that one document of upstream has and no definition yet.
const HARNESS: Field = Field::new("harness", Schema::Text);

pub(super) const WORKSPACE_SESSION: Schema = Schema::Open(&[
    METADATA,
    field(
        "spec",
        Schema::Open(&[
            text("agentRef"),
            text("sessionKey"),
            text("size"),
            text("storageClassName"),
            text("idleTTL"),
        ]),
    ),
    Field::new("status", Schema::Open(&[Field::new("pvcName", Schema::Text)])),
]);

pub(super) const HARNESS_SESSION: Schema = Schema::Open(&[
    METADATA,
    field(
        "spec",
        Schema::Open(&[text("agentRef"), text("runtimeRef"), text("desiredState"), text("idleTimeout")]),
    ),
]);

pub(super) const AGENT_RUN: Schema = Schema::Open(&[
    METADATA,
    field(
        "spec",
        Schema::Open(&[
            text("agentRef"),
            text("instanceRef"),
            text("agentId"),
            text("sessionKey"),
            field("model", Schema::Open(&[text("provider"), text("model"), text("authSecretRef")])),
            RUN_SKILLS,
            field("env", Schema::Texts),
            field("task", Schema::Any),
            text("backend"),
            text("executionLifecycle"),
            field("celln", Schema::Any),
            field("cellnSelection", Schema::Any),
            field("enduring", Schema::Any),
            field("conversation", Schema::Any),
            text("mode"),
            text("cleanup"),
            boolean("useContext"),
            VOLUMES,
            VOLUME_MOUNTS,
        ]),
    ),
]);

/// An AgentRun in the state: its Agent, and its skills. There can be very many AgentRuns.
pub(super) const STATE_AGENT_RUN: Schema = Schema::Pruned(&[
    Field::new(
        "metadata",
        Schema::Pruned(&[
            Field::new("name", Schema::Text),
            Field::new("namespace", Schema::Text),
            UID,
            LABELS,
        ]),
    ),
    Field::new(
        "spec",
        Schema::Pruned(&[
            text("agentRef"),
            text("instanceRef"),
            field("skills", Schema::List(&Schema::Pruned(SKILL))),
            HARNESS,
            field(
                "task",
                Schema::Pruned(&[
                    text("mode"),
                    field("parameters", Schema::Pruned(&[text("image"), text("runtime")])),
                ]),
            ),
        ]),
    ),
]);

const SECRET_NAME: Field = Field::new("name", Schema::Text);

pub(super) const SKILL_PACK: Schema = Schema::Open(&[
    METADATA,
    field(
        "spec",
        Schema::Open(&[field(
            "sidecar",
            Schema::Open(&[
                text("image"),
                field("command", STRINGS),
                field(
                    "env",
                    Schema::List(&Schema::Whole(&[
                        text("name"),
                        text("value"),
                        Field::new(
                            "valueFrom",
                            Schema::Open(&[Field::new("secretKeyRef", Schema::Open(&[SECRET_NAME]))]),
                        ),
                    ])),
                ),
                boolean("requiresServer"),
                Field::new("secretRef", Schema::Text),
                field(
                    "volumes",
                    Schema::List(&Schema::Open(&[
                        text("name"),
                        Field::new("secret", Schema::Open(&[Field::new("secretName", Schema::Text)])),
                    ])),
                ),
                VOLUME_MOUNTS,
                field("tools", Schema::List(&Schema::Open(&[text("name")]))),
            ]),
        )]),
    ),
]);

pub(super) const ENSEMBLE: Schema = Schema::Open(&[
    METADATA,
    field(
        "spec",
        Schema::Open(&[
            boolean("enabled"),
            field("agentConfigs", CONFIGS),
            field("personas", CONFIGS),
            field("excludePersonas", STRINGS).aliases(&[("excludeAgentConfigs", "excludePersonas")]),
            boolean("autoStoreMemory"),
            field(
                "relationships",
                Schema::List(&Schema::Open(&[text("source"), text("target"), text("type")])),
            ),
            field("stimulus", Schema::Open(&[text("name")])),
            VOLUMES,
            VOLUME_MOUNTS,
            field("sharedMemory", SHARED_MEMORY),
            HARNESS,
        ]),
    ),
    Field::new(
        "status",
        Schema::Open(&[
            Field::new("tokenBudgetUsed", Schema::Integer),
            Field::new("circuitBreakerOpen", Schema::Boolean),
        ]),
    ),
]);

/// Kept with a digest, since two entries with the same name may differ in any field.
const CONFIGS: Schema = Schema::List(&Schema::Compared(&[
    text("name"),
    text("systemPrompt"),
    field("skills", Schema::List(&Schema::Any)),
    field(
        "memory",
        Schema::Open(&[
            boolean("enabled"),
            integer("maxSizeKB"),
            boolean("autoStore"),
            field("seeds", STRINGS),
        ]),
    ),
    field("env", Schema::Texts),
    HARNESS,
    Field::new("displayName", Schema::Text),
    Field::new("model", Schema::Text),
    Field::new("provider", Schema::Text),
    Field::new("baseURL", Schema::Text),
]));

const SHARED_MEMORY: Schema = Schema::Open(&[
    boolean("enabled"),
    text("storageSize"),
    field(
        "accessRules",
        Schema::List(&Schema::Open(&[text("agentConfig"), text("persona"), text("access")])),
    ),
    field("membrane", MEMBRANE),
]);

const MEMBRANE: Schema = Schema::Open(&[
    text("defaultVisibility"),
    field(
        "permeability",
        Schema::List(&Schema::Open(&[
            text("agentConfig").aliases(&[("persona", "agentConfig")]),
            text("defaultVisibility").aliases(&[("visibility", "defaultVisibility")]),
            field("exposeTags", STRINGS),
            field("acceptTags", STRINGS),
        ])),
    ),
    field(
        "trustGroups",
        Schema::List(&Schema::Open(&[
            text("name"),
            field("agentConfigs", STRINGS).aliases(&[("personas", "agentConfigs")]),
        ])),
    ),
    field("tokenBudget", Schema::Open(&[integer("maxTokens"), integer("maxTokensPerRun"), text("action")])),
    field("circuitBreaker", Schema::Open(&[integer("consecutiveFailures"), text("cooldownDuration")])),
    field("timeDecay", Schema::Open(&[text("ttl"), text("decayFunction")])),
    field("evidencePolicy", Schema::Open(&[text("minKind")])),
]);
