//! Validates an Ensemble, an Agent, an AgentRun or a SkillPack.
//!
//! Rules deny objects that break a documented format, and objects that the platform refuses or can never run. They
//! warn about values that the platform ignores, clamps or overrides.

mod agent;
pub(crate) mod definition;
mod ensemble;
mod membrane;
mod names;
mod pods;
mod run;

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use super::prelude::*;
use crate::message::{MAX_NAME_CHARS, MAX_NAMES, first_of, fit_message, fits, truncate};
use crate::references;
use memgate_primitives::pointer::Path::{Index, Key, Known};
use memgate_primitives::pointer::unescape;

use super::edges::BY_MEMORY;
use super::report::{Report, whole};

pub(crate) use self::pods::skill_pack_missing;

/// All findings about the subject, in any order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let (kind, mut out) = (subject.kind, Report::new(state.budget()));
    if subject.operation == Operation::Delete {
        match kind.kind {
            "Ensemble" | "PersonaPack" => out.extend(ensemble::deleted(subject, state)),
            "Agent" | "SympoziumInstance" => out.extend(agent::deleted(subject)),
            "SkillPack" => out.extend(pack_deleted(subject, state)),
            "WorkspaceSession" | "HarnessSession" => out.extend([agent::session_deleted(subject)]),
            _ => {}
        }
    } else {
        match kind.kind {
            "Ensemble" | "PersonaPack" => ensemble::findings(subject, &mut out, state),
            "Agent" | "SympoziumInstance" => agent::findings(subject, &mut out, state),
            "SkillPack" => pack(subject, &mut out),
            "AgentRun" => run::findings(subject, &mut out, state),
            _ => agent::session(subject, &mut out),
        }
    }
    // Only findings that are compared with those of another object need the path.
    if subject.old.is_some() || !state.budget().wants_warnings() {
        for finding in out.findings.iter_mut().filter(|finding| finding.severity == Severity::Deny) {
            finding.fingerprint_path = fingerprint_path(subject.object, &finding.pointer);
        }
    }
    out.findings
}

/// The path of a place, with the names of list elements in place of indexes. It stays the same when an element moves
/// in its list. `None` if no element on the path has a name.
fn fingerprint_path(object: &Tree, pointer: &Pointer) -> Option<String> {
    const NAMES: [&str; 3] = ["name", "agentConfig", "persona"];
    let (mut path, mut has_name, mut here) = (String::new(), false, Some(object));
    for token in pointer.as_str().split('/').skip(1) {
        let mut name = None;
        if let Some(Tree::List(elements)) = here {
            here = token.parse::<usize>().ok().and_then(|index| elements.get(index));
            name = here.and_then(|element| NAMES.iter().find_map(|key| element.get(key)?.text()));
        } else {
            here = here.and_then(|tree| tree.get(&unescape(token)));
        }
        has_name |= name.is_some();
        match name {
            Some(name) => push_name(&mut path, name),
            None => path.extend(["/", token]),
        }
    }
    has_name.then_some(path)
}

/// Appends the name of an element. A long name is replaced by its hash.
fn push_name(path: &mut String, name: &str) {
    const MAX_BYTES: usize = 64;
    path.push_str("/\"");
    if name.len() <= MAX_BYTES {
        path.push_str(name);
    } else {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        path.push_str(&hash.to_string());
    }
}

/// A message about `Agent "a"`, or `Agents "a", "b", "c" and 2 more`. It names as many Agents as fit, and
/// at least one. `message` gets this text, and the maximum length of other names in the message. `None` for an empty
/// list.
fn about_agents(mut users: Vec<Cow<'_, str>>, message: impl Fn(&str, usize) -> String) -> Option<String> {
    users.sort_unstable();
    users.dedup();
    let s = if users.len() == 1 { "" } else { "s" };
    let about = |names: usize, limit| {
        let names = first_of(&users, names, |name| quoted(&truncate(name, limit)));
        message(&format!("Agent{s} {names}"), limit)
    };
    let whole = (1..=MAX_NAMES).rev().map(|names| about(names, MAX_NAME_CHARS)).find(|text| fits(text));
    (!users.is_empty()).then(|| whole.unwrap_or_else(|| fit_message(|limit| about(1, limit))))
}

/// The tools that the agent's runner has built in.
/// Source: upstream, `internal/webhook/skillpack_validator.go`.
const BUILT_IN_TOOLS: [&str; 20] = [
    "memory_search", "memory_store", "memory_list", "memory_update", "memory_forget",
    "workflow_memory_search", "workflow_memory_store", "workflow_memory_list", "workflow_memory_update",
    "workflow_memory_forget", "execute_command", "read_file", "write_file", "edit_file", "list_directory",
    "send_channel_message", "fetch_url", "schedule_task", "delegate_to_persona", "spawn_subagents",
];

fn pack(subject: &Subject<'_>, out: &mut Report<'_>) {
    let (pack, name) = (subject.object, subject.name);
    pods::volumes_of_pack(pack, name, out);
    // Upstream's own webhook refuses such tools, with the same message.
    let tools = Known("/spec/sidecar/tools");
    for (index, tool) in pack.list_at(&["spec", "sidecar", "tools"]).iter().enumerate() {
        if let Some(tool) = tool.text_at(&["name"]).filter(|tool| BUILT_IN_TOOLS.contains(tool)) {
            let text = whole("SkillPack {} sidecar tool {key}: name collides with a built-in Sympozium tool");
            out.deny(&TOOL_NAME_BUILTIN, Key(&Index(&tools, index), "name"), text, &[name, tool]);
        }
    }
    // The pack `memory` is the server that asks for the token.
    if name != MEMORY_SKILL {
        pods::in_sidecar(pack, out);
    } else if is_true(pack, &["spec", "sidecar", "requiresServer"]) {
        let text = "runs in task mode leave the memory sidecar out";
        out.warn(&MEMORY_PACK_SERVER, Known("/spec/sidecar/requiresServer"), text, &[]);
    }
}

/// Warns about the DELETE of the SkillPack `memory`, with the Agents that use it.
fn pack_deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Option<Finding> {
    if subject.name != MEMORY_SKILL {
        return None;
    }
    let is_of_all = subject.namespace == SYSTEM_NAMESPACE;
    let key =
        format!("{} {}/{MEMORY_SKILL}", SKILL_PACK.kind, if is_of_all { "" } else { subject.namespace });
    let mut users: Vec<&Object> = Vec::new();
    for kind in [&AGENT, &AGENT_OLD] {
        // This notes those that are not held, and whether some are unknown.
        if is_of_all {
            drop(state.everywhere(kind));
        } else {
            drop(state.list(kind, subject.namespace));
        }
        users.extend(references::staying(state.peek_indexed(kind, &BY_MEMORY, &key)));
    }
    let mut homes: BTreeMap<&str, bool> = BTreeMap::new();
    users.retain(|agent| {
        let has_own = || state.peek(&SKILL_PACK, &agent.namespace, MEMORY_SKILL).is_some();
        let is_home = *agent.namespace == *subject.namespace;
        is_home || !*homes.entry(&agent.namespace).or_insert_with(has_own)
    });
    let verb = if users.len() == 1 { "uses" } else { "use" };
    let names = users.into_iter().map(|agent| agent.name_in(subject.namespace)).collect();
    let message = |users: &str, _| format!("{users} still {verb} SkillPack \"{MEMORY_SKILL}\"");
    Some(Finding::warn(&MEMORY_PACK_DELETE, Pointer::root(), about_agents(names, message)?))
}
