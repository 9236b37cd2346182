//! Validates a memory section: its ModelConfig, its chat model, and how long memories are kept.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;

/// The findings about the memory section of an Agent, a SandboxAgent or a Harness.
pub(super) fn findings(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Finding> {
    Vec::new()
}
