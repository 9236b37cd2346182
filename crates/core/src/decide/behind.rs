//! Judges the stored objects that refer to a written one: policies may read from it what they judged before.

use std::borrow::Cow;
use std::sync::Arc;

use memgate_model::family::{Family, Subject};
use memgate_model::kind::Kind;
use memgate_model::memory_view::{MemoryView, Role, Why};
use memgate_model::object::{Object, Reference};
use memgate_model::policy::Group;
use memgate_model::request::{Operation, Point};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_platforms::references;
use memgate_policy::judge::behind::{MemoryUser, TOO_LARGE, WrittenObject, judge_users, refuse_many};
use memgate_policy::judge::{Judgement, Views};
use memgate_policy::selection;
use memgate_policy::written::Written;

use super::policies::Asked;
use super::views;

/// How many objects that refer to the written one are looked at.
const MAX_USERS: usize = 256;

/// How many steps making a view of one of them counts for, and judging it: it takes about as long as reading so many values.
const STEPS_PER_VIEW: u32 = 32;

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
    // Most policies judge memory alone, and most users only refer to it.
    let edges = family.edges.iter().filter(|edge| edge.serves_memory && edge.to.contains(&subject.kind));
    let mut users = edges.flat_map(|edge| edge.from);
    let is_memory = |kind: &&'static Kind| family.views.kinds.contains(&(*kind, Role::Memory));
    if !snapshot.policies.has_any(Group::Referrers) && !users.any(is_memory) {
        return Judgement::default();
    }
    let place = (subject.namespace, subject.name);
    let trees = [Some(subject.object), subject.old].into_iter().flatten();
    let mut found = references::read_by(family, (subject, trees), MAX_USERS + 1, state);
    if found.is_empty() {
        return Judgement::default();
    }
    let read = |text: &str| Object::read_once(kind, place, text).ok().flatten();
    // An apiserver wipes the time of deletion of a new object.
    let text = if request.operation == Operation::Create { &without_deletion(text) } else { text };
    let old_text = request.old_object.filter(|_| request.operation == Operation::Update);
    let (Some(new), old) = (read(text), old_text.and_then(read)) else { return Judgement::default() };
    if old.as_ref().is_some_and(|old| old.tree() == new.tree()) {
        return Judgement::default();
    }
    let are_many = found.len() > MAX_USERS;
    if are_many {
        // Equal ones show the same.
        let spec = |user: &&'s Object| user.tree().get("spec");
        found.dedup_by(|one, other| one.kind == other.kind && spec(one) == spec(other));
    }
    let changes = old_text.is_none_or(|old| family.meaning_changed(kind.kind, text, old));
    let (namespace, name) = (subject.namespace.to_owned(), subject.name.to_owned());
    let written = Reference { kind, namespace, name };
    let states =
        [Some(new), old].map(|object| snapshot.overlaid([(written.clone(), Ok(object.map(Arc::new)))]));
    let written = WrittenObject { kind, name: subject.name, text };
    let counts_users = snapshot.policies.has_any(Group::Users);
    let mut readers = states.each_ref().map(|of| StateReader::new(of, state.budget()).counting_with(state));
    let (mut viewed, mut texts) = (Vec::new(), Vec::new());
    for user in found {
        if !state.budget().steps(2 * STEPS_PER_VIEW) && !viewed.is_empty() {
            break;
        }
        let [new, old] = readers.each_mut().map(|reader| view(family, user, counts_users, reader));
        // What a write does not change is not judged again. Of very many each shows what may be read.
        let shows_all = are_many || state.budget().has_ended();
        if let Some(new) = new.filter(|new| shows_all || old.as_ref() != Some(new)) {
            let text = user.tree().to_json().to_string();
            state.budget().bytes(text.len());
            texts.push(text);
            viewed.push((user, Views { new, old, stored: None }));
        }
    }
    for reader in readers {
        state.note_all(reader.into_unknown());
    }
    let objects: Vec<Written<'_>> = texts.iter().map(|text| Written::new(text)).collect();
    let users = viewed.into_iter().zip(&objects).map(|((user, views), object)| {
        let subject = selection::Subject {
            family,
            kind: user.kind.kind,
            namespace: &user.namespace,
            operation: request.operation,
            object,
            old: None,
            occasion: request.occasion,
        };
        MemoryUser { subject, views }
    });
    let mut users: Vec<_> = users.collect();
    if are_many || state.budget().has_ended() {
        let why =
            if are_many { format!("more than {MAX_USERS} objects use it") } else { TOO_LARGE.to_owned() };
        // Of other labels only rules about labels can know.
        refuse_many(&mut users, &written, (&why, changes), snapshot, state)
    } else {
        judge_users(&mut users, &written, snapshot, state)
    }
}

/// A new object without a time of deletion.
fn without_deletion(text: &str) -> Cow<'_, str> {
    if !text.contains("deletionTimestamp") {
        return text.into();
    }
    let Ok(mut object) = serde_json::from_str::<serde_json::Value>(text) else { return text.into() };
    if let Some(metadata) = object.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.remove("deletionTimestamp");
    }
    object.to_string().into()
}

/// The view of a stored object.
fn view(
    family: &'static Family,
    user: &Object,
    counts_users: bool,
    state: &mut StateReader<'_>,
) -> Option<MemoryView> {
    let subject = Subject {
        kind: user.kind,
        operation: Operation::Update,
        namespace: &user.namespace,
        name: &user.name,
        object: user.tree(),
        old: None,
    };
    let mut view = views::of_object(family, &subject, counts_users, state);
    // The state keeps few annotations.
    if let Some(view) = &mut view {
        view.set_unknown("annotations", Why::Object(format!("what {} is annotated with", user.kind.kind)));
    }
    view
}
