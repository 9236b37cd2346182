//! The objects that embed with a ModelConfig, and what a change or a DELETE means for them.

use crate::kagent::FAMILY;
use crate::kagent::block::{Block, pointer};
use crate::kagent::embedder::Embedder;
use crate::kagent::prelude::*;
use crate::message::{MAX_NAMES, first_of, fit_message, truncate};
use crate::references;

use super::sections;

/// The objects of its namespace and line that embed with a ModelConfig and are not being deleted, by kind and name.
pub(crate) struct Users<'s>(Vec<&'s Object>);

impl<'s> Users<'s> {
    /// The users of the subject; none unless it is a ModelConfig.
    pub(super) fn of(subject: &Subject<'_>, state: &mut StateReader<'s>) -> Self {
        if !MODEL_CONFIGS.contains(&subject.kind) {
            return Self(Vec::new());
        }
        let mut users: Vec<_> = Self::released(subject, state).collect();
        users.extend(Self::moved(subject, state));
        Self(users)
    }

    /// The first user of the subject, without a look at the others; none unless it is a ModelConfig.
    pub(crate) fn first_of(subject: &Subject<'_>, state: &mut StateReader<'s>) -> Self {
        if !MODEL_CONFIGS.contains(&subject.kind) {
            return Self(Vec::new());
        }
        let first = Self::released(subject, state).next();
        Self(first.or_else(|| Self::moved(subject, state).next()).into_iter().collect())
    }

    fn released(subject: &Subject<'_>, state: &mut StateReader<'s>) -> impl Iterator<Item = &'s Object> {
        let users = references::users(&FAMILY, (subject.kind, subject.namespace, subject.name), state);
        users.filter(|user| *user.kind != MOVED_HARNESS)
    }

    /// Those of the version that moved to another group. They are in files only, and mean the ModelConfig of the newer group,
    /// if there is one.
    fn moved(subject: &Subject<'_>, state: &StateReader<'s>) -> impl Iterator<Item = &'s Object> {
        let is_hidden = *subject.kind == MODEL_CONFIG
            && state.peek(&NEWER_MODEL_CONFIG, subject.namespace, subject.name).is_some();
        let key = format!("{} {}/{}", MODEL_CONFIG.kind, subject.namespace, subject.name);
        let found = state.peek_indexed(&MOVED_HARNESS, FAMILY.by_memory, &key);
        references::staying(found).filter(move |_| !is_hidden)
    }

    /// The first of them.
    pub(crate) fn first(&self) -> Option<&'s Object> {
        self.0.first().copied()
    }

    /// The only one of them, if there are no others.
    pub(super) fn only(&self) -> Option<&'s Object> {
        self.first().filter(|_| self.0.len() == 1)
    }

    /// Those for which this does not hold.
    pub(super) fn except(&self, is_left_out: impl Fn(&Object) -> bool) -> Self {
        Self(self.0.iter().copied().filter(|user| !is_left_out(user)).collect())
    }

    /// One warning about all of them; `None` without users. The message is made of the longest length of a name, and of
    /// `Agent "a" embeds` or `Agents "a", "b", "c" and 2 more embed`.
    pub(super) fn warning(
        &self,
        code: &'static Code,
        pointer: Pointer,
        message: impl Fn(usize, &str) -> String,
    ) -> Option<Finding> {
        let verb = if self.only().is_some() { "embeds" } else { "embed" };
        let message = fit_message(|limit| message(limit, &format!("{} {verb}", self.names(limit))));
        self.show_first(Finding::warn(code, pointer, message))
    }

    /// A finding with the place where the first of them names the ModelConfig; `None` without users.
    pub(super) fn show_first(&self, finding: Finding) -> Option<Finding> {
        let first = self.first()?;
        let place = Block::of(first.kind, first.tree()).map(|block| block.reference_pointer());
        Some(finding.elsewhere(first, place.unwrap_or_default(), "embeds with it"))
    }

    /// `Agent "a"`, or `Agents "a", "b", "c" and 2 more`.
    fn names(&self, limit: usize) -> String {
        let mut before: Option<&Kind> = None;
        first_of(&self.0, MAX_NAMES, |user| {
            let name = quoted(&truncate(&user.name, limit));
            let is_first = before.replace(user.kind) != Some(user.kind);
            if is_first { format!("{} {name}", self.title(user.kind)) } else { name }
        })
    }

    /// The name of a kind, in the plural if several of them have it.
    fn title(&self, kind: &'static Kind) -> Cow<'static, str> {
        let is_one = self.0.iter().filter(|user| user.kind == kind).nth(1).is_none();
        let ending = kind.plural.get(kind.kind.len()..).unwrap_or_default();
        if is_one { kind.kind.into() } else { format!("{}{ending}", kind.kind).into() }
    }
}

/// Warns about a change of an embedder: its model is another one, or agents do not notice.
pub(super) fn changed(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    let old = subject.old?;
    let line = Line::of(subject.kind);
    let [before, after] = [old, subject.object].map(|object| Embedder::new(line, object));
    let changed = changed_field(&before, &after, subject);
    if changed.is_none() && line != Line::Older {
        return None;
    }
    let users = Users::of(subject, state);
    if let Some(pointer) = changed {
        let message = |_, embed: &str| {
            format!("{embed} with this model; stored memories cannot be found with another one")
        };
        return Some(users.warning(&EMBEDDER_CHANGED, pointer, message)?.when_allowed());
    }
    if chats_with(users.first()?, subject.name) {
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
    sections::of_older(agent.tree()) == Some(name)
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
        let name = quoted(&truncate(subject.name, limit));
        format!("{embed} with ModelConfig {name}; without it {effect}")
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
    let text = "memories of {bare} {} stay in kagent's database and return with {bare} {bare} of that name";
    Some(warning(&MEMORIES_STAY, Pointer::root(), text, [kind, subject.name, article, kind]))
}
