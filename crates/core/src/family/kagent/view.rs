//! The views of the family's objects, for rules of policies.

use memgate_model::family::Subject;
use memgate_model::kind::Kind;
use memgate_model::memory_view::{MemoryView, Role};
use memgate_model::state_reader::StateReader;

use super::api::{AGENT, HARNESS, MEMORY, NEWER_AGENT, SANDBOX_AGENT};

/// The kinds that have a view.
pub(crate) static VIEWED: [(&Kind, Role); 5] = [
    (&AGENT, Role::Memory),
    (&SANDBOX_AGENT, Role::Memory),
    (&MEMORY, Role::Memory),
    (&HARNESS, Role::Memory),
    (&NEWER_AGENT, Role::Referrer),
];

/// The view of an object of the family's own kinds.
pub(crate) fn view(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Option<MemoryView> {
    None
}
