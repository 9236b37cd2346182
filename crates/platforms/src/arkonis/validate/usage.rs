//! Warns about a change or DELETE of a memory resource that agents use.

use crate::message::first_of;
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{
    Backend, COLLECTION_DEFAULT, Dialect, EMBEDDING_PROVIDER_DEFAULT, Embedding, Memory, Redis, VectorStore,
    memory_name,
};
use super::super::codes::{IN_USE_CHANGED, IN_USE_DELETED};

/// Warns about a change. The operator does not watch memories, so running agents keep the old values.
pub(super) fn changed(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let old = subject.old?;
    if handed_on(dialect, old) == handed_on(dialect, subject.object) {
        return None;
    }
    let users = users(dialect, subject, state);
    let (pronoun, names) = user_names(dialect.agent.kind, &users)?;
    let verb = if users.len() == 1 { "uses" } else { "use" };
    let message =
        format!("{names} {verb} this {}; restart {pronoun} to apply the change", dialect.memory.kind);
    Some(Finding::warn(&IN_USE_CHANGED, Pointer::new("/spec"), message).when_allowed())
}

/// Warns about a DELETE, and never refuses it. The warning lists the agents that use the memory.
pub(super) fn deleted(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Vec<Finding> {
    let users = users(dialect, subject, state);
    let Some((_, names)) = user_names(dialect.agent.kind, &users) else { return Vec::new() };
    let verb = if users.len() == 1 { "references" } else { "reference" };
    let message = format!("{names} still {verb} {} {}", dialect.memory.kind, quoted(subject.name));
    vec![Finding::warn(&IN_USE_DELETED, Pointer::root(), message)]
}

/// The names of the agents of this namespace that claim the memory and are not being deleted.
fn users<'s>(dialect: &'static Dialect, subject: &Subject<'_>, state: &mut StateReader<'s>) -> Vec<&'s str> {
    let agents = state.list(&dialect.agent, subject.namespace);
    let users =
        agents.filter(|agent| !agent.deleting() && memory_name(dialect, agent.tree()) == Some(subject.name));
    users.map(|agent| &*agent.name).collect()
}

/// `ArkAgent "a"` with "it", or `ArkAgents "a", "b", "c" and 2 more` with "them".
fn user_names(kind: &str, users: &[&str]) -> Option<(&'static str, String)> {
    /// How many agents a message names.
    const MAX_NAMES: usize = 3;
    if let [only] = users {
        return Some(("it", format!("{kind} {}", quoted(only))));
    }
    let names: Vec<String> = users.iter().take(MAX_NAMES).map(|name| quoted(name)).collect();
    (!users.is_empty()).then(|| ("them", format!("{kind}s {}", first_of(&names, users.len()))))
}

/// The values that the platform hands to agents, with defaults applied and numbers normalized. If two versions are
/// equal, agents do not have to restart. An empty collection is handed on as it is, although memgate adds the default
/// for it.
fn handed_on<'t>(dialect: &Dialect, object: &'t Tree) -> Memory<'t> {
    let memory = Memory::read(dialect, object);
    let backend = memory.backend();
    let has_vectors = backend == Some(Backend::VectorStore);
    let redis = memory.redis.filter(|_| backend == Some(Backend::Redis));
    let store = memory.vector_store.filter(|_| has_vectors);
    let embedding = memory.embedding.filter(|_| has_vectors);
    Memory {
        redis: redis.map(|it| Redis { ttl_seconds: it.ttl(), max_entries: it.entry_limit(), ..it }),
        vector_store: store.map(|it| VectorStore {
            collection: it.collection.or(Some(COLLECTION_DEFAULT)),
            ttl_seconds: it.ttl(),
            has_secret_ref: it.secret_name.is_some(),
            ..it
        }),
        embedding: embedding
            .map(|it| Embedding { provider: it.provider.or(Some(EMBEDDING_PROVIDER_DEFAULT)), ..it }),
        ..memory
    }
}

#[cfg(test)]
mod tests {
    use super::user_names;

    #[test]
    fn names_three_users_at_most() {
        assert_eq!(user_names("ArkAgent", &[]), None);
        assert_eq!(user_names("ArkAgent", &["a"]).expect("one").1, "ArkAgent \"a\"");
        assert_eq!(user_names("ArkAgent", &["a", "b"]).expect("two").1, "ArkAgents \"a\", \"b\"");
        let five = user_names("ArkAgent", &["a", "b", "c", "d", "e"]).expect("five").1;
        assert_eq!(five, "ArkAgents \"a\", \"b\", \"c\" and 2 more");
    }
}
