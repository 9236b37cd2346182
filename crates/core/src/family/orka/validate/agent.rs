//! Validates an Agent.

use crate::model::family::Subject;
use crate::model::finding::{Finding, quoted};
use crate::model::kind::NAMESPACE;
use crate::model::object::Lookup;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;

use super::super::codes::{APPROVAL_BUILTIN, TOOL_DISABLE_NO_EFFECT, TOOL_RUNTIME};
use super::super::setting::{Setting, is_off, switch};
use super::tools::{is_memory_tool, misspelled_memory_tool};
use super::{annotations, with_field};

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let agent = subject.object;
    let runtime = agent.at(&["spec", "runtime"]).filter(|runtime| runtime.is_object());
    let mut findings = annotations::findings(agent, runtime.is_some());
    if runtime.is_none() {
        findings.extend(approvals(subject));
    }
    let tools = Tool::read_all(agent);
    findings.extend(tools.iter().filter(|tool| tool.enabled).filter_map(|tool| {
        misspelled_memory_tool(tool.name, tool.pointer.key("name"), subject.namespace, state)
    }));
    let memory_tools = || tools.iter().filter(|tool| is_memory_tool(tool.name));
    match runtime {
        None => {
            let mut disabled = memory_tools().filter(|tool| !tool.enabled).peekable();
            if disabled.peek().is_some() && !tools_are_off(subject, state) {
                findings.extend(disabled.map(Tool::disabled));
            }
        }
        Some(runtime) if runtime.get("type").and_then(Tree::text).is_some_and(|name| !name.is_empty()) => {
            findings.extend(memory_tools().filter(|tool| tool.enabled).map(Tool::unreachable));
        }
        Some(_) => {}
    }
    findings
}

/// Whether the Agent, or else its namespace, switches the memory tools off.
fn tools_are_off(subject: &Subject<'_>, state: &mut StateReader<'_>) -> bool {
    if let Some(on) = switch(Setting::Tools, subject.object) {
        return !on;
    }
    match state.get(&NAMESPACE, "", subject.namespace) {
        Lookup::Found(namespace) => is_off(Setting::Tools, &namespace.tree),
        Lookup::Absent | Lookup::Unknown => false,
    }
}

/// The platform accepts such an Agent and fails every Task that uses it.
fn approvals(subject: &Subject<'_>) -> Vec<Finding> {
    let list = subject.object.at(&["spec", "coordination", "approvalRequiredTools"]);
    let tools = list.map(Tree::elements).unwrap_or_default().iter().enumerate();
    let texts = tools.filter_map(|(index, tool)| Some((index, tool.text()?)));
    let finding = |(index, text): (usize, &str)| {
        let pointer = Pointer::new("/spec/coordination/approvalRequiredTools").index(index);
        let message = format!(
            "agent {} approvalRequiredTools cannot include built-in tool {}",
            quoted(name(subject)),
            quoted(text.trim())
        );
        let message = with_field(&pointer, &message);
        Finding::deny(&APPROVAL_BUILTIN, pointer, message)
            .help("take it out; only tools of your own can ask for approval, and memories are reviewed before they count")
            .fingerprint_value(text)
            .anywhere()
    };
    texts.filter(|(_, text)| is_memory_tool(text.trim())).map(finding).collect()
}

/// The name, or the prefix from which the apiserver will generate it.
fn name<'t>(subject: &Subject<'t>) -> &'t str {
    let generate_name = || subject.object.at(&["metadata", "generateName"]).and_then(Tree::text);
    match subject.name {
        "" => generate_name().unwrap_or_default(),
        name => name,
    }
}

/// An entry of `spec.tools`.
struct Tool<'t> {
    pointer: Pointer,
    name: &'t str,
    enabled: bool,
}

impl<'t> Tool<'t> {
    fn read_all(agent: &'t Tree) -> Vec<Self> {
        let list = agent.at(&["spec", "tools"]).map(Tree::elements).unwrap_or_default();
        let tool = |(index, tool): (usize, &'t Tree)| {
            let pointer = Pointer::new("/spec/tools").index(index);
            let name = tool.get("name")?.text()?.trim();
            Some(Self { pointer, name, enabled: tool.get("enabled") != Some(&Tree::Boolean(false)) })
        };
        list.iter().enumerate().filter_map(tool).collect()
    }

    fn disabled(&self) -> Finding {
        let pointer = self.pointer.key("enabled");
        let message = with_field(&pointer, "memory tools stay on for ai Tasks; enabled: false has no effect");
        Finding::warn(&TOOL_DISABLE_NO_EFFECT, pointer, message)
            .help("annotate memgate.dev/orka-memory-tools: \"false\"")
    }

    fn unreachable(&self) -> Finding {
        let pointer = self.pointer.key("name");
        let message = "spec.tools never reaches a built-in runtime (newer Orka fails the Task); see defaultAllowedTools";
        let message = with_field(&pointer, message);
        Finding::warn(&TOOL_RUNTIME, pointer, message).help(
            "name the tool in spec.runtime.defaultAllowedTools, and there the runtime's native tools too: \
             a list that is not empty replaces them",
        )
    }
}
