//! Warnings about the change or DELETE of a memory resource that agents use.

use crate::family::message::first_of;
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{
    Backend, COLLECTION_DEFAULT, Dialect, EMBEDDING_PROVIDER_DEFAULT, Memory, VectorStore, memory_name,
};
use super::super::codes::{IN_USE_CHANGED, IN_USE_DELETED};

/// The operator does not watch memories: running agents keep the old values.
pub(super) fn changed(
    dialect: &'static Dialect,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    let old = subject.old?;
    if injected_values(&Memory::read(dialect, old)) == injected_values(&Memory::read(dialect, subject.object))
    {
        return None;
    }
    let users = users(dialect, subject, state);
    let (pronoun, names) = user_names(dialect.agent.kind, &users)?;
    let verb = if users.len() == 1 { "uses" } else { "use" };
    let message =
        format!("{names} {verb} this {}; restart {pronoun} to apply the change", dialect.memory.kind);
    Some(Finding::warn(&IN_USE_CHANGED, Pointer::new("/spec"), message).when_allowed())
}

/// A DELETE is never refused; the warning lists the agents that use the memory.
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
        agents.filter(|agent| !agent.deleting() && memory_name(dialect, &agent.tree) == Some(subject.name));
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

/// Everything that an agent gets from a memory, with defaults applied and numbers by their meaning. If the
/// values of two versions are equal, agents do not restart.
fn injected_values(memory: &Memory<'_>) -> (Option<String>, Vec<Option<String>>) {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    let values = match (memory.backend(), &memory.redis, &memory.vector_store) {
        (Some(Backend::Redis), Some(redis), _) => {
            vec![owned(redis.secret_name), number(redis.ttl()), number(redis.entry_limit())]
        }
        (Some(Backend::VectorStore), _, Some(store)) => vector_store_values(store, memory),
        _ => Vec::new(),
    };
    (owned(memory.backend_name), values)
}

fn vector_store_values(store: &VectorStore<'_>, memory: &Memory<'_>) -> Vec<Option<String>> {
    let embedding = memory.embedding.as_ref();
    let texts = [
        store.provider,
        store.endpoint,
        Some(store.collection.filter(|name| !name.is_empty()).unwrap_or(COLLECTION_DEFAULT)),
        store.secret_name,
        embedding.and_then(|embedding| embedding.model),
        embedding.map(|embedding| embedding.provider.unwrap_or(EMBEDDING_PROVIDER_DEFAULT)),
    ];
    let numbers = [store.ttl().map(|number| number.to_string())];
    texts.into_iter().map(|text| text.map(str::to_owned)).chain(numbers).collect()
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
