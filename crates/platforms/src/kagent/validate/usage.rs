//! What a change or a DELETE means for those that use an object.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::object::Object;
use memgate_model::state_reader::StateReader;
use memgate_primitives::pointer::Pointer;

use super::super::api::{HARNESS, Line};
use super::super::block::{Block, pointer};
use super::super::codes::{EMBEDDER_CHANGED, EMBEDDER_DELETED, EMBEDDER_STALE, MEMORIES_STAY};
use super::super::embedder::Embedder;
use super::super::message::{shown, with_names};
use super::chat;
use super::users::Users;

/// Warns about a change of an embedder: its model is another one, or agents do not notice.
pub(super) fn changed(subject: &Subject<'_>, users: &Users<'_>) -> Option<Finding> {
    let old = subject.old?;
    let line = Line::of(subject.kind);
    let [before, after] = [old, subject.object].map(|object| Embedder::new(line, object));
    if let Some(pointer) = changed_field(&before, &after, subject) {
        let message = |_, embed: &str| {
            format!("{embed} with this model; stored memories cannot be found with another one")
        };
        return Some(users.warning(&EMBEDDER_CHANGED, pointer, message)?.when_allowed());
    }
    let first = users.first().filter(|_| line == Line::Older)?;
    if chats_with(first, subject.name) {
        return None;
    }
    let users = users.except(|user| chats_with(user, subject.name));
    let message = |_, embed: &str| match users.only() {
        Some(user) => format!(
            "{embed} with this ModelConfig and takes the change only when the {} itself changes",
            user.kind.kind
        ),
        None => {
            format!("{embed} with this ModelConfig and take the change only when they change themselves")
        }
    };
    Some(users.warning(&EMBEDDER_STALE, Pointer::new("/spec"), message)?.when_allowed())
}

/// The first field, in document order, whose change makes other vectors.
fn changed_field(before: &Embedder<'_>, after: &Embedder<'_>, subject: &Subject<'_>) -> Option<Pointer> {
    let provider = (before.provider() != after.provider()).then(|| Pointer::new("/spec/provider"));
    let model = (before.model() != after.model()).then(|| pointer(after.model_path()));
    provider.into_iter().chain(model).min_by_key(|field| subject.object.document_position(field))
}

/// Whether an agent of 0.x uses this ModelConfig for its chat.
fn chats_with(agent: &Object, name: &str) -> bool {
    chat::of_older(agent.tree()) == Some(name)
}

/// Warns about a DELETE, and never refuses it.
pub(super) fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let users = Users::of(subject, state);
    embedder_deleted(subject, &users).or_else(|| memories_stay(subject)).into_iter().collect()
}

fn embedder_deleted(subject: &Subject<'_>, users: &Users<'_>) -> Option<Finding> {
    let first = users.first()?;
    let effect = match (users.only(), first.kind.kind == HARNESS.kind) {
        (Some(_), true) => "none of its agents compiles".to_owned(),
        (None, true) => "none of their agents compiles".to_owned(),
        (Some(user), false) => format!("kagent accepts no change of the {}", user.kind.kind),
        (None, false) => "kagent accepts no change of them".to_owned(),
    };
    let message = |limit, embed: &str| {
        format!("{embed} with ModelConfig {}; without it {effect}", shown(subject.name, limit))
    };
    users.warning(&EMBEDDER_DELETED, Pointer::root(), message)
}

/// Warns that the memories of an agent of 0.x stay. kagent finds them by the name of the agent.
fn memories_stay(subject: &Subject<'_>) -> Option<Finding> {
    let block = Block::of(subject.kind, subject.object)?;
    if block.line != Line::Older || block.is_ignored {
        return None;
    }
    let kind = subject.kind.kind;
    let article = if kind.starts_with('A') { "an" } else { "a" };
    let message = with_names([subject.name], |[name]| {
        format!(
            "memories of {kind} {name} stay in kagent's database and return with {article} {kind} of that name"
        )
    });
    Some(Finding::warn(&MEMORIES_STAY, Pointer::root(), message))
}
