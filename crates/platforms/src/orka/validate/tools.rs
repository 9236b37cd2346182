//! Validates the names of tools.

use memgate_model::finding::{Finding, excerpt};
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{MEMORY_TOOLS, TOOL};
use super::super::codes::TOOL_TYPO;
use super::super::memory_tools::is_memory_tool;
use super::with_field;

/// Warns about a name that does not exist and is close to the name of a memory tool. The platform silently drops
/// such a tool. `name` is trimmed.
pub(super) fn misspelled(
    name: &str,
    namespace: &str,
    pointer: impl FnOnce() -> Pointer,
    state: &mut StateReader<'_>,
) -> Option<Finding> {
    if is_memory_tool(name) {
        return None;
    }
    let meant = nearest_memory_tool(name)?;
    // A tool with an invalid name cannot exist.
    if is_dns_subdomain(name) && !matches!(state.get(&TOOL, namespace, name), Lookup::Absent) {
        return None;
    }
    let name = excerpt(name);
    let message = move |at: &Pointer| {
        with_field(at, &format!("unknown tool {}; did you mean \"{meant}\"?", quoted(&name)))
    };
    Some(Finding::warn_within(state.budget(), &TOOL_TYPO, pointer(), message))
}

/// The nearest memory tool, at most two edits away. Other built-in tools are further away.
fn nearest_memory_tool(name: &str) -> Option<&'static str> {
    const MAX_EDITS: usize = 2;
    /// The longest name that is compared. Longer names are too far from all of them.
    const MAX_NAME_BYTES: usize = 32;
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let normalized = name.to_lowercase().replace('-', "_");
    // The length alone excludes most names.
    let may_be_near = |tool: &&str| tool.len().abs_diff(normalized.len()) <= MAX_EDITS;
    let near = MEMORY_TOOLS.into_iter().filter(may_be_near);
    let near = near.map(|tool| (strsim::levenshtein(&normalized, tool), tool));
    let near = near.filter(|(distance, _)| *distance <= MAX_EDITS);
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
}
