//! Validates an Agent, a Task, a Namespace or a MemoryBackend.
//!
//! These are the platform's own running objects, and its CRDs check their form. So no rule here reads a field of the
//! wrong type or depends on one, and misspelled fields are not reported. Findings on one value have the order of the
//! calls below.

mod agent;
mod annotations;
mod backend;
mod task;
mod tools;
mod variables;

use memgate_model::family::Subject;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::NAMESPACE;
use memgate_model::request::Operation;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::api::{AGENT, MEMORY_BACKEND, TASK, TASK_TYPE_AI};

/// All findings about the subject. Findings on one value have a fixed order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    let kind = subject.kind;
    if subject.operation == Operation::Delete {
        Vec::new()
    } else if *kind == AGENT {
        agent::findings(subject, state)
    } else if *kind == TASK {
        task::findings(subject, state)
    } else if *kind == MEMORY_BACKEND {
        backend::findings(subject)
    } else if *kind == NAMESPACE {
        namespace(subject, state)
    } else {
        Vec::new()
    }
}

/// Validates a Namespace. A bad annotation only warns, so that it cannot block a namespace.
fn namespace(subject: &Subject<'_>, state: &StateReader<'_>) -> Vec<Finding> {
    let findings = annotations::findings(subject.object, false, state.budget()).into_iter();
    findings.map(|finding| Finding { severity: Severity::Warn, ..finding }).collect()
}

/// A message that names its field.
fn with_field(pointer: &Pointer, message: &str) -> String {
    let field = quoted(&pointer.field());
    let field = field.trim_matches('"');
    if message.contains(field) { message.to_owned() } else { format!("{field}: {message}") }
}

/// The type of a Task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskType {
    /// A worker of Orka's own. Only this type has a memory section.
    Ai,
    /// Any container.
    Container,
    /// An agent in a pool of runtimes.
    Agent,
}

impl TaskType {
    const ALL: [Self; 3] = [Self::Ai, Self::Container, Self::Agent];

    const fn name(self) -> &'static str {
        match self {
            Self::Ai => TASK_TYPE_AI,
            Self::Container => "container",
            Self::Agent => "agent",
        }
    }

    /// Reads the type of a Task; `None` for a Task that the schema refuses.
    fn read(task: &Tree) -> Option<Self> {
        let name = task.text_at(&["spec", "type"])?;
        Self::ALL.into_iter().find(|task_type| task_type.name() == name)
    }
}
