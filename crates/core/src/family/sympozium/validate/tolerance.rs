//! What the CRDs refuse and memgate takes: forms of the platform's own documentation, and old names. Rules of
//! other modules warn about them.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::kind::Kind;
use crate::model::pointer::Pointer;
use crate::model::violation::{BrokenRule, Violation};

use super::super::api::{AGENT, AGENT_OLD, AGENT_RUN, ENSEMBLE, ENSEMBLE_OLD};

/// Whether an object of this kind, as it was written, passes although it breaks the schema.
#[must_use]
pub fn tolerates(kind: &Kind, written: &Value, violation: &Violation) -> bool {
    let tokens: Vec<_> = violation.pointer.tokens().collect();
    let path: Vec<_> = tokens.iter().map(Cow::as_ref).collect();
    let missing = matches!(violation.rule, BrokenRule::Required(_));
    if *kind == AGENT || *kind == AGENT_OLD {
        let model = ["spec", "agents", "default", "model"];
        return missing && !path.is_empty() && model.starts_with(&path);
    }
    if *kind == AGENT_RUN {
        let old_name = || written.pointer("/spec/instanceRef").is_some_and(Value::is_string);
        return missing && path == ["spec", "agentRef"] && old_name();
    }
    if *kind != ENSEMBLE && *kind != ENSEMBLE_OLD {
        return false;
    }
    match path.as_slice() {
        ["spec"]
        | ["spec", "agentConfigs" | "personas"]
        | ["spec", "agentConfigs" | "personas", _, "systemPrompt"] => missing,
        ["spec", "agentConfigs" | "personas", _, "skills", _] => {
            matches!(violation.rule, BrokenRule::Type { got: "object", .. })
        }
        ["spec", "sharedMemory", .., "agentConfig" | "persona"] => {
            missing && violation.pointer.parent().is_some_and(|rule| has_config(written, &rule))
        }
        _ => false,
    }
}

/// Whether a rule names its config, under the old name or the new one.
fn has_config(written: &Value, rule: &Pointer) -> bool {
    let rule = written.pointer(rule.as_str());
    let text = |name| rule.and_then(|rule| rule.get(name)).is_some_and(Value::is_string);
    text("agentConfig") || text("persona")
}
