//! The types of Tasks.

use crate::model::tree::Tree;

use super::super::api::AI;

/// What a Task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// A worker of Orka's own; the only one with a memory section.
    Ai,
    /// Any container.
    Container,
    /// An agent in a pool of runtimes.
    Agent,
}

impl Type {
    const ALL: [Self; 3] = [Self::Ai, Self::Container, Self::Agent];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ai => AI,
            Self::Container => "container",
            Self::Agent => "agent",
        }
    }

    /// `None` for a Task that the schema refuses.
    pub(super) fn of(task: &Tree) -> Option<Self> {
        let name = task.at(&["spec", "type"])?.text()?;
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}
