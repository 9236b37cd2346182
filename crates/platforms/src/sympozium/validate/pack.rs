//! Validates a SkillPack.

use std::sync::Arc;

use memgate_model::family::Subject;
use memgate_model::finding::{Finding, excerpt};
use memgate_model::object::Object;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::agent::has_memory;
use super::super::api::read::is_true;
use super::super::api::{AGENT, AGENT_OLD, MEMORY_SKILL, SKILL_PACK, SYSTEM_NAMESPACE};
use super::super::codes::{MEMORY_PACK_DELETE, MEMORY_PACK_SERVER, TOOL_NAME_BUILTIN};
use super::{Report, about_agents, tokens, volumes};

/// The tools that the agent's runner has built in.
/// Source: upstream, `internal/webhook/skillpack_validator.go`.
const BUILT_IN_TOOLS: [&str; 20] = [
    "memory_search", "memory_store", "memory_list", "memory_update", "memory_forget",
    "workflow_memory_search", "workflow_memory_store", "workflow_memory_list", "workflow_memory_update",
    "workflow_memory_forget", "execute_command", "read_file", "write_file", "edit_file", "list_directory",
    "send_channel_message", "fetch_url", "schedule_task", "delegate_to_persona", "spawn_subagents",
];

pub(super) fn findings(subject: &Subject<'_>, report: Report<'_>) -> Vec<Finding> {
    let pack = subject.object;
    let mut findings = volumes::pack_findings(pack, subject.name, report);
    findings.extend(tools(pack, subject.name, report));
    // The pack `memory` is the server that asks for the token.
    if subject.name != MEMORY_SKILL {
        findings.extend(tokens::in_sidecar(pack, report));
    }
    if subject.name == MEMORY_SKILL && is_true(pack, &["spec", "sidecar", "requiresServer"]) {
        let at = || Pointer::new("/spec/sidecar/requiresServer");
        let text = || "runs in task mode leave the memory sidecar out";
        findings.extend(report.warn(&MEMORY_PACK_SERVER, at, text));
    }
    findings
}

/// Refuses tools that upstream's own webhook refuses, with the same message.
fn tools(pack: &Tree, name: &str, report: Report<'_>) -> Vec<Finding> {
    let list = Pointer::new("/spec/sidecar/tools");
    let tools = pack.list_at(&["spec", "sidecar", "tools"]);
    let name: Arc<str> = excerpt(name).into();
    let finding = |(index, tool): (usize, &Tree)| {
        let tool = tool.text_at(&["name"]).filter(|tool| BUILT_IN_TOOLS.contains(tool))?;
        let (shown_pack, shown_tool) = (Arc::clone(&name), excerpt(tool));
        let message = move |_: &Pointer| {
            let (pack, tool) = (quoted(&shown_pack), quoted(&shown_tool));
            format!("SkillPack {pack} sidecar tool {tool}: name collides with a built-in Sympozium tool")
        };
        let at = || list.index(index).key("name");
        Some(report.deny_whole(&TOOL_NAME_BUILTIN, at, message)?.fingerprint_value(tool))
    };
    tools.iter().enumerate().filter_map(finding).collect()
}

/// Warns about the DELETE of the SkillPack `memory`, with the Agents that use it.
pub(super) fn deleted(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if subject.name != MEMORY_SKILL {
        return Vec::new();
    }
    let uses_memory = |agent: &&Object| !agent.deleting() && has_memory(agent.tree());
    let users: Vec<&Object> = if subject.namespace == SYSTEM_NAMESPACE {
        let agents = state.everywhere(&AGENT).chain(state.everywhere(&AGENT_OLD));
        let has_own = |agent: &Object| state.peek(&SKILL_PACK, &agent.namespace, MEMORY_SKILL).is_some();
        let uses_this = |agent: &&Object| *agent.namespace == *SYSTEM_NAMESPACE || !has_own(agent);
        agents.filter(uses_memory).filter(uses_this).collect()
    } else {
        let agents = state.list(&AGENT, subject.namespace);
        agents.chain(state.list(&AGENT_OLD, subject.namespace)).filter(uses_memory).collect()
    };
    let verb = if users.len() == 1 { "uses" } else { "use" };
    let names = users.into_iter().map(|agent| agent.name_in(subject.namespace)).collect();
    let message =
        about_agents(names, |users, _| format!("{users} still {verb} SkillPack \"{MEMORY_SKILL}\""));
    let finding = |message| Finding::warn(&MEMORY_PACK_DELETE, Pointer::root(), message);
    message.map(finding).into_iter().collect()
}
