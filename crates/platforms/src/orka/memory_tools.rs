//! The tools that an Agent lists, and whether its workers also get the memory tools.

use memgate_model::kind::NAMESPACE;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::{Path, Pointer};

use super::api::MEMORY_TOOLS;
use super::setting::{Setting, switch};

/// Whether a trimmed name is a memory tool.
pub(super) fn is_memory_tool(name: &str) -> bool {
    MEMORY_TOOLS.contains(&name)
}

/// An entry of an Agent's `spec.tools`.
pub(super) struct AgentTool<'t> {
    index: usize,
    /// The name, trimmed.
    pub(super) name: &'t str,
    pub(super) enabled: bool,
}

impl<'t> AgentTool<'t> {
    /// The tools that have a name, and no field of the wrong type.
    pub(super) fn read_all(agent: &'t Tree) -> impl Iterator<Item = Self> {
        let list = agent.list_at(&["spec", "tools"]);
        list.iter().enumerate().filter_map(|(index, tool)| {
            let name = tool.get("name")?.text()?.trim();
            let enabled = match tool.get("enabled") {
                None => true,
                Some(Tree::Boolean(enabled)) => *enabled,
                Some(_) => return None,
            };
            Some(Self { index, name, enabled })
        })
    }

    pub(super) fn pointer(&self, field: &'static str) -> Pointer {
        let spec = Path::Key(&Path::Root, "spec");
        Path::Key(&Path::Index(&Path::Key(&spec, "tools"), self.index), field).pointer()
    }
}

/// Whether an Agent, or else its namespace, switches the memory tools off.
pub(super) fn are_off(agent: &Tree, namespace: &str, state: &mut StateReader<'_>) -> bool {
    let on = switch(Setting::Tools, agent).or_else(|| of_namespace(namespace, state));
    on == Some(false)
}

/// The switch of the memory tools in a namespace, if the namespace is known and sets it.
pub(super) fn of_namespace(namespace: &str, state: &mut StateReader<'_>) -> Option<bool> {
    switch(Setting::Tools, state.get(&NAMESPACE, "", namespace).found()?.tree())
}
