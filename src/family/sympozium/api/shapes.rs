//! The fields that are read, a table for each kind. Objects are open: the platform has many fields
//! beside those of memory.

use crate::model::shape::{Field, Shape, UID};

const fn field(name: &'static str, shape: Shape) -> Field {
    Field::new(name, shape).guarded()
}

const fn text(name: &'static str) -> Field {
    field(name, Shape::Text)
}

const fn integer(name: &'static str) -> Field {
    field(name, Shape::Integer)
}

const fn boolean(name: &'static str) -> Field {
    field(name, Shape::Boolean)
}

const TEXTS: Shape = Shape::List(&Shape::Text);

const METADATA: Field = Field::new(
    "metadata",
    Shape::Open(&[
        Field::new("name", Shape::Text),
        Field::new("generateName", Shape::Text),
        Field::new("namespace", Shape::Text),
        Field::new("deletionTimestamp", Shape::Text),
        UID,
        Field::new("labels", Shape::Texts),
        Field::new("annotations", Shape::Open(&[Field::new(super::MODE_ANNOTATION, Shape::Text)])),
    ]),
);

const VOLUMES: Field = field("volumes", Shape::List(&Shape::Open(&[text("name")])));

const VOLUME_MOUNTS: Field = field("volumeMounts", Shape::List(&Shape::Open(&[text("name")])));

const SKILLS: Field = field(
    "skills",
    Shape::List(&Shape::Open(&[text("skillPackRef"), text("configMapRef"), field("params", Shape::Texts)])),
);

pub(super) const AGENT: Shape = Shape::Open(&[
    METADATA,
    field(
        "spec",
        Shape::Open(&[
            field(
                "agents",
                Shape::Open(&[field("default", Shape::Open(&[text("model"), field("env", Shape::Texts)]))]),
            ),
            SKILLS,
            field(
                "memory",
                Shape::Open(&[
                    boolean("enabled"),
                    integer("maxSizeKB"),
                    boolean("autoStore"),
                    text("systemPrompt"),
                ]),
            ),
            VOLUMES,
            VOLUME_MOUNTS,
        ]),
    ),
]);

pub(super) const AGENT_RUN: Shape = Shape::Open(&[
    METADATA,
    field(
        "spec",
        Shape::Open(&[
            text("agentRef"),
            text("instanceRef"),
            text("agentId"),
            text("sessionKey"),
            field("model", Shape::Open(&[text("provider"), text("model"), text("authSecretRef")])),
            SKILLS,
            field("env", Shape::Texts),
            field("task", Shape::Any),
            text("mode"),
            text("cleanup"),
            boolean("useContext"),
            VOLUMES,
            VOLUME_MOUNTS,
        ]),
    ),
]);

pub(super) const SKILL_PACK: Shape = Shape::Open(&[
    METADATA,
    field(
        "spec",
        Shape::Open(&[field(
            "sidecar",
            Shape::Open(&[
                text("image"),
                field(
                    "env",
                    Shape::List(&Shape::Open(&[
                        text("name"),
                        text("value"),
                        Field::new("valueFrom", Shape::Any),
                    ])),
                ),
                boolean("requiresServer"),
                VOLUMES,
                VOLUME_MOUNTS,
                field("tools", Shape::List(&Shape::Open(&[text("name")]))),
            ]),
        )]),
    ),
]);

pub(super) const ENSEMBLE: Shape = Shape::Open(&[
    METADATA,
    field(
        "spec",
        Shape::Open(&[
            boolean("enabled"),
            field("agentConfigs", CONFIGS),
            field("personas", CONFIGS),
            field("excludePersonas", TEXTS).aliases(&[("excludeAgentConfigs", "excludePersonas")]),
            boolean("autoStoreMemory"),
            field(
                "relationships",
                Shape::List(&Shape::Open(&[text("source"), text("target"), text("type")])),
            ),
            field("stimulus", Shape::Open(&[text("name")])),
            VOLUMES,
            VOLUME_MOUNTS,
            field("sharedMemory", SHARED_MEMORY),
        ]),
    ),
    Field::new("status", Shape::Open(&[Field::new("tokenBudgetUsed", Shape::Integer)])),
]);

/// The last fields are no part of memory; they tell one entry from another.
const CONFIGS: Shape = Shape::List(&Shape::Open(&[
    text("name"),
    text("systemPrompt"),
    field("skills", Shape::List(&Shape::Any)),
    field(
        "memory",
        Shape::Open(&[boolean("enabled"), integer("maxSizeKB"), boolean("autoStore"), field("seeds", TEXTS)]),
    ),
    field("env", Shape::Texts),
    Field::new("displayName", Shape::Text),
    Field::new("model", Shape::Text),
    Field::new("provider", Shape::Text),
    Field::new("baseURL", Shape::Text),
]));

const SHARED_MEMORY: Shape = Shape::Open(&[
    boolean("enabled"),
    text("storageSize"),
    field("accessRules", Shape::List(&Shape::Open(&[text("agentConfig"), text("persona"), text("access")]))),
    field("membrane", MEMBRANE),
]);

const MEMBRANE: Shape = Shape::Open(&[
    text("defaultVisibility"),
    field(
        "permeability",
        Shape::List(&Shape::Open(&[
            text("agentConfig").aliases(&[("persona", "agentConfig")]),
            text("defaultVisibility").aliases(&[("visibility", "defaultVisibility")]),
            field("exposeTags", TEXTS),
            field("acceptTags", TEXTS),
        ])),
    ),
    field(
        "trustGroups",
        Shape::List(&Shape::Open(&[
            text("name"),
            field("agentConfigs", TEXTS).aliases(&[("personas", "agentConfigs")]),
        ])),
    ),
    field("tokenBudget", Shape::Open(&[integer("maxTokens"), integer("maxTokensPerRun"), text("action")])),
    field("circuitBreaker", Shape::Open(&[integer("consecutiveFailures"), text("cooldownDuration")])),
    field("timeDecay", Shape::Open(&[text("ttl"), text("decayFunction")])),
    field("evidencePolicy", Shape::Open(&[text("minKind")])),
]);
