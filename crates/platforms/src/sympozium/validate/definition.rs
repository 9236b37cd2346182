//! What the definitions of the platform refuse: the violations with codes of their own, and those that are accepted.

use crate::sympozium::prelude::*;
use memgate_model::family::Words;
use memgate_model::finding::Code;
use memgate_model::kind::Kind;
use memgate_model::tree::Tree;
use memgate_schema::violation::{Rule, SchemaViolation};

const AGENTS: &[&Kind] = &[&AGENT, &AGENT_OLD];
const ENSEMBLES: &[&Kind] = &[&ENSEMBLE, &ENSEMBLE_OLD];

/// The violations with a code of their own.
pub(crate) static WORDS: [Words; 15] = [
    required(AGENTS, "spec.agents", "write `agents: {default: {model: gpt-4o}}`"),
    required(AGENTS, "spec.agents.default", "write `default: {model: gpt-4o}`"),
    required(AGENTS, "spec.agents.default.model", "write the name of a model: `model: gpt-4o`"),
    required(
        ENSEMBLES,
        "spec.agentConfigs",
        "write `agentConfigs: [{name: reviewer, systemPrompt: You review pull requests.}]`",
    ),
    required(
        ENSEMBLES,
        "spec.personas",
        "write `personas: [{name: reviewer, systemPrompt: You review code.}]`",
    ),
    required(ENSEMBLES, "spec.agentConfigs[].systemPrompt", SYSTEM_PROMPT),
    required(ENSEMBLES, "spec.personas[].systemPrompt", SYSTEM_PROMPT),
    of_shared_memory("spec.sharedMemory.accessRules[].access", &ACCESS_UNSUPPORTED),
    of_shared_memory("spec.sharedMemory.membrane.defaultVisibility", &VISIBILITY_UNSUPPORTED),
    of_shared_memory("spec.sharedMemory.membrane.permeability[].defaultVisibility", &VISIBILITY_UNSUPPORTED),
    of_shared_memory("spec.sharedMemory.membrane.permeability[].agentConfig", &PERMEABILITY_CONFIG_REQUIRED),
    of_shared_memory("spec.sharedMemory.membrane.trustGroups[].name", &TRUST_GROUP_NAME_REQUIRED),
    of_shared_memory("spec.sharedMemory.membrane.tokenBudget.action", &TOKEN_ACTION_UNSUPPORTED),
    of_shared_memory("spec.sharedMemory.membrane.timeDecay.decayFunction", &DECAY_UNSUPPORTED),
    of_shared_memory("spec.sharedMemory.membrane.evidencePolicy.minKind", &EVIDENCE_KIND_UNSUPPORTED),
];

/// What to do about an agent without instructions.
const SYSTEM_PROMPT: &str = "write its instructions: `systemPrompt: You review pull requests.`";

/// A field that every apiserver requires.
const fn required(kinds: &'static [&'static Kind], field: &'static str, help: &'static str) -> Words {
    Words { kinds, field, code: &CRD_REQUIRED, help: Some(help) }
}

const fn of_shared_memory(field: &'static str, code: &'static Code) -> Words {
    Words { kinds: ENSEMBLES, field, code, help: None }
}

/// Whether a violation of the schema is accepted in an object of this kind, given the object as it was written.
pub(crate) fn tolerates(kind: &Kind, written: &Tree, violation: &SchemaViolation<'_>) -> bool {
    let place = violation.pointer.as_str();
    let missing = matches!(violation.rule, Rule::Required(..));
    if *kind == AGENT_RUN {
        let old_name = || written.text_at(&["spec", "instanceRef"]).is_some();
        return missing && place == "/spec/agentRef" && old_name();
    }
    let is_object = matches!(violation.rule, Rule::Type { got: "object", .. });
    if *kind != ENSEMBLE && *kind != ENSEMBLE_OLD || !missing && !is_object {
        return false;
    }
    if is_object {
        return is_skill(place);
    }
    let path: Vec<_> = place.split('/').skip(1).collect();
    match path.as_slice() {
        ["spec", "agentConfigs"] => written.at(&["spec", "personas"]).is_some(),
        ["spec", "sharedMemory", rule @ .., "agentConfig" | "persona"] => has_config(written, rule),
        _ => false,
    }
}

/// Whether a pointer is to a skill of a config. It does not allocate a list of tokens, since it may be called for
/// every element of a list.
fn is_skill(pointer: &str) -> bool {
    let configs = ["/spec/agentConfigs/", "/spec/personas/"];
    let Some(rest) = configs.iter().find_map(|configs| pointer.strip_prefix(configs)) else { return false };
    let mut tokens = rest.split('/').skip(1);
    tokens.next() == Some("skills") && tokens.next().is_some() && tokens.next().is_none()
}

/// Whether a rule of the shared memory names its config, in the old field or the current one.
fn has_config<'t>(written: &'t Tree, rule: &[&str]) -> bool {
    let below = |tree: &'t Tree, token: &&str| match token.parse::<usize>() {
        Ok(index) => tree.elements().get(index),
        Err(_) => tree.get(token),
    };
    let rule = written.at(&["spec", "sharedMemory"]).and_then(|shared| rule.iter().try_fold(shared, below));
    let text = |name| rule.and_then(|rule| rule.get(name)).and_then(Tree::text).is_some();
    text("agentConfig") || text("persona")
}
