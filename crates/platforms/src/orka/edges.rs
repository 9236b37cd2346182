//! What the objects of this family refer to.

use super::prelude::*;
use memgate_model::edge::{Edge, Home, Key, Site, memory_used};
use memgate_model::kind::Kind;
use memgate_model::object::index::Index;
use memgate_model::tree::Tree;

use crate::references::{CONFIG_MAPS, SECRETS};

use super::setting::Setting;

const NOT_STARTED: &str = "the pod of this Task does not start without it";

static TASKS: [&Kind; 1] = [&TASK];

/// Finds objects by the memory that they use.
pub(crate) static BY_MEMORY: Index = Index { place: 1, keys: |object| memory_used(&EDGES, object) };

/// The rows.
pub(crate) static EDGES: [Edge; 5] = [
    Edge::new(&[&TASK], "/spec/agentRef/name", &[&STATE_AGENT])
        .in_home(Home::Beside("namespace"))
        .only_if(|site, task| {
            let is_text = site.holder.get("namespace").is_none_or(|namespace| namespace.text().is_some());
            is_text && task.text_at(&["spec", "type"]) == Some(TASK_TYPE_AI)
        })
        .warns(&AGENT_MISSING, ""),
    Edge::new(&[&AGENT], "/spec/coordination/allowedAgents/*/name", &[&STATE_AGENT])
        .in_home(Home::Beside("namespace")),
    source("/spec/env/*/valueFrom/secretKeyRef/name", &SECRETS),
    source("/spec/env/*/valueFrom/configMapKeyRef/name", &CONFIG_MAPS),
    Edge::new(&[&MEMORY_BACKEND], "/spec/clientAuth/bearerTokenSecretRef/name", &SECRETS)
        .warns(&SECRET_MISSING, "Orka cannot use this MemoryBackend without it")
        .with_key(Key::Beside("key"), &SECRET_MISSING),
];

const fn source(path: &'static str, to: &'static [&'static Kind]) -> Edge {
    let edge = Edge::new(&TASKS, path, to).only_if(is_of_memory).warns(&ENV_SOURCE_MISSING, NOT_STARTED);
    Edge { may_be_optional: true, ..edge }.with_key(Key::Beside("key"), &ENV_SOURCE_MISSING)
}

/// Whether a variable is one of memory.
fn is_of_memory(site: &Site<'_, Tree>, _task: &Tree) -> bool {
    let name = site.element.and_then(|variable| variable.text_at(&["name"]));
    name.is_some_and(|name| Setting::from_variable(name).is_some())
}
