//! The types of Tasks.

use crate::model::tree::Tree;

use super::super::api::TASK_TYPE_AI;

/// What a Task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskType {
    /// A worker of Orka's own; the only one with a memory section.
    Ai,
    /// Any container.
    Container,
    /// An agent in a pool of runtimes.
    Agent,
}

impl TaskType {
    const ALL: [Self; 3] = [Self::Ai, Self::Container, Self::Agent];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ai => TASK_TYPE_AI,
            Self::Container => "container",
            Self::Agent => "agent",
        }
    }

    /// `None` for a Task that the schema refuses.
    pub(super) fn read(task: &Tree) -> Option<Self> {
        let name = task.at(&["spec", "type"])?.text()?;
        Self::ALL.into_iter().find(|task_type| task_type.name() == name)
    }
}
