//! The names of tools.

use crate::model::finding::{Finding, quoted};
use crate::model::object::Lookup;
use crate::model::pointer::Pointer;
use crate::model::state_reader::StateReader;

use super::super::api::{BUILT_IN_TOOLS, MEMORY_TOOLS, TOOL};
use super::super::codes::TOOL_TYPO;
use super::with_field;

/// Whether a trimmed name is a memory tool.
pub(super) fn is_memory_tool(name: &str) -> bool {
    MEMORY_TOOLS.contains(&name)
}

/// Warns about a trimmed name that does not exist and is close to that of a memory tool. The platform
/// silently drops it.
pub(super) fn misspelled_memory_tool(
    name: &str,
    pointer: Pointer,
    namespace: &str,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    if BUILT_IN_TOOLS.contains(&name) {
        return None;
    }
    let meant = nearest_memory_tool(name)?;
    match state.get(&TOOL, namespace, name) {
        Lookup::Found(_) | Lookup::Unknown => None,
        Lookup::Absent => {
            let message = format!("unknown tool {}; did you mean \"{meant}\"?", quoted(name));
            let message = with_field(&pointer, &message);
            Some(Finding::warn(&TOOL_TYPO, pointer, message))
        }
    }
}

/// The nearest memory tool, at most two edits away.
fn nearest_memory_tool(name: &str) -> Option<&'static str> {
    const MAX_EDITS: usize = 2;
    /// Longer names are too far from all of them.
    const MAX_NAME_BYTES: usize = 32;
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let normalized = name.to_lowercase().replace('-', "_");
    let distances = MEMORY_TOOLS.map(|tool| (strsim::levenshtein(&normalized, tool), tool));
    let near = distances.into_iter().filter(|(distance, _)| *distance <= MAX_EDITS);
    near.min_by_key(|(distance, _)| *distance).map(|(_, tool)| tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_tool_that_was_meant() {
        for (wrong, meant) in [
            ("recall-memory", Some("recall_memory")),
            ("Remember", Some("remember")),
            ("remembre", Some("remember")),
            ("search_transcripts", Some("search_transcript")),
            ("member", Some("remember")),
            ("memory", None),
            ("", None),
        ] {
            assert_eq!(nearest_memory_tool(wrong), meant, "{wrong}");
        }
    }

    #[test]
    fn knows_every_memory_tool_as_built_in() {
        assert!(MEMORY_TOOLS.iter().all(|tool| BUILT_IN_TOOLS.contains(tool)));
    }
}
