//! The names of tools.

use std::collections::BTreeMap;

use memgate_model::finding::{Finding, excerpt};
use memgate_model::object::Lookup;
use memgate_model::state_reader::StateReader;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::super::api::{BUILT_IN_TOOLS, MEMORY_TOOLS, TOOL};
use super::super::codes::TOOL_TYPO;
use super::with_field;

/// Finds the names that do not exist and are close to that of a memory tool. The platform silently drops
/// them.
pub(super) struct Misspellings<'t> {
    namespace: &'t str,
    /// The names that were looked up, and whether they do not exist.
    absent: BTreeMap<&'t str, bool>,
}

impl<'t> Misspellings<'t> {
    /// Nothing looked up yet, for an object of this namespace.
    pub(super) fn new(namespace: &'t str) -> Self {
        Self { namespace, absent: BTreeMap::new() }
    }

    /// Warns about a trimmed name, if it is one of those.
    pub(super) fn find(
        &mut self,
        name: &'t str,
        pointer: impl FnOnce() -> Pointer,
        state: &mut StateReader<'_>,
    ) -> Option<Finding> {
        if BUILT_IN_TOOLS.contains(&name) {
            return None;
        }
        let meant = nearest_memory_tool(name)?;
        if !self.is_absent(name, state) {
            return None;
        }
        let name = excerpt(name);
        let message = move |at: &Pointer| {
            with_field(at, &format!("unknown tool {}; did you mean \"{meant}\"?", quoted(&name)))
        };
        Some(Finding::warn_within(state.budget(), &TOOL_TYPO, pointer(), message))
    }

    /// Whether it is certain that no Tool has this name. An invalid name is certain.
    fn is_absent(&mut self, name: &'t str, state: &mut StateReader<'_>) -> bool {
        /// How many names are looked up. Each unknown name may cost a request to the apiserver.
        const MAX_LOOKED_UP: usize = 100;
        if !is_dns_subdomain(name) {
            return true;
        }
        if let Some(absent) = self.absent.get(name) {
            return *absent;
        }
        if self.absent.len() >= MAX_LOOKED_UP {
            return false;
        }
        let absent = matches!(state.get(&TOOL, self.namespace, name), Lookup::Absent);
        self.absent.insert(name, absent);
        absent
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
    // Most names are far from every tool, and their lengths alone tell.
    let may_be_near = |tool: &&str| tool.len().abs_diff(normalized.len()) <= MAX_EDITS;
    let near = MEMORY_TOOLS.into_iter().filter(may_be_near);
    let near = near.map(|tool| (strsim::levenshtein(&normalized, tool), tool));
    let near = near.filter(|(distance, _)| *distance <= MAX_EDITS);
    near.min_by_key(|(distance, _)| *distance).map(|(_, tool)| tool)
}

#[cfg(test)]
mod tests {
    use memgate_model::snapshot::Snapshot;
    use memgate_primitives::budget::Budget;

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

    #[test]
    fn looks_up_only_so_many_names() {
        let digits = (0..10).flat_map(|one| (0..20).map(move |two| (one, two)));
        let names: Vec<String> =
            digits.map(|(one, two)| format!("re{one}emb{}r", char::from(b'a' + two))).collect();
        let (snapshot, work) = (Snapshot::new(crate::family::default_settings()), Budget::default());
        let mut state = StateReader::new(&snapshot, &work);
        let mut misspellings = Misspellings::new("team");
        for name in names.iter().chain(&names) {
            assert_eq!(misspellings.find(name, Pointer::root, &mut state), None);
        }
        assert_eq!(misspellings.absent.len(), 100);
    }
}
