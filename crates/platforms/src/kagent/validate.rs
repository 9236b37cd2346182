//! Validates the objects of kagent.
//!
//! Denied is what never works and can be mended in the object itself. A rule that depends on another object only warns.
//! The settings of kagent are read where they, or a release of its chart, are among the files. In a cluster nothing reads them: it takes a right to
//! all ConfigMaps.

mod sections;
pub(crate) mod users;

use super::prelude::*;
use memgate_model::kind::{CHART_RELEASES, SETTING_AT};

use self::users::Users;
use super::block::{Block, pointer};
use super::embedder::Embedder;

/// All findings about the subject, in any order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if subject.operation == Operation::Delete {
        return users::deleted(subject, state);
    }
    let mut findings: Vec<Finding> = unread_kind(subject).into_iter().collect();
    findings.extend(unread_list(subject));
    findings.extend(group_moved(subject));
    findings.extend(line_removed(subject, state));
    findings.extend(sections::memory_findings(subject, state));
    findings.extend(sections::chat_findings(subject, state));
    findings.extend(setting_findings(subject, state));
    findings.extend(sections::compaction_findings(subject));
    findings.extend(embedder_findings(subject, state));
    findings
}

/// The ModelConfig of this name: in the namespace of the subject, and in the group of its line. An object of a version that
/// moved to another group may name one of either.
fn find_model_config<'s>(subject: &Subject<'_>, name: &str, state: &mut StateReader<'s>) -> Lookup<'s> {
    let is_moved = is_moved(subject.kind, subject.object);
    Line::of(subject.kind).find_model_config((subject.namespace, name), is_moved, state)
}

/// Warns about a version that has moved to another group.
fn group_moved(subject: &Subject<'_>) -> Option<Finding> {
    let (group, version) = subject.object.text_at(&["apiVersion"])?.split_once('/')?;
    moved(subject.kind, version).filter(|_| group == OLDER_GROUP)?;
    let message = format!("\"{group}/{version}\" is in no release; use \"{NEWER_GROUP}/{version}\"");
    Some(Finding::warn(&GROUP_MOVED, "/apiVersion", message))
}

/// Warns about memory of 0.x where 1.x is.
fn line_removed(subject: &Subject<'_>, state: &StateReader<'_>) -> Option<Finding> {
    let block = Block::of(subject.kind, subject.object)?;
    let is_read = block.line == Line::Older && !block.is_ignored;
    let is_newer = || NEWER_KINDS.iter().any(|kind| state.is_installed(kind) || state.holds_any(kind));
    (is_read && is_newer()).then(|| {
        let message =
            "kagent 1.0 does not read kagent.dev Agents; set memory on a Harness (spec.kagent.memory)";
        Finding::warn(&LINE_REMOVED, block.pointer(), message)
    })
}

/// The setting of 0.x and of 1.0. Only beside [`CONTROLLER`] it is one of kagent.
const VECTORS: &str = "DATABASE_VECTOR_ENABLED";
/// A setting that every controller of kagent has.
const CONTROLLER: &str = "KAGENT_CONTROLLER_NAME";
/// The setting of later releases.
const LATER_VECTORS: &str = "KAGENT_DATABASE_VECTOR_ENABLED";
/// The setting in the values of the chart, whose default is false.
pub(super) const CHART_SETTING: (&str, &str) = ("kagent", "database.postgres.vectorEnabled");
/// The values that the controller reads as false, and that of a release which does not set it.
const FALSE: [&str; 7] = ["false", "False", "FALSE", "f", "F", "0", ""];

/// Also where that is not known.
const ON: &str = "on";
const OFF: &str = "off";

/// Finds settings of kagent by whether they switch vectors on or off.
static BY_VECTORS: Index = Index {
    place: 1,
    keys: |object| {
        let key = vectors(object).map(|(_, value)| if FALSE.contains(&value) { OFF } else { ON });
        key.map(Cow::Borrowed).into_iter().collect()
    },
};

/// The setting in a ConfigMap, or in a release of the chart, with its key.
fn vectors(object: &Object) -> Option<(&'static str, &str)> {
    let data = object.tree().get("data")?;
    let entry = |key| data.entry(key).map(|value| (key, value));
    if *object.kind != CONFIG_MAP {
        return entry(CHART_SETTING.1);
    }
    entry(LATER_VECTORS).or_else(|| entry(VECTORS).filter(|_| data.has_key(CONTROLLER)))
}

/// Warns if the settings switch vectors off. Settings that differ are those of several installations.
fn setting_findings(subject: &Subject<'_>, state: &StateReader<'_>) -> Option<Finding> {
    let block = Block::of(subject.kind, subject.object).filter(|block| !block.is_ignored)?;
    let kinds = [&CONFIG_MAP].into_iter().chain(&CHART_RELEASES);
    let first = |key| kinds.clone().find_map(|kind| state.peek_indexed(kind, &BY_VECTORS, key).next());
    if !state.of_files() || first(ON).is_some() {
        return None;
    }
    let settings = first(OFF)?;
    let (key, value) = vectors(settings)?;
    let name = quoted(&format!("{}/{}", settings.namespace, settings.name));
    let how = if value.is_empty() { "leaves vectors off, as its chart does" } else { "turns vectors off" };
    let message = format!("{} {name} {how}; kagent cannot store memories", settings.kind.kind);
    let at = settings.tree().get("data").and_then(|data| data.entry(SETTING_AT));
    let at = at.map_or_else(|| Pointer::new("/data").key(key), Pointer::new);
    Some(
        Finding::warn(&VECTORS_OFF, block.pointer(), message).elsewhere(settings, at, "vectors are off here"),
    )
}

/// The list of Memories in an Agent of the oldest version. The place has no meaning in later versions.
const MEMORIES: [&str; 2] = ["spec", "memory"];

fn unread_kind(subject: &Subject<'_>) -> Option<Finding> {
    let message = "no kagent since 0.7 reads Memory; use spec.declarative.memory, in 1.0 the Harness";
    let finding = || Finding::warn(&MEMORY_KIND_UNREAD, "/spec", message);
    (*subject.kind == MEMORY).then(finding)
}

fn unread_list(subject: &Subject<'_>) -> Option<Finding> {
    let message = "spec.memory is read by no kagent since 0.7; use v1alpha2 spec.declarative.memory";
    let is_unread = has_memories(subject) && !subject.object.list_at(&MEMORIES).is_empty();
    is_unread.then(|| Finding::warn(&AGENT_MEMORY_UNREAD, pointer(&MEMORIES), message))
}

/// Whether the subject is of the version in which Agents have a list of Memories.
fn has_memories(subject: &Subject<'_>) -> bool {
    *subject.kind == AGENT && subject.object.text_at(&["apiVersion"]) == Some("kagent.dev/v1alpha1")
}

/// The findings about a ModelConfig, if an object of the state embeds with it.
fn embedder_findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let users = Users::first_of(subject, state);
    if users.first().is_none() {
        return Vec::new();
    }
    let embedder = Embedder::new(Line::of(subject.kind), subject.object);
    let flaw = embedder.flaw().map(|(code, at, message)| Finding::warn(code, at, message));
    let mut findings: Vec<Finding> = flaw.into_iter().collect();
    findings.extend(ignored_settings(&embedder, subject.object));
    findings.extend(credentials(subject.object));
    let mut findings: Vec<Finding> = findings.into_iter().filter_map(|it| users.show_first(it)).collect();
    findings.extend(users::changed(subject, state));
    findings
}

/// Settings that embedding requests do not use.
fn ignored_settings(embedder: &Embedder<'_>, object: &Tree) -> Vec<Finding> {
    let headers =
        object.at(&["spec", "defaultHeaders"]).is_some_and(|headers| headers.keys().next().is_some());
    let is_older = embedder.line == Line::Older;
    let tls = object.at(&["spec", "tls"]).is_some_and(|tls| !tls.is_empty_object());
    let exchange = object.at(&["spec", "openAI", "tokenExchange"]).is_some();
    let rows = [
        (headers, "/spec/defaultHeaders", "is not sent with embedding requests"),
        (is_older && tls, "/spec/tls", "does not hold for embedding requests in kagent 0.x"),
        (is_older && exchange, "/spec/openAI/tokenExchange", "is not used for embedding requests"),
    ];
    let finding = |(_, field, effect): (bool, &str, &str)| {
        let pointer = Pointer::new(field);
        let message = format!("{} {effect}", pointer.field());
        Finding::warn(&EMBEDDER_SETTING_IGNORED, pointer, message)
    };
    rows.into_iter().filter(|(is_set, ..)| *is_set).map(finding).collect()
}

/// Credentials in an endpoint, also in a section of another provider: they are stored in plain text.
fn credentials(object: &Tree) -> impl Iterator<Item = Finding> {
    const ENDPOINTS: [[&str; 3]; 4] = [
        ["spec", "openAI", "baseUrl"],
        ["spec", "azureOpenAI", "azureEndpoint"],
        ["spec", "ollama", "host"],
        ["spec", "foundry", "endpoint"],
    ];
    let has_credentials =
        |path: &[&str; 3]| object.text_at(path).is_some_and(|text| Endpoint::parse(text).userinfo.is_some());
    ENDPOINTS.into_iter().filter(has_credentials).map(|path| {
        let message = format!("{} contains credentials; use apiKeySecret", path.join("."));
        Finding::warn(&ENDPOINT_CREDENTIALS, pointer(&path), message)
    })
}
