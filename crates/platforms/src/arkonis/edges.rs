//! What the objects of this family refer to.

use super::prelude::*;
use memgate_model::edge::{Edge, Key, Site, memory_used};

use crate::references::SECRETS;

const WITHOUT_SETTINGS: &str = "the agent runs without it";
const MEMORY_REF: &str = "/spec/memoryRef/name";
const CONFIG_REF: &str = "/spec/configRef/name";
const NOT_STARTED: &str = "the agent is not reconciled without it";

/// The key of the Secret with the URL of Redis.
pub(crate) const REDIS_KEY: &str = "REDIS_URL";
/// The key of the Secret with the API key of a vector database.
pub(crate) const VECTOR_KEY: &str = "VECTOR_STORE_API_KEY";

static SWARM_MEMORIES: [&Kind; 1] = [&KUBESWARM.memory];

/// Finds objects by the memory that they use.
pub(crate) static BY_MEMORY: Index = Index { place: 1, keys: |object| memory_used(&EDGES, object) };

/// The rows.
pub(crate) static EDGES: [Edge; 15] = [
    memory(Edge::new(&[&ARKONIS.agent], MEMORY_REF, &[&ARKONIS.memory])),
    memory(Edge::new(&[&ARKONIS_OLD.agent], MEMORY_REF, &[&ARKONIS_OLD.memory])),
    memory(Edge::new(&[&AGENTOPS.agent], MEMORY_REF, &[&AGENTOPS.memory])),
    memory(Edge::new(&[&KUBESWARM.agent], "/spec/runtime/loop/memory/ref/name", &[&KUBESWARM.memory])),
    settings(Edge::new(&[&ARKONIS.agent], CONFIG_REF, &[&ARKONIS.settings]), WITHOUT_SETTINGS),
    settings(Edge::new(&[&ARKONIS_OLD.agent], CONFIG_REF, &[&ARKONIS_OLD.settings]), WITHOUT_SETTINGS),
    settings(Edge::new(&[&AGENTOPS.agent], CONFIG_REF, &[&AGENTOPS.settings]), WITHOUT_SETTINGS),
    settings(Edge::new(&[&KUBESWARM.agent], "/spec/settings/*/name", &[&KUBESWARM.settings]), NOT_STARTED),
    secret(&MEMORIES, "/spec/redis/secretRef/name", Key::Fixed(REDIS_KEY))
        .only_if(|site, it| is_used(site, it, Backend::Redis)),
    secret(&MEMORIES, "/spec/vectorStore/secretRef/name", Key::Fixed(VECTOR_KEY)).only_if(is_of_vectors),
    secret(&SWARM_MEMORIES, "/spec/embedding/apiKeyRef/name", Key::Beside("key")).only_if(is_of_vectors),
    Edge::new(&[&KUBESWARM.agent], "/spec/agents/*/agentRef/name", &[&KUBESWARM.agent]),
    Edge::new(&[], "/metadata/labels/arkonis.dev~1deployment", &[&ARKONIS.agent, &ARKONIS_OLD.agent])
        .of_memory(),
    Edge::new(&[], "/metadata/labels/kubeswarm~1deployment", &[&KUBESWARM.agent]).of_memory(),
    Edge::new(&[], "/metadata/labels/agentops.io~1deployment", &[&AGENTOPS.agent]).of_memory(),
];

const fn memory(edge: Edge) -> Edge {
    edge.of_memory().only_if(|site, _| is_dns_subdomain(site.text)).warns(&MEMORY_NOT_FOUND, "")
}

const fn settings(edge: Edge, effect: &'static str) -> Edge {
    edge.where_known().warns(&SETTINGS_NOT_FOUND, effect)
}

const fn secret(from: &'static [&'static Kind], path: &'static str, key: Key) -> Edge {
    Edge::new(from, path, &SECRETS).warns(&SECRET_MISSING, "").with_key(key, &SECRET_KEY_MISSING)
}

fn is_of_vectors(site: &Site<'_, Tree>, memory: &Tree) -> bool {
    is_used(site, memory, Backend::VectorStore)
}

/// Whether the operator reads the section of a backend. A name that no Secret can have is the concern of another rule.
fn is_used(site: &Site<'_, Tree>, memory: &Tree, backend: Backend) -> bool {
    Memory::read(&ARKONIS, memory).backend() == Some(backend) && is_dns_subdomain(site.text)
}
