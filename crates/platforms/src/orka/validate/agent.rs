//! Validates an Agent.

use std::sync::Arc;

use memgate_model::family::Subject;
use memgate_model::finding::{Finding, excerpt};
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::codes::{APPROVAL_BUILTIN, TOOL_DISABLE_NO_EFFECT, TOOL_RUNTIME};
use super::super::memory_tools::{AgentTool, are_off, is_memory_tool};
use super::tools::misspelled;
use super::{annotations, with_field};

pub(super) fn findings(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let agent = subject.object;
    let runtime = agent.at(&["spec", "runtime"]);
    let mut findings = annotations::findings(agent, runtime.is_some_and(Tree::is_object), state.budget());
    if runtime.is_none() {
        findings.extend(approvals(subject, state.budget()));
    }
    let tools: Vec<AgentTool<'_>> = AgentTool::read_all(agent).collect();
    let enabled = tools.iter().filter(|tool| tool.enabled);
    findings.extend(
        enabled.filter_map(|tool| misspelled(tool.name, subject.namespace, || tool.pointer("name"), state)),
    );
    let memory_tools = || tools.iter().filter(|tool| is_memory_tool(tool.name));
    match runtime {
        None => {
            let mut disabled = memory_tools().filter(|tool| !tool.enabled).peekable();
            if disabled.peek().is_some() && !are_off(agent, subject.namespace, state) {
                findings.extend(disabled.map(|tool| tool.disabled(state.budget())));
            }
        }
        Some(runtime) if runtime.text_at(&["type"]).is_some_and(|name| !name.is_empty()) => {
            let enabled = memory_tools().filter(|tool| tool.enabled);
            findings.extend(enabled.map(|tool| tool.unreachable(state.budget())));
        }
        Some(_) => {}
    }
    findings
}

/// Reports memory tools that need an approval. The platform accepts such an Agent and fails every Task that
/// uses it.
fn approvals(subject: &Subject<'_>, work: &Budget<'_>) -> Vec<Finding> {
    let list = subject.object.at(&["spec", "coordination", "approvalRequiredTools"]);
    let tools = list.map(Tree::elements).unwrap_or_default().iter().enumerate();
    let texts = tools.filter_map(|(index, tool)| Some((index, tool.text()?)));
    let list = Pointer::new("/spec/coordination/approvalRequiredTools");
    let agent: Arc<str> = quoted(name(subject)).into();
    let finding = |(index, text): (usize, &str)| {
        let (agent, tool) = (agent.clone(), excerpt(text.trim()));
        let message = move |at: &Pointer| {
            let tool = quoted(&tool);
            with_field(
                at,
                &format!("agent {agent} approvalRequiredTools cannot include built-in tool {tool}"),
            )
        };
        Finding::deny_within(work, &APPROVAL_BUILTIN, list.index(index), message)
            .fingerprint_value(text)
            .anywhere()
            .help("take it out; only tools of your own can ask for approval, and memories are reviewed before they count")
    };
    texts.filter(|(_, text)| is_memory_tool(text.trim())).map(finding).collect()
}

/// The name, or the prefix from which the apiserver will generate it.
fn name<'t>(subject: &Subject<'t>) -> &'t str {
    let generate_name = || subject.object.text_at(&["metadata", "generateName"]);
    match subject.name {
        "" => generate_name().unwrap_or_default(),
        name => name,
    }
}

impl AgentTool<'_> {
    fn disabled(&self, work: &Budget<'_>) -> Finding {
        let message = "memory tools stay on for ai Tasks; enabled: false has no effect";
        let message = move |at: &Pointer| with_field(at, message);
        Finding::warn_within(work, &TOOL_DISABLE_NO_EFFECT, self.pointer("enabled"), message)
            .help("annotate memgate.dev/orka-memory-tools: \"false\"")
    }

    fn unreachable(&self, work: &Budget<'_>) -> Finding {
        let message = "spec.tools never reaches a built-in runtime (newer Orka fails the Task); see defaultAllowedTools";
        let message = move |at: &Pointer| with_field(at, message);
        Finding::warn_within(work, &TOOL_RUNTIME, self.pointer("name"), message).help(
            "name the tool in spec.runtime.defaultAllowedTools, and there the runtime's native tools too: \
             a list that is not empty replaces them",
        )
    }
}
