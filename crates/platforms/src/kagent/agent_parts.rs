//! The template and the harness of an Agent of 1.x. Each is inline, or named.
//!
//! Two shapes were seen: `harnessRef` beside an inline `harness`, and `harness.ref` beside `harness.inline`.

use memgate_model::tree::Tree;

/// The template or the harness of an Agent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'t> {
    /// A spec in the Agent itself.
    Inline(&'t Tree),
    /// The name of an object of the same namespace, and its place.
    Named {
        /// The name. It may be empty or invalid.
        name: &'t str,
        /// The field with the name.
        path: &'static [&'static str],
    },
}

/// Whether a template or harness is of the shape `{ref: …}` or `{inline: …}`.
pub(crate) fn is_wrapped(part: &Tree) -> bool {
    part.get("ref").is_some() || part.get("inline").is_some()
}

/// The harness of an Agent.
pub(crate) fn harness(agent: &Tree) -> Option<Part<'_>> {
    let (inline, wrapped, beside) =
        (&["spec", "harness"], &["spec", "harness", "ref", "name"], &["spec", "harnessRef", "name"]);
    part(agent, inline, wrapped, beside)
}

/// The template of an Agent.
pub(crate) fn template(agent: &Tree) -> Option<Part<'_>> {
    let (inline, wrapped, beside) =
        (&["spec", "template"], &["spec", "template", "ref", "name"], &["spec", "templateRef", "name"]);
    part(agent, inline, wrapped, beside)
}

fn part<'t>(
    agent: &'t Tree,
    inline: &[&str],
    wrapped: &'static [&'static str],
    beside: &'static [&'static str],
) -> Option<Part<'t>> {
    let named = |path| agent.text_at(path).map(|name| Part::Named { name, path });
    match agent.at(inline) {
        None => named(beside),
        Some(part) if is_wrapped(part) => part.get("inline").map(Part::Inline).or_else(|| named(wrapped)),
        Some(part) => Some(Part::Inline(part)),
    }
}
