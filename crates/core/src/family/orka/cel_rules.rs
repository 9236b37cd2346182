//! The rules that the apiserver can check by itself.

use memgate_model::cel::{CelRule, CelTable, CelVariable, NotInCel};
use memgate_model::finding::Code;

use super::api::{AGENT, TASK};
use super::codes::{
    ANNOTATION_ENABLED, ANNOTATION_LIMIT, ANNOTATION_MAX_CHARS, ANNOTATION_TOOLS, APPROVAL_BUILTIN,
    OPT_OUT_ENV, OPT_OUT_TOOLS_ENV, SCHEMA,
};

/// The tables of the family.
pub static TABLES: [CelTable; 2] = [
    CelTable {
        name: "orka",
        kinds: &[&AGENT, &TASK],
        // The value of an annotation, in a list of its own.
        lets: &[
            CelVariable::new(
                "enabled",
                "has(self.metadata.annotations) ? ['memgate.dev/orka-memory-context']\
                 .filter(key, key in self.metadata.annotations)\
                 .map(key, self.metadata.annotations[key]).filter(text, size(text) <= 4096) : []",
            ),
            CelVariable::new(
                "limit",
                "has(self.metadata.annotations) ? ['memgate.dev/orka-memory-context-limit']\
                 .filter(key, key in self.metadata.annotations)\
                 .map(key, self.metadata.annotations[key]).filter(text, size(text) <= 4096) : []",
            ),
            CelVariable::new(
                "max_chars",
                "has(self.metadata.annotations) ? ['memgate.dev/orka-memory-context-max-chars']\
                 .filter(key, key in self.metadata.annotations)\
                 .map(key, self.metadata.annotations[key]).filter(text, size(text) <= 4096) : []",
            ),
            CelVariable::new(
                "tools",
                "has(self.metadata.annotations) ? ['memgate.dev/orka-memory-tools']\
                 .filter(key, key in self.metadata.annotations)\
                 .map(key, self.metadata.annotations[key]).filter(text, size(text) <= 4096) : []",
            ),
        ],
        rules: &[
            CelRule {
                code: &ANNOTATION_ENABLED,
                faults: "$enabled.filter(text, !(text.trim().lowerAscii() in ['true', 'false']))",
                message: "metadata.annotations[memgate.dev/orka-memory-context]: must be \"true\" or \"false\"",
            },
            CelRule {
                code: &ANNOTATION_LIMIT,
                faults: "$limit.filter(text, !text.trim().matches('^[1-8]$'))",
                message: "metadata.annotations[memgate.dev/orka-memory-context-limit]: \
                          must be an integer from 1 to 8",
            },
            CelRule {
                code: &ANNOTATION_MAX_CHARS,
                faults: "$max_chars.filter(text, !text.trim().matches('^([1-9][0-9]{0,2}|[1-5][0-9]{3}|6000)$'))",
                message: "metadata.annotations[memgate.dev/orka-memory-context-max-chars]: \
                          must be an integer from 1 to 6000",
            },
            CelRule {
                code: &ANNOTATION_TOOLS,
                faults: "$tools.filter(text, !(text.trim().lowerAscii() in ['true', 'false']))",
                message: "metadata.annotations[memgate.dev/orka-memory-tools]: must be \"true\" or \"false\"",
            },
        ],
    },
    CelTable {
        name: "orka-agents",
        kinds: &[&AGENT],
        lets: &[],
        rules: &[CelRule {
            code: &APPROVAL_BUILTIN,
            faults: "has(self.spec) && !has(self.spec.runtime) && has(self.spec.coordination) \
                     && has(self.spec.coordination.approvalRequiredTools) \
                     && size(self.spec.coordination.approvalRequiredTools) <= 128 \
                     ? self.spec.coordination.approvalRequiredTools.filter(tool, size(tool) <= 256 \
                     && tool.trim() in ['recall_memory', 'remember', 'propose_memory', 'search_transcript']) : []",
            message: "spec.coordination.approvalRequiredTools: \
                      cannot include a memory tool, which is built in",
        }],
    },
];

/// The codes that deny and are not checked in CEL.
pub static NOT_IN_CEL: [(&Code, NotInCel); 3] = [
    (&SCHEMA, NotInCel::Schema),
    (&OPT_OUT_ENV, NotInCel::NotExpressible("the Agent of the Task says it")),
    (&OPT_OUT_TOOLS_ENV, NotInCel::NotExpressible("the Agent of the Task says it")),
];

/// Which of the family's defaults the apiserver can write.
pub const ABOUT_DEFAULTS: &str = "there are none";
