//! Judges the stored objects that refer to a written one: policies may read from it what they judged before.

use std::sync::Arc;

use memgate_model::family::{Family, Subject};
use memgate_model::memory_view::MemoryView;
use memgate_model::object::{Object, Reference};
use memgate_model::request::{Operation, Point};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_platforms::references;
use memgate_policy::judge::behind::{User, Written as WrittenObject, judge_users, refuse_many};
use memgate_policy::judge::{Judgement, Views};
use memgate_policy::selection;
use memgate_policy::written::Written;
use serde_json::json;

use super::policies::Asked;
use super::views;

/// How many objects that refer to the written one are looked at.
const MAX_USERS: usize = 256;

/// What policies find new of the objects of its namespace that refer to the written one. Files show both objects, and
/// there each is judged by itself.
pub(super) fn judge<'s>(
    family: &'static Family,
    subject: &Subject<'_>,
    asked: &Asked<'_>,
    snapshot: &'s Snapshot,
    state: &mut StateReader<'s>,
) -> Judgement {
    let request = asked.request();
    let is_write = matches!(request.operation, Operation::Create | Operation::Update);
    let is_read = family.edges.iter().any(|edge| edge.serves_memory && edge.to.contains(&subject.kind));
    let kind = family.kinds.watched.iter().find(|kind| **kind == subject.kind);
    let (Some(kind), Some(text)) = (kind.filter(|_| is_write && is_read), request.object) else {
        return Judgement::default();
    };
    if request.occasion.point != Point::Admission || snapshot.policies.is_empty() || subject.name.is_empty() {
        return Judgement::default();
    }
    let place = (subject.namespace, subject.name);
    let read = |text: &str| Object::read_once(kind, place, text).ok().flatten();
    let old_text = request.old_object.filter(|_| request.operation == Operation::Update);
    let (Some(new), old) = (read(text), old_text.and_then(read)) else { return Judgement::default() };
    if old.as_ref().is_some_and(|old| old.tree() == new.tree()) {
        return Judgement::default();
    }
    let found = references::read_by(family, (subject, new.tree()), MAX_USERS + 1, state);
    if found.is_empty() {
        return Judgement::default();
    }
    // Other labels mean the same to all of them, so the first ones say it.
    let changes = old_text.is_none_or(|old| family.meaning_changed(kind.kind, text, old));
    let are_many = found.len() > MAX_USERS && changes;
    let found = if are_many { one_of_each_kind(found) } else { found.into_iter().take(MAX_USERS).collect() };
    let (namespace, name) = (subject.namespace.to_owned(), subject.name.to_owned());
    let written = Reference { kind, namespace, name };
    let states =
        [Some(new), old].map(|object| snapshot.overlaid([(written.clone(), Ok(object.map(Arc::new)))]));
    let written = WrittenObject { kind, name: subject.name, text };
    let texts: Vec<String> = found.iter().map(|user| identity(user)).collect();
    let objects: Vec<Written<'_>> = texts.iter().map(|text| Written::new(text)).collect();
    let mut users = Vec::new();
    for (user, object) in found.iter().zip(&objects) {
        let [new, old] = states.each_ref().map(|state_of| view(family, user, state_of, state));
        // What a write does not change is not judged again.
        let Some(new) = new.filter(|new| old.as_ref() != Some(new)) else { continue };
        let subject = selection::Subject {
            family,
            kind: user.kind.kind,
            namespace: &user.namespace,
            operation: request.operation,
            object,
            old: None,
            occasion: request.occasion,
        };
        users.push(User { subject, views: Views { new, old, object: None } });
    }
    if are_many {
        refuse_many(&mut users, &written, MAX_USERS, snapshot, state)
    } else {
        judge_users(&mut users, &written, snapshot, state)
    }
}

/// The first of each kind.
fn one_of_each_kind(mut users: Vec<&Object>) -> Vec<&Object> {
    users.dedup_by_key(|user| user.kind);
    users
}

/// The view of a stored object with this state; what the state does not know is noted in that of the decision.
fn view(
    family: &'static Family,
    user: &Object,
    snapshot: &Snapshot,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let mut reader = StateReader::new(snapshot, state.budget());
    let subject = Subject {
        kind: user.kind,
        operation: Operation::Update,
        namespace: &user.namespace,
        name: &user.name,
        object: user.tree(),
        old: None,
    };
    let view = views::of_object(family, &subject, false, &mut reader);
    state.note_all(reader.into_unknown());
    view
}

/// The name and the labels of a stored object, as JSON.
fn identity(user: &Object) -> String {
    let labels = user.tree().at(&["metadata", "labels"]).map(|labels| {
        labels.entries().map(|(key, value)| (key.to_owned(), value.into())).collect::<serde_json::Map<_, _>>()
    });
    json!({"metadata": {"name": &*user.name, "labels": labels.unwrap_or_default()}}).to_string()
}
