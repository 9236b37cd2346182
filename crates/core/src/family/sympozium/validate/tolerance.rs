//! What the CRDs refuse and memgate takes: forms of the platform's own documentation, and old names. Rules of
//! other modules warn about them.

use crate::model::kind::Kind;
use crate::model::tree::Tree;
use crate::model::violation::{Broken, BrokenKind};

use super::super::api::{AGENT, AGENT_OLD, AGENT_RUN, ENSEMBLE, ENSEMBLE_OLD};

/// Whether an object of this kind, as it was written, passes although it breaks the schema.
#[must_use]
pub fn tolerates(kind: &Kind, written: &Tree, broken: Broken<'_>) -> bool {
    let missing = broken.kind == BrokenKind::Required;
    if *kind == AGENT || *kind == AGENT_OLD {
        let model = ["/spec", "/spec/agents", "/spec/agents/default", "/spec/agents/default/model"];
        return missing && model.contains(&broken.pointer);
    }
    if *kind == AGENT_RUN {
        let old_name = || written.at(&["spec", "instanceRef"]).and_then(Tree::text).is_some();
        return missing && broken.pointer == "/spec/agentRef" && old_name();
    }
    let is_object = broken.kind == BrokenKind::Type { got: "object" };
    if *kind != ENSEMBLE && *kind != ENSEMBLE_OLD || !missing && !is_object {
        return false;
    }
    if is_object {
        return is_skill(broken.pointer);
    }
    let path: Vec<_> = broken.pointer.split('/').skip(1).collect();
    match path.as_slice() {
        ["spec"]
        | ["spec", "agentConfigs" | "personas"]
        | ["spec", "agentConfigs" | "personas", _, "systemPrompt"] => true,
        ["spec", "sharedMemory", rule @ .., "agentConfig" | "persona"] => has_config(written, rule),
        _ => false,
    }
}

/// Whether a place is that of a skill of a config. Every element of a list may be asked about, so it takes no list
/// of tokens.
fn is_skill(pointer: &str) -> bool {
    let configs = ["/spec/agentConfigs/", "/spec/personas/"];
    let Some(rest) = configs.iter().find_map(|configs| pointer.strip_prefix(configs)) else { return false };
    let mut tokens = rest.split('/').skip(1);
    tokens.next() == Some("skills") && tokens.next().is_some() && tokens.next().is_none()
}

/// Whether a rule of the shared memory names its config, under the old name or the new one.
fn has_config<'t>(written: &'t Tree, rule: &[&str]) -> bool {
    let below = |tree: &'t Tree, token: &&str| match token.parse::<usize>() {
        Ok(index) => tree.elements().get(index),
        Err(_) => tree.get(token),
    };
    let rule = written.at(&["spec", "sharedMemory"]).and_then(|shared| rule.iter().try_fold(shared, below));
    let text = |name| rule.and_then(|rule| rule.get(name)).and_then(Tree::text).is_some();
    text("agentConfig") || text("persona")
}
